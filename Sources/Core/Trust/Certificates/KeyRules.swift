/// The keys and signatures that are allowed (BR 6.1.5, 7.1.3), in addition to Ed25519.
enum KeyRules {
    private static let rsaEncryption: [UInt8] = [
        0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01,
    ]
    private static let ellipticCurve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    private static let ed25519: [UInt8] = [0x2B, 0x65, 0x70]
    private static let curves: [[UInt8]] = [
        [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07],
        [0x2B, 0x81, 0x04, 0x00, 0x22], [0x2B, 0x81, 0x04, 0x00, 0x23],
    ]
    /// 1.2.840.113549.1.1: sha256, sha384 and sha512 with RSA are 11 to 13, PSS is 10, MD2, MD4,
    /// MD5 and SHA-1 are 2 to 5.
    private static let rsaSignatures: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01]
    /// 1.2.840.10045.4.3: ECDSA with SHA-224 to SHA-512 are 1 to 4; 1.2.840.10045.4.1 is SHA-1.
    private static let ecdsaSignatures: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03]
    private static let ecdsaWithSHA1: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x01]
    private static let dsaWithSHA1: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x38, 0x04, 0x03]
    /// 2.16.840.1.101.3.4.2: SHA-256, SHA-384 and SHA-512 are 1 to 3.
    private static let hashes: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02]

    /// - Parameter publicKey: the contents of a SubjectPublicKeyInfo.
    static func violations(publicKey: ArraySlice<UInt8>) -> [CertificateRule] {
        var reader = DERReader(publicKey)
        guard let algorithm = reader.next(DERElement.sequence),
            let key = reader.next(DERElement.bitString), key.contents.first == 0
        else { return [.keyNotAllowed] }
        var parts = DERReader(algorithm.contents)
        guard let identifier = parts.next(DERElement.objectIdentifier)?.contents else {
            return [.keyNotAllowed]
        }
        if identifier.elementsEqual(rsaEncryption) {
            return rsa(key.contents.dropFirst())
        }
        if identifier.elementsEqual(ellipticCurve) {
            guard let curve = parts.next(DERElement.objectIdentifier)?.contents,
                curves.contains(where: { curve.elementsEqual($0) })
            else { return [.keyNotAllowed] }
            return []
        }
        return identifier.elementsEqual(ed25519) ? [] : [.keyNotAllowed]
    }

    /// - Parameter key: the DER of an RSAPublicKey (RFC 8017 §A.1.1).
    private static func rsa(_ key: ArraySlice<UInt8>) -> [CertificateRule] {
        guard let sequence = DERReader.single(key, DERElement.sequence) else {
            return [.keyNotAllowed]
        }
        var parts = DERReader(sequence.contents)
        guard let modulus = parts.next(DERElement.integer)?.contents else {
            return [.keyNotAllowed]
        }
        let digits = modulus.drop { $0 == 0 }
        guard let first = digits.first else { return [.rsaTooShort] }
        let bits = digits.count * 8 - first.leadingZeroBitCount
        var found: [CertificateRule] = []
        if bits < 2048 { found.append(.rsaTooShort) }
        if bits % 8 != 0 { found.append(.rsaNotMultipleOf8) }
        return found
    }

    /// - Parameter signature: the contents of an AlgorithmIdentifier.
    static func violation(signature: ArraySlice<UInt8>) -> CertificateRule? {
        var reader = DERReader(signature)
        guard let identifier = reader.next(DERElement.objectIdentifier)?.contents,
            let last = identifier.last
        else { return .signatureNotAllowed }
        if identifier.dropLast().elementsEqual(rsaSignatures) {
            switch last {
            case 11...13: return nil
            case 2...5: return .weakSignature
            case 10: return pss(reader)
            default: return .signatureNotAllowed
            }
        }
        if identifier.dropLast().elementsEqual(ecdsaSignatures) {
            return (2...4).contains(last) ? nil : .signatureNotAllowed
        }
        if identifier.elementsEqual(ecdsaWithSHA1) || identifier.elementsEqual(dsaWithSHA1) {
            return .weakSignature
        }
        return identifier.elementsEqual(ed25519) ? nil : .signatureNotAllowed
    }

    /// RSASSA-PSS-params (RFC 4055 §3.1): the hash is SHA-1 unless another one is given.
    private static func pss(_ parameters: DERReader) -> CertificateRule? {
        var parameters = parameters
        guard let sequence = parameters.next(DERElement.sequence) else { return .weakSignature }
        var parts = DERReader(sequence.contents)
        guard let named = parts.next(0xA0) else { return .weakSignature }
        guard let algorithm = DERReader.single(named.contents, DERElement.sequence) else {
            return .signatureNotAllowed
        }
        var fields = DERReader(algorithm.contents)
        guard let hash = fields.next(DERElement.objectIdentifier)?.contents, let last = hash.last,
            hash.dropLast().elementsEqual(hashes), (1...3).contains(last)
        else { return .weakSignature }
        return nil
    }
}
