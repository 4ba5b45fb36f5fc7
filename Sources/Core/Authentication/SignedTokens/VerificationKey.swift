import COpenSSL

/// The algorithms of signatures that are accepted (RFC 7518 §3.1, RFC 8037 §3.1): none that is
/// symmetric, and not `none`.
package enum SignatureAlgorithm: String, Sendable, Hashable, CaseIterable {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    case rs256 = "RS256"
    /// ECDSA with P-256 and SHA-256.
    case es256 = "ES256"
    /// Ed25519.
    case edDSA = "EdDSA"
}

/// A public key that signatures are verified with, by one algorithm and no other: which one follows
/// from the key, never from what is verified (RFC 8725 §3.1).
package final class VerificationKey: @unchecked Sendable, Equatable {
    package let algorithm: SignatureAlgorithm
    /// The key as SubjectPublicKeyInfo in DER (RFC 5280 §4.1.2.7).
    package let der: [UInt8]
    /// Not changed after it was made; the library may verify with it on several threads.
    private let key: OpaquePointer

    /// The sizes of RSA keys in bits: what is shorter is within reach (RFC 7518 §3.3), what is
    /// longer is slow.
    package static let rsaBits = 2048...8192
    /// A signature by the largest of these keys.
    package static let maximumSignatureBytes = rsaBits.upperBound / 8

    /// - Parameter der: a SubjectPublicKeyInfo.
    package init(der: [UInt8]) throws(VerificationKeyError) {
        defer { ERR_clear_error() }
        let parsed = der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
            var start = bytes.baseAddress
            guard let key = d2i_PUBKEY(nil, &start, bytes.count) else { return nil }
            guard start == bytes.baseAddress.map({ $0 + bytes.count }) else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
        guard let parsed else { throw .malformed }
        do throws(VerificationKeyError) {
            algorithm = try Self.algorithm(of: parsed, der)
        } catch {
            EVP_PKEY_free(parsed)
            throw error
        }
        self.der = der
        key = parsed
    }

    /// - Parameter ed25519: a point on Ed25519 (RFC 8032 §5.1.2).
    package convenience init(ed25519 point: [UInt8]) throws(VerificationKeyError) {
        guard point.count == Ed25519.pointBytes else { throw .malformed }
        try self.init(der: DER.ed25519Prefix + point)
    }

    deinit { EVP_PKEY_free(key) }

    private static func algorithm(
        of key: OpaquePointer, _ der: [UInt8]
    ) throws(VerificationKeyError) -> SignatureAlgorithm {
        let algorithm: SignatureAlgorithm
        if EVP_PKEY_is_a(key, "RSA") == 1 {
            let bits = Int(EVP_PKEY_get_bits(key))
            guard bits >= rsaBits.lowerBound else { throw .tooShort(bits: bits) }
            guard bits <= rsaBits.upperBound else { throw .tooLong(bits: bits) }
            guard hasUsableExponent(key) else { throw .exponent }
            algorithm = .rs256
        } else if EVP_PKEY_is_a(key, "EC") == 1 {
            // Neither another curve, nor parameters or a point in another form.
            guard der.count == DER.p256Prefix.count + 64, der.starts(with: DER.p256Prefix) else {
                throw .unsupported
            }
            algorithm = .es256
        } else if EVP_PKEY_is_a(key, "ED25519") == 1 {
            guard der.count == DER.ed25519Prefix.count + Ed25519.pointBytes,
                der.starts(with: DER.ed25519Prefix)
            else { throw .unsupported }
            let point = der.suffix(Ed25519.pointBytes)
            guard !Ed25519.isOfLowOrder(point) else { throw .lowOrder }
            guard Ed25519.isCanonical(point) else { throw .notCanonical }
            algorithm = .edDSA
        } else {
            throw .unsupported
        }
        guard let context = EVP_PKEY_CTX_new(key, nil) else { throw .malformed }
        defer { EVP_PKEY_CTX_free(context) }
        guard EVP_PKEY_public_check(context) == 1 else { throw .malformed }
        // What has another form may be another key to another reader: a negative number, say, which
        // the library takes for a positive one.
        guard encoded(key) == der else { throw .malformed }
        return algorithm
    }

    private static func encoded(_ key: OpaquePointer) -> [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(key, &output)
        defer { CRYPTO_free(output, nil, 0) }
        return Array(UnsafeBufferPointer(start: output, count: max(0, Int(count))))
    }

    /// Whether the public exponent of an RSA key is odd and at least 3 (RFC 8017 §3.1), and has at
    /// most 64 bits: OpenSSL verifies nothing with a longer one and a large modulus
    /// (`OPENSSL_RSA_MAX_PUBEXP_BITS`), and with a small one it only costs time. With 1, every
    /// padded digest is its own signature.
    private static func hasUsableExponent(_ key: OpaquePointer) -> Bool {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, "e", &number) == 1, let number else { return false }
        defer { BN_free(number) }
        return BN_is_negative(number) == 0 && BN_is_odd(number) == 1
            && (2...exponentBits).contains(Int(BN_num_bits(number)))
    }

    private static let exponentBits = 64

    /// Whether a signature is this key's.
    /// - Parameter signature: as JSON Web Signatures have it (RFC 7518 §3.3, §3.4, RFC 8037 §3.1).
    package func verifies(_ signature: [UInt8], of input: ArraySlice<UInt8>) -> Bool {
        let form: [UInt8]
        switch algorithm {
        case .rs256: form = signature
        case .es256:
            guard signature.count == 64 else { return false }
            form = DER.sequence([
                DER.integer(signature[..<32]), DER.integer(signature[32...]),
            ])
        case .edDSA:
            guard signature.count == 64 else { return false }
            form = signature
        }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        let digest = algorithm == .edDSA ? nil : EVP_sha256()
        guard EVP_DigestVerifyInit(context, nil, digest, nil, key) == 1 else { return false }
        return form.withUnsafeBufferPointer { form in
            input.withUnsafeBufferPointer { input in
                EVP_DigestVerify(
                    context, form.baseAddress, form.count, input.baseAddress, input.count) == 1
            }
        }
    }

    package static func == (one: VerificationKey, other: VerificationKey) -> Bool {
        one === other || one.der == other.der
    }
}

/// Why signatures cannot be verified with a key.
package enum VerificationKeyError: Error, Sendable, Equatable {
    case malformed
    /// A kind of key without an algorithm here.
    case unsupported
    case tooShort(bits: Int)
    case tooLong(bits: Int)
    /// The public exponent of an RSA key is even, less than 3 or longer than 64 bits.
    case exponent
    /// A point on Ed25519 of which a small multiple is the neutral element. Some signature then
    /// fits many messages, which takes no private key to make.
    case lowOrder
    /// A point on Ed25519 whose y is not reduced.
    case notCanonical
}

/// The encodings of points on Ed25519 (RFC 8032 §5.1.2): y in little-endian order, with the lowest
/// bit of x in the highest bit.
enum Ed25519 {
    static let pointBytes = 32

    /// Whether y is less than p = 2^255 - 19, as §5.1.3 demands. OpenSSL reduces it instead.
    static func isCanonical(_ point: ArraySlice<UInt8>) -> Bool {
        let y = y(of: point)
        return !(y[0] >= 0xED && y[1..<31].allSatisfy { $0 == 0xFF } && y[31] == 0x7F)
    }

    /// Whether it is one of the eight points whose order divides 8, in any encoding.
    static func isOfLowOrder(_ point: ArraySlice<UInt8>) -> Bool {
        lowOrder.contains(y(of: point))
    }

    private static func y(of point: ArraySlice<UInt8>) -> [UInt8] {
        var y = Array(point)
        y[pointBytes - 1] &= 0x7F
        return y
    }

    /// The y of these points: 1 has order 1, -1 order 2, 0 order 4, and the other two order 8.
    /// Those that are less than 19 have a second encoding, with p added. Whatever the sign of x:
    /// there is a point for either, or x is 0 and the sign means nothing.
    private static let lowOrder: Set<[UInt8]> = {
        let eighth: [UInt8] = [
            0x26, 0xE8, 0x95, 0x8F, 0xC2, 0xB2, 0x27, 0xB0, 0x45, 0xC3, 0xF4, 0x89, 0xF2, 0xEF,
            0x98, 0xF0, 0xD5, 0xDF, 0xAC, 0x05, 0xD3, 0xC6, 0x33, 0x39, 0xB1, 0x38, 0x02, 0x88,
            0x6D, 0x53, 0xFC, 0x05,
        ]
        let negative: [UInt8] = [
            0xC7, 0x17, 0x6A, 0x70, 0x3D, 0x4D, 0xD8, 0x4F, 0xBA, 0x3C, 0x0B, 0x76, 0x0D, 0x10,
            0x67, 0x0F, 0x2A, 0x20, 0x53, 0xFA, 0x2C, 0x39, 0xCC, 0xC6, 0x4E, 0xC7, 0xFD, 0x77,
            0x92, 0xAC, 0x03, 0x7A,
        ]
        func small(_ number: UInt8) -> [UInt8] { [number] + [UInt8](repeating: 0, count: 31) }
        func nearP(_ first: UInt8) -> [UInt8] {
            [first] + [UInt8](repeating: 0xFF, count: 30) + [0x7F]
        }
        // 0, 1, p - 1, p, p + 1.
        return [small(0), small(1), eighth, negative, nearP(0xEC), nearP(0xED), nearP(0xEE)]
    }()
}

/// The few forms of DER (X.690) that public keys and signatures need.
enum DER {
    /// What precedes the coordinates of a point on P-256: the algorithm with the curve, and the
    /// beginning of an uncompressed point (RFC 5480 §2).
    static let p256Prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08,
        0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]
    /// What precedes an Ed25519 key (RFC 8410 §4).
    static let ed25519Prefix: [UInt8] = [
        0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21, 0x00,
    ]
    /// rsaEncryption with its parameters (RFC 8017 §A.1).
    private static let rsaEncryption: [UInt8] = [
        0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
    ]

    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if content.count < 0x80 {
            length = [UInt8(content.count)]
        } else {
            var rest = content.count
            while rest > 0 {
                length.insert(UInt8(rest & 0xFF), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    static func sequence(_ elements: [[UInt8]]) -> [UInt8] {
        element(0x30, elements.flatMap { $0 })
    }

    /// An INTEGER that is not negative.
    /// - Parameter bytes: the number, most significant byte first.
    static func integer(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var digits = Array(bytes.drop { $0 == 0 })
        if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
        return element(0x02, digits)
    }

    /// An RSA key as SubjectPublicKeyInfo.
    static func rsaKey(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
        let key = sequence([integer(modulus), integer(exponent)])
        return sequence([rsaEncryption, element(0x03, [0] + key)])
    }
}
