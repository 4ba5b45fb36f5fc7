import HTTPCore
import PinfoldConfiguration

/// `request` of an entry of `hosts`.
extension RequestRules {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .choice("cachePolicy", \.cachePolicy),
            .steps("headers", \.headers),
            ConfigurationKey.boolean("forwardUser", \.forwardsUser).printed { $0.forwardsUser },
            authorizationKey,
            ConfigurationKey("path", \.self, table: path).printed { !$0.pathPrefixes.isEmpty },
            .steps("query", \.query),
            .choice("parameters", \.parameters),
            ConfigurationKey(
                "body", \.body, table: RequestBodyRules.table,
                empty: RequestBodyRules(from: .form, to: .json)),
        ])
    }

    private static var path: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "prefixes", \.pathPrefixes, reading: { $1.pathPrefixes() },
                text: { prefixes in
                    YAMLText.mapping(prefixes.map { NamedValue($0.prefix, $0.replacement) })
                })
        ])
    }

    /// The key that translates the content, or `nil` if none does.
    var translation: String? {
        if body != nil { return "request.body" }
        return parameters == .byMethod ? "request.parameters" : nil
    }
}

/// The range of the size limits for content that rules process, in bytes.
let contentSizes = 1 << 10...256 << 20

/// `request.body`.
extension RequestBodyRules {
    fileprivate static var table: KeyTable<Self> {
        KeyTable(keys: [
            .format("from", \.from, of: BodyFormat.allCases),
            .format("to", \.to, of: BodyFormat.allCases.filter { $0 != .multipart }),
            .bytes("maximum", \.maximumBytes, in: contentSizes),
            .choice("noTransform", \.noTransform),
            .choice("arrays", \.arrays),
        ])
    }
}

extension ConfigurationKey {
    /// The format of content, a required key.
    static func format(
        _ name: String, _ place: WritableKeyPath<Values, BodyFormat>, of formats: [BodyFormat]
    ) -> Self {
        let words = formats.map(\.rawValue).joined(separator: ", ")
        return .required(
            name, place, expected: "one of \(words)",
            reading: { $1.choice(of: formats) }, text: \.rawValue)
    }
}

extension Field {
    /// The maximum length of a path prefix, in bytes.
    private static let maximumPathBytes = 255

    /// Whether a text is a path prefix of whole segments.
    private static func isPrefix(_ text: String) -> Bool {
        guard text.hasPrefix("/"), text.utf8.count <= maximumPathBytes else { return false }
        if text == "/" { return true }
        let segments = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        return segments.allSatisfy { segment in
            !["", ".", ".."].contains(segment) && isSegment(segment.utf8)
        }
    }

    /// Whether a text is a path segment (RFC 3986 §3.3): `pchar`s with valid percent-encoding.
    private static func isSegment(_ bytes: Substring.UTF8View) -> Bool {
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%") {
                guard rest.count >= 2, rest.prefix(2).allSatisfy(ByteClass.isHexDigit) else {
                    return false
                }
                rest = rest.dropFirst(2)
                continue
            }
            guard ByteClass.isTarget(byte), !"?\"<>\\^`{|}".utf8.contains(byte) else {
                return false
            }
        }
        return true
    }

    fileprivate func pathPrefixes() -> [PrefixReplacement]? {
        let expected = """
            a path prefix such as /old/one: whole segments, none of them empty, `.` or `..`, \
            percent-encoded, without a trailing slash
            """
        var found: [PrefixReplacement] = []
        for entry in named("path prefixes to their replacements") ?? [] {
            guard Self.isPrefix(entry.name) else {
                entry.failName("\(quoted(entry.name)) is not valid", expected: expected)
                continue
            }
            let replacement = entry.value.parsed(expected: expected) {
                Self.isPrefix($0) ? $0 : nil
            }
            guard let replacement else { continue }
            if replacement == entry.name {
                entry.value.fail("is replaced by itself", expected: "another path")
            }
            let earlier = found.first { $0.prefix == "/" || entry.name.hasPrefix($0.prefix + "/") }
            if let earlier {
                entry.value.warn(
                    "never applies: \(quoted(earlier.prefix)) before it matches all of these "
                        + "paths; put this one first")
            }
            found.append(PrefixReplacement(entry.name, replacement))
        }
        return found
    }
}

extension SnapshotReader {
    /// Reports contradictions between the rules for requests.
    ///
    /// - Parameter field: The key `request`, whose parts are valid by themselves.
    func check(request field: Field, _ rules: RequestRules) {
        if let headers = field.key("headers") {
            let steps = NamedStep.all(in: headers)
            checkConsistency(steps, by: HeaderRules.grammar)
            checkFields(steps) { GatewayField.reason($0, translation: rules.translation) }
        }
        if let query = field.key("query") {
            checkConsistency(NamedStep.all(in: query), by: QueryRules.grammar)
        }
        guard let body = rules.body, let place = field.key("body") else { return }
        if body.from == body.to {
            place.fail(
                "from and to are both \(body.from.rawValue)", expected: "two different formats")
        }
        let forms: [BodyFormat] = [.form, .multipart]
        if body.arrays == .indices, rules.parameters == .keep,
            !forms.contains(body.from), !forms.contains(body.to)
        {
            place.key("arrays")?.fail(
                "has no effect without a form, whose names have the indices",
                expected: "a form as from or to, or parameters: byMethod")
        }
    }
}
