import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldTLS
import Testing

@testable import PinfoldEngine

/// A tunnel between a client and a server that the test controls.
@Suite("A tunnel whose protocol is not known yet")
struct UndecidedTunnelTests {
    private final class Begun {
        let still: StillEngine
        let server: ScriptedServer
        let client: Peer
        private(set) var tunnel: UndecidedTunnel!
        private(set) var outcomes: [String] = []
        private(set) var attempts: [Endpoint?] = []
        private(set) var closings = 0
        private(set) var passed: (client: DownstreamHandover, server: Transport)?

        static let loopback = "access: { destinations: { allow: [127.0.0.0/8] } }"

        /// - Parameters:
        ///   - settings: the configuration.
        ///   - policy: replaces that of the configuration.
        init(
            _ settings: String = loopback, under policy: PolicySnapshot? = nil,
            listens: Bool = true
        ) throws {
            still = try StillEngine(settings)
            if let policy { still.environment.adopt(policy) }
            server = try ScriptedServer(listens: listens)
            let near: Int32
            (near, client) = try Peer.pair()
            var pending = OutputQueue()
            pending.append("HTTP/1.1 200 OK\r\n\r\n")
            tunnel = UndecidedTunnel(
                environment: still.environment,
                authority: BoundAuthority(host: server.host, port: server.port), account: nil,
                handover: DownstreamHandover(
                    transport: Transport(descriptor: near), leftover: nil, pending: pending,
                    closed: { [weak self] _ in self?.closings += 1 }),
                request: nil
            ) { [weak self] in self?.ended($0) }
            tunnel.start()
        }

        deinit {
            passed?.client.transport.close()
            passed?.server.close()
        }

        private func ended(_ outcome: UndecidedTunnel.Outcome) {
            switch outcome {
            case .intercepted: outcomes.append("intercepted")
            case .refused(_, _, let failure):
                outcomes.append("refused \(failure.error.reason.token)")
            case .passed(let handover, let server, _, let pass):
                passed = (handover, server.transport)
                outcomes.append("passed \(pass)")
            case .ended(let failure):
                outcomes.append(failure?.error.reason.token ?? "ended")
                attempts.append(failure?.attempts?.last)
            }
        }

        func isAnswered() {
            still.await("200 OK\r\n\r\n", at: client)
            #expect(outcomes.isEmpty)
        }

        /// Whether it has ended once, and nothing of it is left.
        func hasEnded(_ outcome: String) -> Bool {
            still.turn(until: "it ends") { !outcomes.isEmpty }
            still.settle()
            #expect(outcomes == [outcome])
            #expect(closings == (passed == nil ? 1 : 0))
            #expect(passed != nil || openConnections(toPort: server.port) == 0)
            return tunnel.token == .none && tunnel.server == nil && tunnel.opening == nil
        }
    }

    @Test func `is relayed if the client sends anything but TLS, which the server gets`() throws {
        let begun = try Begun()
        begun.isAnswered()
        #expect(begun.server.accept() == nil)
        begun.client.send("SSH-2.0-x\r\n")
        #expect(begun.hasEnded("passed notTLS"))
        let early = try #require(begun.passed?.client.leftover)
        #expect(String(decoding: early.readable, as: UTF8.self) == "SSH-2.0-x\r\n")
    }

    @Test func `is relayed if the server speaks first, while the client is silent`() throws {
        let begun = try Begun()
        let peer = try begun.still.peer(of: begun.server)
        begun.still.turn(until: "it is connected") { begun.tunnel.server != nil }
        begun.still.settle()
        #expect(begun.outcomes.isEmpty)
        peer.send("220 ready\r\n")
        #expect(begun.hasEnded("passed serverFirst"))
        #expect(readable(try #require(begun.passed?.server.descriptor)) == "220 ready\r\n")
    }

    @Test func `uses the connection that was made while the client was silent`() throws {
        let begun = try Begun()
        let peer = try begun.still.peer(of: begun.server)
        begun.still.turn(until: "it is connected") { begun.tunnel.server != nil }
        begun.client.send("EHLO\r\n")
        #expect(begun.hasEnded("passed notTLS"))
        #expect(!peer.hasEnded && begun.server.accept() == nil)
    }

    @Test func `uses no connection made under rules that a reload has changed`() throws {
        let begun = try Begun()
        let former = try begun.still.peer(of: begun.server)
        begun.still.turn(until: "it is connected") { begun.tunnel.server != nil }
        let changed = try testConfiguration(
            "access: { destinations: { allow: [127.0.0.0/8, 10.0.0.0/8] } }")
        begun.still.environment.adopt(try testPolicy(changed, generation: 2))
        begun.client.send("EHLO\r\n")
        #expect(begun.hasEnded("passed notTLS"))
        #expect(former.hasEnded)
        #expect(try !begun.still.peer(of: begun.server).hasEnded)
    }

    /// A policy by which every tunnel is intercepted.
    private func intercepting() throws -> PolicySnapshot {
        var configuration = try testConfiguration(Begun.loopback)
        configuration.interception.authority = try InterceptionPolicyTests.makeAuthority()
        configuration.interception.byDefault = .always
        return try PolicySnapshot(
            configuration, generation: 2, following: nil, sessions: TLSSessionCache(),
            issuer: try CertificateIssuer(), labels: RouteLabels()
        ) { EntryReachability(label: $0) }
    }

    @Test(arguments: [false, true])
    func `is closed if a reload ends the interception before the client speaks TLS`(
        _ isReloaded: Bool
    ) throws {
        let begun = try Begun(under: try intercepting())
        begun.isAnswered()
        if isReloaded {
            let changed = try testConfiguration(Begun.loopback)
            begun.still.environment.adopt(try testPolicy(changed, generation: 3))
        }
        begun.client.send("\u{16}\u{3}\u{1}")
        guard isReloaded else {
            begun.still.turn(until: "the server is verified") {
                begun.tunnel.opening is OriginVerification
            }
            #expect(begun.outcomes.isEmpty)
            begun.tunnel.cut()
            #expect(begun.outcomes == ["ended"])
            return
        }
        #expect(begun.hasEnded("superseded"))
        #expect(begun.client.hasEnded)
    }

    @Test func `is closed if the server may not be connected to, or cannot be`() throws {
        let refused = try Begun("{}")
        refused.client.send("SSH-2.0-x\r\n")
        #expect(refused.hasEnded("destination-refused"))
        #expect(refused.client.hasEnded)
        let nobody = try Begun(listens: false)
        nobody.client.send("SSH-2.0-x\r\n")
        #expect(nobody.hasEnded("connection-refused"))
        #expect(nobody.attempts == [nobody.server.endpoint])
    }

    @Test(arguments: [false, true])
    func `ends with its client, whether a server was connected or not`(_ waits: Bool) throws {
        let begun = try Begun()
        begun.isAnswered()
        let peer = waits ? try begun.still.peer(of: begun.server) : nil
        if waits {
            begun.still.turn(until: "it is connected") { begun.tunnel.server != nil }
        }
        begun.client.reset()
        #expect(begun.hasEnded("ended"))
        if let peer { #expect(peer.hasEnded) }
        #expect(begun.still.loop.buffers.outstanding == 0)
    }

    @Test func `makes room for others when it must`() throws {
        let begun = try Begun()
        begun.isAnswered()
        #expect(begun.tunnel.unfinishedBytes > 0)
        begun.tunnel.giveUp()
        #expect(begun.hasEnded("head-buffers-full"))
        #expect(begun.tunnel.unfinishedBytes == 0)
        #expect(begun.client.hasEnded)
        begun.tunnel.cut()
        #expect(begun.outcomes.count == 1)
    }
}
