import PinfoldConfiguration

extension ConfigurationSnapshot {
    /// The effective configuration as it is shown to people: ``effectiveYAML()`` with `***` in
    /// place of what may be a secret.
    ///
    /// Most secrets are in files and variables, of which only the names are printed. What may be
    /// written into the configuration itself is what rules put into fields and parameters, and
    /// parts of URLs.
    func maskedYAML() -> String { MaskedYAML.masked(effectiveYAML()) }
}

/// Puts `***` into a configuration that is printed, in place of what may be a secret: a name does
/// not say for certain that its value is none, so all values that rules write are left out.
struct MaskedYAML: ~Copyable {
    static let mask = "***"

    private let text: [Unicode.Scalar]
    private var events: YAMLEvents
    /// What is to be replaced, in the order of the text.
    private var changes: [(range: Range<Int>, text: String)] = []

    /// - Parameter text: YAML as ``ConfigurationSnapshot/effectiveYAML()`` prints it.
    static func masked(_ text: String) -> String {
        do {
            var masked = MaskedYAML(
                text: Array(text.unicodeScalars), events: try YAMLEvents(Array(text.utf8)[...]))
            return try masked.rewritten()
        } catch {
            // What cannot be understood is not shown: it could hold a secret.
            return "# the configuration cannot be shown\n"
        }
    }

    private init(text: [Unicode.Scalar], events: consuming YAMLEvents) {
        self.text = text
        self.events = events
    }

    private mutating func rewritten() throws(YAMLError) -> String {
        _ = try events.next()  // the document
        try value(try events.next(), at: MaskedPlace())
        var result = String.UnicodeScalarView()
        var copied = 0
        for change in changes {
            result += text[copied..<change.range.lowerBound]
            result += change.text.unicodeScalars
            copied = change.range.upperBound
        }
        return String(result + text[copied...])
    }

    private mutating func value(
        _ event: YAMLEvents.Event, at place: MaskedPlace
    ) throws(YAMLError) {
        switch event.content {
        case .scalar(let text, let isPlain, _):
            let shown = place.shown(text, isPlain: isPlain)
            guard shown != text else { return }
            changes.append((event.range, YAMLText.quoted(shown)))
        case .sequenceStart:
            while case let element = try events.next(), !element.isEnd {
                try value(element, at: place.element)
            }
        case .mappingStart:
            while case let key = try events.next(), !key.isEnd {
                guard case .scalar(let name, _, _) = key.content else { continue }
                try value(try events.next(), at: place.below(name))
            }
        case .documentStart, .documentEnd, .alias, .collectionEnd, .streamEnd: break
        }
    }

    /// A text with `***` in place of the userinfo and the query of its URL, if it is one, or in
    /// place of the query of a path.
    static func withoutSecrets(url text: String) -> String {
        guard let slashes = text.firstRange(of: "://") else {
            guard text.hasPrefix("/"), let query = text.firstIndex(of: "?") else { return text }
            return text[...query] + mask
        }
        let rest = text[slashes.upperBound...]
        let authority = rest.prefix { !"/?#".contains($0) }
        var shown = String(text[..<slashes.upperBound])
        var end = authority[...]
        if let at = authority.lastIndex(of: "@") {
            shown += mask
            end = authority[at...]
        }
        shown += end
        let path = rest[authority.endIndex...]
        let beforeQuery = path.prefix { $0 != "?" }
        shown += beforeQuery
        if beforeQuery.endIndex < path.endIndex { shown += "?" + mask }
        return shown
    }
}

extension YAMLEvents.Event {
    fileprivate var isEnd: Bool {
        switch content {
        case .collectionEnd, .streamEnd: true
        case .documentStart, .documentEnd, .alias, .scalar, .sequenceStart, .mappingStart: false
        }
    }
}
