import COpenSSL
import Trust

/// Why a server's flight does not prove that it has its certificate's key.
package enum ServerProofError: Error, Hashable, Sendable {
    /// The certificate or the kind of signature is not supported.
    case unusable(String)
    /// The signature was not made with the certificate's key for this handshake.
    case wrongSignature
}

extension ServerProof {
    /// Checks that the key of this handshake is signed with the key of the first certificate (RFC
    /// 5246 §7.4.3, RFC 4346 §7.4.3, RFC 8422 §5.4). Without this a certificate proves nothing:
    /// anybody can send another server's.
    ///
    /// In an RSA key exchange nothing is signed, and nothing needs to be: only the owner of the
    /// certificate's key can decrypt what the client encrypts to it, and without that the server's
    /// Finished is wrong. What is checked then is that the key can be used that way.
    package func verifyPossession() throws(ServerProofError) {
        guard let leaf = chain.first, let certificate = parseCertificate(der: leaf) else {
            throw .unusable("the certificate cannot be read")
        }
        defer {
            X509_free(certificate)
            ErrorQueue.clear()
        }
        guard let key = X509_get0_pubkey(certificate) else {
            throw .unusable("the certificate's key cannot be read")
        }
        guard let keyExchange else {
            guard EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA else {
                throw .unusable("RSA key exchange with a certificate whose key is not RSA")
            }
            return
        }
        let signature = try SignatureKind(keyExchange.scheme, key: key)
        guard signature.matches(key) else {
            throw .unusable("a signature that does not match the certificate's key")
        }
        guard
            signature.verifies(
                keyExchange.signature, over: randoms + keyExchange.parameters, by: key)
        else { throw .wrongSignature }
    }
}

/// How a signature is made, by TLS's numbers (RFC 8446 §4.2.3, RFC 5246 §7.4.1.4.1).
private struct SignatureKind {
    enum Algorithm { case rsa, rsaPSS, ecdsa, edwards }

    let algorithm: Algorithm
    /// The digest by the library's name, or `nil` if the algorithm has its own.
    let digest: String?

    /// - Parameters:
    ///   - scheme: the message's value, or `nil` before TLS 1.2, where the key decides.
    init(_ scheme: UInt16?, key: OpaquePointer) throws(ServerProofError) {
        guard let scheme else {
            // MD5 followed by SHA-1 for RSA, SHA-1 for ECDSA.
            let isRSA = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA
            algorithm = isRSA ? .rsa : .ecdsa
            digest = isRSA ? "MD5-SHA1" : "SHA1"
            return
        }
        switch scheme {
        case 0x0804, 0x0809: (algorithm, digest) = (.rsaPSS, "SHA256")
        case 0x0805, 0x080A: (algorithm, digest) = (.rsaPSS, "SHA384")
        case 0x0806, 0x080B: (algorithm, digest) = (.rsaPSS, "SHA512")
        case 0x0807, 0x0808: (algorithm, digest) = (.edwards, nil)
        default:
            let digests: [UInt16: String] = [
                2: "SHA1", 3: "SHA224", 4: "SHA256", 5: "SHA384", 6: "SHA512",
            ]
            // MD5 is excluded: whoever chooses what is signed can find a collision.
            guard let digest = digests[scheme >> 8] else {
                throw .unusable("an unknown signature")
            }
            self.digest = digest
            switch scheme & 0xFF {
            case 1: algorithm = .rsa
            case 3: algorithm = .ecdsa
            default: throw .unusable("an unknown signature")
            }
        }
    }

    func matches(_ key: OpaquePointer) -> Bool {
        switch (algorithm, EVP_PKEY_get_base_id(key)) {
        case (.rsa, EVP_PKEY_RSA), (.rsaPSS, EVP_PKEY_RSA), (.rsaPSS, EVP_PKEY_RSA_PSS),
            (.ecdsa, EVP_PKEY_EC), (.edwards, EVP_PKEY_ED25519), (.edwards, EVP_PKEY_ED448):
            true
        default: false
        }
    }

    func verifies(_ signature: [UInt8], over content: [UInt8], by key: OpaquePointer) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        var parameters: OpaquePointer?
        guard EVP_DigestVerifyInit_ex(context, &parameters, digest, nil, nil, key, nil) == 1 else {
            return false
        }
        if algorithm == .rsaPSS {
            // The salt is as long as the digest (RFC 8446 §4.2.3).
            guard EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1
            else { return false }
        }
        return EVP_DigestVerify(context, signature, signature.count, content, content.count) == 1
    }
}
