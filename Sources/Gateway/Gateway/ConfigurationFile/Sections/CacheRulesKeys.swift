import CachePolicy
import PinfoldConfiguration

/// `cache` of an entry of `hosts`.
extension HostEntry {
    static var cacheTable: KeyTable<Self> {
        let keys = CacheRules.table(isOfPath: false).keys.map { $0.lifted(to: \Self.cache) }
        // Where it always was.
        return KeyTable(keys: keys[..<2] + [.choice("form", \.response.cacheForm)] + keys[2...])
    }
}

/// `cache` of an entry of `hosts` and of one of its `paths`.
extension CacheRules {
    /// What they say, as it is written in a configuration.
    package var text: String {
        CacheRules.table(isOfPath: true).flow(self) ?? "{}"
    }

    /// Durations are whole seconds; the longest is ten years.
    private static let seconds = 0...FreshnessRules.maximumLifetimeSeconds

    /// - Parameter isOfPath: Whether what is not said is as in the entry.
    static func table(isOfPath: Bool) -> KeyTable<Self> {
        let inherited: String? = isOfPath ? "from the entry" : nil
        /// What is shown as the default, and printed where nothing is said.
        func words(_ text: String) -> String { inherited ?? text }
        return KeyTable(keys: [
            ConfigurationKey(
                "store", \.stores, byDefault: inherited, reading: { $1.boolean() },
                text: { isOfPath ? $0?.description : "\($0 ?? true)" }),
            keyKey(isOfPath: isOfPath),
            ConfigurationKey(
                "fill", \.fill, byDefault: words("from cache.fill"), reading: { $1.choice() },
                text: { $0?.rawValue }),
            ConfigurationKey(
                "slice", \.sliceBytes, byDefault: words("what clients request"),
                reading: { $1.bytes(in: 64 << 10...64 << 20) },
                text: { $0.map(Quantity.text(bytes:)) }),
            freshnessKey(words),
            ConfigurationKey(
                "setCookie", \.setCookie, byDefault: words(SetCookieRule.explicit.rawValue),
                reading: { $1.choice() }, text: { $0?.rawValue }),
            .optionalSeconds(
                "staleIfError", \.staleIfErrorSeconds, in: seconds, byDefault: words("0s")),
            .optionalSeconds(
                "staleWhenUnreachable", \.staleWhenUnreachableSeconds, in: seconds,
                byDefault: words("0s")),
            bypassKey(words),
            ConfigurationKey(
                "offline", \.isOffline, byDefault: words("false"), reading: { $1.boolean() },
                text: { $0?.description }),
            ConfigurationKey(
                "compress", \.compress, byDefault: words("[]"),
                reading: { $1.mediaTypePatterns() },
                text: { $0.map { YAMLText.list($0.map(\.description)) } }),
            ConfigurationKey(
                "tags", \.tagFields,
                byDefault: words("[\(defaultTagFields.joined(separator: ", "))]"),
                reading: { $1.responseFields(atMost: 8) }, text: { $0.map(YAMLText.list) }),
            ConfigurationKey(
                "passTags", \.passesTags, byDefault: words("true"), reading: { $1.boolean() },
                text: { $0?.description }),
            ConfigurationKey(
                "targetedField", \.targetedFields,
                byDefault: words("CDN-Cache-Control for a reverse listener's servers"),
                reading: { $1.targetedFields() }, text: { $0.map(YAMLText.list) }),
        ])
    }

    private static func freshnessKey(_ words: (String) -> String) -> ConfigurationKey<Self> {
        let table = KeyTable<FreshnessRules>(keys: [
            .optionalSeconds(
                "default", \.defaultSeconds, in: seconds, byDefault: words("the heuristic")),
            .optionalSeconds("minimum", \.minimumSeconds, in: seconds, byDefault: words("none")),
            .optionalSeconds("maximum", \.maximumSeconds, in: seconds, byDefault: words("none")),
            ConfigurationKey(
                "byStatus", \.byStatus, byDefault: words("{}"),
                reading: { $1.statusLifetimes() }, text: { $0.map(\.yaml) }),
            ConfigurationKey(
                "overrides", \.overrides, byDefault: words("[]"),
                reading: { $1.policyOverrides() },
                text: { $0.map { "[\($0.names.joined(separator: ", "))]" } }),
        ])
        return ConfigurationKey("freshness", \.freshness, table: table)
    }

    private static func bypassKey(_ words: (String) -> String) -> ConfigurationKey<Self> {
        let table = KeyTable<BypassConditions>(keys: [
            ConfigurationKey(
                "fields", \.fields, byDefault: words("[]"), reading: { $0.fieldNames($1) },
                text: { $0.map(YAMLText.list) }),
            .namePatterns("cookies", \.cookies, of: "names of cookies", byDefault: words("[]")),
            .namePatterns("query", \.parameters, of: "names of parameters", byDefault: words("[]")),
        ])
        return ConfigurationKey("bypass", \.bypass, table: table)
    }

    /// `key`: a list of fields, or a mapping.
    private static func keyKey(isOfPath: Bool) -> ConfigurationKey<Self> {
        let words: (String) -> String = { isOfPath ? "from the entry" : $0 }
        let fields = KeyTable<KeyRules>(keys: [
            ConfigurationKey(
                "add", \.fields, byDefault: words("[]"), reading: { $0.fieldNames($1) },
                text: { $0.map(YAMLText.list) }),
            ConfigurationKey(
                "ignore", \.ignoredFields, byDefault: words("[]"),
                reading: { $0.ignoredFields($1) }, text: { $0.map(YAMLText.list) }),
            ConfigurationKey(
                "normalise", \.normalizedFields, byDefault: words("[]"),
                reading: { $0.normalizedFields($1) }, text: { $0.map(YAMLText.list) }),
        ])
        let query = KeyTable<KeyRules>(keys: [
            .namePatterns(
                "ignore", \.ignoredParameters, of: "names of parameters", byDefault: words("[]")),
            .namePatterns(
                "keep", \.keptParameters, of: "names of parameters", byDefault: words("all")),
            ConfigurationKey(
                "sort", \.sortsParameters, byDefault: words("false"),
                reading: { $1.boolean() }, text: { $0?.description }),
        ])
        let table = KeyTable<KeyRules>(keys: [
            ConfigurationKey("query", \.self, table: query),
            ConfigurationKey("fields", \.self, table: fields),
        ])
        var key = ConfigurationKey<Self>(
            "key", byDefault: isOfPath ? "from the entry" : nil,
            read: { reader, field, rules in
                guard let field else { return }
                if case .sequence = field.node.content {
                    rules.key.fields = reader.fieldNames(field) ?? rules.key.fields
                } else {
                    rules.key = reader.read(field, by: table, over: rules.key).values
                }
            },
            text: { rules in
                var others = rules.key
                others.fields = nil
                if others == KeyRules() {
                    return rules.key.fields.map(YAMLText.list) ?? (isOfPath ? nil : "[]")
                }
                return table.flow(rules.key)
            })
        let itself = key.described
        key.described = { rules in
            itself(rules) + table.described(rules.key).map { $0.within("key") }
        }
        return key
    }
}

extension StatusLifetimes {
    /// A flow mapping, in the order of the codes.
    fileprivate var yaml: String {
        let pairs = lifetimes.sorted { $0.key.description < $1.key.description }
            .map { "\"\($0.key)\": \(Quantity.text(milliseconds: $0.value * 1_000))" }
        return pairs.isEmpty ? "{}" : "{ \(pairs.joined(separator: ", ")) }"
    }
}

extension ConfigurationKey {
    /// A duration of whole seconds that need not be said.
    fileprivate static func optionalSeconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64?>, in range: ClosedRange<Int64>,
        byDefault: String
    ) -> Self {
        Self(
            name, place, byDefault: byDefault, reading: { $1.seconds(in: range) },
            text: { $0.map { Quantity.text(milliseconds: $0 * 1_000) } })
    }

    /// A list of names with `*`.
    fileprivate static func namePatterns(
        _ name: String, _ place: WritableKeyPath<Values, [NamePattern]?>, of what: String,
        byDefault: String
    ) -> Self {
        Self(
            name, place, byDefault: byDefault,
            reading: { _, field in
                let expected = "a name such as id or utm_*, not percent-encoded"
                guard let elements = field.list(of: what) else { return nil }
                guard elements.count <= KeyRules.maximumPatterns else {
                    field.fail(
                        "has \(elements.count) entries",
                        expected: "at most \(KeyRules.maximumPatterns) \(what)")
                    return nil
                }
                return elements.compactMap { $0.parsed(expected: expected, NamePattern.init) }
            },
            text: { $0.map { YAMLText.list($0.map(\.description)) } })
    }
}

extension Field {
    /// Lifetimes by status.
    fileprivate func statusLifetimes() -> StatusLifetimes? {
        let expected = "a status such as 404, or a class such as 4xx"
        guard let entries = named("statuses to durations") else { return nil }
        var table = StatusLifetimes()
        for entry in entries {
            guard let statuses = StatusLifetimes.Statuses(entry.name) else {
                entry.failName("\(quoted(entry.name)) is not valid", expected: expected)
                continue
            }
            if case .code(let code) = statuses, !StatusLifetimes.mayHave(code) {
                entry.failName(
                    "a response with status \(code) is about one request only, and is never stored",
                    expected: expected)
                continue
            }
            guard
                let seconds = entry.value.seconds(in: 0...FreshnessRules.maximumLifetimeSeconds)
            else { continue }
            table.set(seconds, for: statuses)
        }
        return table
    }

    fileprivate func policyOverrides() -> PolicyOverrides? {
        let names = PolicyOverrides.named.map(\.name).joined(separator: ", ")
        return boundedList(of: "names of requirements")?.reduce(into: PolicyOverrides()) {
            overrides, element in
            let override = element.parsed(expected: "one of \(names)") { text in
                PolicyOverrides.named.first { $0.name == text }?.override
            }
            if let override { overrides.insert(override) }
        }
    }

    fileprivate func mediaTypePatterns() -> [MediaTypePattern]? {
        boundedList(of: "media types")?.compactMap {
            $0.parsed(expected: "a media type such as text/html or text/*", MediaTypePattern.init)
        }
    }

    /// Names of response fields, each once, as they are written.
    fileprivate func responseFields(atMost count: Int) -> [String]? {
        guard let elements = list(of: "response header fields") else { return nil }
        guard elements.count <= count else {
            fail("has \(elements.count) fields", expected: "at most \(count)")
            return nil
        }
        var names: [String] = []
        for element in elements {
            guard let name = element.responseField() else { continue }
            if names.contains(where: { $0.lowercasedASCII == name.lowercasedASCII }) {
                element.fail("the field \(quoted(name)) is listed twice", expected: "each once")
            }
            names.append(name)
        }
        return names
    }

    /// One field, or a list of them.
    fileprivate func targetedFields() -> [String]? {
        guard case .scalar = node.content else { return responseFields(atMost: 4) }
        return responseField().map { [$0] }
    }

    private func responseField() -> String? {
        parsed(expected: "the name of a response header field") {
            isToken($0) && $0.utf8.count <= StepGrammar.maximumNameBytes ? $0 : nil
        }
    }
}

extension SnapshotReader {
    /// Request fields that do not count although Vary nominates them.
    fileprivate func ignoredFields(_ field: Field) -> [String]? {
        guard let names = fieldNames(field) else { return nil }
        for name in names where KeyRules.neverIgnored.contains(name) {
            field.fail(
                "\(quoted(name)) cannot be ignored: what is for one client would be sent to others",
                expected: "other fields")
        }
        return names
    }

    fileprivate func normalizedFields(_ field: Field) -> [String]? {
        guard let names = fieldNames(field) else { return nil }
        for name in names where !KeyRules.normalizable.contains(name) {
            field.fail(
                "the meaning of \(quoted(name)) is not known",
                expected: "Accept-Encoding or Accept-Language")
        }
        return names
    }
}
