import COpenSSL
import Testing
import Trust

@testable import PinfoldTLS

/// Handshakes by the library itself, in memory, and what an observer makes of them.
@Suite("What a server's flight proves")
struct ServerProofTests {
    /// A key to sign with, a version, and what is to be negotiated.
    struct Setting: CustomTestStringConvertible {
        var version: TLSVersion
        var ciphers: String
        var rsaBits: Int32?
        var signatures: String?
        var testDescription: String { "\(version.text) \(ciphers) \(signatures ?? "")" }
    }

    private static let settings: [Setting] = [
        Setting(version: .tls12, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256"),
        Setting(version: .tls12, ciphers: "ECDHE-RSA-AES128-GCM-SHA256", rsaBits: 2048),
        Setting(
            version: .tls12, ciphers: "ECDHE-RSA-AES256-GCM-SHA384", rsaBits: 2048,
            signatures: "RSA-PSS+SHA256"),
        Setting(
            version: .tls12, ciphers: "ECDHE-RSA-AES256-SHA", rsaBits: 2048,
            signatures: "RSA+SHA512"),
        Setting(version: .tls12, ciphers: "DHE-RSA-AES128-GCM-SHA256", rsaBits: 2048),
        Setting(version: .tls12, ciphers: "AES128-SHA", rsaBits: 2048),
        Setting(version: .tls11, ciphers: "ECDHE-RSA-AES128-SHA", rsaBits: 2048),
        Setting(version: .tls10, ciphers: "ECDHE-ECDSA-AES128-SHA"),
        Setting(version: .tls10, ciphers: "DHE-RSA-AES128-SHA", rsaBits: 2048),
    ]

    private static let ecdsa = TestCertificate(
        .init(name: "EC", alternativeNames: "DNS:service.test"), issuer: PKI.root)
    private static let rsa = TestCertificate(
        .init(name: "RSA", alternativeNames: "DNS:service.test", rsaBits: 2048), issuer: PKI.root)
    private static let otherRSA = TestCertificate(
        .init(name: "RSA", alternativeNames: "DNS:service.test", rsaBits: 2048), issuer: PKI.root)

    /// What each side sends up to the server's first flight.
    private static func flights(_ setting: Setting) throws -> (client: [UInt8], server: [UInt8]) {
        let certificate = setting.rsaBits == nil ? ecdsa : rsa
        var ends: [(ssl: OpaquePointer, out: OpaquePointer, into: OpaquePointer)] = []
        for method in [TLS_client_method(), TLS_server_method()] {
            let context = try #require(SSL_CTX_new(method))
            defer { SSL_CTX_free(context) }
            SSL_CTX_set_security_level(context, 0)
            _ = SSL_CTX_ctrl(
                context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(setting.version.number), nil)
            _ = SSL_CTX_ctrl(
                context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(setting.version.number), nil)
            _ = SSL_CTX_ctrl(context, SSL_CTRL_SET_DH_AUTO, 1, nil)
            #expect(SSL_CTX_set_cipher_list(context, setting.ciphers + ":@SECLEVEL=0") == 1)
            #expect(SSL_CTX_use_certificate(context, certificate.x509) == 1)
            #expect(SSL_CTX_use_PrivateKey(context, certificate.key) == 1)
            let ssl = try #require(SSL_new(context))
            if let signatures = setting.signatures {
                #expect(pinfold_SSL_set1_sigalgs_list(ssl, signatures) == 1)
            }
            let into = try #require(BIO_new(BIO_s_mem()))
            let out = try #require(BIO_new(BIO_s_mem()))
            SSL_set_bio(ssl, into, out)
            ends.append((ssl, out, into))
        }
        defer { for end in ends { SSL_free(end.ssl) } }
        SSL_set_connect_state(ends[0].ssl)
        SSL_set_accept_state(ends[1].ssl)
        _ = pinfold_SSL_set_host_name(ends[0].ssl, "service.test")
        _ = SSL_do_handshake(ends[0].ssl)
        let client = drain(ends[0].out)
        BIO_write(ends[1].into, client, Int32(client.count))
        _ = SSL_do_handshake(ends[1].ssl)
        ERR_clear_error()
        return (client, drain(ends[1].out))
    }

    private static func drain(_ bio: OpaquePointer) -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 1 << 17)
        let count = BIO_read(bio, &buffer, Int32(buffer.count))
        return Array(buffer.prefix(max(0, Int(count))))
    }

    private static func proof(
        _ flights: (client: [UInt8], server: [UInt8]), cut: Int? = nil
    ) throws -> ServerProof {
        var opening = ClientOpening()
        let opened = try flights.client.withUnsafeBytes { try opening.take($0) }
        let hello = try #require(opened).hello
        #expect(hello.serverName == "service.test")
        var flight = ServerFlight(answering: hello)
        var found: ServerFlight.Finding?
        for part in [flights.server[..<(cut ?? 0)], flights.server[(cut ?? 0)...]] {
            found = try part.withUnsafeBytes { try flight.take($0) } ?? found
        }
        guard case .presented(let proof) = found else {
            Issue.record("\(String(describing: found))")
            throw ServerProofError.wrongSignature
        }
        return proof
    }

    @Test(arguments: settings)
    func `matches the library's server`(setting: Setting) throws {
        let flights = try Self.flights(setting)
        let proof = try Self.proof(flights)
        let certificate = setting.rsaBits == nil ? Self.ecdsa : Self.rsa
        #expect(proof.chain == [certificate.der])
        #expect((proof.keyExchange == nil) == setting.ciphers.hasPrefix("AES"))
        #expect(proof.randoms.count == 64)
        try proof.verifyPossession()
        for cut in flights.server.indices {
            #expect(try Self.proof(flights, cut: cut) == proof)
        }
    }

    @Test(arguments: settings.filter { !$0.ciphers.hasPrefix("AES") })
    func `is absent when another server sends the certificate`(setting: Setting) throws {
        var proof = try Self.proof(try Self.flights(setting))
        let own = proof.chain
        let other = setting.rsaBits == nil ? PKI.leaf : Self.otherRSA
        proof.chain = [other.der] + own
        #expect(throws: ServerProofError.wrongSignature) { try proof.verifyPossession() }
        proof.chain = [setting.rsaBits == nil ? Self.rsa.der : Self.ecdsa.der]
        #expect(throws: ServerProofError.self) { try proof.verifyPossession() }
        proof.chain = [[1, 2, 3]]
        #expect(throws: ServerProofError.unusable("the certificate cannot be read")) {
            try proof.verifyPossession()
        }
        proof.chain = own
        try proof.verifyPossession()
        // It is signed for this handshake, and with this key.
        for place in [0, 31, 32, 63] {
            var replayed = proof
            replayed.randoms[place] ^= 1
            #expect(throws: ServerProofError.wrongSignature) { try replayed.verifyPossession() }
        }
    }

    @Test func `is absent in RSA key exchange with a key that cannot decrypt`() throws {
        let setting = Setting(version: .tls12, ciphers: "AES128-SHA", rsaBits: 2048)
        var proof = try Self.proof(try Self.flights(setting))
        proof.chain = [Self.ecdsa.der]
        #expect(throws: ServerProofError.self) { try proof.verifyPossession() }
    }

    @Test func `is refused when it is signed by MD5`() throws {
        let setting = Setting(version: .tls12, ciphers: "ECDHE-RSA-AES256-SHA", rsaBits: 2048)
        let proof = try Self.proof(try Self.flights(setting))
        let exchange = try #require(proof.keyExchange)
        for (scheme, error) in [
            (0x0101, ServerProofError.unusable("an unknown signature")),
            (0x0402, .unusable("an unknown signature")),
            (0x0403, .unusable("a signature that does not match the certificate's key")),
            (0x0601, .wrongSignature),
        ] as [(Int, ServerProofError)] {
            let body =
                exchange.parameters + [UInt8(scheme >> 8), UInt8(scheme & 0xFF)]
                + [UInt8(exchange.signature.count >> 8), UInt8(exchange.signature.count & 0xFF)]
                + exchange.signature
            var other = proof
            other.keyExchange = try ServerKeyExchange(body, kind: .signedCurve, version: 0x0303)
            #expect(throws: error) { try other.verifyPossession() }
        }
    }
}
