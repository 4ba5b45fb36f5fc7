import PinfoldConfiguration
import PinfoldTLS

/// `ciphers` and `cipherSuites` of `tls`.
extension UpstreamTLS {
    static var cipherKeys: [ConfigurationKey<Self>] {
        [
            ConfigurationKey(
                "ciphers", byDefault: "OpenSSL's",
                readSection: { reader, section, tls in
                    guard let field = section?["ciphers"] else { return }
                    tls.ciphers = reader.ciphers(field) ?? tls.ciphers
                    if tls.minimum == .tls13 {
                        field.warn(
                            "has no effect with minimum: \"1.3\"; set cipherSuites instead")
                    }
                },
                text: { $0.ciphers.map(YAMLText.quoted) }),
            ConfigurationKey(
                "cipherSuites", byDefault: "OpenSSL's",
                read: { reader, field, tls in
                    guard let field else { return }
                    tls.cipherSuites = reader.cipherSuites(field) ?? tls.cipherSuites
                },
                text: { $0.cipherSuites.map(YAMLText.quoted) }),
        ]
    }
}

extension SnapshotReader {
    fileprivate func ciphers(_ field: Field) -> String? {
        let expected = "a cipher list in OpenSSL's format, such as ECDHE+AESGCM:!aNULL"
        guard let list = joined(field, expected: expected) else { return nil }
        do throws(CipherListError) {
            try CipherLists.check(ciphers: list)
        } catch {
            field.fail("\(error)", expected: expected)
            return nil
        }
        return list
    }

    fileprivate func cipherSuites(_ field: Field) -> String? {
        let expected = "any of \(CipherLists.suitesOfTLS13.joined(separator: ", "))"
        guard let list = joined(field, expected: expected) else { return nil }
        do throws(CipherListError) {
            try CipherLists.check(cipherSuites: list)
        } catch {
            field.fail("\(error)", expected: expected)
            return nil
        }
        return list
    }

    /// A text, or a list of texts joined with `:`.
    private func joined(_ field: Field, expected: String) -> String? {
        guard case .sequence = field.node.content else { return field.text(expected: expected) }
        let elements = field.boundedList(of: "cipher suites") ?? []
        return elements.compactMap { $0.text(expected: expected) }.joined(separator: ":")
    }
}
