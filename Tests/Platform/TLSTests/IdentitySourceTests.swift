import CLinux
import COpenSSL
import Testing

@testable import PinfoldTLS

/// Gives the answers that a test sets, and records what it was asked.
private final class ScriptedSource: TLSIdentitySource {
    private(set) var asked: [TLSClientHello] = []
    let result: TLSIdentityAnswer

    init(_ result: TLSIdentityAnswer) { self.result = result }

    func identity(
        for hello: TLSClientHello, on connection: TLSServerConnection
    ) -> TLSIdentityAnswer {
        asked.append(hello)
        return result
    }
}

@Suite("Where a server's certificate comes from")
struct IdentitySourceTests {
    private static func identity(_ certificate: TestCertificate) throws -> TLSServerIdentity {
        try TLSServerIdentity(
            certificate: certificate.x509, chain: [PKI.intermediate.x509], key: certificate.key)
    }

    /// A server's connection with its own source; its context would present another name.
    private static func server(
        _ sockets: SocketPair, _ source: ScriptedSource, scope: String = ""
    ) throws -> TLSServerConnection {
        let other = try TLSServerContext(identity: identity(PKI.otherName))
        return try TLSServerConnection(
            context: other, fileDescriptor: sockets.near, source: source, sessionScope: scope)
    }

    private static func client(_ sockets: SocketPair) throws -> TLSClientConnection {
        try TLSClientConnection(
            context: .make(), fileDescriptor: sockets.far, host: "Service.Test", port: 443,
            now: TestClient.now)
    }

    @Test func `a certificate that is there is presented at once`() throws {
        let (sockets, source) = (
            SocketPair(), ScriptedSource(.present(try Self.identity(PKI.leaf)))
        )
        let (client, server) = (try Self.client(sockets), try Self.server(sockets, source))
        #expect(client.handshake() == .wantRead)
        #expect(server.handshake() == .wantRead)
        #expect(client.handshake() == .complete)
        #expect(server.handshake() == .complete)
        #expect(source.asked.count == 1)
        let hello = try #require(source.asked.first)
        #expect(hello.serverName == "service.test")
        #expect(hello.versions == [.tls12, .tls13])
        #expect(hello.offersECDSA)
        #expect(hello.applicationProtocols == ["http/1.1"])
        #expect(server.clientHello == hello)
    }

    @Test func `a handshake waits for a certificate, however often it is asked to go on`() throws {
        let (sockets, source) = (SocketPair(), ScriptedSource(.later))
        let (client, server) = (try Self.client(sockets), try Self.server(sockets, source))
        #expect(client.handshake() == .wantRead)
        for _ in 0..<3 { #expect(server.handshake() == .wantIdentity) }
        #expect(client.handshake() == .wantRead)
        #expect(source.asked.count == 1)
        server.answer(.present(try Self.identity(PKI.leaf)))
        server.answer(.refuse(.internalError))
        #expect(server.handshake() == .wantRead)
        #expect(client.handshake() == .complete)
        #expect(server.handshake() == .complete)
        #expect(source.asked.count == 1)
    }

    @Test func `an answer that is no longer awaited changes nothing`() throws {
        let (sockets, source) = (SocketPair(), ScriptedSource(.later))
        let (client, server) = (try Self.client(sockets), try Self.server(sockets, source))
        server.answer(.refuse(.internalError))
        #expect(client.handshake() == .wantRead)
        #expect(server.handshake() == .wantIdentity)
    }

    @Test(
        arguments: [
            (TLSAlert.unrecognizedName, UInt8(112), "unrecognized_name"),
            (.accessDenied, 49, "access_denied"), (.handshakeFailure, 40, "handshake_failure"),
            (.internalError, 80, "internal_error"),
        ], [false, true])
    func `a client is refused with the alert of the source's choice`(
        expected: (TLSAlert, UInt8, String), isLater: Bool
    ) throws {
        let (alert, code, name) = expected
        let (sockets, source) = (SocketPair(), ScriptedSource(isLater ? .later : .refuse(alert)))
        let (client, server) = (try Self.client(sockets), try Self.server(sockets, source))
        #expect(client.handshake() == .wantRead)
        if isLater {
            #expect(server.handshake() == .wantIdentity)
            server.answer(.refuse(alert))
        }
        #expect(server.handshake() == .failed(.identityRefused(alert)))
        #expect(server.sentAlert == alert)
        #expect(client.handshake() == .failed(.alertReceived(code: code, name: name)))
    }

    @Test func `a certificate with another one's key is an error of the gateway's own`() throws {
        let wrong = try TLSServerIdentity(certificate: PKI.leaf.x509, key: PKI.direct.key)
        let (sockets, source) = (SocketPair(), ScriptedSource(.present(wrong)))
        let (client, server) = (try Self.client(sockets), try Self.server(sockets, source))
        #expect(client.handshake() == .wantRead)
        #expect(server.handshake().error?.token == "resources")
        #expect(server.sentAlert == .internalError)
    }

    @Test func `a client that must send its first message again is asked for once`() throws {
        let (sockets, source) = (SocketPair(), ScriptedSource(.later))
        let server = try Self.server(sockets, source)
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_3_VERSION)
        // Its only key share is in a group that it lists after the one that is chosen.
        SSL_set_cipher_list(client.ssl, "DEFAULT")
        #expect(pinfold_SSL_set1_groups_list(client.ssl, "ffdhe2048:X25519") == 1)
        #expect(pinfold_SSL_set_host_name(client.ssl, "service.test") == 1)
        var (isDone, result, waited) = (false, TLSHandshakeResult.wantRead, 0)
        for _ in 0..<20 where !(isDone && result == .complete) {
            isDone = client.step().isDone || isDone
            result = server.handshake()
            if result == .wantIdentity {
                waited += 1
                server.answer(.present(try Self.identity(PKI.leaf)))
            }
        }
        #expect(isDone)
        #expect(result == .complete)
        #expect(waited == 1)
        #expect(source.asked.count == 1)
    }

    /// The certificate was chosen by the first: by its name, its protocols, and the keys it
    /// accepts.
    @Test(arguments: ["name", "protocols"])
    func `a client whose second message asks for something else is refused`(what: String) throws {
        let source = ScriptedSource(.present(try Self.identity(PKI.leaf)))
        let sockets = SocketPair()
        let server = try Self.server(sockets, source)
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_3_VERSION)
        func offer(_ name: String, _ protocolName: String) {
            let list = [UInt8(protocolName.utf8.count)] + Array(protocolName.utf8)
            #expect(pinfold_SSL_set_host_name(client.ssl, name) == 1)
            #expect(SSL_set_alpn_protos(client.ssl, list, UInt32(list.count)) == 0)
        }
        SSL_set_cipher_list(client.ssl, "DEFAULT")
        // Its only key share is in a group that the server does not support.
        #expect(pinfold_SSL_set1_groups_list(client.ssl, "ffdhe2048:X25519") == 1)
        #expect(pinfold_SSL_set1_groups_list(server.ssl, "X25519") == 1)
        offer("service.test", "http/1.1")
        #expect(!client.step().isDone)
        #expect(server.handshake() == .wantRead)
        offer(
            what == "name" ? "other.test" : "service.test",
            what == "protocols" ? "http/1.0" : "http/1.1")
        #expect(!client.step().isDone)
        #expect(server.handshake() == .failed(.identityRefused(.illegalParameter)))
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a first message in records of one byte is read`(version: Int32) throws {
        let probe = SocketPair()
        let sender = LibraryClient(descriptor: probe.far, version: version)
        _ = sender.step()
        let hello = probe.take(16_384)
        let (sockets, source) = (SocketPair(), ScriptedSource(.later))
        let server = try Self.server(sockets, source)
        sockets.say(hello.dropFirst(5).flatMap { [22, 3, 1, 0, 1, $0] })
        var result = server.handshake()
        for _ in 0..<2000 where result == .turnIsOver { result = server.handshake() }
        #expect(result == .wantIdentity)
        #expect(source.asked.count == 1)
        #expect(source.asked.first?.versions.last == (version == TLS1_2_VERSION ? .tls12 : .tls13))
    }

    @Test func `a first message in segments of one byte is read`() throws {
        let probe = try Pair()
        _ = probe.client.handshake()
        let hello = probe.sockets.take(16_384)
        let (sockets, source) = (SocketPair(), ScriptedSource(.later))
        let server = try Self.server(sockets, source)
        for byte in hello.dropLast() {
            sockets.say([byte])
            #expect(server.handshake() == .wantRead)
        }
        sockets.say(hello.suffix(1))
        #expect(server.handshake() == .wantIdentity)
        #expect(source.asked == [probe.client.hello])
    }

    @Test(
        arguments: [
            ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDSA+SHA256", "P-256", true),
            ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDSA+SHA256", "X25519", false),
            ("ECDHE-ECDSA-AES128-GCM-SHA256:AES128-SHA", "RSA+SHA256", "P-256", false),
            ("AES128-SHA", "RSA+SHA256:ECDSA+SHA256", "P-256", false),
            (
                "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-SHA", "RSA+SHA256:ECDSA+SHA256",
                "X25519:P-256", true
            ),
        ])
    func `before 1.3 ECDSA needs a suite, a signature and a group`(
        suites: String, signatures: String, groups: String, offers: Bool
    ) throws {
        let (sockets, source) = (SocketPair(), ScriptedSource(.later))
        let server = try Self.server(sockets, source)
        let client = LibraryClient(descriptor: sockets.far, version: TLS1_2_VERSION)
        #expect(SSL_set_cipher_list(client.ssl, suites) == 1)
        #expect(pinfold_SSL_set1_sigalgs_list(client.ssl, signatures) == 1)
        #expect(pinfold_SSL_set1_groups_list(client.ssl, groups) == 1)
        _ = client.step()
        #expect(server.handshake() == .wantIdentity)
        #expect(source.asked.first?.offersECDSA == offers)
    }
}

extension TLSClientConnection {
    /// The default answer.
    var hello: TLSClientHello {
        TLSClientHello(serverName: "service.test", applicationProtocols: ["http/1.1"])
    }
}
