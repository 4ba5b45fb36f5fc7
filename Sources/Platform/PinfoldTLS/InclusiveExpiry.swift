import COpenSSL
import Clocks

/// The last second of a certificate's validity, which is part of it: the period is "notBefore
/// through notAfter, inclusive" (RFC 5280 §4.1.2.5). The library has a certificate expire at
/// notAfter, because its time comparison reports equal as earlier.
enum InclusiveExpiry {
    /// Makes a verification that has no other callback accept the last second as valid.
    static let callback: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isVerified, building in
        guard isVerified == 0, let building, InclusiveExpiry.isOnlyError(building) else {
            return isVerified
        }
        X509_STORE_CTX_set_error(building, X509_V_OK)
        return 1
    }

    /// Whether the only error of a verification is that a certificate is in its last second. Valid
    /// only within the library's callback.
    static func isOnlyError(_ building: OpaquePointer) -> Bool {
        guard X509_STORE_CTX_get_error(building) == X509_V_ERR_CERT_HAS_EXPIRED,
            let certificate = X509_STORE_CTX_get_current_cert(building),
            let parameters = X509_STORE_CTX_get0_param(building)
        else { return false }
        let flags = X509_VERIFY_PARAM_get_flags(parameters)
        let isGiven = flags & UInt(X509_V_FLAG_USE_CHECK_TIME) != 0
        let now =
            isGiven
            ? Int64(X509_VERIFY_PARAM_get_time(parameters)) : Clock.wallSeconds()
        return X509View(certificate).notAfter == now
    }
}
