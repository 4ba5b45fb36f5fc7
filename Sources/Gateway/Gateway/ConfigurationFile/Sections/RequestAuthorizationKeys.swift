import Documents
import HTTPCore
import PinfoldConfiguration

/// `request.authorization` as written.
struct WrittenAuthorization: Equatable {
    enum ClearText: String, CaseIterable {
        case allow
        case refuse
    }

    var user = ""
    var password: SecretSource?
    var token: SecretSource?
    var clearText = ClearText.refuse

    /// The keys that name the source of a secret.
    private static func sources(
        _ secret: String, _ place: WritableKeyPath<Self, SecretSource?>
    ) -> [ConfigurationKey<Self>] {
        SecretSource.keys(of: secret, place)
    }

    private static var basic: KeyTable<Self> {
        let user = ConfigurationKey<Self>.required(
            "user", \.user, expected: "a user name, '' for none",
            reading: { _, field in
                field.parsed(expected: "at most 256 bytes without colons or control characters") {
                    isUser($0) ? $0 : nil
                }
            }, text: YAMLText.quoted)
        return KeyTable(keys: [user] + sources("password", \.password))
    }

    private static var bearer: KeyTable<Self> {
        KeyTable(keys: sources("token", \.token))
    }

    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey("basic", \.self, table: basic).printed { $0.password != nil },
            ConfigurationKey("bearer", \.self, table: bearer).printed { $0.token != nil },
            .choice("clearText", \.clearText),
        ])
    }

    /// Whether a text is a user name, which cannot contain a colon (RFC 7617 §2).
    private static func isUser(_ text: String) -> Bool {
        text.utf8.count <= 256
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }
    }
}

extension SecretSource {
    /// The keys that name the source of a secret: `passwordFile` and `passwordVariable`.
    static func keys<Values>(
        of secret: String, _ place: WritableKeyPath<Values, SecretSource?>
    ) -> [ConfigurationKey<Values>] {
        [
            ConfigurationKey(
                secret + "File", place, byDefault: "none",
                reading: { $1.filePath().map { .file($0) } },
                text: {
                    if case .file(let path) = $0 { YAMLText.quoted(path) } else { nil }
                }),
            ConfigurationKey(
                secret + "Variable", place, byDefault: "none",
                reading: { $1.variableName().map { .variable($0) } },
                text: {
                    if case .variable(let name) = $0 { YAMLText.quoted(name) } else { nil }
                }),
        ]
    }
}

extension RequestAuthorization {
    /// `request.authorization` as printed, without the secret.
    fileprivate var written: WrittenAuthorization {
        var written = WrittenAuthorization()
        switch scheme {
        case .basic(let user, let source):
            written.user = user
            written.password = source
        case .bearer(let source): written.token = source
        }
        written.clearText = allowsClearText ? .allow : .refuse
        return written
    }
}

extension RequestRules {
    static var authorizationKey: ConfigurationKey<Self> {
        let table = WrittenAuthorization.table
        var key = ConfigurationKey<Self>(
            "authorization",
            read: { reader, field, rules in
                guard let field else { return }
                let (written, section) = reader.read(
                    field, by: table, over: WrittenAuthorization())
                guard let section else { return }
                rules.authorization = reader.authorization(written, section)
            },
            text: { $0.authorization.flatMap { table.flow($0.written) } })
        key.described = { _ in
            table.described(WrittenAuthorization()).map { $0.within("authorization") }
        }
        return key
    }
}

extension SnapshotReader {
    /// The credentials of a section that has been read, or `nil` if they are not available, which
    /// is reported.
    fileprivate func authorization(
        _ written: WrittenAuthorization, _ section: Section
    ) -> RequestAuthorization? {
        let scheme: RequestAuthorization.Scheme
        let place: Field
        switch (section["basic"], section["bearer"]) {
        case (let basic?, nil):
            guard let source = source(written.password, of: "password", in: basic) else {
                return nil
            }
            (scheme, place) = (.basic(user: written.user, source.source), source.field)
        case (nil, let bearer?):
            guard let source = source(written.token, of: "token", in: bearer) else { return nil }
            (scheme, place) = (.bearer(source.source), source.field)
        case (nil, nil), (_?, _?):
            section.field.fail(
                section["basic"] == nil ? "has no credentials" : "has both basic and bearer",
                expected: "one of basic, bearer")
            return nil
        }
        guard let bytes = place.secret(from: scheme.source, validation.environment.variables)
        else { return nil }
        do throws(SecretError) {
            var authorization = try RequestAuthorization(scheme, secret: bytes)
            authorization.allowsClearText = written.clearText == .allow
            return authorization
        } catch {
            place.fail(error.text, expected: error.expected)
            return nil
        }
    }

    /// The source of a secret, with its key, or `nil` if there is none, there are two, or it is
    /// invalid.
    private func source(
        _ source: SecretSource?, of secret: String, in field: Field
    ) -> (source: SecretSource, field: Field)? {
        let places = ["File", "Variable"].compactMap { field.key(secret + $0) }
        guard places.count == 1 else {
            field.fail(
                places.isEmpty ? "has no \(secret)" : "has two sources for the \(secret)",
                expected: "one of \(secret)File, \(secret)Variable")
            return nil
        }
        return source.map { ($0, places[0]) }
    }
}

extension Field {
    /// The name of an environment variable.
    func variableName() -> String? {
        parsed(expected: "the name of an environment variable: letters, digits and `_`") { text in
            let isName = text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
            guard isName, text.utf8.count <= 128, let first = text.utf8.first,
                !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
            else { return nil }
            return text
        }
    }

    /// The content that a secret is the first line of; `nil` if it is not available, which is
    /// reported.
    func secret(
        from source: SecretSource, _ variables: EnvironmentVariables
    ) -> [UInt8]? {
        switch source {
        case .file(let path): return contents(ofFile: path, isKey: true)
        case .variable(let name):
            if let value = variables[name] { return value }
            fail(
                "the environment variable \(quoted(name)) is not set",
                expected: "a variable in the gateway's environment")
            return nil
        }
    }
}

/// Why a secret cannot be used. The text does not contain the secret.
struct SecretError: Error, Equatable {
    var text: String
    var expected: String
}

extension RequestAuthorization.Scheme {
    var source: SecretSource {
        switch self {
        case .basic(_, let source), .bearer(let source): source
        }
    }
}

extension SecretSource {
    /// The name of the source in errors.
    var name: String {
        switch self {
        case .file(let path): quoted(path: path)
        case .variable(let name): "the environment variable \(quoted(name))"
        }
    }
}

extension RequestAuthorization {
    /// The maximum length of a secret, in bytes.
    private static let maximumSecretBytes = 8192

    /// Creates credentials. The secret is the first line of its source's content.
    init(_ scheme: Scheme, secret content: [UInt8]) throws(SecretError) {
        var secret = Array(content.prefix { $0 != 0x0A })
        if secret.count < content.count, secret.last == 0x0D { secret.removeLast() }
        let name = scheme.source.name
        guard !secret.isEmpty else {
            throw SecretError(text: "\(name) is empty", expected: "a secret in its first line")
        }
        guard secret.count <= Self.maximumSecretBytes else {
            throw SecretError(
                text: "\(name) has a first line of \(secret.count) bytes",
                expected: "at most \(Self.maximumSecretBytes)")
        }
        let value: String
        switch scheme {
        case .basic(let user, _):
            // RFC 7617 §2: no control characters, in UTF-8 (§2.1).
            guard secret.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }),
                String(validating: secret, as: UTF8.self) != nil
            else {
                throw SecretError(
                    text: "\(name) has no valid password",
                    expected: "UTF-8 text without control characters in its first line")
            }
            value = "Basic " + Base64.encode(Array(user.utf8) + [UInt8(ascii: ":")] + secret)
        case .bearer:
            guard secret.allSatisfy({ 0x21...0x7E ~= $0 }) else {
                throw SecretError(
                    text: "\(name) has no valid token",
                    expected: "a token of visible ASCII characters in its first line")
            }
            value = "Bearer " + String(decoding: secret, as: UTF8.self)
        }
        self.init(fieldValue: SecretText(value), scheme: scheme)
    }
}
