import Testing

@testable import PinfoldTLS

@Suite("Several certificates, chosen by name")
struct IdentityListTests {
    private static let rsa = TestCertificate(
        PKI.Profile(name: "RSA", alternativeNames: PKI.names, rsaBits: 2048), issuer: PKI.root)
    private static let wildcard = TestCertificate(
        PKI.Profile(name: "Wild", alternativeNames: "DNS:*.Other.test,DNS:deep.other.test"),
        issuer: PKI.root)
    private static let named = TestCertificate(
        PKI.Profile(name: "Old.Test", alternativeNames: nil), issuer: PKI.root)

    private static func list(
        _ certificates: [TestCertificate]
    ) throws -> (TLSIdentityList, [TLSServerIdentity]) {
        let identities = try certificates.map {
            try TLSServerIdentity(certificate: $0.x509, key: $0.key)
        }
        return (TLSIdentityList(identities), identities)
    }

    @Test(
        arguments: [
            ("service.test", 0), ("a.wild.test", 0), ("a.b.wild.test", 0), ("a.other.test", 1),
            ("deep.other.test", 1), ("other.test", 0), ("old.test", 2), ("unknown.test", 0),
            (nil, 0), ("127.0.0.1", 0), ("test", 0),
        ] as [(String?, Int)])
    func `the one for the name is presented, else the first`(name: String?, position: Int) throws {
        let (list, identities) = try Self.list([PKI.leaf, Self.wildcard, Self.named])
        #expect(list.choose(for: TLSClientHello(serverName: name)) === identities[position])
    }

    @Test func `of two kinds of keys, the first that the client can verify is presented`() throws {
        for certificates in [[PKI.leaf, Self.rsa], [Self.rsa, PKI.leaf]] {
            let (list, identities) = try Self.list(certificates)
            for name in ["service.test", nil, "unknown.test"] {
                let both = TLSClientHello(serverName: name)
                #expect(list.choose(for: both) === identities[0])
                let onlyRSA = TLSClientHello(serverName: name, offersECDSA: false)
                #expect(list.choose(for: onlyRSA) === identities.first { !$0.hasECDSAKey })
            }
        }
    }

    @Test func `a name with a key that the client cannot verify goes before other names`() throws {
        let (list, identities) = try Self.list([Self.rsa, Self.wildcard])
        let hello = TLSClientHello(serverName: "a.other.test", offersECDSA: false)
        #expect(list.choose(for: hello) === identities[1])
    }

    @Test func `all names of a certificate are known`() throws {
        let names = (0..<200).map { "DNS:n\($0).many.test" }.joined(separator: ",")
        let many = TestCertificate(
            PKI.Profile(name: "Many", alternativeNames: names), issuer: PKI.root)
        let (list, identities) = try Self.list([PKI.leaf, many])
        #expect(list.choose(for: TLSClientHello(serverName: "n199.many.test")) === identities[1])
    }
}
