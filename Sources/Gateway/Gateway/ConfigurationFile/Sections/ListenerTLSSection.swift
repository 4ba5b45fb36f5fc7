import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// `tls` of a listener.
extension ListenerTLS {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "certificate", byDefault: "required",
                readSection: { reader, section, tls in
                    guard let section else { return }
                    tls.certificates = reader.certificates(section)
                },
                text: { paths($0.certificates.map(\.path)) }),
            // Read together with the certificate.
            ConfigurationKey(
                "key", byDefault: "required", readSection: { _, _, _ in },
                text: { paths($0.certificates.map(\.keyPath)) }),
            ConfigurationKey(
                "ocsp", byDefault: "none", readSection: { _, _, _ in },
                text: { tls in
                    let hasStaple = tls.certificates.contains { $0.staplePath != nil }
                    return hasStaple ? paths(tls.certificates.map { $0.staplePath ?? "none" }) : nil
                }),
            .clientMinimum("minimum", \.minimum),
            ConfigurationKey(
                "clientRoots", \.clientRoots,
                reading: { reader, field in
                    field.boundedList(of: "certificate files")?
                        .compactMap { reader.rootsFile($0) }
                },
                text: { roots in
                    let paths = roots.compactMap { source in
                        if case .file(let path, _) = source { path } else { nil }
                    }
                    return YAMLText.list(paths)
                }),
            .choice("clientCertificates", \.clientCertificates),
            ConfigurationKey(
                "clientSubjects", \.clientSubjects,
                reading: { reader, field in
                    field.boundedList(of: "subjects")?.compactMap { element in
                        element.parsed(
                            expected: "a subject such as CN=device-*,O=Example",
                            SubjectPattern.init)
                    }
                },
                text: { YAMLText.list($0.map(\.description)) }),
        ])
    }

    private static func paths(_ paths: [String]) -> String {
        let texts = paths.map { $0 == "none" ? $0 : YAMLText.quoted($0) }
        return texts.count == 1 ? texts[0] : "[\(texts.joined(separator: ", "))]"
    }
}

extension ConfigurationKey {
    /// The oldest TLS version for clients. Insecure versions cause a warning.
    static func clientMinimum(
        _ name: String, _ place: WritableKeyPath<Values, ListenerTLS.Minimum>
    ) -> Self {
        Self(
            name, place,
            reading: { _, field in
                let minimum = field.choice(ListenerTLS.Minimum.self)
                if let minimum, minimum == .tls10 || minimum == .tls11 {
                    field.warn(
                        "TLS \(minimum.rawValue) is insecure (RFC 8996): an attacker between "
                            + "client and gateway may be able to read the traffic; write \"1.2\" "
                            + "unless a client supports nothing newer")
                }
                return minimum
            }, text: { YAMLText.quoted($0.rawValue) })
    }
}

extension SnapshotReader {
    /// The maximum number of certificates of a listener.
    private static let maximumCertificates = 1_000

    /// Reads `tls` of a listener. The result is `nil` if it is empty or invalid.
    func listenerTLS(
        _ field: Field, by table: KeyTable<ListenerTLS> = ListenerTLS.table
    ) -> ListenerTLS? {
        let errorsBefore = validation.errors.count
        let (tls, section) = read(field, by: table, over: ListenerTLS())
        guard let section else {
            if case .null = field.node.content {
                field.fail("is empty", expected: "a mapping with certificate and key")
            }
            return nil
        }
        if tls.clientRoots.isEmpty {
            section["clientSubjects"]?.fail(
                "has no effect without clientRoots, because no client is asked for a certificate",
                expected: "clientRoots with the issuers of client certificates")
            section["clientCertificates"]?.fail(
                "has no effect without clientRoots, because no client is asked for a certificate",
                expected: "clientRoots with the issuers of client certificates")
            section["clientRoots"]?.fail(
                "names no file, so no client certificate could be verified",
                expected: "certificate files, or no clientRoots")
        }
        guard validation.errors.count == errorsBefore else { return nil }
        check(tls, field, section)
        return tls
    }

    /// The certificates with their keys and OCSP responses.
    fileprivate func certificates(_ section: Section) -> [ListenerTLS.Certificate] {
        let expected = "a file, or a list of files"
        guard let certificate = section.required("certificate", expected: expected),
            let key = section.required("key", expected: expected)
        else { return [] }
        let (chains, keys) = (files(certificate), files(key, areKeys: true))
        let staples = section["ocsp"].map { files($0, mayBeNone: true) }
        guard (1...Self.maximumCertificates).contains(chains.count) else {
            certificate.fail(
                "has \(chains.count) files", expected: "1 to \(Self.maximumCertificates)")
            return []
        }
        guard keys.count == chains.count else {
            key.fail(
                "has \(keys.count) files for \(chains.count) certificates",
                expected: "as many keys as certificates, in the same order")
            return []
        }
        if let staples, staples.count != chains.count {
            section["ocsp"]?.fail(
                "has \(staples.count) files for \(chains.count) certificates",
                expected: "one for each certificate, in the same order, or `none`")
            return []
        }
        return chains.indices.compactMap { index in
            guard let path = chains[index].path, let chain = chains[index].contents,
                let keyPath = keys[index].path, let key = keys[index].contents
            else { return nil }
            var made = ListenerTLS.Certificate(
                path: path, chain: chain, keyPath: keyPath, key: key)
            if let staples { (made.staplePath, made.staple) = staples[index] }
            return made
        }
    }

    /// The files of a path or of a list of paths. Files that cannot be read are `nil`.
    private func files(
        _ field: Field, mayBeNone: Bool = false, areKeys: Bool = false
    ) -> [(path: String?, contents: [UInt8]?)] {
        var fields = [field]
        if case .sequence = field.node.content { fields = field.boundedList(of: "files") ?? [] }
        return fields.map { element in
            if mayBeNone, case .scalar("none", _) = element.node.content { return (nil, nil) }
            guard let path = element.filePath() else { return (nil, nil) }
            return (path, element.contents(ofFile: path, isKey: areKeys))
        }
    }

    // MARK: Checks

    /// How many days before a certificate expires a warning is given.
    private static let daysToEnd: Int64 = 30

    private func check(_ tls: ListenerTLS, _ field: Field, _ section: Section) {
        let now = Clock.wallSeconds()
        for (index, certificate) in tls.certificates.enumerated() {
            let element = section["certificate"]?.element(index) ?? field
            let key = section["key"]?.element(index) ?? field
            let identity: TLSServerIdentity
            do throws(TLSIdentityError) {
                identity = try TLSServerIdentity(
                    chainPEM: certificate.chain, keyPEM: certificate.key,
                    staple: certificate.staple)
                try identity.requireUse(minimum: TLSVersion(text: tls.minimum.rawValue) ?? .tls12)
            } catch {
                switch error {
                case .noCertificate, .unreadableTimes:
                    element.fail(
                        "\(quoted(certificate.path)) holds \(error)",
                        expected: "a certificate in PEM")
                case .noKey, .encryptedKey:
                    key.fail(
                        "\(quoted(certificate.keyPath)) holds \(error)",
                        expected: "a private key in PEM")
                case .refused:
                    key.fail("\(error)", expected: "the private key of \(certificate.path)")
                }
                continue
            }
            warn(of: identity, element, certificate.path, now)
            guard let path = certificate.staplePath,
                let problem = identity.unusableStapleReason(at: now)
            else { continue }
            let staple = section["ocsp"]?.element(index) ?? field
            let text = "\(quoted(path: path)) \(problem)"
            if problem.isError {
                staple.fail(text, expected: "the OCSP response for \(certificate.path), in DER")
            } else {
                staple.warn(text)
            }
        }
    }

    private func warn(
        of identity: TLSServerIdentity, _ field: Field, _ path: String, _ now: Int64
    ) {
        let days = CivilDate.days(from: now, to: identity.notAfter)
        if identity.notAfter < now {
            field.warn("\(quoted(path: path)) has expired: clients will refuse it; renew it")
        } else if days < Self.daysToEnd {
            field.warn("\(quoted(path: path)) expires in \(days) days; renew it")
        }
        if identity.notBefore > now { field.warn("\(quoted(path: path)) is not valid yet") }
    }
}

extension Field {
    /// An element of a list, or the value itself if it is a single value instead of a list.
    fileprivate func element(_ index: Int) -> Field {
        guard case .sequence(let nodes) = node.content, nodes.indices.contains(index) else {
            return self
        }
        return Field(node: nodes[index], path: "\(path)[\(index)]", validation: validation)
    }
}
