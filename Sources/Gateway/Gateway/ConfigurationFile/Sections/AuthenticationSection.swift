import Authentication
import HTTPCore
import PinfoldConfiguration

/// `authentication`.
extension AuthenticationConfiguration {
    static var table: KeyTable<Self> {
        func file<File>(
            _ name: String, _ place: WritableKeyPath<Self, File?>, isSecret: Bool,
            path: @escaping (File) -> String,
            reading: @escaping (String, [UInt8]) throws(CredentialsFileError) -> File
        ) -> ConfigurationKey<Self> {
            ConfigurationKey(
                name, place, byDefault: "none",
                reading: { _, field in
                    field.credentialsFile(isSecret: isSecret, reading)
                },
                text: { $0.map { YAMLText.quoted(path($0)) } })
        }
        return KeyTable(keys: [
            ConfigurationKey(
                "realm", \.realm,
                reading: { _, field in
                    field.parsed(expected: "1 to 128 characters of printable ASCII") {
                        Challenge.isRealm($0) ? $0 : nil
                    }
                }, text: YAMLText.quoted),
            file("users", \.users, isSecret: true, path: \.path) {
                (path, content) throws(CredentialsFileError) in
                try UserFile(path: path, content: content)
            },
            file("groups", \.groups, isSecret: false, path: \.path) {
                (path, content) throws(CredentialsFileError) in
                try GroupFile(path: path, content: content)
            },
            file("tokens", \.tokens, isSecret: true, path: \.path) {
                (path, content) throws(CredentialsFileError) in
                try TokenFile(path: path, content: content)
            },
            ConfigurationKey(
                "jwt", \.signedTokens, table: SignedTokenConfiguration.table,
                empty: SignedTokenConfiguration()),
            certificatesKey,
        ])
    }

    /// What is probably not meant in the files' content, one sentence each.
    var contentWarnings: [String] {
        var warnings: [String] = []
        if let users, users.isEmpty { warnings.append("\(quoted(path: users.path)) has no users") }
        if let tokens, tokens.isEmpty {
            warnings.append("\(quoted(path: tokens.path)) has no tokens")
        }
        for name in certificates.compactMap(\.fixedUser)
        where users?.contains(name) ?? false
            || tokens?.everyIdentity.contains(where: { $0.user == name }) ?? false
        {
            warnings.append(
                "\(quoted(name)) is the name of a user or a token as well as of certificates: "
                    + "rules for one apply to the other")
        }
        if let keys = signedTokens?.keys {
            warnings += keys.remarks.map { "\(quoted(path: keys.path)): \($0)" }
        }
        if let groups, let users {
            let unknown = groups.members.filter { !users.contains($0.key) }
                .sorted { ($0.value, $0.key) < ($1.value, $1.key) }
            // One line for each would fill the log after a mix-up of files.
            for (user, line) in unknown.prefix(10) {
                warnings.append(
                    "\(quoted(path: groups.path)) line \(line) names \(quoted(user)), who is not "
                        + "in \(quoted(path: users.path))")
            }
            if unknown.count > 10 {
                warnings.append(
                    "\(quoted(path: groups.path)) names \(unknown.count - 10) more who are not in "
                        + quoted(path: users.path))
            }
        }
        return warnings
    }
}

extension CredentialsFileError {
    /// The error with the file and the line.
    func text(ofFile path: String) -> String { "\(quoted(path: path)) line \(line): \(problem)" }
}

extension Field {
    /// The content of a file of users, groups or tokens; `nil` if it cannot be used, which is
    /// reported.
    fileprivate func credentialsFile<File>(
        isSecret: Bool, _ reading: (String, [UInt8]) throws(CredentialsFileError) -> File
    ) -> File? {
        guard let path = filePath(), let content = contents(ofFile: path, isKey: isSecret) else {
            return nil
        }
        do throws(CredentialsFileError) {
            return try reading(path, content)
        } catch {
            fail(error.text(ofFile: path), expected: error.expected)
            return nil
        }
    }
}

extension ListenerConfiguration {
    static var authenticationKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "authentication", \.authentication,
            reading: { _, field in
                var methods: [AuthenticationMethod] = []
                for element in field.boundedList(of: "methods") ?? [] {
                    guard let method = element.choice(AuthenticationMethod.self) else { continue }
                    if methods.contains(method) {
                        element.fail(
                            "\(method.rawValue) is named twice", expected: "each method once")
                    }
                    methods.append(method)
                }
                return methods
            },
            text: { YAMLText.list($0.map(\.rawValue)) })
    }
}

extension SnapshotReader {
    /// Checks that what listeners ask for can be proved, and by nobody who listens.
    func checkAuthentication(
        _ section: Field?, _ listeners: Field?, _ snapshot: ConfigurationSnapshot
    ) {
        let authentication = snapshot.authentication
        for text in authentication.contentWarnings { section?.warn(text) }
        let elements = listeners?.elements ?? []
        guard elements.count == snapshot.listeners.count else { return }
        for (element, listener) in zip(elements, snapshot.listeners) {
            let field = element.key("authentication") ?? element
            for method in listener.authentication {
                let (keys, what) =
                    switch method {
                    case .basic: (["users"], "a file of users and their passwords")
                    case .bearer: (["tokens", "jwt"], "a file of tokens, or keys of an issuer")
                    case .certificate: (["certificates"], "rules that say who has which")
                    }
                if listener.kind.isTransparent {
                    field.fail(
                        "does not apply to a transparent listener, whose clients know of no proxy",
                        expected: "no authentication")
                    break
                }
                if listener.kind == .socks5, method != .basic {
                    field.fail(
                        "clients of SOCKS prove who they are by a user name and a password only",
                        expected: "[basic], or []")
                    continue
                }
                if method == .certificate, listener.tls.map(\.clientRoots.isEmpty) ?? true {
                    field.fail(
                        "certificate needs clients that are asked for one",
                        expected: "tls.clientRoots with the issuers of client certificates")
                }
                // One that cannot be read has been reported.
                if keys.allSatisfy({ section?.key($0) == nil }) {
                    field.fail(
                        "\(method.rawValue) needs \(what)",
                        expected: keys.map { "authentication.\($0)" }.joined(separator: " or "))
                }
            }
            if listener.authentication.isEmpty, listener.tls?.clientCertificates == .optional {
                element.key("tls")?.key("clientCertificates")?.fail(
                    "whoever shows no certificate would be served without any proof",
                    expected: "required, or methods in authentication")
            }
            if !listener.authentication.isEmpty, listener.tls == nil,
                !listener.isLoopback
            {
                field.warn(
                    "passwords and tokens reach this listener in clear text, unless something "
                        + "else protects the way to it: add tls, with which clients use it as an "
                        + "https:// proxy")
            }
        }
        let isWritten =
            ["users", "tokens", "jwt"].contains { section?.key($0) != nil }
            || !authentication.certificates.isEmpty
        if isWritten, !snapshot.asksWho {
            section?.warn("no listener has authentication: nobody is asked")
        }
    }
}
