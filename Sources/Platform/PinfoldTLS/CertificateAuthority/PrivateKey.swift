import COpenSSL

/// The kinds of key that certificates are issued for.
package enum CertificateKeyKind: Hashable, Sendable, CaseIterable {
    /// ECDSA on P-256: supported by every client of the last fifteen years, and the cheapest.
    case ecdsaP256
    /// RSA with 2048 bits: for clients that offer no ECDSA signature algorithm.
    case rsa2048
}

/// A private key. Immutable; safe to use from any number of threads at once.
final class PrivateKey: @unchecked Sendable {
    let pointer: OpaquePointer

    /// Takes ownership of the key.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    /// Generates a key. RSA takes a tenth of a second or more.
    convenience init(generating kind: CertificateKeyKind) throws(LibraryError) {
        switch kind {
        case .ecdsaP256: try self.init(pinfold_EVP_EC_gen("P-256"))
        case .rsa2048: try self.init(generatingRSA: 2048)
        }
    }

    convenience init(generatingRSA bits: Int) throws(LibraryError) {
        try self.init(pinfold_EVP_RSA_gen(UInt32(bits)))
    }

    /// The first private key of a PEM file, or `nil` if there is none that can be read without a
    /// password.
    convenience init?(pem: [UInt8]) {
        let read = withMemoryBIO(reading: pem) { bio in
            // Without a callback the library would ask for a password on the terminal.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let read else { return nil }
        self.init(owning: read)
    }

    private convenience init(_ made: OpaquePointer?) throws(LibraryError) {
        guard let made else { throw LibraryError() }
        self.init(owning: made)
    }

    deinit { EVP_PKEY_free(pointer) }

    /// The hash for signatures with this key: as strong as its curve, otherwise SHA-256.
    var digest: OpaquePointer? {
        let isLongCurve =
            EVP_PKEY_get_base_id(pointer) == EVP_PKEY_EC && EVP_PKEY_get_bits(pointer) > 256
        return isLongCurve ? EVP_sha384() : EVP_sha256()
    }

    /// Why a client may refuse signatures made with this key, or `nil` if none should.
    var weakness: String? {
        switch EVP_PKEY_get_base_id(pointer) {
        case EVP_PKEY_RSA:
            let bits = EVP_PKEY_get_bits(pointer)
            return bits < 2048 ? "RSA with \(bits) bits; at least 2048 are needed" : nil
        case EVP_PKEY_EC:
            let bits = EVP_PKEY_get_bits(pointer)
            return bits < 256 ? "a curve of \(bits) bits; at least 256 are needed" : nil
        default:
            return "neither RSA nor ECDSA, which clients do not verify"
        }
    }

    /// A description such as `ECDSA P-256` or `RSA 2048`.
    var text: String {
        let bits = EVP_PKEY_get_bits(pointer)
        return EVP_PKEY_get_base_id(pointer) == EVP_PKEY_EC ? "ECDSA P-\(bits)" : "RSA \(bits)"
    }

    /// PKCS #8, unencrypted.
    var pem: [UInt8]? {
        withMemoryBIO { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) == 1 }
    }
}
