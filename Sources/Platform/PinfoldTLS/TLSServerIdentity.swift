import COpenSSL
import HTTPCore

/// Why a server's certificate or key cannot be used.
package enum TLSIdentityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// There is no certificate among the PEM blocks of the chain, or one that cannot be read.
    case noCertificate
    /// The certificate does not say from when until when it is valid, or nothing that can be read.
    case unreadableTimes
    /// There is no private key that can be read without a password.
    case noKey
    /// The private key is encrypted.
    case encryptedKey
    /// The key is another certificate's, or one of the two is too weak, in the library's words.
    case refused(String)

    package var description: String {
        switch self {
        case .noCertificate: "no certificate in PEM"
        case .unreadableTimes: "a certificate whose notBefore or notAfter cannot be read"
        case .noKey: "no private key in PEM that is not encrypted"
        case .encryptedKey:
            "a private key that is encrypted, and no password can be given: decrypt it with "
                + "`openssl pkey`"
        case .refused(let reason): "the certificate and the key cannot be used: \(reason)"
        }
    }
}

/// What a server proves itself with: its certificate, the certificates that lead to an anchor, and
/// the certificate's private key. Immutable; used by any number of threads at once.
package final class TLSServerIdentity: @unchecked Sendable {
    let certificate: OpaquePointer
    let key: OpaquePointer
    /// What is sent behind the certificate.
    let chain: CertificateStack
    /// What the authority says of the certificate's state (an OCSP response), in DER; nil for
    /// none.
    package let staple: [UInt8]?
    /// The names that it is for, in lower case.
    let names: [String]
    /// Whether its key is for ECDSA, which not every client can verify.
    let hasECDSAKey: Bool
    /// Until when the staple holds, in seconds since 1970; nil: it does not say.
    let stapleEnd: Int64?

    /// Names of a certificate that are known at most.
    private static let namesKnown = 1000

    /// - Parameters:
    ///   - chainPEM: the server's certificate, then those that lead to its anchor.
    ///   - keyPEM: the private key, not encrypted.
    ///   - staple: what is sent to clients that ask for the certificate's state.
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

    /// From objects of the library that were made elsewhere; they keep their other owners.
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

    /// Gives a connection of the library certificate, chain and key; false: the key is another
    /// certificate's, or one of them is too weak for the connection's settings.
    func isPresented(by ssl: OpaquePointer) -> Bool {
        SSL_use_cert_and_key(ssl, certificate, key, chain.pointer, 1) == 1
    }

    /// The alternative names, or for want of any the common name: what knows no better may ask for
    /// that.
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

    /// Whether a key is one that needs a password (RFC 5958 §3, or the older form of RFC 1421).
    private static func isEncrypted(_ pem: [UInt8]) -> Bool {
        let text = String(decoding: pem, as: UTF8.self)
        return text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("4,ENCRYPTED")
    }

    /// The first certificate; the others are added to `chain`. nil if a block is no certificate.
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
            // The end of the blocks is told as an error of its own.
            let reason = Int32(truncatingIfNeeded: pinfold_error_reason(ERR_peek_last_error()))
            guard reason == PEM_R_NO_START_LINE else {
                X509_free(first)
                return nil
            }
            return first
        }
    }
}
