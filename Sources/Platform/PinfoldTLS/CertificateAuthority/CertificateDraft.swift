import COpenSSL
import HTTPCore

/// A failure of the library, with its message: out of memory, or a value that it does not accept.
struct LibraryError: Error {
    let text: String

    init(text: String) { self.text = text }

    /// The first queued error; empties the queue.
    init() {
        let code = ERR_get_error()
        ERR_clear_error()
        text = ERR_reason_error_string(code).map { String(cString: $0) } ?? "unknown"
    }
}

/// An X.509 version 3 certificate that is being assembled and then signed.
final class CertificateDraft {
    /// Bits of a serial number. The first one is set, so that the number is positive, never 0, and
    /// of constant length. The other 127 are random, within the twenty octets of RFC 5280 §4.1.2.2.
    private static let serialBits: Int32 = 128

    let pointer: OpaquePointer

    /// A certificate for this key, with a random serial number.
    init(key: PrivateKey) throws(LibraryError) {
        guard let pointer = X509_new() else { throw LibraryError() }
        self.pointer = pointer
        guard X509_set_version(pointer, 2) == 1, X509_set_pubkey(pointer, key.pointer) == 1,
            let number = BN_new()
        else { throw LibraryError() }
        defer { BN_free(number) }
        guard
            BN_rand(number, Self.serialBits, 0, 0) == 1,
            BN_to_ASN1_INTEGER(number, X509_get_serialNumber(pointer)) != nil
        else { throw LibraryError() }
    }

    deinit { X509_free(pointer) }

    /// - Parameter validity: seconds since 1970.
    func setValidity(_ validity: ClosedRange<Int64>) throws(LibraryError) {
        guard
            ASN1_TIME_set(X509_getm_notBefore(pointer), Int(validity.lowerBound)) != nil,
            ASN1_TIME_set(X509_getm_notAfter(pointer), Int(validity.upperBound)) != nil
        else { throw LibraryError() }
    }

    /// Appends a relative distinguished name to the subject. Returns `false` for a value that the
    /// attribute does not allow: too long, empty, or of other characters.
    @discardableResult
    func addToSubject(_ attribute: Int32, _ value: [UInt8]) -> Bool {
        let added = X509_NAME_add_entry_by_NID(
            X509_get_subject_name(pointer), attribute, MBSTRING_UTF8, value, Int32(value.count),
            -1, 0)
        if added != 1 { ERR_clear_error() }
        return added == 1
    }

    var hasSubject: Bool { X509_NAME_entry_count(X509_get_subject_name(pointer)) > 0 }

    /// Sets the issuer: another certificate's subject, or its own.
    func setIssuer(_ issuer: OpaquePointer) throws(LibraryError) {
        guard X509_set_issuer_name(pointer, X509_get_subject_name(issuer)) == 1 else {
            throw LibraryError()
        }
    }

    /// Adds an extension by its value in the notation of openssl.cnf. Never pass a value chosen by
    /// somebody else: the notation has its own syntax.
    func add(
        _ identifier: Int32, _ value: String, issuer: OpaquePointer
    ) throws(LibraryError) {
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer, pointer, nil, nil, 0)
        guard let made = X509V3_EXT_nconf_nid(nil, &context, identifier, value) else {
            throw LibraryError()
        }
        defer { X509_EXTENSION_free(made) }
        guard X509_add_ext(pointer, made, -1) == 1 else { throw LibraryError() }
    }

    /// Copies another certificate's extension, if it has one.
    func copy(_ identifier: Int32, from other: SharedCertificate) throws(LibraryError) {
        let index = X509_get_ext_by_NID(other.pointer, identifier, -1)
        guard index >= 0 else { return }
        guard X509_add_ext(pointer, X509_get_ext(other.pointer, index), -1) == 1 else {
            throw LibraryError()
        }
    }

    /// Adds the single subject alternative name. It is critical if the subject is empty (RFC 5280
    /// §4.2.1.6).
    func setAlternativeName(_ name: ReferenceIdentifier) throws(LibraryError) {
        guard let names = pinfold_sk_GENERAL_NAME_new() else { throw LibraryError() }
        defer { GENERAL_NAMES_free(names) }
        guard let entry = GENERAL_NAME_new() else { throw LibraryError() }
        guard Self.set(entry, to: name), pinfold_sk_GENERAL_NAME_push(names, entry) > 0 else {
            GENERAL_NAME_free(entry)
            throw LibraryError()
        }
        guard
            X509_add1_ext_i2d(
                pointer, NID_subject_alt_name, UnsafeMutableRawPointer(names), hasSubject ? 0 : 1,
                UInt(X509V3_ADD_DEFAULT)) == 1
        else { throw LibraryError() }
    }

    private static func set(
        _ entry: UnsafeMutablePointer<GENERAL_NAME>, to name: ReferenceIdentifier
    ) -> Bool {
        switch name {
        case .dns(let text):
            guard let string = ASN1_IA5STRING_new() else { return false }
            let bytes = Array(text.utf8)
            guard ASN1_STRING_set(string, bytes, Int32(bytes.count)) == 1 else {
                ASN1_IA5STRING_free(string)
                return false
            }
            GENERAL_NAME_set0_value(entry, GEN_DNS, string)
        case .address(let address):
            guard let string = ASN1_OCTET_STRING_new() else { return false }
            let bytes = address.networkBytes
            guard ASN1_OCTET_STRING_set(string, bytes, Int32(bytes.count)) == 1 else {
                ASN1_OCTET_STRING_free(string)
                return false
            }
            GENERAL_NAME_set0_value(entry, GEN_IPADD, string)
        }
        return true
    }

    /// Signs the certificate. Nothing may be added afterwards.
    func sign(with key: PrivateKey) throws(LibraryError) {
        guard X509_sign(pointer, key.pointer, key.digest) > 0 else { throw LibraryError() }
    }

    /// The finished certificate.
    func finish() -> SharedCertificate {
        X509_up_ref(pointer)
        return SharedCertificate(owning: pointer)
    }
}
