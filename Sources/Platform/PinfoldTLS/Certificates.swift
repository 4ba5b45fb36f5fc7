import COpenSSL
import Trust

/// Why bytes cannot be used as a pin or an anchor.
package enum CertificateError: Error, Hashable, Sendable, CustomStringConvertible {
    case notACertificate
    case notAPublicKey

    package var description: String {
        switch self {
        case .notACertificate: "not a certificate"
        case .notAPublicKey: "not a public key"
        }
    }
}

/// The contents of a certificate, for `pinfold pin` and for pins.
package struct CertificateInspection: Hashable, Sendable {
    package var identity: CertificateIdentity
    /// The issuer, for display: printable ASCII.
    package var issuer: String
    /// DNS names and addresses of the subject alternative names, at most 16.
    package var names: [String]
    /// Seconds since 1970.
    package var notBefore: Int64
    /// Seconds since 1970.
    package var notAfter: Int64
    /// Whether it may be an issuer's (basic constraint cA, or a root of X.509 version 1).
    package var isAuthority: Bool

    /// Examines the DER of one certificate; bytes after it are refused.
    package init(certificate der: [UInt8]) throws(CertificateError) {
        let certificate = try Certificate(der: der)
        let pointer = certificate.pointer
        guard let identity = X509View(pointer).identity else { throw .notACertificate }
        self.identity = identity
        issuer = X509View(pointer).issuer
        names = X509View(pointer).names.map(\.text)
        notBefore = X509View(pointer).notBefore
        notAfter = X509View(pointer).notAfter
        isAuthority = X509_check_ca(pointer) != 0
    }

    /// The kind and size of the key of a certificate given as DER: `RSA 2048`, `EC P-256`,
    /// `Ed25519`; `nil` if it cannot be read. To decode a key takes a third of a millisecond.
    package static func keyKind(ofCertificate der: [UInt8]) -> String? {
        guard let certificate = try? Certificate(der: der),
            let key = X509_get0_pubkey(certificate.pointer)
        else {
            ERR_clear_error()
            return nil
        }
        switch EVP_PKEY_get_base_id(key) {
        case EVP_PKEY_RSA: return "RSA \(EVP_PKEY_get_bits(key))"
        case EVP_PKEY_RSA_PSS: return "RSA-PSS \(EVP_PKEY_get_bits(key))"
        case EVP_PKEY_EC: return "EC \(curve(of: key))"
        case EVP_PKEY_ED25519: return "Ed25519"
        case EVP_PKEY_ED448: return "Ed448"
        default: return EVP_PKEY_get0_type_name(key).map { String(cString: $0) }
        }
    }

    /// The curve of an EC key by its usual name (FIPS 186), or the library's.
    private static func curve(of key: OpaquePointer) -> String {
        var name = [CChar](repeating: 0, count: 80)
        var count = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 else {
            ERR_clear_error()
            return "\(EVP_PKEY_get_bits(key))"
        }
        let text = String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        switch text {
        case "prime256v1": return "P-256"
        case "secp384r1": return "P-384"
        case "secp521r1": return "P-521"
        default: return text
        }
    }

    /// The SHA-256 of a SubjectPublicKeyInfo given as DER.
    package static func keyDigest(publicKey der: [UInt8]) throws(CertificateError) -> SHA256Digest {
        let read = der.withUnsafeBufferPointer { buffer -> Bool in
            var position = buffer.baseAddress
            let key = d2i_PUBKEY(nil, &position, buffer.count)
            defer { EVP_PKEY_free(key) }
            return key != nil && position == buffer.baseAddress.map { $0 + buffer.count }
        }
        guard read, let digest = SHA256Digest(hashing: der.span) else {
            ERR_clear_error()
            throw .notAPublicKey
        }
        return digest
    }
}

extension SHA256Digest {
    /// The digest of `bytes`; `nil` only if the library is out of memory.
    package init?(hashing bytes: Span<UInt8>) {
        var digest = [UInt8](repeating: 0, count: SHA256Digest.byteCount)
        let isDone = bytes.withUnsafeBufferPointer { buffer in
            SHA256(buffer.baseAddress, buffer.count, &digest) != nil
        }
        guard isDone else { return nil }
        self.init(digest.span)
    }
}

/// Parses the DER of one certificate, for the caller to free; `nil` for anything else, including
/// trailing bytes.
package func parseCertificate(der: [UInt8]) -> OpaquePointer? {
    let parsed = der.withUnsafeBufferPointer { buffer -> OpaquePointer? in
        var position = buffer.baseAddress
        var certificate = X509_new_ex(CertificateLibrary.context, nil)
        // As `d2i_X509` does without an object; with one it would also parse the extensions. It
        // frees an object that it cannot fill.
        guard certificate != nil,
            ASN1_item_d2i(&certificate, &position, buffer.count, X509_it()) != nil
        else { return nil }
        guard position == buffer.baseAddress.map({ $0 + buffer.count }) else {
            X509_free(certificate)
            return nil
        }
        return certificate
    }
    if parsed == nil { ERR_clear_error() }
    return parsed
}

/// One parsed certificate, owned.
struct Certificate: ~Copyable {
    let pointer: OpaquePointer

    init(der: [UInt8]) throws(CertificateError) {
        guard let parsed = parseCertificate(der: der) else { throw .notACertificate }
        pointer = parsed
    }

    deinit { X509_free(pointer) }
}

/// A list of certificates, each with its own reference. Immutable once shared.
final class CertificateStack: @unchecked Sendable {
    let pointer: OpaquePointer

    init?() {
        guard let stack = pinfold_sk_X509_new() else { return nil }
        pointer = stack
    }

    /// Takes ownership of a stack and its certificates.
    init(owning stack: OpaquePointer) {
        pointer = stack
    }

    deinit { pinfold_sk_X509_free(pointer) }

    var count: Int { Int(max(0, pinfold_sk_X509_num(pointer))) }

    subscript(index: Int) -> OpaquePointer? {
        pinfold_sk_X509_value(pointer, Int32(index))
    }

    /// Appends a certificate, which also keeps its other owners. Only before the stack is shared.
    func append(_ certificate: OpaquePointer) {
        guard X509_up_ref(certificate) == 1 else { return }
        if pinfold_sk_X509_push(pointer, certificate) == 0 { X509_free(certificate) }
    }
}

/// Reads an X509 owned by someone else for at least as long.
struct X509View {
    /// The maximum number of a certificate's names that are reported.
    static let namesReported = 16
    /// The maximum number of bytes of a subject or name that are reported.
    static let textBytes = 256

    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
    }

    /// The certificate's DER; `nil` only if the library is out of memory.
    var der: [UInt8]? {
        let count = i2d_X509(pointer, nil)
        guard count > 0 else { return nil }
        return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, written in
            var position = buffer.baseAddress
            written = max(0, Int(i2d_X509(pointer, &position)))
        }
    }

    /// The digests of the key and the certificate; `nil` only if the library is out of memory.
    var identity: CertificateIdentity? {
        guard let key = keyDigest, let fingerprint else { return nil }
        return CertificateIdentity(key: key, fingerprint: fingerprint, subject: subject)
    }

    /// SHA-256 of the SubjectPublicKeyInfo.
    var keyDigest: SHA256Digest? {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), &encoded)
        guard count > 0, let start = encoded else { return nil }
        defer { CRYPTO_free(start, nil, 0) }
        return SHA256Digest(hashing: UnsafeBufferPointer(start: start, count: Int(count)).span)
    }

    /// SHA-256 of the certificate.
    var fingerprint: SHA256Digest? { der.flatMap { SHA256Digest(hashing: $0.span) } }

    /// The subject, or the first alternative name if the subject is empty.
    var subject: String {
        let text = distinguishedName
        return text.isEmpty ? names.first?.text ?? "(no name)" : text
    }

    /// The subject, empty if it is: never another name in its place.
    var distinguishedName: String { X509View.text(X509_get_subject_name(pointer)) }

    var issuer: String {
        let text = X509View.text(X509_get_issuer_name(pointer))
        return text.isEmpty ? "(no name)" : text
    }

    /// Seconds since 1970.
    var notBefore: Int64 { X509View.seconds(X509_get0_notBefore(pointer)) ?? .max }
    /// Seconds since 1970.
    var notAfter: Int64 { X509View.seconds(X509_get0_notAfter(pointer)) ?? .min }

    /// Whether both times can be parsed.
    var hasTimes: Bool { notBefore != .max && notAfter != .min }

    /// DNS names and addresses of the subject alternative names, up to the number that is reported.
    var names: [CertificateName] { names(atMost: X509View.namesReported) }

    /// DNS names and addresses of the subject alternative names.
    func names(atMost most: Int) -> [CertificateName] {
        guard
            let names = OpaquePointer(
                X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil))
        else {
            ERR_clear_error()
            return []
        }
        defer { GENERAL_NAMES_free(names) }
        var result: [CertificateName] = []
        for index in 0..<pinfold_sk_GENERAL_NAME_num(names)
        where result.count < most {
            let name = pinfold_sk_GENERAL_NAME_value(names, index)
            var type: Int32 = -1
            guard let value = GENERAL_NAME_get0_value(name, &type) else { continue }
            let string = value.assumingMemoryBound(to: ASN1_STRING.self)
            switch type {
            case GEN_DNS: result.append(.dns(X509View.printable(X509View.bytes(string))))
            case GEN_IPADD: result.append(.address(X509View.address(X509View.bytes(string))))
            default: continue
            }
        }
        return result
    }

    /// The last common name of the subject, or `nil` for none.
    var commonName: String? {
        guard let subject = X509_get_subject_name(pointer) else { return nil }
        var last: Int32 = -1
        while true {
            let next = X509_NAME_get_index_by_NID(subject, NID_commonName, last)
            guard next >= 0 else { break }
            last = next
        }
        guard last >= 0, let entry = X509_NAME_get_entry(subject, last) else { return nil }
        return X509View.printable(X509View.bytes(X509_NAME_ENTRY_get_data(entry)))
    }

    private static func bytes(_ string: UnsafePointer<ASN1_STRING>?) -> [UInt8] {
        guard let start = ASN1_STRING_get0_data(string) else { return [] }
        return Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string))))
    }

    /// Peers choose these bytes, and they end up in logs and replies: everything except printable
    /// ASCII becomes a question mark.
    private static func printable(_ bytes: some Collection<UInt8>) -> String {
        String(
            decoding: bytes.prefix(textBytes).map {
                (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?")
            }, as: UTF8.self)
    }

    private static func address(_ bytes: [UInt8]) -> String {
        guard bytes.count == 16 else {
            return bytes.prefix(textBytes / 4).map { String($0) }.joined(separator: ".")
        }
        return stride(from: 0, to: 16, by: 2).map {
            String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
        }.joined(separator: ":")
    }

    static func text(_ name: OpaquePointer?) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        guard X509_NAME_print_ex(bio, name, 0, pinfold_name_flags()) >= 0 else {
            ERR_clear_error()
            return ""
        }
        var start: UnsafeMutablePointer<CChar>?
        let count = pinfold_BIO_get_mem_data(bio, &start)
        guard let start, count > 0 else { return "" }
        return printable(
            UnsafeRawBufferPointer(start: start, count: min(Int(count), textBytes)))
    }

    /// An ASN.1 time in seconds since 1970.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
        guard let epoch = ASN1_TIME_set(nil, 0) else { return nil }
        defer { ASN1_STRING_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else {
            ERR_clear_error()
            return nil
        }
        return Int64(days) * 86400 + Int64(seconds)
    }
}
