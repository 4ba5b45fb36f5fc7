import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("Name constraints") struct ConstraintTests {
    @Test(
        arguments: [
            (["example.com"], ["example.com", "a.example.com", "a.b.example.com"], true),
            (["example.com"], ["example.org", "badexample.com", "com", "192.0.2.1", "::1"], false),
            (["Example.com."], ["a.example.com"], true),
            (["a.test", "b.test"], ["a.test", "x.b.test"], true),
            (["a.test", "b.test"], ["c.test", "test"], false),
            (["a.test", "192.0.2.0/24"], ["a.test", "192.0.2.9"], true),
            (["a.test", "192.0.2.0/24"], ["192.0.3.9", "2001:db8::1"], false),
            (["a.test", "2001:db8::/33"], ["2001:db8:7fff::1"], true),
            (["a.test", "2001:db8::/33"], ["2001:db8:8000::1", "192.0.2.9"], false),
            (["a.test", "2001:db8::/97"], ["2001:db8::7fff:1"], true),
            (["a.test", "2001:db8::/97"], ["2001:db8::8000:1"], false),
            (["192.0.2.1"], ["192.0.2.1"], true),
            (["192.0.2.1"], ["192.0.2.2", "a.test", "::1"], false),
            (["0.0.0.0/0"], ["192.0.2.2"], true),
            (["::/0"], ["2001:db8::1"], true),
            (["::/0"], ["192.0.2.2"], false),
        ])
    func `let an authority issue for what they permit, and for nothing else`(
        limits: [String], hosts: [String], isPermitted: Bool
    ) throws {
        let authority = try Fixture.authority(limits: limits)
        for host in hosts {
            let request = try Fixture.request(authority, host)
            if isPermitted {
                let issued = try Fixture.issue(request)
                #expect(
                    try verify(issued.certificate, for: host, trusted: [authority.certificate])
                        == 0, "\(host)")
            } else {
                #expect(throws: IssuanceError.outsideConstraints, "\(host)") {
                    try Fixture.issue(request)
                }
            }
        }
    }

    @Test func `bind clients even if the authority's key signs something else`() throws {
        let authority = try Fixture.authority(limits: ["a.test"])
        for (name, code) in [
            ("b.test", X509_V_ERR_PERMITTED_VIOLATION),
            ("192.0.2.1", X509_V_ERR_EXCLUDED_VIOLATION),
        ] {
            let key = try PrivateKey(generating: .ecdsaP256)
            let draft = try CertificateDraft(key: key)
            try draft.setValidity(Fixture.now - 60...Fixture.now + 60)
            try draft.setIssuer(authority.certificate.pointer)
            let identifier = try #require(ReferenceIdentifier(name))
            try draft.setAlternativeName(identifier)
            try draft.add(
                NID_subject_key_identifier, "hash", issuer: authority.certificate.pointer)
            try draft.add(
                NID_authority_key_identifier, "keyid", issuer: authority.certificate.pointer)
            try draft.sign(with: authority.key)
            let certificate = draft.finish()
            #expect(
                try verify(certificate, for: name, trusted: [authority.certificate]) == code)
        }
    }

    @Test(arguments: [
        "", "*.a.test", ".a.test", "a.test,permitted;DNS:b.test", "192.0.2.1/24", "ü",
    ])
    func `are names and networks`(text: String) {
        #expect(throws: NameLimits.InvalidLimitError(text: text)) {
            try NameLimits(["ok.test", text])
        }
    }
}

@Suite("A successor") struct SuccessorTests {
    private static let profile = AuthorityProfile(
        key: .rsa(bits: 2048), commonName: "Second",
        validity: Fixture.now - Fixture.day...Fixture.now + 900 * Fixture.day)

    @Test func `is accepted by clients that trust it, and by those that trust the one before`()
        throws
    {
        let first = try Fixture.authority()
        let second = try Fixture.authority(first.makeSuccessor(Self.profile))
        #expect(second.fingerprint != first.fingerprint)
        #expect(second.inspection.notAfter == Self.profile.validity.upperBound)
        let issued = try Fixture.issue(Fixture.request(second, "a.test"))
        for trusted in [[first.certificate], [second.certificate]] {
            #expect(
                try verify(
                    issued.certificate, for: "a.test", trusted: trusted,
                    others: second.intermediates) == 0)
        }
        #expect(
            try verify(issued.certificate, for: "a.test", trusted: [first.certificate]) != 0)
    }

    @Test func `has the limits of the one before`() throws {
        let first = try Fixture.authority(limits: ["a.test"])
        var profile = Self.profile
        profile.constraints = try NameLimits(["b.test"])
        let second = try Fixture.authority(first.makeSuccessor(profile))
        #expect(first.constraintsText != nil)
        #expect(second.constraintsText == first.constraintsText)
        #expect(throws: IssuanceError.outsideConstraints) {
            try Fixture.issue(Fixture.request(second, "b.test"))
        }
        let issued = try Fixture.issue(Fixture.request(second, "www.a.test"))
        #expect(
            try verify(
                issued.certificate, for: "www.a.test", trusted: [first.certificate],
                others: second.intermediates) == 0)
    }

    @Test func `has another name than the one before`() throws {
        let first = try Fixture.authority(Fixture.files(name: Self.profile.commonName))
        #expect(throws: AuthorityError.sameName) { try first.makeSuccessor(Self.profile) }
    }

    @Test func `ends its link with the one before`() throws {
        let first = try Fixture.authority(days: 30)
        let second = try Fixture.authority(first.makeSuccessor(Self.profile))
        let link = try #require(second.intermediates.first)
        // notAfter is the last second that is valid (RFC 5280 §4.1.2.5).
        #expect(link.isUnexpired(at: first.validity.upperBound))
        #expect(!link.isUnexpired(at: first.validity.upperBound + 1))
    }

    @Test func `cannot follow an authority that may vouch for none`() throws {
        let first = try Fixture.authority()
        let second = try Fixture.authority(first.makeSuccessor(Self.profile))
        let link = try #require(second.intermediates.first)
        let cross = try CertificateAuthority(
            certificatePEM: try #require(link.pem), keyPEM: try #require(second.key.pem))
        #expect(throws: AuthorityError.noSuccessor) { try cross.makeSuccessor(Self.profile) }
        // It was issued by another authority, so it is sent to clients.
        #expect(cross.intermediates.map(\.der) == [link.der])
    }
}
