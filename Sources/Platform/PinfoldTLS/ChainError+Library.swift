import COpenSSL
import Trust

extension ChainError {
    static let outOfMemory = ChainError.other(
        code: X509_V_ERR_OUT_OF_MEM, text: "out of memory")

    /// The reason why the library refused a chain.
    init(_ building: OpaquePointer, leaf: OpaquePointer, host: String) {
        let code = X509_STORE_CTX_get_error(building)
        let view = X509View(X509_STORE_CTX_get_current_cert(building) ?? leaf)
        switch code {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            self = .hostMismatch(host: host, names: X509View(leaf).names)
        case X509_V_ERR_CERT_HAS_EXPIRED:
            self = .expired(subject: view.subject, notAfter: view.notAfter)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            self = .notYetValid(subject: view.subject, notBefore: view.notBefore)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
            self = .selfSigned(subject: view.subject)
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED:
            self = .untrustedRoot(subject: view.subject)
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            self = .incompleteChain(subject: view.subject, issuer: view.issuer)
        case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE,
            X509_V_ERR_UNABLE_TO_DECODE_ISSUER_PUBLIC_KEY:
            self = .badSignature(subject: view.subject)
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA,
            X509_V_ERR_KEYUSAGE_NO_CERTSIGN:
            self = .wrongPurpose(subject: view.subject)
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            self = .weakCryptography(subject: view.subject)
        case X509_V_ERR_PATH_LENGTH_EXCEEDED, X509_V_ERR_PERMITTED_VIOLATION,
            X509_V_ERR_EXCLUDED_VIOLATION:
            self = .constraintViolated(subject: view.subject)
        default:
            if let failure = RevocationError(code, certificate: view) {
                self = .revocation(failure)
                return
            }
            self = .other(
                code: code, text: String(cString: X509_verify_cert_error_string(Int(code))))
        }
    }

    /// The library's error code that makes it send the appropriate alert.
    var alertCode: Int32 {
        switch self {
        case .hostMismatch: X509_V_ERR_HOSTNAME_MISMATCH
        case .expired: X509_V_ERR_CERT_HAS_EXPIRED
        case .notYetValid: X509_V_ERR_CERT_NOT_YET_VALID
        case .selfSigned: X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
        case .untrustedRoot: X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN
        case .incompleteChain: X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY
        case .badSignature: X509_V_ERR_CERT_SIGNATURE_FAILURE
        case .wrongPurpose: X509_V_ERR_INVALID_PURPOSE
        case .weakCryptography: X509_V_ERR_EE_KEY_TOO_SMALL
        case .constraintViolated: X509_V_ERR_PERMITTED_VIOLATION
        case .malformed, .noCertificate, .rule: X509_V_ERR_CERT_REJECTED
        case .revocation(let failure):
            failure.reason == .revoked || failure.reason == .stapleRevoked
                ? X509_V_ERR_CERT_REVOKED : X509_V_ERR_CERT_REJECTED
        case .other(let code, _): code
        }
    }
}
