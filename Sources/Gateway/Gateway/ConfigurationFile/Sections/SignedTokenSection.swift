import Authentication
import HTTPCore
import PinfoldConfiguration

/// `authentication.jwt`.
extension SignedTokenConfiguration {
    static var table: KeyTable<Self> {
        func claim(
            _ name: String, _ place: WritableKeyPath<Self, String>, expected: String
        ) -> ConfigurationKey<Self> {
            .required(
                name, place, expected: expected,
                reading: { _, field in field.parsed(expected: expected, Self.text) },
                text: YAMLText.quoted)
        }
        return KeyTable(keys: [
            .required(
                "keys", \.keys, expected: KeyFile.form,
                reading: { _, field in field.keyFile() },
                text: { $0.map { YAMLText.quoted($0.path) } }),
            claim(
                "issuer", \.rules.issuer,
                expected: "who issues the tokens, exactly as their iss says"),
            claim(
                "audience", \.rules.audience,
                expected: "for whom the tokens are, exactly as their aud says"),
            ConfigurationKey(
                "user", \.rules.userClaim,
                reading: { _, field in
                    field.parsed(expected: "the name of a claim", Self.text)
                }, text: YAMLText.quoted),
            ConfigurationKey(
                "groups", \.rules.groupsClaim, byDefault: "none",
                reading: { _, field in
                    field.parsed(expected: "the name of a claim", Self.text)
                }, text: { $0.map(YAMLText.quoted) }),
            .seconds(
                "leeway", \.rules.leewaySeconds, in: 0...SignedTokenRules.maximumLeewaySeconds),
            ConfigurationKey(
                "prefix", \.rules.prefix,
                reading: { _, field in
                    field.parsed(
                        expected: "at most 64 characters with a colon, which names in files have "
                            + "not, such as jwt:; or empty, and then the names are the same"
                    ) { text in
                        let isPrefix =
                            text.utf8.count <= 64 && text.utf8.contains(UInt8(ascii: ":"))
                            && text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
                        return isPrefix || text.isEmpty ? text : nil
                    }
                }, text: YAMLText.quoted),
        ])
    }

    private static func text(_ text: String) -> String? {
        (1...1024).contains(text.utf8.count) ? text : nil
    }
}

extension KeyFileError {
    /// The error with the file and, where it is about one, the line.
    func text(ofFile path: String) -> String {
        "\(quoted(path: path))\(line.map { " line \($0):" } ?? "") \(problem)"
    }
}

extension Field {
    /// The content of a file of keys; `nil` if it cannot be used, which is reported.
    fileprivate func keyFile() -> KeyFile?? {
        guard let path = filePath(), let content = contents(ofFile: path) else { return nil }
        do throws(KeyFileError) {
            return .some(try KeyFile(path: path, content: content))
        } catch {
            fail(error.text(ofFile: path), expected: error.expected)
            return nil
        }
    }
}
