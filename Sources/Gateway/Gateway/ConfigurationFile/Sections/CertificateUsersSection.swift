import Authentication
import PinfoldConfiguration

/// An element of `authentication.certificates` as it is written.
private struct CertificateUserKeys {
    var subject: String?
    var dns: String?
    var email: String?
    var uri: String?
    var user = ""
    var groups: [String] = []

    init() {}

    init(_ rule: CertificateUserRule) {
        switch rule.subject {
        case .subject(let pattern): subject = pattern.description
        case .dns(let text): dns = text
        case .email(let text): email = text
        case .uri(let text): uri = text
        }
        user = rule.user
        groups = rule.groups
    }

    static var table: KeyTable<Self> {
        func pattern(
            _ name: String, _ place: WritableKeyPath<Self, String?>, expected: String,
            _ isPattern: @escaping (String) -> Bool
        ) -> ConfigurationKey<Self> {
            ConfigurationKey(
                name, place, byDefault: "none",
                reading: { _, field in
                    field.parsed(expected: expected) { (text: String) -> String? in
                        isPattern(text) ? text : nil
                    }
                }, text: { $0.map(YAMLText.quoted) })
        }
        func isVisible(_ text: String) -> Bool {
            (1...1024).contains(text.utf8.count) && text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
        }
        return KeyTable(keys: [
            pattern("subject", \.subject, expected: NamePattern.expected) {
                NamePattern($0) != nil
            },
            pattern("dns", \.dns, expected: "a DNS name such as device-*.example.com", isVisible),
            pattern("email", \.email, expected: "a mail address such as *@example.com", isVisible),
            pattern(
                "uri", \.uri, expected: "a URI such as spiffe://example.com/device/*", isVisible),
            .required(
                "user", \.user, expected: "the name of the user",
                reading: { _, field in field.text(expected: "the name of a user") },
                text: YAMLText.quoted),
            ConfigurationKey(
                "groups", \.groups,
                reading: { _, field in
                    field.boundedList(of: "groups")?.compactMap {
                        $0.text(expected: "the name of a group")
                    }
                }, text: { YAMLText.list($0) }),
        ])
    }

    var subjects: [CertificateUserRule.Subject] {
        [
            subject.flatMap { NamePattern($0) }.map { .subject($0) }, dns.map { .dns($0) },
            email.map { .email($0) }, uri.map { .uri($0) },
        ].compactMap { $0 }
    }
}

/// `authentication.certificates`.
extension AuthenticationConfiguration {
    static var certificatesKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "certificates", \.certificates,
            reading: { $0.certificateUsers($1) },
            text: { rules in
                let elements = rules.compactMap {
                    CertificateUserKeys.table.flow(CertificateUserKeys($0))
                }
                return "[\(elements.joined(separator: ", "))]"
            })
        key.described = { _ in
            [DescribedKey(name: "certificates", byDefault: .yaml("[]"))]
                + CertificateUserKeys.table.described(CertificateUserKeys())
                .map { $0.within("certificates") }
        }
        return key
    }
}

extension SnapshotReader {
    fileprivate func certificateUsers(_ field: Field) -> [CertificateUserRule]? {
        let table = CertificateUserKeys.table
        return field.boundedList(of: "rules")?.compactMap { element in
            let errorsBefore = validation.errors.count
            guard let section = element.section(keys: table.names) else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with subject or dns, and user")
                }
                return nil
            }
            let keys = read(section, by: table, over: CertificateUserKeys())
            guard validation.errors.count == errorsBefore else { return nil }
            guard keys.subjects.count == 1, let subject = keys.subjects.first else {
                element.fail(
                    keys.subjects.isEmpty
                        ? "names no certificates" : "names certificates in two ways",
                    expected: "one of subject, dns, email and uri")
                return nil
            }
            do throws(CertificateUserRuleError) {
                return try CertificateUserRule(subject, user: keys.user, groups: keys.groups)
            } catch {
                let key = error == .groups ? "groups" : "user"
                (section[key] ?? element).fail(error.problem, expected: error.expected)
                return nil
            }
        }
    }
}
