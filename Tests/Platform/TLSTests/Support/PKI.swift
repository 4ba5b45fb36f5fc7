import COpenSSL
import PinfoldTLS
import Trust

/// A certificate with its private key, made for tests.
final class TestCertificate: @unchecked Sendable {
    let x509: OpaquePointer
    let key: OpaquePointer
    let der: [UInt8]

    /// What varies between certificates.
    struct Profile {
        var name: String
        /// In the notation of openssl.cnf, such as `DNS:a.test,IP:127.0.0.1`; `nil` to leave the
        /// extension out.
        var alternativeNames: String?
        var isAuthority = false
        /// Seconds from now.
        var validFrom = -3600
        var validUntil = 86_400
        var purpose = "serverAuth"
        var nameConstraints: String?
        /// `nil` for an EC key; otherwise RSA with this many bits.
        var rsaBits: Int32?
    }

    /// - Parameters:
    ///   - issuer: the signer; `nil` for a self-signed certificate.
    ///   - key: a key to reuse; `nil` to generate a new one.
    init(_ profile: Profile, issuer: TestCertificate?, key reused: TestCertificate? = nil) {
        guard let x509 = X509_new() else { fatalError("no memory") }
        if let reused {
            EVP_PKEY_up_ref(reused.key)
            key = reused.key
        } else {
            key = TestCertificate.makeKey(rsaBits: profile.rsaBits)
        }
        self.x509 = x509
        X509_set_version(x509, 2)
        ASN1_INTEGER_set(X509_get_serialNumber(x509), Int.random(in: 1...Int(Int32.max)))
        X509_gmtime_adj(X509_getm_notBefore(x509), profile.validFrom)
        X509_gmtime_adj(X509_getm_notAfter(x509), profile.validUntil)
        X509_set_pubkey(x509, key)
        let name = X509_get_subject_name(x509)
        let commonName = Array(profile.name.utf8)
        X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_UTF8, commonName, Int32(commonName.count), -1, 0)
        X509_set_issuer_name(x509, X509_get_subject_name(issuer?.x509 ?? x509))
        var extensions: [(Int32, String)] = [
            (NID_basic_constraints, profile.isAuthority ? "critical,CA:TRUE" : "CA:FALSE")
        ]
        if profile.isAuthority {
            extensions.append((NID_key_usage, "critical,keyCertSign,cRLSign"))
        } else {
            extensions.append((NID_ext_key_usage, profile.purpose))
        }
        if let names = profile.alternativeNames {
            extensions.append((NID_subject_alt_name, names))
        }
        if let constraints = profile.nameConstraints {
            extensions.append((NID_name_constraints, constraints))
        }
        for (identifier, value) in extensions {
            guard let made = X509V3_EXT_conf_nid(nil, nil, identifier, value) else {
                fatalError("extension \(value)")
            }
            X509_add_ext(x509, made, -1)
            X509_EXTENSION_free(made)
        }
        X509_sign(x509, issuer?.key ?? key, EVP_sha256())
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_X509(x509, &encoded)
        der = Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
        CRYPTO_free(encoded, nil, 0)
    }

    deinit {
        X509_free(x509)
        EVP_PKEY_free(key)
    }

    private static func makeKey(rsaBits: Int32?) -> OpaquePointer {
        let context = EVP_PKEY_CTX_new_id(rsaBits == nil ? EVP_PKEY_EC : EVP_PKEY_RSA, nil)
        defer { EVP_PKEY_CTX_free(context) }
        EVP_PKEY_keygen_init(context)
        if let rsaBits {
            EVP_PKEY_CTX_set_rsa_keygen_bits(context, rsaBits)
        } else {
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1)
        }
        var key: OpaquePointer?
        EVP_PKEY_keygen(context, &key)
        guard let key else { fatalError("no key") }
        return key
    }

    var identity: CertificateIdentity {
        guard let inspection = try? CertificateInspection(certificate: der) else {
            fatalError("not a certificate")
        }
        return inspection.identity
    }

    /// The DER of the SubjectPublicKeyInfo.
    var publicKey: [UInt8] {
        var encoded: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(key, &encoded)
        defer { CRYPTO_free(encoded, nil, 0) }
        return Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
    }

    /// The certificate in PEM, made by the library.
    var pem: [UInt8] {
        let bio = BIO_new(BIO_s_mem())
        defer { BIO_free(bio) }
        PEM_write_bio_X509(bio, x509)
        var start: UnsafeMutablePointer<CChar>?
        let count = pinfold_BIO_get_mem_data(bio, &start)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(count)))
    }

    /// The pin in the forms that a configuration accepts.
    enum PinForm: CaseIterable {
        case key
        case curl
        case fingerprint
        case certificateFile
        case keyFile
    }

    func pins(_ form: PinForm) -> [Pin] {
        let text: String
        switch form {
        case .key: text = identity.key.keyPinText
        case .curl: text = "sha256//" + identity.key.keyPinText.dropFirst("sha256/".count)
        case .fingerprint: text = identity.fingerprint.fingerprintText
        case .certificateFile: return (try? Pin.decode(file: pem)) ?? []
        case .keyFile: return (try? Pin.decode(file: publicKey)) ?? []
        }
        guard case .literal(let pins) = try? Pin.parse(text) else { return [] }
        return pins
    }
}

/// The authorities and servers of the tests, made once.
enum PKI {
    typealias Profile = TestCertificate.Profile

    static let names = "DNS:service.test,DNS:*.wild.test,IP:127.0.0.1,IP:::1"
    static let root = TestCertificate(Profile(name: "Root", isAuthority: true), issuer: nil)
    static let intermediate = TestCertificate(
        Profile(name: "Intermediate", isAuthority: true), issuer: root)
    static let leaf = TestCertificate(
        Profile(name: "Leaf", alternativeNames: names), issuer: intermediate)
    /// As `leaf`, renewed with the same key.
    static let renewed = TestCertificate(
        Profile(name: "Leaf", alternativeNames: names), issuer: intermediate, key: leaf)
    static let direct = TestCertificate(
        Profile(name: "Direct", alternativeNames: names), issuer: root)

    static let rogueRoot = TestCertificate(
        Profile(name: "Rogue Root", isAuthority: true), issuer: nil)
    static let rogueLeaf = TestCertificate(
        Profile(name: "Rogue", alternativeNames: names), issuer: rogueRoot)
    /// Bears the genuine intermediate's name, with a key of the rogue's.
    static let impostor = TestCertificate(
        Profile(name: "Intermediate", isAuthority: true), issuer: rogueRoot)
    static let impostorLeaf = TestCertificate(
        Profile(name: "Leaf", alternativeNames: names), issuer: impostor)

    static let selfSigned = TestCertificate(
        Profile(name: "Self", alternativeNames: names), issuer: nil)
    static let expiredSelfSigned = TestCertificate(
        Profile(
            name: "Self", alternativeNames: names, validFrom: -7200, validUntil: -3600),
        issuer: nil)
    static let expired = TestCertificate(
        Profile(
            name: "Expired", alternativeNames: names, validFrom: -7200, validUntil: -3600),
        issuer: root)
    static let early = TestCertificate(
        Profile(name: "Early", alternativeNames: names, validFrom: 3600, validUntil: 7200),
        issuer: root)
    static let expiredIntermediate = TestCertificate(
        Profile(name: "Old", isAuthority: true, validFrom: -7200, validUntil: -3600), issuer: root)
    static let underExpired = TestCertificate(
        Profile(name: "Under Old", alternativeNames: names), issuer: expiredIntermediate)
    static let otherName = TestCertificate(
        Profile(name: "service.test", alternativeNames: "DNS:other.test,DNS:w*.partial.test"),
        issuer: root)
    static let commonNameOnly = TestCertificate(
        Profile(name: "service.test", alternativeNames: nil), issuer: root)
    static let addressAsName = TestCertificate(
        Profile(name: "Address", alternativeNames: "DNS:127.0.0.1"), issuer: root)
    static let clientOnly = TestCertificate(
        Profile(name: "Client", alternativeNames: names, purpose: "clientAuth"), issuer: root)
    static let issuedByLeaf = TestCertificate(
        Profile(name: "Below", alternativeNames: names), issuer: direct)
    static let weak = TestCertificate(
        Profile(name: "Weak", alternativeNames: names, rsaBits: 1024), issuer: root)
    static let constrained = TestCertificate(
        Profile(name: "Constrained", isAuthority: true, nameConstraints: "permitted;DNS:only.test"),
        issuer: root)
    static let outside = TestCertificate(
        Profile(name: "Outside", alternativeNames: "DNS:service.test"), issuer: constrained)
    static let shortLived = TestCertificate(
        Profile(name: "Short", alternativeNames: names, validUntil: 600), issuer: root)

    /// A time at which a certificate made just now, like all here, has been valid for an hour.
    static var now: Int64 {
        guard let inspection = try? CertificateInspection(certificate: direct.der) else {
            fatalError("not a certificate")
        }
        return inspection.notBefore + 3600
    }

    static func roots(_ certificates: TestCertificate...) -> TrustRoots {
        let contents = certificates.flatMap(\.pem)
        let sources: [RootSource] =
            contents.isEmpty ? [] : [.file(name: "roots.pem", contents: contents)]
        guard let roots = try? TrustRoots(sources) else { fatalError("roots") }
        return roots
    }
}
