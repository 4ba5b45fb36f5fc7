import COpenSSL
import HTTPCore

/// Why a server's certificate or key cannot be used.
package enum TLSIdentityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The PEM of the chain contains no certificate, or one that cannot be read.
    case noCertificate
    /// The certificate has no readable validity period.
    case unreadableTimes
    /// There is no private key that can be read without a password.
    case noKey
    /// The private key is encrypted.
    case encryptedKey
    /// The key belongs to another certificate, or one of the two is too weak; with the library's
    /// message.
    case refused(String)

    package var description: String {
        switch self {
        case .noCertificate: "no certificate in PEM"
        case .unreadableTimes: "a certificate whose notBefore or notAfter cannot be read"
        case .noKey: "no unencrypted private key in PEM"
        case .encryptedKey:
            "a private key that is encrypted, and no password can be given: decrypt it with "
                + "`openssl pkey`"
        case .refused(let reason): "the certificate and the key cannot be used: \(reason)"
        }
    }
}

/// A server's credentials: its certificate, the certificates that lead to an anchor, and the
/// certificate's private key. Immutable; safe to use from any number of threads at once.
package final class TLSServerIdentity: @unchecked Sendable {
    let certificate: OpaquePointer
    let key: OpaquePointer
    /// The certificates sent after the server's own.
    let chain: CertificateStack
    /// The authority's statement about the certificate's status (an OCSP response), in DER, or
    /// `nil` for none.
    package let staple: [UInt8]?
    /// The names that it is for, in lower case.
    let names: [String]
    /// Whether its key is for ECDSA, which not every client can verify.
    let hasECDSAKey: Bool
    /// How long the staple is valid, in seconds since 1970, or `nil` if it does not say.
    let stapleEnd: Int64?

    /// The maximum number of a certificate's names that are considered.
    private static let namesKnown = 1000

    /// - Parameters:
    ///   - chainPEM: the server's certificate, then those that lead to its anchor.
    ///   - keyPEM: the private key, unencrypted.
    ///   - staple: sent to clients that request the certificate's status.
    package init(
        chainPEM: [UInt8], keyPEM: [UInt8], staple: [UInt8]? = nil
    ) throws(TLSIdentityError) {
        guard let key = Self.readKey(keyPEM) else {
            throw Self.isEncrypted(keyPEM) ? .encryptedKey : .noKey
        }
        self.key = key
        guard let chain = CertificateStack(), let certificate = Self.readChain(chainPEM, chain)
        else {
            EVP_PKEY_free(key)
            throw .noCertificate
        }
        self.chain = chain
        self.certificate = certificate
        self.staple = staple
        stapleEnd = staple.flatMap { OCSPResponse($0)?.answer(for: certificate)?.nextUpdate }
        names = Self.names(of: certificate)
        hasECDSAKey = EVP_PKEY_get_base_id(key) == EVP_PKEY_EC
        guard X509View(certificate).hasTimes else { throw .unreadableTimes }
    }

    /// An identity from library objects made elsewhere, which keep their other owners.
    package init(
        certificate: OpaquePointer, chain others: [OpaquePointer] = [], key: OpaquePointer
    ) throws(TLSIdentityError) {
        guard let chain = CertificateStack() else { throw .noCertificate }
        for other in others { chain.append(other) }
        X509_up_ref(certificate)
        EVP_PKEY_up_ref(key)
        self.certificate = certificate
        self.key = key
        self.chain = chain
        staple = nil
        stapleEnd = nil
        names = Self.names(of: certificate)
        hasECDSAKey = EVP_PKEY_get_base_id(key) == EVP_PKEY_EC
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    /// Sets a connection's certificate, chain and key. Returns `false` if the key belongs to
    /// another certificate, or if one of them is too weak for the connection's settings.
    func isPresented(by ssl: OpaquePointer) -> Bool {
        SSL_use_cert_and_key(ssl, certificate, key, chain.pointer, 1) == 1
    }

    /// The alternative names or, if there are none, the common name: old clients may ask for that.
    private static func names(of certificate: OpaquePointer) -> [String] {
        let view = X509View(certificate)
        let alternatives = view.names(atMost: namesKnown).map(\.text)
        let names = alternatives.isEmpty ? view.commonName.map { [$0] } ?? [] : alternatives
        return names.map(\.lowercasedASCII)
    }

    private static func withBIO<R>(
        _ bytes: [UInt8], _ body: (OpaquePointer) -> R?
    ) -> R? {
        bytes.withUnsafeBytes { buffer in
            guard let bio = BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count))
            else { return nil }
            defer {
                BIO_free(bio)
                ERR_clear_error()
            }
            return body(bio)
        }
    }

    private static func readKey(_ pem: [UInt8]) -> OpaquePointer? {
        guard !pem.isEmpty else { return nil }
        return withBIO(pem) { bio in
            // Without a callback the library would ask for a password on the terminal.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
    }

    /// Whether a key needs a password (RFC 5958 §3, or the older form of RFC 1421).
    private static func isEncrypted(_ pem: [UInt8]) -> Bool {
        let text = String(decoding: pem, as: UTF8.self)
        return text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("4,ENCRYPTED")
    }

    /// The first certificate; the others are appended to `chain`. `nil` if a block is not a
    /// certificate.
    private static func readChain(
        _ pem: [UInt8], _ chain: CertificateStack
    ) -> OpaquePointer? {
        guard !pem.isEmpty else { return nil }
        return withBIO(pem) { bio in
            var first: OpaquePointer?
            while let certificate = PEM_read_bio_X509(bio, nil, { _, _, _, _ in -1 }, nil) {
                if first == nil {
                    first = certificate
                } else {
                    chain.append(certificate)
                    X509_free(certificate)
                }
            }
            // The library reports the end of the blocks as a specific error.
            let reason = Int32(truncatingIfNeeded: pinfold_error_reason(ERR_peek_last_error()))
            guard reason == PEM_R_NO_START_LINE else {
                X509_free(first)
                return nil
            }
            return first
        }
    }
}
