import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("A certificate beside the server's own") struct MimicryTests {
    private func issue(_ server: Fixture.Server, host: String = "real.test") throws -> Issued {
        try Fixture.issue(
            Fixture.request(Fixture.authority(), host, server: Fixture.server(server)))
    }

    @Test(
        arguments: [
            "DNS:real.test", "DNS:*.test", "DNS:other.test", "DNS:real.test,DNS:*.real.test",
            "DNS:real.test,DNS:www.real.test,IP:192.0.2.1,email:a@real.test",
            (0..<200).map { "DNS:n\($0).test" }.joined(separator: ",") + ",DNS:real.test",
        ])
    func `names the host that was asked for, and none of the server's other names`(
        names: String
    ) throws {
        let issued = try issue(
            Fixture.Server(
                subject: [(NID_commonName, "*.example.net")], alternativeNames: names))
        #expect(issued.text(NID_subject_alt_name) == "DNS:real.test")
        #expect(issued.subject == "CN=real.test")
    }

    @Test func `names the address that was asked for`() throws {
        let server = Fixture.Server(alternativeNames: "IP:192.0.2.1,IP:192.0.2.2,DNS:real.test")
        let issued = try issue(server, host: "192.0.2.2")
        #expect(issued.text(NID_subject_alt_name) == "IP Address:192.0.2.2")
    }

    @Test func `states the server's owner`() throws {
        let issued = try issue(
            Fixture.Server(subject: [
                (NID_countryName, "DE"), (NID_stateOrProvinceName, "Bayern"),
                (NID_localityName, "München"), (NID_organizationName, "Real, \"Inc\""),
                (NID_organizationalUnitName, "Web"), (NID_organizationalUnitName, "Second"),
                (NID_pkcs9_emailAddress, "a@real.test"), (NID_serialNumber, "17"),
                (NID_commonName, "other.test"),
            ]))
        #expect(
            issued.subject
                == #"CN=real.test,OU=Web,O=Real\, \"Inc\",L=M\C3\BCnchen,ST=Bayern,C=DE"#)
    }

    @Test(arguments: ["a\0b", "a\nb", "\u{7F}", String(repeating: "o", count: 65)])
    func `leaves out of the owner what is not plain text within the limit`(
        organization: String
    ) throws {
        let key = try PrivateKey(generating: .ecdsaP256)
        let draft = try CertificateDraft(key: key)
        // Added as a separate entry: the function that makes entries refuses some of these.
        let entry = X509_NAME_ENTRY_new()
        defer { X509_NAME_ENTRY_free(entry) }
        let bytes = Array(organization.utf8)
        X509_NAME_ENTRY_set_object(entry, OBJ_nid2obj(NID_organizationName))
        X509_NAME_ENTRY_set_data(entry, V_ASN1_UTF8STRING, bytes, Int32(bytes.count))
        let hostile = try Fixture.certificate(Fixture.Server(subject: []))
        X509_NAME_add_entry(X509_get_subject_name(hostile.pointer), entry, -1, 0)
        draft.addOwner(of: hostile)
        #expect(!draft.hasSubject)
        #expect(ERR_peek_error() == 0)
    }

    @Test func `with the owner alone has no empty subject`() throws {
        let host = String(repeating: "a", count: 63) + "." + String(repeating: "b", count: 63)
        let issued = try issue(
            Fixture.Server(subject: [(NID_organizationName, "Real")]), host: host)
        #expect(issued.subject == "O=Real")
        #expect(!issued.isCritical(NID_subject_alt_name))
    }

    @Test func `is no certificate of a server unless it can be read`() throws {
        let der = try #require(Fixture.certificate(Fixture.Server()).der)
        #expect(ServerCertificate(der: der) != nil)
        #expect(ServerCertificate(der: der + [0]) == nil)
        #expect(ServerCertificate(der: Array(der.dropLast())) == nil)
        #expect(ServerCertificate(der: []) == nil)
        #expect(ERR_peek_error() == 0)
    }
}
