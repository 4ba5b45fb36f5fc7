import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("An authority") struct AuthorityTests {
    @Test(arguments: [
        (AuthorityProfile.Key.ecdsaP256, "ECDSA P-256"), (.rsa(bits: 2048), "RSA 2048"),
    ])
    func `is read as it was made`(key: AuthorityProfile.Key, text: String) throws {
        let files = try Fixture.files(key: key, name: "Made here")
        let authority = try Fixture.authority(files)
        #expect(authority.keyText == text)
        #expect(authority.pem == files.certificatePEM)
        #expect(authority.inspection.identity.subject == "CN=Made here,O=Pinfold")
        #expect(
            authority.validity == Fixture.now - 2 * Fixture.day...Fixture.now + 365 * Fixture.day)
        #expect(authority.intermediates.isEmpty)
        let own = Issued(
            certificate: authority.certificate, validity: authority.validity, key: authority.key)
        #expect(own.text(NID_basic_constraints) == "CA:TRUE, pathlen:1")
        #expect(own.text(NID_key_usage) == "Certificate Sign, CRL Sign")
        for critical in [NID_basic_constraints, NID_key_usage] {
            #expect(own.isCritical(critical))
        }
        #expect(own.text(NID_name_constraints) == nil)
    }

    @Test func `two of one profile differ in key and serial number`() throws {
        let one = try Fixture.authority()
        let other = try Fixture.authority()
        #expect(one.fingerprint != other.fingerprint)
        #expect(one.inspection.identity.key != other.inspection.identity.key)
        #expect(
            ASN1_INTEGER_cmp(
                X509_get0_serialNumber(one.certificate.pointer),
                X509_get0_serialNumber(other.certificate.pointer)) != 0)
    }

    @Test func `without a certificate is refused`() throws {
        let files = try Fixture.files()
        let cut = Array(files.certificatePEM.prefix(100))
        for pem in [[], Array("no PEM".utf8), files.keyPEM, cut, files.certificatePEM + cut] {
            #expect(throws: AuthorityError.noCertificate) {
                try CertificateAuthority(
                    certificatePEM: pem, keyPEM: files.keyPEM, now: Fixture.now)
            }
        }
    }

    @Test func `without a key is refused, an encrypted one included`() throws {
        let files = try Fixture.files()
        let key = try #require(PrivateKey(pem: files.keyPEM))
        let encrypted = withMemoryBIO {
            PEM_write_bio_PKCS8PrivateKey(
                $0, key.pointer, EVP_aes_256_cbc(), "secret", 6, nil, nil) == 1
        }
        for pem in [[], Array("no PEM".utf8), files.certificatePEM, try #require(encrypted)] {
            #expect(throws: AuthorityError.noKey) {
                try CertificateAuthority(
                    certificatePEM: files.certificatePEM, keyPEM: pem, now: Fixture.now)
            }
        }
        #expect(AuthorityError.noKey.concernsKey)
    }

    @Test func `with another's key is refused`() throws {
        let files = try Fixture.files()
        for other in [AuthorityProfile.Key.ecdsaP256, .rsa(bits: 2048)] {
            let key = try Fixture.files(key: other).keyPEM
            #expect(throws: AuthorityError.keyMismatch) {
                try CertificateAuthority(
                    certificatePEM: files.certificatePEM, keyPEM: key, now: Fixture.now)
            }
        }
    }

    @Test func `that may not issue certificates is refused`() throws {
        for (isAuthority, hasKeyIdentifier) in [(false, true), (true, false)] {
            let key = try PrivateKey(generating: .ecdsaP256)
            let certificate = try Fixture.certificate(
                Fixture.Server(
                    isAuthority: isAuthority, hasKeyIdentifier: hasKeyIdentifier, key: key))
            let (pem, keyPEM) = (try #require(certificate.pem), try #require(key.pem))
            let error = #expect(throws: AuthorityError.self) {
                try CertificateAuthority(certificatePEM: pem, keyPEM: keyPEM)
            }
            guard case .notAnAuthority = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func `with a weak key is refused`() throws {
        let curve = try #require(pinfold_EVP_EC_gen("P-224"))
        for key in [try PrivateKey(generatingRSA: 1024), PrivateKey(owning: curve)] {
            let certificate = try Fixture.certificate(
                Fixture.Server(isAuthority: true, key: key))
            let (pem, keyPEM) = (try #require(certificate.pem), try #require(key.pem))
            let error = #expect(throws: AuthorityError.self) {
                try CertificateAuthority(certificatePEM: pem, keyPEM: keyPEM)
            }
            guard case .weakKey = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
        }
    }

    @Test func `is refused outside of its validity`() throws {
        let files = try Fixture.files(days: 10)
        func read(at now: Int64) throws {
            _ = try CertificateAuthority(
                certificatePEM: files.certificatePEM, keyPEM: files.keyPEM, now: now)
        }
        let (begin, end) = (Fixture.now - 2 * Fixture.day, Fixture.now + 10 * Fixture.day)
        try read(at: begin)
        try read(at: end)
        #expect(throws: AuthorityError.notYetValid(notBefore: begin)) { try read(at: begin - 1) }
        #expect(throws: AuthorityError.expired(notAfter: end)) { try read(at: end + 1) }
    }

    @Test func `errors state what is wrong`() {
        let errors: [AuthorityError] = [
            .noCertificate, .noKey, .keyMismatch, .notAnAuthority("why"), .weakKey("why"),
            .expired(notAfter: 0), .notYetValid(notBefore: 0), .noSuccessor, .sameName,
            .library("why"),
        ]
        #expect(Set(errors.map(\.description)).count == errors.count)
        #expect(
            AuthorityError.expired(notAfter: 0).description == "expired at 1970-01-01T00:00:00Z")
    }

    @Test func `a name of 64 characters is taken, a longer one is not`() throws {
        let name = String(repeating: "n", count: 64)
        _ = try Fixture.files(name: name)
        #expect(throws: AuthorityError.self) { try Fixture.files(name: name + "n") }
        #expect(throws: AuthorityError.self) { try Fixture.files(name: "") }
    }
}
