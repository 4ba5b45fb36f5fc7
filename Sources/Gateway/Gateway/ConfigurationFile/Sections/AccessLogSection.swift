import HTTPCore
import PinfoldConfiguration

/// `log.access`, if it is a mapping.
extension AccessLogConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .required(
                "path", \.path, expected: "the path of the access log",
                reading: { $1.outputPath() }, text: YAMLText.quoted),
            .choice("format", \.format),
            ConfigurationKey(
                "fields", \.fields, reading: { $1.accessLogFields() },
                text: { YAMLText.list($0.map(\.name)) }),
            sampleKey,
        ])
    }

    private static var sampleKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "sample", \.sampling.rules, reading: { $0.samplingRules($1) },
            text: { rules in
                let rules = rules.map { AccessLogSampling.Rule.table.flow($0) ?? "{}" }
                return "[\(rules.joined(separator: ", "))]"
            })
        key.described = { _ in
            [DescribedKey(name: "sample", byDefault: .yaml("[]"))]
                + AccessLogSampling.Rule.table.described(AccessLogSampling.Rule())
                .map { $0.within("sample") }
        }
        return key
    }
}

/// An element of `log.access.sample`.
extension AccessLogSampling.Rule {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "status", \.statuses, byDefault: "any", reading: { $1.statuses() },
                text: { $0.isEmpty ? nil : ResponseRules.statusTexts($0) }),
            ConfigurationKey(
                "longerThan", \.longerThanMilliseconds, byDefault: "any",
                reading: { $1.milliseconds(in: 1...86_400_000) },
                text: { $0.map(Quantity.text(milliseconds:)) }),
            .choice("reason", \.reason),
            .required(
                "share", \.shareMillionths, expected: "a share from 0% to 100%, such as 1%",
                reading: { $1.share() }, text: Share.text(millionths:)),
        ])
    }
}

extension SnapshotReader {
    /// The access log, or `nil` if there is none.
    func accessLog(_ field: Field) -> AccessLogConfiguration? {
        if case .scalar("none", _) = field.node.content { return nil }
        let (log, section) = read(
            field, by: AccessLogConfiguration.table, over: AccessLogConfiguration())
        guard !log.path.isEmpty else { return nil }
        if validation.environment.looksAtPaths, log.path != AccessLogConfiguration.standardOutput,
            let problem = PathAccess.problemAppending(to: log.path)
        {
            section?["path"]?.fail(problem, expected: "a file in a writable directory")
        }
        if !log.fields.isEmpty, log.format != .json {
            section?["fields"]?.fail(
                "does not apply to format: \(log.format.rawValue), whose lines are fixed",
                expected: "format: json, or no fields")
        }
        let isSampled = log.sampling.rules.contains {
            $0.shareMillionths < AccessLogSampling.whole
        }
        if isSampled, !log.fields.isEmpty, !log.fields.contains(.known(.sample)) {
            section?["fields"]?.warn(
                "lacks sample: no line tells how many exchanges it stands for")
        }
        return log
    }

    fileprivate func samplingRules(_ field: Field) -> [AccessLogSampling.Rule]? {
        guard let elements = field.list(of: "rules with share") else { return nil }
        guard elements.count <= AccessLogSampling.maximumRules else {
            field.fail(
                "has \(elements.count) entries",
                expected: "at most \(AccessLogSampling.maximumRules)")
            return nil
        }
        var rules: [AccessLogSampling.Rule] = []
        for element in elements {
            let (rule, section) = read(
                element, by: AccessLogSampling.Rule.table, over: AccessLogSampling.Rule())
            guard section != nil else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with share")
                }
                continue
            }
            if let number = rules.firstIndex(where: { $0.covers(rule) }) {
                element.warn("never applies: sample[\(number)] before it takes all of these")
            }
            rules.append(rule)
        }
        return rules
    }
}

extension Field {
    /// The path of a file, or standard output.
    fileprivate func outputPath() -> String? {
        let standardOutput = AccessLogConfiguration.standardOutput
        if case .scalar(standardOutput, _) = node.content { return standardOutput }
        return filePath()
    }

    /// A list of distinct fields; an empty one means all.
    fileprivate func accessLogFields() -> [AccessLogField]? {
        guard let elements = list(of: "fields such as time, status, request.user-agent") else {
            return nil
        }
        var fields: [AccessLogField] = []
        for element in elements {
            guard let one = element.accessLogField() else { continue }
            if fields.contains(one) { element.fail("is listed twice", expected: "each once") }
            fields.append(one)
        }
        let ofHeads = fields.count { if case .known = $0 { false } else { true } }
        if ofHeads > AccessLogField.maximumOfHeads {
            fail(
                "has \(ofHeads) fields of heads",
                expected: "at most \(AccessLogField.maximumOfHeads)")
        }
        return fields
    }

    /// The name of a field of a line.
    private func accessLogField() -> AccessLogField? {
        let known = AccessLogField.Known.allCases.map(\.rawValue)
        let expected = "one of \(known.joined(separator: ", ")), or request.NAME or response.NAME"
        guard let text = text(expected: expected) else { return nil }
        if let field = AccessLogField.Known(rawValue: text) { return .known(field) }
        for (prefix, make) in [
            (AccessLogField.requestPrefix, AccessLogField.request),
            (AccessLogField.responsePrefix, AccessLogField.response),
        ] where text.hasPrefix(prefix) {
            return headField(String(text.dropFirst(prefix.count))).map(make)
        }
        let nearest = NearestKey.nearest(to: text, among: known)
        let hint = nearest.map { " (did you mean \($0)?)" } ?? ""
        fail("there is no field \(quoted(text))\(hint)", expected: expected)
        return nil
    }

    /// The name of a field of a head, in lower case.
    private func headField(_ name: String) -> String? {
        let name = name.lowercasedASCII
        guard isToken(name), name.utf8.count <= StepGrammar.maximumNameBytes else {
            fail(
                "\(quoted(name)) is no name of a field", expected: "a name such as user-agent")
            return nil
        }
        guard !MaskedHead.isSecret(name) else {
            fail("\(name) is a secret, which no log shows", expected: "another field")
            return nil
        }
        return name
    }

    /// One status, or a list: each a number, a range or a class such as `2xx`.
    fileprivate func statuses() -> [ClosedRange<UInt16>]? {
        let expected =
            "a status from 100 to 599, a class such as 2xx, a range such as \"200-299\", or a "
            + "list of these"
        let all = elements ?? [self]
        guard !all.isEmpty else {
            fail("matches nothing", expected: expected)
            return nil
        }
        guard all.count <= 100 else {
            fail("has \(all.count) entries", expected: "at most 100")
            return nil
        }
        return all.compactMap { $0.parsed(expected: expected, Self.statuses) }
    }

    private static func statuses(_ text: String) -> ClosedRange<UInt16>? {
        if text.utf8.count == 3, text.lowercasedASCII.hasSuffix("xx"),
            let hundreds = UInt16(text.prefix(1)), (1...5).contains(hundreds)
        {
            return hundreds * 100...hundreds * 100 + 99
        }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        let codes = ends.compactMap { end -> UInt16? in
            guard end.utf8.count == 3, let code = UInt16(end) else { return nil }
            return (100...599).contains(code) ? code : nil
        }
        guard codes.count == ends.count, codes.count <= 2, let first = codes.first,
            let last = codes.last, first <= last
        else { return nil }
        return first...last
    }
}
