import COpenSSL
import Clocks
import HTTPCore
import Testing
import Trust

@testable import PinfoldTLS

/// Authorities and certificates for tests, made on the spot.
enum Fixture {
    static let now = Clock.wallSeconds()
    static let day: Int64 = 86_400

    /// Keys are shared where nothing depends on them: an RSA key takes long to generate.
    private static let leafKeys = CertificateKeyKind.allCases.reduce(into: [:]) { keys, kind in
        keys[kind] = try? PrivateKey(generating: kind)
    }
    private static let rsaFiles = Result { try files(key: .rsa(bits: 2048), isShared: false) }

    /// An authority that began two days ago.
    static func files(
        key: AuthorityProfile.Key = .ecdsaP256, name: String = "Test CA", days: Int64 = 365,
        limits: [String] = [], isShared: Bool = true
    ) throws -> AuthorityFiles {
        if isShared, key == .rsa(bits: 2048), name == "Test CA", days == 365, limits.isEmpty {
            return try rsaFiles.get()
        }
        return try CertificateAuthority.make(
            AuthorityProfile(
                key: key, commonName: name, validity: now - 2 * day...now + days * day,
                constraints: try NameLimits(limits)))
    }

    static func authority(_ files: AuthorityFiles) throws -> CertificateAuthority {
        try CertificateAuthority(
            certificatePEM: files.certificatePEM, keyPEM: files.keyPEM, now: now)
    }

    static func authority(
        key: AuthorityProfile.Key = .ecdsaP256, days: Int64 = 365, limits: [String] = []
    ) throws -> CertificateAuthority {
        try authority(files(key: key, days: days, limits: limits))
    }

    /// What varies between the certificates of servers.
    struct Server {
        /// The subject, as (attribute, value).
        var subject: [(Int32, String)] = [(NID_commonName, "real.test")]
        var alternativeNames = "DNS:real.test"
        var validity = now - day...now + 90 * day
        var isAuthority = false
        var hasKeyIdentifier = true
        var key: PrivateKey?
    }

    /// A self-signed certificate.
    static func certificate(_ server: Server) throws -> SharedCertificate {
        let key = try server.key ?? PrivateKey(generating: .ecdsaP256)
        let draft = try CertificateDraft(key: key)
        try draft.setValidity(server.validity)
        for (attribute, value) in server.subject {
            X509_NAME_add_entry_by_NID(
                X509_get_subject_name(draft.pointer), attribute, MBSTRING_UTF8, Array(value.utf8),
                Int32(value.utf8.count), -1, 0)
        }
        try draft.setIssuer(draft.pointer)
        try draft.add(
            NID_subject_alt_name, server.alternativeNames, issuer: draft.pointer)
        try draft.add(
            NID_basic_constraints, server.isAuthority ? "critical,CA:TRUE" : "CA:FALSE",
            issuer: draft.pointer)
        if server.hasKeyIdentifier {
            try draft.add(NID_subject_key_identifier, "hash", issuer: draft.pointer)
        }
        try draft.sign(with: key)
        return draft.finish()
    }

    static func server(_ server: Server = Server()) throws -> ServerCertificate {
        let der = try #require(certificate(server).der)
        return try #require(ServerCertificate(der: der))
    }

    static func request(
        _ authority: CertificateAuthority, _ host: String,
        kind: CertificateKeyKind = .ecdsaP256, server: ServerCertificate? = nil,
        client: IPNetwork? = nil
    ) throws -> CertificateRequest {
        CertificateRequest(
            authority: authority, name: try #require(ReferenceIdentifier(host)), keyKind: kind,
            server: server, client: client)
    }

    static func issue(_ request: CertificateRequest, now: Int64 = now) throws -> Issued {
        let key = try #require(leafKeys[request.keyKind])
        let issued = try request.authority.issue(request, key: key, now: now)
        return Issued(certificate: issued.certificate, validity: issued.validity, key: key)
    }
}

/// An issued certificate, and its contents.
struct Issued {
    let certificate: SharedCertificate
    let validity: ClosedRange<Int64>
    let key: PrivateKey

    var pointer: OpaquePointer { certificate.pointer }

    var inspection: CertificateInspection {
        get throws { try CertificateInspection(certificate: try #require(certificate.der)) }
    }

    /// The subject as RFC 2253 writes it, the last attribute first.
    var subject: String {
        let bytes = withMemoryBIO {
            X509_NAME_print_ex($0, X509_get_subject_name(pointer), 0, pinfold_name_flags()) >= 0
        }
        return String(decoding: bytes ?? [], as: UTF8.self)
    }

    /// The extension as the library prints it, or `nil` if there is none.
    func text(_ identifier: Int32) -> String? {
        let index = X509_get_ext_by_NID(pointer, identifier, -1)
        guard let entry = X509_get_ext(pointer, index) else { return nil }
        let bytes = withMemoryBIO { X509V3_EXT_print($0, entry, 0, 0) == 1 }
        return bytes.map { String(decoding: $0, as: UTF8.self) }
    }

    func isCritical(_ identifier: Int32) -> Bool {
        let index = X509_get_ext_by_NID(pointer, identifier, -1)
        return X509_EXTENSION_get_critical(X509_get_ext(pointer, index)) == 1
    }
}

/// The strict result of X509_verify_cert for a certificate and a host.
///
/// - Parameters:
///   - host: a name or an address for which the certificate must be valid.
///   - trusted: the anchors.
///   - others: certificates sent after it.
/// - Returns: the library's code; X509_V_OK is 0.
func verify(
    _ certificate: SharedCertificate, for host: String, trusted: [SharedCertificate],
    others: [SharedCertificate] = []
) throws -> Int32 {
    let building = try #require(X509_STORE_CTX_new())
    defer { X509_STORE_CTX_free(building) }
    let store = try #require(X509_STORE_new())
    defer { X509_STORE_free(store) }
    for anchor in trusted { X509_STORE_add_cert(store, anchor.pointer) }
    let sent = try #require(pinfold_sk_X509_new())
    defer { pinfold_sk_X509_free(sent) }
    for other in others {
        X509_up_ref(other.pointer)
        _ = pinfold_sk_X509_push(sent, other.pointer)
    }
    try #require(X509_STORE_CTX_init(building, store, certificate.pointer, sent) == 1)
    try #require(X509_STORE_CTX_set_default(building, "ssl_server") == 1)
    let parameters = X509_STORE_CTX_get0_param(building)
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_X509_STRICT))
    if let address = IPAddress(literal: host.utf8.span) {
        let bytes = address.networkBytes
        try #require(X509_VERIFY_PARAM_set1_ip(parameters, bytes, bytes.count) == 1)
    } else {
        X509_VERIFY_PARAM_set_hostflags(
            parameters, UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        try #require(X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1)
    }
    defer { ERR_clear_error() }
    guard X509_verify_cert(building) != 1 else { return X509_V_OK }
    return X509_STORE_CTX_get_error(building)
}
