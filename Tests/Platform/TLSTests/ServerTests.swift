import CLinux
import COpenSSL
import Testing

@testable import PinfoldTLS

@Suite("A server's connections")
struct ServerTests {
    @Test func `a client and a server agree, and both report on what`() throws {
        let pair = try Pair()
        #expect(pair.server.version == nil)
        #expect(pair.opens())
        for side in [pair.client, pair.server] as [TLSConnection] {
            #expect(side.version == .tls13)
            #expect(side.applicationProtocol == "http/1.1")
            #expect(side.serverName == "service.test")
        }
        #expect(pair.server.cipherSuite == pair.client.cipherSuite)
        #expect(pair.server.handshake() == .complete)
        #expect(pair.client.write("question") == .bytes(8))
        #expect(pair.server.readAll().bytes == Array("question".utf8))
        #expect(pair.server.write("answer") == .bytes(6))
        #expect(pair.client.readAll().bytes == Array("answer".utf8))
    }

    @Test func `a client's certificate is not taken where nothing was verified`() throws {
        let identity = try TLSServerIdentity(certificate: PKI.leaf.x509, key: PKI.leaf.key)
        let server = try TLSServerContext(
            source: TLSIdentityList([identity]), clientRoots: PKI.roots(PKI.root))
        let verdict = try #require(SSL_CTX_get_verify_callback(server.context))
        for isVerified: Int32 in [0, 1] { #expect(verdict(isVerified, nil) == 0) }
    }

    @Test func `bytes that were read before the handshake are used, split at every byte`() throws {
        let (client, server) = (try TLSClientContext.make(), try TLSServerContext.make())
        let probe = try Pair(client: client, server: server)
        _ = probe.client.handshake()
        let hello = probe.sockets.take(16_384).count
        #expect(hello > 100)
        for count in 1...hello {
            let pair = try Pair(client: client, server: server, earlyCount: count)
            #expect(pair.opens(), "\(count) bytes early")
            #expect(pair.client.write("request") == .bytes(7))
            #expect(pair.server.readAll().bytes == Array("request".utf8))
        }
    }

    @Test func `early bytes are received in as many pieces as there is room for`() throws {
        let bytes = (0..<100).map { UInt8($0) }
        var state = SocketState(fileDescriptor: -1)
        bytes.withUnsafeBytes { state.setEarly($0) }
        var got: [UInt8] = []
        for capacity in [1, 60, 1, 60] {
            var buffer = [UInt8](repeating: 0, count: capacity)
            let count = buffer.withUnsafeMutableBytes {
                state.takeEarly(into: $0.baseAddress, capacity: capacity)
            }
            got += buffer.prefix(count)
        }
        #expect(got == bytes)
        #expect(state.early.isEmpty)
    }

    @Test(
        arguments: [("Service.TEST.", "service.test"), ("127.0.0.1", nil)] as [(String, String?)])
    func `the name that the client asks for is reported`(host: String, name: String?) throws {
        let pair = try Pair(host: host)
        #expect(pair.server.serverName == nil)
        #expect(pair.opens())
        #expect(pair.server.serverName == name)
    }

    @Test(
        arguments: [
            (["http/1.1"], ["h2", "http/1.1"], "http/1.1"),
            (["a", "b"], ["b", "a"], "a"),
            (["http/1.1"], [], nil),
            ([], ["http/1.1"], nil),
        ] as [([String], [String], String?)])
    func `the server's first protocol that the client offers is selected`(
        served: [String], offered: [String], selected: String?
    ) throws {
        let pair = try Pair(
            client: Self.client(offering: offered), server: .make(protocols: served))
        #expect(pair.opens())
        #expect(pair.client.applicationProtocol == selected)
        #expect(pair.server.applicationProtocol == selected)
    }

    @Test func `a client that offers only other protocols is refused with the alert`() throws {
        let pair = try Pair(client: Self.client(offering: ["h2"]))
        let result = pair.handshake()
        #expect(
            result.client
                == .failed(.alertReceived(code: 120, name: "no_application_protocol")))
        #expect(result.server.error?.token == "protocol-violation")
        #expect(pair.server.sentAlert == TLSAlert(code: 120))
    }

    private static func client(offering protocols: [String]) throws -> TLSClientContext {
        var settings = TLSClientSettings()
        settings.applicationProtocols = protocols
        return try TLSClientContext(settings, roots: PKI.roots(PKI.root))
    }

    @Test func `no session is given out to resume`() throws {
        let sessions = TLSSessionCache()
        let (client, server) = (
            try TLSClientContext.make(sessions: sessions), try TLSServerContext.make()
        )
        for _ in 0..<2 {
            let pair = try Pair(client: client, server: server)
            #expect(pair.opens())
            #expect(!pair.client.isResumed)
            #expect(pair.server.write("x") == .bytes(1))
            #expect(pair.client.readAll().bytes == Array("x".utf8))
        }
        #expect(sessions.count == 0)
        let sockets = SocketPair()
        let older = LibraryClient(descriptor: sockets.far, version: TLS1_2_VERSION)
        let connection = try TLSServerConnection(context: server, fileDescriptor: sockets.near)
        #expect(older.open(connection) == .complete)
        #expect(SSL_SESSION_is_resumable(SSL_get_session(older.ssl)) == 0)
    }

    @Test func `an end with close_notify is one, and what is still sent arrives`() throws {
        let pair = try Pair()
        #expect(pair.opens())
        #expect(pair.client.write("last") == .bytes(4))
        #expect(pair.client.shutdown())
        let all = pair.server.readAll()
        #expect(all.bytes == Array("last".utf8))
        #expect(all.end == .endOfStream)
        #expect(pair.server.readAll().end == .endOfStream)
        #expect(pair.server.write("answer") == .bytes(6))
        #expect(pair.server.shutdown())
        let answer = pair.client.readAll()
        #expect(answer.bytes == Array("answer".utf8))
        #expect(answer.end == .endOfStream)
        #expect(pair.server.failure == nil)
    }

    @Test(arguments: [false, true])
    func `an end without close_notify is truncation, for both sides`(isServer: Bool) throws {
        let pair = try Pair()
        #expect(pair.opens())
        let sides = [pair.client, pair.server] as [TLSConnection]
        let (reader, writer) = isServer ? (sides[1], sides[0]) : (sides[0], sides[1])
        #expect(writer.write("last") == .bytes(4))
        shutdown(isServer ? pair.sockets.far : pair.sockets.near, Int32(SHUT_WR))
        let all = reader.readAll()
        #expect(all.bytes == Array("last".utf8))
        #expect(all.end == .truncated)
        #expect(reader.failure == .truncated)
    }

    @Test func `a write stops at the full socket, within a record, and continues`() throws {
        let pair = try Pair()
        #expect(pair.opens())
        let content = TransferTests.pattern(2_000_000)
        var (taken, wasWithin): (Int, Bool) = (0, false)
        var got: [UInt8] = []
        for _ in 0..<10_000 where got.count < content.count {
            if taken < content.count {
                switch pair.server.write(Array(content[taken...])) {
                case .bytes(let count): taken += count
                case .wantWrite: break
                case let other: Issue.record("unexpected \(other)")
                }
                #expect(pair.server.isWithinRecord == (taken < content.count))
                wasWithin = wasWithin || pair.server.isWithinRecord
            }
            got += pair.client.readAll().bytes
        }
        #expect(got == content)
        #expect(wasWithin)
        #expect(!pair.server.isWithinRecord)
    }
}

extension TLSHandshakeResult {
    var error: TLSError? {
        if case .failed(let error) = self { error } else { nil }
    }
}
