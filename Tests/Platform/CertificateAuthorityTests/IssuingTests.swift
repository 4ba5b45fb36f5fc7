import COpenSSL
import Testing
import Trust

@testable import PinfoldTLS

@Suite("An issued certificate") struct IssuingTests {
    private static let label = String(repeating: "a", count: 63)

    @Test(
        arguments: [
            "real.test", "Real.Test", "real.test.", "xn--bcher-kva.example", "a_b.example.com",
            "_service.example.com", "localhost", "192.0.2.7", "2001:db8::7", "[2001:db8::7]",
            "\(label).\(label).test",
            "\(label).\(label).\(label).\(String(repeating: "b", count: 61))",
        ], [AuthorityProfile.Key.ecdsaP256, .rsa(bits: 2048)])
    func `passes strict verification for the name that was asked for`(
        host: String, key: AuthorityProfile.Key
    ) throws {
        let authority = try Fixture.authority(key: key)
        for kind in CertificateKeyKind.allCases {
            let issued = try Fixture.issue(Fixture.request(authority, host, kind: kind))
            let name = try #require(ReferenceIdentifier(host)).description
            #expect(
                try verify(issued.certificate, for: name, trusted: [authority.certificate]) == 0)
            #expect(
                try verify(issued.certificate, for: "b.test", trusted: [authority.certificate])
                    == X509_V_ERR_HOSTNAME_MISMATCH)
            #expect(try issued.inspection.names == [certified(host)])
        }
    }

    /// In the form in which ``CertificateInspection`` writes names.
    private func certified(_ host: String) -> String {
        switch ReferenceIdentifier(host) {
        case .address(.v6): "2001:db8:0:0:0:0:0:7"
        case let name: name?.description ?? ""
        }
    }

    @Test func `states its permitted use and its issuer`() throws {
        let authority = try Fixture.authority()
        let ecdsa = try Fixture.issue(Fixture.request(authority, "a.test"))
        let rsa = try Fixture.issue(Fixture.request(authority, "a.test", kind: .rsa2048))
        #expect(ecdsa.text(NID_key_usage) == "Digital Signature")
        #expect(rsa.text(NID_key_usage) == "Digital Signature, Key Encipherment")
        for issued in [ecdsa, rsa] {
            #expect(X509_get_version(issued.pointer) == 2)
            #expect(issued.text(NID_basic_constraints) == "CA:FALSE")
            #expect(issued.isCritical(NID_basic_constraints))
            #expect(issued.isCritical(NID_key_usage))
            #expect(issued.text(NID_ext_key_usage) == "TLS Web Server Authentication")
            let keyIdentifier = try #require(X509_get0_authority_key_id(issued.pointer))
            let issuer = try #require(X509_get0_subject_key_id(authority.certificate.pointer))
            #expect(ASN1_STRING_cmp(keyIdentifier, issuer) == 0)
            #expect(X509_get0_subject_key_id(issued.pointer) != nil)
            #expect(issued.subject == "CN=a.test")
            #expect(!issued.isCritical(NID_subject_alt_name))
            #expect(X509_check_ca(issued.pointer) == 0)
        }
        #expect(rsa.key.text == "RSA 2048")
    }

    @Test func `has a unique serial number, positive, of 128 bits`() throws {
        let authority = try Fixture.authority()
        let request = try Fixture.request(authority, "a.test")
        var seen: Set<String> = []
        for _ in 0..<200 {
            let issued = try Fixture.issue(request)
            let number = try #require(
                ASN1_INTEGER_to_BN(X509_get0_serialNumber(issued.pointer), nil))
            defer { BN_free(number) }
            #expect(BN_is_negative(number) == 0)
            #expect(BN_num_bits(number) == 128)
            let text = try #require(BN_bn2hex(number))
            defer { CRYPTO_free(text, nil, 0) }
            seen.insert(String(cString: text))
        }
        #expect(seen.count == 200)
    }

    @Test func `has an empty subject if the name is too long for a common name`() throws {
        let authority = try Fixture.authority()
        let fits = String(repeating: "a", count: 59) + ".test"
        let long = "b" + String(repeating: "a", count: 59) + ".test"
        let short = try Fixture.issue(Fixture.request(authority, fits))
        #expect(short.subject == "CN=" + fits)
        #expect(!short.isCritical(NID_subject_alt_name))
        let issued = try Fixture.issue(Fixture.request(authority, long))
        #expect(issued.subject == "")
        #expect(issued.isCritical(NID_subject_alt_name))
        #expect(try verify(issued.certificate, for: long, trusted: [authority.certificate]) == 0)
    }

    @Test func `has no common name for an address, which is no DNS name`() throws {
        let issued = try Fixture.issue(Fixture.request(Fixture.authority(), "192.0.2.1"))
        #expect(issued.subject == "")
        #expect(issued.isCritical(NID_subject_alt_name))
    }

    @Test(
        arguments: [
            // The authority's days, the server's, and the result.
            (365, nil, 30), (10, nil, 10), (365, 90, 30), (365, 5, 5), (3, 5, 3), (30, 30, 30),
        ] as [(Int64, Int64?, Int64)])
    func `is valid for 30 days at most, and ends with its authority's and the server's`(
        authorityDays: Int64, serverDays: Int64?, days: Int64
    ) throws {
        let (now, day) = (Fixture.now, Fixture.day)
        let authority = try Fixture.authority(days: authorityDays)
        let server = try serverDays.map {
            try Fixture.server(Fixture.Server(validity: now - day...now + $0 * day))
        }
        let issued = try Fixture.issue(Fixture.request(authority, "a.test", server: server))
        #expect(issued.validity == now - day...now + days * day)
        #expect(try issued.inspection.notBefore == issued.validity.lowerBound)
        #expect(try issued.inspection.notAfter == issued.validity.upperBound)
    }

    @Test func `does not begin before its authority`() throws {
        let authority = try Fixture.authority()
        let begin = authority.validity.lowerBound
        let issued = try Fixture.issue(Fixture.request(authority, "a.test"), now: begin + 60)
        #expect(issued.validity.lowerBound == begin)
    }

    @Test(arguments: [0, 1, 9] as [Int64])
    func `is valid for a day where the server's has ended and is let pass`(days: Int64) throws {
        let (now, day) = (Fixture.now, Fixture.day)
        let authority = try Fixture.authority(days: 10)
        let expired = try Fixture.server(
            Fixture.Server(validity: now - 19 * day...now - days * day))
        let issued = try Fixture.issue(Fixture.request(authority, "a.test", server: expired))
        #expect(issued.validity == now - day...now + day)
    }

    @Test func `is refused when its time would be over`() throws {
        let authority = try Fixture.authority(days: 10)
        let end = authority.validity.upperBound
        #expect(throws: IssuanceError.authority(.expired(notAfter: end))) {
            try Fixture.issue(Fixture.request(authority, "a.test"), now: end + 1)
        }
    }

    @Test func `is sent with what leads to an anchor, as long as that is valid`() throws {
        let first = try Fixture.files(name: "First", days: 20)
        let second = try Fixture.authority(first).makeSuccessor(
            AuthorityProfile(
                key: .ecdsaP256, commonName: "Second",
                validity: Fixture.now - Fixture.day...Fixture.now + 365 * Fixture.day))
        let authority = try Fixture.authority(second)
        #expect(authority.intermediates.count == 1)
        #expect(authority.intermediates.allSatisfy { $0.isUnexpired(at: Fixture.now) })
        #expect(
            !authority.intermediates.contains {
                $0.isUnexpired(at: Fixture.now + 21 * Fixture.day)
            })
    }
}
