import Authentication
import HTTPCore
import Trust

extension FuzzTarget {
    /// A file of keys. What is read verifies nothing by chance, and an error is on one line.
    func checkKeyFile(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let file: KeyFile
        do throws(KeyFileError) { file = try KeyFile(path: "f", content: bytes) } catch {
            let isKnownLine = error.line.map { 1...(bytes.count { $0 == 0x0A } + 1) ~= $0 } ?? true
            guard isKnownLine, !error.problem.utf8.contains(0x0A), !error.expected.isEmpty else {
                throw FuzzCheckError("an error of several lines, or of none: \(error)")
            }
            return false
        }
        guard (1...KeyFile.maximumKeys).contains(file.keys.count),
            file.keys.allSatisfy({ file.contains($0.key) })
        else { throw FuzzCheckError("\(file.keys.count) keys") }
        let zeros = [UInt8](repeating: 0, count: 63)
        // Zeros, and what fits any message if the key is the neutral element of Ed25519.
        for signature in [[0] + zeros, [1] + zeros] {
            for known in file.keys where known.key.verifies(signature, of: bytes[...]) {
                throw FuzzCheckError("a signature that anybody can make is verified")
            }
        }
        return true
    }

    /// The key of RFC 8037 §A.1, whose private half is public: seeds are signed with it.
    private static let authority: SignedTokenAuthority? = {
        var rules = SignedTokenRules()
        rules.issuer = "i"
        rules.audience = "a"
        rules.groupsClaim = "g"
        let set = """
            {"keys":[{"kty":"OKP","crv":"Ed25519",\
            "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
            """
        let keys = try? KeyFile(path: "f", content: Array(set.utf8))
        return keys.map { SignedTokenAuthority(rules: rules, keys: $0) }
    }()

    /// A token. What is accepted is meant as one, and names nobody with what logs and fields cannot
    /// have.
    func checkSignedToken(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let authority = Self.authority else { throw FuzzCheckError("there is no key") }
        let isMeant = SignedTokenAuthority.isMeant(by: bytes.span)
        guard !isMeant || SignedTokenAuthority.mayBeMeant(by: bytes.span) else {
            throw FuzzCheckError("it is meant as one without its shape")
        }
        let identity: Identity
        do throws(SignedTokenError) {
            identity = try authority.read(bytes.span, at: 1_800_000_000).verified()
        } catch {
            return false
        }
        guard isMeant else { throw FuzzCheckError("it is accepted, and not meant as one") }
        let names = [identity.user] + identity.groups
        guard names.allSatisfy({ $0.utf8.starts(with: "jwt:".utf8) }),
            names.allSatisfy({ $0.utf8.allSatisfy { 0x20...0x7E ~= $0 } }),
            !identity.userBytes.contains(0x20), identity.isValid(at: 1_800_000_000)
        else { throw FuzzCheckError("\(names) are accepted") }
        return true
    }

    /// A pattern for subjects of certificates. Matching it ends, with what the name has.
    func checkNamePattern(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self),
            let pattern = NamePattern(text)
        else { return false }
        guard pattern.description == text else { throw FuzzCheckError("it is another one") }
        let value = Array("device-7,O=Example".utf8)
        let name = CertificateNames.Attribute(type: "2.5.4.3", value: value)
        let names = [[CertificateNames.Attribute]](repeating: [name], count: 64)
        for count in [0, 1, 2, 64] {
            guard let star = pattern.match(Array(names.prefix(count))) else { continue }
            guard star.count <= value.count else { throw FuzzCheckError("\(star) is its star") }
        }
        return true
    }
}
