import CLinux
import COpenSSL
import PinfoldTLS
import Testing
import Trust

@Suite("The handshake's protocol")
struct HandshakeTests {
    static let versions = [(TLS1_2_VERSION, TLSVersion.tls12), (TLS1_3_VERSION, .tls13)]

    @Test(arguments: versions)
    func `the version, the cipher suite and the application protocol are known`(
        _ maximum: Int32, _ expected: TLSVersion
    ) throws {
        let server = TestServer([PKI.direct], options: .init(maximumVersion: maximum))
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.connection.version == nil)
            #expect(client.connection.cipherSuite == nil)
            #expect(client.connection.applicationProtocol == nil)
            #expect(client.handshake() == nil)
            #expect(client.connection.version == expected)
            #expect(client.connection.cipherSuite?.contains("AES") == true)
            #expect(client.connection.applicationProtocol == "http/1.1")
            #expect(!client.connection.isResumed)
            #expect(client.connection.handshake() == .complete)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().map(\.serverName) == ["service.test"])
    }

    @Test func `a server that selects no application protocol is accepted`() throws {
        let server = TestServer([PKI.direct], options: .init(applicationProtocol: nil))
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.connection.applicationProtocol == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().map(\.isEstablished) == [true])
    }

    @Test
    func `a server that insists on another application protocol ends with its alert`() throws {
        let server = TestServer([PKI.direct], options: .init(applicationProtocol: "h2"))
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(
                client.handshake()
                    == .alertReceived(code: 120, name: "no_application_protocol"))
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test(arguments: [TLS1_VERSION, TLS1_1_VERSION])
    func `servers of TLS 1.0 and 1.1 are refused`(_ version: Int32) throws {
        let server = TestServer([PKI.direct], options: .init(maximumVersion: version))
        do {
            let client = try TestClient(.make(), port: server.port)
            let error = client.handshake()
            #expect(error == .versionRefused)
        }
        #expect(server.records().allSatisfy { !$0.isEstablished && $0.request.isEmpty })
    }

    @Test func `a server of TLS 1.2 is refused where 1.3 is the minimum`() throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: TLS1_2_VERSION))
        do {
            let client = try TestClient(.make(minimum: .tls13), port: server.port)
            #expect(client.handshake() == .versionRefused)
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test(
        arguments: [
            ("Service.TEST.", "service.test"), ("a.wild.test", "a.wild.test"), ("127.0.0.1", nil),
            ("::1", nil), ("[::1]", nil),
        ] as [(String, String?)])
    func `a name is sent as SNI in lower case, an address is not sent`(
        _ host: String, _ expected: String?
    ) throws {
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(), port: server.port, host: host)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().map(\.serverName) == [expected])
    }

    @Test func `a name that is too long for SNI is an error, not a crash`() throws {
        let host = String(repeating: "a", count: 256)
        let context = try TLSClientContext.make()
        #expect(throws: TLSError.self) {
            _ = try TLSClientConnection(
                context: context, fileDescriptor: -1, host: host, port: 443, now: 0)
        }
    }

    @Test func `a server that does not speak TLS is distinguished from one that does`() throws {
        let server = TestServer([PKI.direct], .plainText)
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.handshake() == .clearText("HTTP/1.1 400 Bad Request"))
        }
        #expect(server.records().count == 1)
    }

    @Test func `a server that hangs up in place of an answer has sent no byte of TLS`() throws {
        let server = TestServer([PKI.direct], .hangUp)
        do {
            let client = try TestClient(.make(), port: server.port)
            let error = client.handshake()
            // Closed with the client's hello unread, it is a reset.
            let reset = TLSError.unanswered(errorNumber: ECONNRESET)
            #expect(error == .unanswered(errorNumber: nil) || error == reset)
        }
        #expect(server.records().count == 1)
    }

    @Test(arguments: versions)
    func `a server that wants a client certificate ends with its alert`(
        _ maximum: Int32, _ version: TLSVersion
    ) throws {
        let server = TestServer(
            [PKI.direct],
            options: .init(maximumVersion: maximum, requiresClientCertificate: true))
        do {
            let client = try TestClient(.make(), port: server.port)
            if version == .tls12 {
                #expect(
                    client.handshake() == .certificateRequired(TLSAlert(code: 40)))
            } else {
                // In TLS 1.3 the client is done before the server has judged it.
                #expect(client.handshake() == nil)
                #expect(client.readAll().end == .failed)
                #expect(
                    client.connection.failure
                        == .certificateRequired(TLSAlert(code: 116)))
            }
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test func `the facts of a trusted server are when its chain expires`() throws {
        let server = TestServer([PKI.leaf, PKI.intermediate], connections: 2)
        let before = try CertificateInspection(certificate: PKI.leaf.der).notAfter
        let intermediate = try CertificateInspection(certificate: PKI.intermediate.der).notAfter
        let root = try CertificateInspection(certificate: PKI.root.der).notAfter
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.connection.facts == nil)
            #expect(client.handshake() == nil)
            let expected = min(before, intermediate, root)
            #expect(client.connection.facts == TrustFacts(expires: expected))
            #expect(client.exchange() == "hello")
        }
        let lenient = pinset(.publicKey, PKI.leaf.pins(.key), allowInvalid: true)
        do {
            let client = try TestClient(.make([lenient]), port: server.port)
            #expect(client.handshake() == nil)
            #expect(
                client.connection.facts
                    == TrustFacts(expires: nil, outcomes: [.passed(PinMatches([0]))]))
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().count == 2)
    }

    @Test func `a refusal has what was expected and found, ready to paste`() throws {
        let server = TestServer([PKI.leaf, PKI.intermediate], connections: 2)
        let wrong = pinset(.publicKey, PKI.rogueLeaf.pins(.key), name: "payments")
        var found: [ChainPin] = []
        do {
            let client = try TestClient(.make([wrong]), port: server.port)
            let error = client.handshake()
            guard case .trust(let failure) = error,
                case .noPinMatches(let expected, let chain) = failure.reason
            else {
                Issue.record("expected that no pin matches")
                return
            }
            #expect(expected == [PKI.rogueLeaf.identity.key.keyPinText])
            #expect(chain.map(\.subject) == ["CN=Leaf", "CN=Intermediate", "CN=Root"])
            #expect(
                chain.map(\.pin)
                    == [PKI.leaf, PKI.intermediate, PKI.root].map(\.identity.key.keyPinText))
            #expect(error?.description.contains(chain[0].pin) == true)
            #expect(error?.description.hasPrefix("pinset payments: ") == true)
            found = chain
        }
        guard case .literal(let pins) = try Pin.parse(found[0].pin) else { return }
        do {
            let client = try TestClient(
                .make([pinset(.publicKey, pins)]), port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().map(\.isEstablished) == [false, true])
    }

    @Test func `a name's refusal lists the certificate's names, an expiry's its date`() throws {
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(), port: server.port, host: "other.test")
            #expect(
                client.handshake()
                    == .trust(
                        TrustError(
                            .chain(
                                .hostMismatch(
                                    host: "other.test",
                                    names: [
                                        .dns("service.test"), .dns("*.wild.test"),
                                        .address("127.0.0.1"), .address("0:0:0:0:0:0:0:1"),
                                    ])))))
        }
        #expect(server.records().count == 1)
        let expired = TestServer([PKI.expired])
        do {
            let client = try TestClient(.make(), port: expired.port)
            let notAfter = try CertificateInspection(certificate: PKI.expired.der).notAfter
            #expect(notAfter < TestClient.now)
            #expect(notAfter > TestClient.now - 86_400)
            #expect(
                client.handshake()
                    == .trust(
                        TrustError(.chain(.expired(subject: "CN=Expired", notAfter: notAfter)))))
        }
        #expect(expired.records().count == 1)
    }
}
