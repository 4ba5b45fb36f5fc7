import HTTPCore
import PinfoldConfiguration
import Trust

/// `access.rules`.
extension AccessConfiguration {
    static var rulesKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "rules", \.rules, reading: { $0.rules($1) },
            text: { _ in "[]" })
        key.isBlock = { !$0.rules.isEmpty }
        key.block = { yaml, level, access in
            for rule in access.rules { yaml.element(level, AccessRule.table, rule) }
        }
        key.described = { _ in
            [DescribedKey(name: "rules", byDefault: .yaml("[]"))]
                + AccessRule.table.described(AccessRule()).map { $0.within("rules") }
        }
        return key
    }
}

/// An element of `access.rules`.
extension AccessRule {
    static var table: KeyTable<Self> {
        KeyTable(
            keys: [
                .required(
                    "name", \.name, expected: "a name for logs and metrics",
                    reading: { $1.name() }, text: YAMLText.quoted),
                condition("listeners", \.listeners, of: "names of listeners") { _, field in
                    field.text(expected: "the name of a listener")
                } text: {
                    $0
                },
                condition("clients", \.clients, of: "networks and addresses") {
                    $0.clientNetwork($1)
                } text: {
                    $0.clientDescription
                },
                condition("users", \.users, of: "names of users") { _, field in
                    field.text(expected: "the name of a user or of a token")
                } text: {
                    $0
                },
                condition("groups", \.groups, of: "names of groups") { _, field in
                    field.text(expected: "the name of a group")
                } text: {
                    $0
                },
                condition("hosts", \.hosts, of: "host patterns") { reader, field in
                    field.node.isEverything ? .everything : reader.hostPattern(field)
                } text: {
                    $0.description
                },
                condition("lists", \.lists, of: "names of lists") { _, field in
                    field.text(expected: "the name of a list")
                } text: {
                    $0
                },
                portsKey,
                condition("methods", \.methods, of: "methods") { _, field in
                    field.parsed(
                        expected: "a method such as GET, as it is sent",
                        meant: { isToken($0.uppercased()) ? $0.uppercased() : nil }
                    ) { isToken($0) && $0 == $0.uppercased() && $0.utf8.count <= 32 ? $0 : nil }
                } text: {
                    $0
                },
                condition("paths", \.paths, of: "path patterns") {
                    $0.pathPattern($1)
                } text: {
                    $0.description
                },
                condition("times", \.times, of: "days and hours") { _, field in
                    field.parsed(
                        expected: "days, hours or both, such as \"mon-fri 08:00-18:00\"",
                        WeeklyHours.init)
                } text: {
                    $0.description
                },
                actionKey,
                statusKey,
                pageKey,
                tunnelKey,
                interceptKey,
                parentsKey,
                rateKey,
            ])
    }

    /// A list, one of whose values must apply; a rule without it applies whatever the value.
    private static func condition<Value: Equatable>(
        _ name: String, _ place: WritableKeyPath<Self, [Value]>, of what: String,
        reading: @escaping (SnapshotReader, Field) -> Value?, text: @escaping (Value) -> String
    ) -> ConfigurationKey<Self> {
        ConfigurationKey(
            name, place, byDefault: "any",
            reading: { reader, field in
                guard let elements = field.condition(of: what) else { return nil }
                return elements.compactMap { reading(reader, $0) }
            },
            text: { $0.isEmpty ? nil : YAMLText.list($0.map(text)) })
    }

    private static var portsKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "ports", \.ports, byDefault: "any",
            reading: { _, field in
                field.condition(of: "ports")?.compactMap {
                    $0.integer(in: 1...65535).map { UInt16($0) }
                }
            },
            text: { $0.isEmpty ? nil : "[\($0.map(\.description).joined(separator: ", "))]" })
    }

    private enum ActionName: String, CaseIterable {
        case allow
        case deny
        case report
    }

    private static var actionKey: ConfigurationKey<Self> {
        .required(
            "action", \.action, expected: "allow, deny or report",
            reading: { _, field in
                switch field.choice(ActionName.self) {
                case .allow: .allow
                case .deny: .deny(AccessDenial())
                case .report: .report
                case nil: nil
                }
            }, text: \.name)
    }

    /// By which ways the requests go that it allows.
    private static var parentsKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "parents", byDefault: "as in `hosts`",
            read: { reader, field, rule in
                guard let field else { return }
                guard case .allow = rule.action else {
                    return field.fail(
                        "does not apply to action: \(rule.action.name)",
                        expected: "action: allow")
                }
                rule.parents = reader.wayNames(field) ?? []
            },
            text: { $0.parents.isEmpty ? nil : WaysConfiguration.text($0.parents) })
    }

    private static var statusKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "status", byDefault: "403",
            read: { _, field, rule in
                guard let field, var denial = rule.denial(for: field),
                    let status = field.integer(in: 400...599)
                else { return }
                denial.status = UInt16(status)
                rule.action = .deny(denial)
            },
            text: { $0.denial.map { "\($0.status)" } })
    }

    private static var pageKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "page", byDefault: "the gateway's own",
            read: { _, field, rule in
                guard let field, var denial = rule.denial(for: field) else { return }
                denial.page = field.page()
                rule.action = .deny(denial)
            },
            text: { $0.denial?.page.map { YAMLText.quoted($0.path) } })
    }

    private var denial: AccessDenial? {
        if case .deny(let denial) = action { denial } else { nil }
    }

    /// The denial that a key is part of.
    private func denial(for field: Field) -> AccessDenial? {
        if denial == nil {
            field.fail("does not apply to action: \(action.name)", expected: "action: deny")
        }
        return denial
    }
}

extension Field {
    /// The values of a condition, at least one.
    fileprivate func condition(of what: String) -> [Field]? {
        guard let elements = boundedList(of: what) else { return nil }
        if elements.isEmpty {
            fail("is empty, so that the rule applies to nothing", expected: "\(what), or no key")
        }
        return elements
    }

}

extension SnapshotReader {
    /// The maximum number of rules: each of them is looked at for each new host.
    private static let maximumAccessRules = 1000

    fileprivate func rules(_ field: Field) -> [AccessRule]? {
        guard let elements = field.list(of: "rules") else { return nil }
        guard elements.count <= Self.maximumAccessRules else {
            field.fail(
                "has \(elements.count) rules", expected: "at most \(Self.maximumAccessRules)")
            return nil
        }
        var rules: [AccessRule] = []
        for element in elements {
            let (rule, section) = read(element, by: AccessRule.table, over: AccessRule())
            guard let section else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with name and action")
                }
                continue
            }
            if rules.contains(where: { $0.name == rule.name && !rule.name.isEmpty }) {
                section["name"]?.fail(
                    "there is another rule \(quoted(rule.name))", expected: "a name of its own")
            }
            rules.append(rule)
        }
        return rules
    }

    /// A pattern of paths, here and in `hosts`.
    func pathPattern(_ field: Field) -> PathPattern? {
        let expected = "a path such as /v1/items, /v1/* or /v1/**"
        guard let text = field.text(expected: expected) else { return nil }
        do {
            return try PathPattern(text)
        } catch {
            field.fail(
                "\(quoted(text)) is not a path pattern: \(error.problem)", expected: expected)
            return nil
        }
    }
}
