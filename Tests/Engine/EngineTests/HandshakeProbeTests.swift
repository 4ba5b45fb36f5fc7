import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import PinfoldTLS
import Testing

@testable import PinfoldEngine

@Suite("A probe of a server")
struct HandshakeProbeTests {
    /// Trusts nobody.
    private static let suspicious: TLSClientContext = {
        guard let roots = try? TrustRoots([]), let context = try? TLSClientContext(roots: roots)
        else { fatalError("no client context") }
        return context
    }()

    /// A probe in progress, and what it has found out.
    private final class Begun {
        let still: StillEngine
        let server: ScriptedServer
        private(set) var probe: HandshakeProbe!
        private(set) var findings: [String] = []
        private(set) var endpoints: [Endpoint] = []

        init(
            _ context: TLSClientContext, of server: ScriptedServer, milliseconds: Int64 = 60_000,
            checked: Bool = false
        ) throws {
            still = try StillEngine()
            self.server = server
            probe = HandshakeProbe(
                environment: still.environment,
                subject: HandshakeProbe.Subject(
                    authority: BoundAuthority(host: "service.test", port: server.port),
                    addresses: [server.endpoint.address], context: context,
                    rules: checked ? still.environment.policy.destinationRules : nil,
                    stepMilliseconds: milliseconds)
            ) { [unowned self] in note($0) }
            probe.start()
            #expect(findings.isEmpty, "never from within start")
        }

        private func note(_ finding: HandshakeProbe.Finding) {
            switch finding {
            case .trusted(let tls, let endpoint):
                findings.append("trusted \(tls.facts != nil)")
                endpoints.append(endpoint)
            case .refused(let error, let tls, let endpoint):
                findings.append("\(error.reason.token) \(tls.presented.count)")
                endpoints.append(endpoint)
            case .failed(let failure): findings.append(failure.error.reason.token)
            }
        }

        /// Runs until something has been found out, with a server that speaks TLS.
        func shakeHands() throws -> FarEnd {
            let peer = try still.peer(of: server)
            let far = FarEnd(try .server(dup(peer.descriptor)))
            peer.close()
            #expect(still.run(far) { !findings.isEmpty && far.end != nil })
            return far
        }

        /// Whether nothing of it is left.
        var isOver: Bool {
            still.settle()
            return probe.token == .none && openConnections(toPort: server.port) == 0
        }
    }

    @Test func `finds out that it is trusted, and sends it nothing`() throws {
        let begun = try Begun(TestIdentity.client, of: try ScriptedServer())
        let far = try begun.shakeHands()
        #expect(begun.findings == ["trusted true"])
        #expect(begun.endpoints == [begun.server.endpoint])
        #expect(far.received.isEmpty)
        #expect(begun.isOver)
        #expect(begun.still.metrics.value(.dnsQueries) == 0)
    }

    @Test func `finds out why it is not trusted, and what it presents`() throws {
        let begun = try Begun(Self.suspicious, of: try ScriptedServer())
        let far = try begun.shakeHands()
        #expect(begun.findings == ["tls-self-signed 1"])
        #expect(begun.endpoints == [begun.server.endpoint])
        #expect(far.received.isEmpty)
        #expect(begun.isOver)
    }

    @Test func `gives it up if it is silent`() throws {
        let server = try ScriptedServer()
        let begun = try Begun(TestIdentity.client, of: server, milliseconds: 1000)
        let peer = try begun.still.peer(of: server)
        begun.still.turn(until: "it is connected") { begun.probe.isConnected }
        begun.still.turn(until: "it gives up") { !begun.findings.isEmpty }
        #expect(begun.findings == ["tls-timeout"])
        #expect(begun.still.metrics.value(.tlsHandshakesTimeout) == 1)
        #expect(peer.hasEnded)
        #expect(begun.isOver)
    }

    @Test func `reports that it cannot be connected to`() throws {
        let begun = try Begun(TestIdentity.client, of: try ScriptedServer(listens: false))
        begun.still.turn(until: "it fails") { !begun.findings.isEmpty }
        #expect(begun.findings == ["connection-refused"])
        #expect(!begun.probe.isConnected)
        #expect(begun.isOver)
    }

    @Test func `connects to no address that the rules deny`() throws {
        let server = try ScriptedServer()
        let begun = try Begun(TestIdentity.client, of: server, checked: true)
        begun.still.turn(until: "it fails") { !begun.findings.isEmpty }
        #expect(begun.findings == ["destination-refused"])
        #expect(server.accept() == nil)
        #expect(begun.isOver)
    }

    @Test(arguments: [false, true])
    func `finds out nothing more when cancelled`(_ isConnected: Bool) throws {
        let server = try ScriptedServer()
        let begun = try Begun(TestIdentity.client, of: server)
        if isConnected {
            begun.still.turn(until: "it is connected") { begun.probe.isConnected }
        }
        begun.probe.cancel()
        #expect(begun.isOver)
        #expect(begun.findings.isEmpty)
        #expect((server.accept() != nil) == isConnected)
    }
}
