import CLinux
import COpenSSL
import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import PinfoldEngine
@testable import PinfoldTLS

/// A tunnel between a client and a server that the test controls.
@Suite("An inspected tunnel")
struct InspectedTunnelTests {
    /// A client that supports at most TLS 1.2.
    private static let olderClient: TLSClientContext = {
        let anchor = RootSource.file(name: "roots", contents: TestIdentity.certificate)
        guard let roots = try? TrustRoots([anchor]),
            let context = try? TLSClientContext(roots: roots),
            let library = try? context.library(),
            pinfold_SSL_CTX_set_max_proto_version(library, TLS1_2_VERSION) == 1
        else { fatalError("no client context") }
        return context
    }()

    /// The protocol of a tunnel's client.
    private enum Speech { case clear, tls12, tls13 }

    /// A tunnel to service.test, its other ends, and its result.
    private final class Begun {
        let still: StillEngine
        let client: FarEnd
        let server: FarEnd
        private(set) var tunnel: InspectedTunnel!
        private(set) var reasons: [String?] = []
        private(set) var isRelayed = false
        private(set) var closings = 0
        private var relay: Relay?

        /// - Parameters:
        ///   - entry: members of the host's entry besides `match` and `tunnel`.
        ///   - server: whether the server speaks TLS; otherwise it is silent.
        init(
            _ speech: Speech, _ entry: String = "", server hasServer: Bool = true,
            authority: String = "service.test"
        ) throws {
            still = try StillEngine()
            let configuration = try testConfiguration(
                """
                access: { destinations: { allow: [127.0.0.0/8] } }
                tls: { profile: lenient }
                pinsets:
                  other: { mode: publicKey, pins: [\(String(repeating: "a5", count: 32))] }
                hosts: [{ match: [\(authority)], tunnel: inspect\(entry) }]
                """, roots: [TestRoots.file("/roots.pem", TestIdentity.certificateDER)])
            still.environment.adopt(try testPolicy(configuration, generation: 2))
            let (nearClient, farClient) = try Peer.pair()
            let (nearServer, farServer) = try Peer.pair()
            let descriptors = (dup(farClient.descriptor), dup(farServer.descriptor))
            let transport: Transport =
                switch speech {
                case .clear: Transport(descriptor: descriptors.0)
                case .tls12: try .client(descriptors.0, InspectedTunnelTests.olderClient)
                case .tls13: try .client(descriptors.0)
                }
            client = FarEnd(transport)
            server = FarEnd(
                hasServer
                    ? try .server(descriptors.1) : Transport(descriptor: descriptors.1))
            let environment = still.environment
            tunnel = InspectedTunnel(
                environment: environment, authority: BoundAuthority(host: authority, port: 443),
                account: nil,
                handover: DownstreamHandover(
                    transport: Transport(descriptor: nearClient), leftover: nil,
                    pending: OutputQueue(), closed: { [weak self] _ in self?.closings += 1 }),
                server: EstablishedConnection(
                    transport: Transport(descriptor: nearServer),
                    endpoint: try #require(Endpoint("127.0.0.1:443"))),
                policy: environment.policy, request: nil
            ) { [weak self] in self?.ended($0) }
            tunnel.start()
        }

        private func ended(_ outcome: InspectedTunnel.Outcome) {
            switch outcome {
            case .ended(let fault): reasons.append(fault?.reason.token)
            case .intercepted: Issue.record("it is intercepted")
            case .relayed(let handover, let upstream):
                isRelayed = true
                let relay = Relay(
                    environment: still.environment, idleMilliseconds: 60_000
                ) { _, _, _ in }
                self.relay = relay
                do {
                    try relay.start(
                        client: handover.transport, upstream: upstream,
                        earlyFromClient: handover.leftover, earlyFromUpstream: nil,
                        pendingForClient: handover.pending)
                } catch { Issue.record("no relay: \(error)") }
            }
        }

        func run(until isDone: () -> Bool) -> Bool { still.run(client, server, until: isDone) }

        /// Whether the tunnel is refused for a reason, without contacting the server; closes the
        /// client's end.
        func isRefused(for reason: String) -> Bool {
            guard run(until: { client.end != nil && server.end != nil }) else { return false }
            client.close()
            guard run(until: { !reasons.isEmpty }) else { return false }
            #expect(reasons == [reason])
            #expect(!isRelayed && closings == 1)
            #expect(still.loop.buffers.outstanding == 0)
            return true
        }
    }

    /// A fatal alert in clear text.
    private static func alert(_ code: UInt8) -> [UInt8] {
        [21, 3, 3, 0, 2, 2, code]
    }

    // MARK: What passes

    @Test func `relays both sides once the server is verified`() throws {
        let begun = try Begun(.tls12)
        #expect(begun.run { begun.client.isOpen && begun.server.isOpen && begun.isRelayed })
        begun.client.send("question")
        #expect(begun.run { begun.server.text == "question" })
        begun.server.send("answer")
        #expect(begun.run { begun.client.text == "answer" })
        #expect(begun.reasons.isEmpty && begun.closings == 0)
        #expect(begun.still.metrics.value(.tunnelsVerifiedTLS12) == 1)
    }

    @Test func `keeps no buffer while the server is silent`() throws {
        let begun = try Begun(.tls12, server: false)
        #expect(begun.run { begun.server.received.count > 50 })
        // The ClientHello: for the time when the server has been judged.
        #expect(begun.still.loop.buffers.outstanding == 1)
        begun.server.close()
        #expect(begun.run { begun.client.end != nil })
        begun.client.close()
        #expect(begun.run { !begun.reasons.isEmpty })
        #expect(begun.still.loop.buffers.outstanding == 0)
    }

    // MARK: What is refused

    @Test func `shows the client nothing of a server that no pin matches`() throws {
        let begun = try Begun(.tls12, ", pinsets: [other]")
        #expect(begun.isRefused(for: "tls-no-pin-matches"))
        #expect(!begun.client.isOpen && begun.client.end == .failed)
        #expect(begun.still.metrics.value(.tunnelsRefusedTLS12) == 1)
    }

    @Test func `refuses TLS 1_3 unless configured otherwise`() throws {
        let begun = try Begun(.tls13)
        #expect(begun.isRefused(for: "tunnel-tls13-refused"))
        #expect(begun.client.end == .failed)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n\r\n", "\u{16}\u{2}", "SSH-2.0-x\r\n"])
    func `refuses what is not TLS silently, and the server gets none of it`(
        _ text: String
    ) throws {
        let begun = try Begun(.clear, server: false)
        begun.client.send(text)
        #expect(begun.isRefused(for: "tunnel-not-tls"))
        #expect(begun.server.received.isEmpty && begun.client.received.isEmpty)
    }

    @Test func `refuses a server that sends data first`() throws {
        let begun = try Begun(.clear, server: false)
        begun.server.send("220 ready\r\n")
        #expect(begun.isRefused(for: "tunnel-not-tls"))
        #expect(begun.client.received.isEmpty)
    }

    @Test func `refuses a ClientHello for another name by an alert`() throws {
        let begun = try Begun(.tls12, authority: "another.test")
        #expect(begun.isRefused(for: "tunnel-name-mismatch"))
        #expect(!begun.server.isOpen)
    }

    @Test func `notifies the client of a server that closes`() throws {
        let hello = try clientHello()
        let begun = try Begun(.clear, server: false)
        begun.client.send(hello)
        #expect(begun.run { begun.server.received == hello })
        begun.server.close()
        #expect(begun.run { begun.client.end == .clean })
        #expect(begun.client.received == Self.alert(80))
        begun.client.close()
        #expect(begun.run { begun.reasons == ["upstream-closed"] })
    }

    @Test func `forwards the ClientHello unchanged, however it arrives`() throws {
        let hello = try clientHello()
        let begun = try Begun(.clear, server: false)
        for (index, byte) in hello.enumerated() {
            #expect(begun.server.received.isEmpty, "after \(index) bytes")
            begun.client.send([byte])
            #expect(begun.run { begun.still.metrics.value(.clientBytesReceived) > index })
        }
        #expect(begun.run { begun.server.received == hello })
    }

    @Test func `closes a tunnel whose client resets it`() throws {
        let begun = try Begun(.clear, server: false)
        begun.client.send(try clientHello())
        #expect(begun.run { !begun.server.received.isEmpty })
        begun.client.reset()
        #expect(begun.run { begun.server.end != nil })
        #expect(begun.reasons == [nil] && begun.closings == 1)
        #expect(begun.still.loop.buffers.outstanding == 0)
    }

    /// The first bytes of a TLS 1.2 client.
    private func clientHello() throws -> [UInt8] {
        let (near, far) = try Peer.pair()
        let transport = try Transport.client(near, Self.olderClient)
        defer { Descriptors.close(near) }
        _ = transport.handshake()
        let end = FarEnd(Transport(descriptor: dup(far.descriptor)))
        let still = try StillEngine()
        #expect(still.run(end) { end.received.count > 50 })
        return end.received
    }
}
