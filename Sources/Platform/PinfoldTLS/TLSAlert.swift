/// A TLS alert (RFC 8446 §6).
package struct TLSAlert: Hashable, Sendable {
    /// Its code on the wire.
    package let code: UInt8

    /// The alert with a code.
    package init(code: UInt8) { self.code = code }

    package static let handshakeFailure = TLSAlert(code: 40)
    package static let illegalParameter = TLSAlert(code: 47)
    package static let accessDenied = TLSAlert(code: 49)
    package static let protocolVersion = TLSAlert(code: 70)
    package static let decryptError = TLSAlert(code: 51)
    package static let internalError = TLSAlert(code: 80)
    package static let unrecognizedName = TLSAlert(code: 112)
    package static let certificateRequired = TLSAlert(code: 116)

    /// Whether it means that the receiver's certificate is not acceptable (RFC 8446 §6.2).
    package var isAboutCertificate: Bool { (42...46).contains(code) || code == 48 }

    /// Its name in IANA's registry of TLS alerts. The library's own list ends before TLS 1.3.
    package var name: String {
        switch code {
        case 0: "close_notify"
        case 10: "unexpected_message"
        case 20: "bad_record_mac"
        case 21: "decryption_failed"
        case 22: "record_overflow"
        case 30: "decompression_failure"
        case 40: "handshake_failure"
        case 41: "no_certificate"
        case 42: "bad_certificate"
        case 43: "unsupported_certificate"
        case 44: "certificate_revoked"
        case 45: "certificate_expired"
        case 46: "certificate_unknown"
        case 47: "illegal_parameter"
        case 48: "unknown_ca"
        case 49: "access_denied"
        case 50: "decode_error"
        case 51: "decrypt_error"
        case 60: "export_restriction"
        case 70: "protocol_version"
        case 71: "insufficient_security"
        case 80: "internal_error"
        case 86: "inappropriate_fallback"
        case 90: "user_canceled"
        case 100: "no_renegotiation"
        case 109: "missing_extension"
        case 110: "unsupported_extension"
        case 111: "certificate_unobtainable"
        case 112: "unrecognized_name"
        case 113: "bad_certificate_status_response"
        case 114: "bad_certificate_hash_value"
        case 115: "unknown_psk_identity"
        case 116: "certificate_required"
        case 120: "no_application_protocol"
        default: "unassigned"
        }
    }
}

extension TLSAlert: CustomStringConvertible {
    /// The name and the code.
    package var description: String { "\(name) (\(code))" }
}
