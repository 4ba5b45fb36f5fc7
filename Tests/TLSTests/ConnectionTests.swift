import CLinux
import COpenSSL
import Pinning
import TLS
import Testing

@Suite("The handshake's protocol")
struct HandshakeTests {
    static let versions = [(TLS1_2_VERSION, TLSVersion.tls12), (TLS1_3_VERSION, .tls13)]

    @Test(
        "The version, the cipher suite and the application protocol are known", arguments: versions)
    func negotiated(_ maximum: Int32, _ expected: TLSVersion) throws {
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

    @Test("A server that selects no application protocol is accepted")
    func noApplicationProtocol() throws {
        let server = TestServer([PKI.direct], options: .init(applicationProtocol: nil))
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.handshake() == nil)
            #expect(client.connection.applicationProtocol == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().map(\.isEstablished) == [true])
    }

    @Test("A server that insists on another application protocol ends with its alert")
    func otherApplicationProtocol() throws {
        let server = TestServer([PKI.direct], options: .init(applicationProtocol: "h2"))
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(
                client.handshake()
                    == .alertReceived(code: 120, name: "no_application_protocol"))
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test("Servers of TLS 1.0 and 1.1 are refused", arguments: [TLS1_VERSION, TLS1_1_VERSION])
    func oldVersions(_ version: Int32) throws {
        let server = TestServer([PKI.direct], options: .init(maximumVersion: version))
        do {
            let client = try TestClient(.make(), port: server.port)
            let error = client.handshake()
            #expect(error == .versionRefused)
            #expect(error?.proxyStatusType == "tls_protocol_error")
        }
        #expect(server.records().allSatisfy { !$0.isEstablished && $0.request.isEmpty })
    }

    @Test("A server of TLS 1.2 is refused where 1.3 is the minimum")
    func minimumVersion() throws {
        let server = TestServer(
            [PKI.direct], options: .init(maximumVersion: TLS1_2_VERSION))
        do {
            let client = try TestClient(.make(minimum: .tls13), port: server.port)
            #expect(client.handshake() == .versionRefused)
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test(
        "A name is sent as SNI in lower case, an address is not sent",
        arguments: [
            ("Service.TEST.", "service.test"), ("a.wild.test", "a.wild.test"), ("127.0.0.1", nil),
            ("::1", nil), ("[::1]", nil),
        ] as [(String, String?)])
    func serverName(_ host: String, _ expected: String?) throws {
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(), port: server.port, host: host)
            #expect(client.handshake() == nil)
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().map(\.serverName) == [expected])
    }

    @Test("A name that is too long for SNI is an error, not a crash")
    func longName() throws {
        let host = String(repeating: "a", count: 256)
        let context = try TLSClientContext.make()
        #expect(throws: TLSError.self) {
            _ = try TLSClientConnection(
                context: context, fileDescriptor: -1, host: host, port: 443, now: 0)
        }
    }

    @Test("A server that does not speak TLS is told from one that does")
    func plainText() throws {
        let server = TestServer([PKI.direct], .plainText)
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.handshake() == .notTLS)
        }
        #expect(server.records().count == 1)
    }

    @Test("A server that hangs up in the handshake is a truncated connection")
    func hangUp() throws {
        let server = TestServer([PKI.direct], .hangUp)
        do {
            let client = try TestClient(.make(), port: server.port)
            let error = client.handshake()
            // Closed with the client's hello unread, it is a reset.
            #expect(error == .truncated || error == .transport(errorNumber: ECONNRESET))
        }
        #expect(server.records().count == 1)
    }

    @Test("A server that wants a client certificate ends with its alert", arguments: versions)
    func clientCertificate(_ maximum: Int32, _ version: TLSVersion) throws {
        let server = TestServer(
            [PKI.direct],
            options: .init(maximumVersion: maximum, requiresClientCertificate: true))
        do {
            let client = try TestClient(.make(), port: server.port)
            if version == .tls12 {
                #expect(
                    client.handshake() == .alertReceived(code: 40, name: "handshake_failure"))
            } else {
                // In TLS 1.3 the client is done before the server has judged it.
                #expect(client.handshake() == nil)
                #expect(client.readAll().end == .failed)
                #expect(
                    client.connection.failure
                        == .alertReceived(code: 116, name: "certificate_required"))
            }
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    @Test("The facts of a trusted server are when its chain expires")
    func facts() throws {
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
            #expect(client.connection.facts == TrustFacts(expires: nil))
            #expect(client.exchange() == "hello")
        }
        #expect(server.records().count == 2)
    }

    @Test("A refusal says what was expected and found, ready to paste")
    func report() throws {
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

    @Test("A name's refusal lists the certificate's names, an expiry's its date")
    func details() throws {
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(), port: server.port, host: "other.test")
            #expect(
                client.handshake()
                    == .trust(
                        TrustFailure(
                            .chain(
                                .hostMismatch(
                                    host: "other.test",
                                    names: [
                                        "service.test", "*.wild.test", "127.0.0.1",
                                        "0:0:0:0:0:0:0:1",
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
                        TrustFailure(.chain(.expired(subject: "CN=Expired", notAfter: notAfter)))))
        }
        #expect(expired.records().count == 1)
    }
}

@Suite("Reading and writing")
struct TransferTests {
    /// Bytes that tell their place.
    static func pattern(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    /// Runs a client against a server that answers one request, and ends it before the server.
    func withClient(
        _ behaviour: TestServer.Behaviour, _ body: (TestClient) throws -> Void
    ) throws -> [TestServer.Record] {
        let server = TestServer([PKI.direct], behaviour)
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.handshake() == nil)
            try body(client)
        }
        return server.records()
    }

    @Test("A session that the server ends is a clean end, as often as it is read")
    func cleanEnd() throws {
        _ = try withClient(.respond(Self.pattern(100))) { client in
            #expect(client.write([1]))
            let all = client.readAll()
            #expect(all.bytes == Self.pattern(100))
            #expect(all.end == .endOfStream)
            #expect(client.read(10).result == .endOfStream)
            #expect(client.connection.failure == nil)
            #expect(client.connection.shutdown())
        }
    }

    @Test("A connection that ends without the session's end is truncated, after its bytes")
    func truncated() throws {
        _ = try withClient(.truncate(Self.pattern(50_000))) { client in
            #expect(client.write([1]))
            let all = client.readAll()
            #expect(all.bytes == Self.pattern(50_000))
            #expect(all.end == .truncated)
            #expect(client.read(10).result == .truncated)
            #expect(client.connection.failure == .truncated)
            #expect(client.connection.failure?.proxyStatusType == "connection_terminated")
        }
    }

    @Test("A reset is a failure with its errno, and raises no signal")
    func reset() throws {
        _ = try withClient(.reset(Self.pattern(10))) { client in
            #expect(client.write([1]))
            #expect(client.readWhenReady(100).bytes == Self.pattern(10))
            #expect(client.write([2]))
            #expect(client.readAll().end == .failed)
            #expect(client.connection.failure == .transport(errorNumber: ECONNRESET))
            #expect(!client.write([3]))
        }
        // The first write to a connection that the peer has closed provokes the reset, and the next
        // one is the one that would raise SIGPIPE.
        _ = try withClient(.hangUpAfterHandshake) { client in
            #expect(client.readAll().end == .truncated)
        }
    }

    @Test("A write to a closed connection fails without a signal")
    func writeAfterClose() throws {
        let server = TestServer([PKI.direct], .hangUpAfterHandshake)
        let client = try TestClient(.make(), port: server.port)
        #expect(client.handshake() == nil)
        _ = server.records()
        // The kernel learns by the reset of one write that the next must fail.
        var writes = 0
        while writes < 1000, client.write(Self.pattern(1000)) {
            writes += 1
            guard client.waitUntil(POLLOUT) else { break }
        }
        #expect(writes < 1000)
        let expected: [TLSError] = [
            .transport(errorNumber: EPIPE), .transport(errorNumber: ECONNRESET),
        ]
        #expect(client.connection.failure.map(expected.contains) == true)
    }

    @Test("A read fills the buffer and says that there may be more, or that the socket is empty")
    func drained() throws {
        _ = try withClient(.hold(Self.pattern(100))) { client in
            #expect(client.read(10).result == .wantRead)
            #expect(client.write([1]))
            let first = client.readWhenReady(60)
            #expect(first.result == .bytes(60, drained: false))
            #expect(first.bytes == Array(Self.pattern(100).prefix(60)))
            #expect(client.connection.pendingBytes == 40)
            #expect(client.connection.hasPending)
            let second = client.read(60)
            #expect(second.result == .bytes(40, drained: true))
            #expect(second.bytes == Array(Self.pattern(100).suffix(40)))
            #expect(client.connection.pendingBytes == 0)
            #expect(client.read(60).result == .wantRead)
        }
    }

    @Test("A read that ends exactly with the bytes does not claim to know that there are no more")
    func exactFit() throws {
        _ = try withClient(.hold(Self.pattern(100))) { client in
            #expect(client.write([1]))
            #expect(client.readWhenReady(100).result == .bytes(100, drained: false))
            #expect(client.read(100).result == .wantRead)
        }
    }

    @Test("A short receive is proof that the socket is empty, when the caller trusts it")
    func shortReceive() throws {
        _ = try withClient(.hold(Self.pattern(100))) { client in
            #expect(client.write([1]))
            let first = client.readWhenReady(10, trustsShortReceive: true)
            #expect(first.result == .bytes(10, drained: false))
            #expect(client.read(100, trustsShortReceive: true).result == .bytes(90, drained: true))
            #expect(client.read(1, trustsShortReceive: true).result == .wantRead)
        }
    }

    @Test(
        "A long response arrives whole whatever the buffer, and its end with it",
        arguments: [1_000, 16_384, 100_000], [false, true])
    func longResponse(_ capacity: Int, _ trustsShortReceive: Bool) throws {
        let response = Self.pattern(600_001)
        _ = try withClient(.respond(response)) { client in
            #expect(client.write([1]))
            let all = client.readAll(capacity: capacity, trustsShortReceive: trustsShortReceive)
            #expect(all.bytes == response)
            #expect(all.end == .endOfStream)
        }
    }

    @Test("An empty buffer and an empty write do nothing")
    func empty() throws {
        _ = try withClient(.respond([1])) { client in
            let nothing = UnsafeMutableRawBufferPointer(start: nil, count: 0)
            #expect(client.connection.read(into: nothing) == .bytes(0, drained: false))
            #expect(client.connection.write(UnsafeRawBufferPointer(nothing)) == .bytes(0))
            #expect(client.write([1]))
            #expect(client.readAll().bytes == [1])
        }
    }

    @Test("A write stops when the socket is full and goes on from another address")
    func backpressure() throws {
        let gate = Gate()
        let request = Self.pattern(2_000_000)
        let records = try withClient(.echo(request.count, start: gate)) { client in
            client.limitBuffers(to: 64 * 1024)
            var taken = 0
            var filled = false
            while !filled {
                let result = request[taken...].withUnsafeBytes { client.connection.write($0) }
                switch result {
                case .bytes(let count): taken += count
                case .wantWrite: filled = true
                case .wantRead, .failed:
                    Issue.record("unexpected \(result)")
                    return
                }
            }
            #expect(taken < request.count)
            gate.open()
            // A copy: the rest comes from another place in memory.
            #expect(client.write(Array(request[taken...])))
            let all = client.readAll(capacity: 65_536)
            #expect(all.bytes == request)
            #expect(all.end == .endOfStream)
        }
        #expect(records.map(\.request.count) == [request.count])
        #expect(records.map { $0.request == request } == [true])
    }

    @Test("Ending the session lets the server know, and a broken one says nothing")
    func shutdown() throws {
        let records = try withClient(.hold([1])) { client in
            #expect(client.write([7]))
            #expect(client.readWhenReady(10).bytes == [1])
            #expect(client.connection.shutdown())
            #expect(client.connection.shutdown())
            #expect(client.connection.failure == nil)
        }
        #expect(records.map(\.endedCleanly) == [true])
        let abrupt = try withClient(.hold([1])) { client in
            #expect(client.write([7]))
        }
        #expect(abrupt.map(\.endedCleanly) == [false])
    }

    @Test("A session that has not been opened has nothing to end")
    func shutdownBeforeHandshake() throws {
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.connection.shutdown())
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }
}
