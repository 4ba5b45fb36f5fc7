import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

/// A worker with a listener whose socket all workers accept from; another worker accepts, and the
/// test passes the connection on.
private struct Handover {
    let still: StillWorker
    let endpoint: Endpoint
    var worker: Worker { still.worker }
    var shared: SharedServices { still.worker.shared }

    init() throws {
        still = try StillWorker()
        let descriptor = try Sockets.listen(on: try #require(Endpoint("127.77.3.6:0")))
        endpoint = try #require(Sockets.localEndpoint(descriptor))
        still.worker.handle(
            .configure(
                still.worker.policy,
                [
                    ListenerSocket(
                        name: "web", endpoint: endpoint, role: .forward, label: .other,
                        descriptor: descriptor, passedAs: "web", isShared: true)
                ]))
    }

    /// The other worker accepts a connection, which is now on its way.
    func accepted() throws -> (message: WorkerMessage, far: Peer) {
        let (near, far) = try Peer.pair()
        shared.handedOver.add(1, ordering: .relaxed)
        let peer = try #require(Endpoint("127.0.0.1:1"))
        return (.accepted(near, peer, name: "web", at: endpoint), far)
    }
}

@Suite("Connections that another worker accepted") struct HandoverTests {
    @Test func `one is served as if it had been accepted here`() throws {
        let handover = try Handover()
        let (message, far) = try handover.accepted()
        handover.worker.handle(message)
        #expect(handover.still.clientConnections.map(\.ingress.name) == ["web"])
        #expect(handover.shared.handedOver.load(ordering: .relaxed) == 0)
        withExtendedLifetime(far) {}
    }

    @Test func `one that arrives when its worker has drained is still waited for`() throws {
        let handover = try Handover()
        let (message, far) = try handover.accepted()
        handover.worker.handle(.drain)
        #expect(!handover.shared.haveAllDrained, "it is on its way")
        handover.worker.handle(message)
        #expect(!handover.shared.haveAllDrained, "it is being served")
        #expect(handover.still.clientConnections.count == 1)
        far.close()
        handover.still.turn(until: "it is gone") { handover.still.clientConnections.isEmpty }
        #expect(handover.shared.haveAllDrained)
    }

    @Test func `one for a listener that is gone is closed`() throws {
        let handover = try Handover()
        let (message, far) = try handover.accepted()
        handover.worker.handle(.configure(handover.worker.policy, []))
        handover.worker.handle(message)
        #expect(handover.still.clientConnections.isEmpty)
        #expect(handover.shared.handedOver.load(ordering: .relaxed) == 0)
        #expect(far.hasEnded)
    }
}
