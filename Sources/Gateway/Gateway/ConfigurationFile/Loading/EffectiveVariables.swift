import PinfoldConfiguration

/// Puts `${NAME}` back into a configuration that is printed.
///
/// The text is parsed again, and what has been written with variables at a key is printed there as
/// it was written. Values that can be recognized are replaced everywhere else, too: a name may have
/// been derived from one. A literal `${` is escaped, so that the text is still a configuration with
/// the same meaning.
struct EffectiveVariables: ~Copyable {
    private let text: [Unicode.Scalar]
    private let variables: UsedVariables
    private var events: YAMLEvents
    /// What is to be replaced, in the order of the text.
    private var changes: [(range: Range<Int>, text: String)] = []

    static func written(in text: String, _ variables: UsedVariables) -> String {
        guard !variables.isEmpty || text.utf8.contains(UInt8(ascii: "$")) else { return text }
        do {
            var effective = EffectiveVariables(
                text: Array(text.unicodeScalars), variables: variables,
                events: try YAMLEvents(Array(text.utf8)[...]))
            return try effective.rewritten()
        } catch {
            // What is printed is always YAML. Were it not, nothing could be told apart.
            return "# the configuration cannot be printed\n"
        }
    }

    private init(
        text: [Unicode.Scalar], variables: UsedVariables, events: consuming YAMLEvents
    ) {
        self.text = text
        self.variables = variables
        self.events = events
    }

    private mutating func rewritten() throws(YAMLError) -> String {
        _ = try events.next()  // the document
        try value(try events.next(), path: "")
        var result = String.UnicodeScalarView()
        var copied = 0
        for change in changes {
            result += text[copied..<change.range.lowerBound]
            result += change.text.unicodeScalars
            copied = change.range.upperBound
        }
        return String(result + text[copied...])
    }

    private mutating func value(_ event: YAMLEvents.Event, path: String) throws(YAMLError) {
        switch event.content {
        case .scalar(let text, let isPlain, _):
            if let written = variables.places[path] {
                changes.append((event.range, Self.yaml(written)))
            } else if !isPlain {
                let shown = variables.concealed(in: VariableSyntax.escaped(text))
                if shown != text { changes.append((event.range, YAMLText.quoted(shown))) }
            }
        case .sequenceStart:
            let start = event.range.lowerBound
            if let written = variables.places[path], text[start] == "[" {
                let end = try skip()
                changes.append((start..<end, Self.yaml(written)))
                return
            }
            var index = 0
            while case let element = try events.next(), !element.isEnd {
                try value(element, path: "\(path)[\(index)]")
                index += 1
            }
        case .mappingStart:
            while case let key = try events.next(), !key.isEnd {
                guard case .scalar(let name, _, _) = key.content else { continue }
                try value(try events.next(), path: Section.path(path, name))
            }
        case .documentStart, .documentEnd, .alias, .collectionEnd, .streamEnd: break
        }
    }

    /// Reads to the end of a list of scalars; returns where that is.
    private mutating func skip() throws(YAMLError) -> Int {
        var depth = 1
        while true {
            let event = try events.next()
            switch event.content {
            case .sequenceStart, .mappingStart: depth += 1
            case .collectionEnd: depth -= 1
            case .streamEnd: return event.range.upperBound
            case .documentStart, .documentEnd, .alias, .scalar: break
            }
            if depth == 0 { return event.range.upperBound }
        }
    }

    /// In quotes, which `${NAME}` needs within braces and brackets.
    private static func yaml(_ written: UsedVariables.Written) -> String {
        switch written {
        case .scalar(let text): YAMLText.quoted(text)
        case .list(let texts): YAMLText.list(texts)
        }
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

extension ConfigurationValidation {
    /// The variables, and where they are written in a document that has been read.
    func variables(writtenIn root: ConfigNode) -> UsedVariables {
        guard !variables.isEmpty else { return variables }
        var places: [String: UsedVariables.Written] = [:]
        collect(root, path: "", into: &places)
        return UsedVariables(
            values: variables.values, places: places, forms: VariableExpansion.forms)
    }

    /// Keys of an entry of `hosts` that are printed as others that mean the same.
    private static let otherNames = [
        ("].request.timeout", "].timeouts.firstByte"),
        ("].response.body.maximum", "].response.maximum"),
        ("].response.body.larger", "].response.larger"),
        ("].response.body.noTransform", "].response.noTransform"),
    ]

    private func collect(
        _ node: ConfigNode, path: String, into places: inout [String: UsedVariables.Written]
    ) {
        switch node.content {
        case .null: break
        case .scalar:
            guard node.written != nil else { break }
            let written = UsedVariables.Written.scalar(text(node, path))
            places[path] = written
            for (key, printed) in Self.otherNames where path.hasSuffix(key) {
                places[path.dropLast(key.count) + printed] = written
            }
        case .sequence(let values):
            for (index, value) in values.enumerated() {
                collect(value, path: "\(path)[\(index)]", into: &places)
            }
            // As a whole, too: a list may be printed in another order.
            if values.allSatisfy(\.isScalar), values.contains(where: { $0.written != nil }) {
                places[path] = .list(
                    values.enumerated().map { text($0.element, "\(path)[\($0.offset)]") })
            }
        case .mapping(let entries):
            for entry in entries {
                collect(entry.value, path: Section.path(path, entry.key), into: &places)
            }
        }
    }

    private func text(_ node: ConfigNode, _ path: String) -> String {
        guard case .scalar(let text, _) = node.content else { return "" }
        return filePaths[path] ?? node.written?.text ?? VariableSyntax.escaped(text)
    }
}

extension ConfigNode {
    fileprivate var isScalar: Bool { if case .scalar = content { true } else { false } }
}
