import CLinux
import EngineTestSupport
import EventLoop
import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("An operation that connects to a name")
struct ConnectOperationTests {
    private let still: StillEngine

    init() throws { still = try StillEngine.reachingLoopback() }

    /// The operation and everything that it opened are gone from the loop.
    private func isOver(_ connect: ScriptedConnect) -> Bool { connect.operation.token == .none }

    @Test
    func `connects to a literal address without asking for it, and hands its socket over`() throws {
        let server = try ScriptedServer()
        let handlers = still.loop.handlerCount
        let connect = ScriptedConnect(still, "127.0.0.1", server.port)
        #expect(connect.outcomes.isEmpty, "never from within start")
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints == [server.endpoint])
        let peer = try still.peer(of: server)
        peer.send("over this socket")
        #expect(readable(try #require(connect.descriptor)) == "over this socket")
        still.settle()
        #expect(connect.outcomes.count == 1)
        #expect(still.loop.handlerCount == handlers)
        #expect(openConnections(toPort: server.port) == 1)
        #expect(still.metrics.value(.dnsQueries) == 0)
    }

    @Test func `reports a port without a listener as refused`() throws {
        let nobody = try ScriptedServer(listens: false)
        let connect = ScriptedConnect(still, "127.0.0.1", nobody.port)
        still.turn(until: "it fails") { !connect.outcomes.isEmpty }
        guard case .failure(.connectFailed(.connectionRefused))? = connect.outcomes.first else {
            Issue.record("\(connect.outcomes)")
            return
        }
        #expect(still.metrics.value(.upstreamConnectRefused) == 1)
        #expect(openConnections(toPort: nobody.port) == 0)
        #expect(isOver(connect))
    }

    @Test func `sends nothing to a network that the rules deny`() throws {
        let still = try StillEngine("access: { destinations: { deny: [127.0.0.0/8] } }")
        try refuses(still, .access(.destinationRefused))
    }

    @Test func `sends nothing to this host, which the rules must allow in words`() throws {
        try refuses(try StillEngine(), .access(.destinationRefused))
    }

    @Test
    func `sends nothing to one of the gateway's own listeners, be its network allowed`() throws {
        let server = try ScriptedServer()
        still.environment.shared.ownListeners.withLock { $0 = OwnListeners([server.endpoint]) }
        try refuses(still, .access(.ownListenerRefused), server)
    }

    private func refuses(
        _ still: StillEngine, _ reason: Reason, _ server: ScriptedServer? = nil
    ) throws {
        let server = try server ?? ScriptedServer()
        let connect = ScriptedConnect(still, "127.0.0.1", server.port, isChecked: true)
        still.turn(until: "it fails") { !connect.outcomes.isEmpty }
        #expect(connect.failures == [reason])
        still.settle()
        #expect(server.accept() == nil)
        #expect(openConnections(toPort: server.port) == 0)
        #expect(isOver(connect))
    }

    @Test
    func `checks nothing when no rules are given, as for a reverse listener's upstream`() throws {
        let server = try ScriptedServer()
        still.environment.shared.ownListeners.withLock { $0 = OwnListeners([server.endpoint]) }
        let connect = ScriptedConnect(still, "127.0.0.1", server.port)
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints == [server.endpoint])
    }

    // MARK: Several addresses (RFC 8305)

    @Test func `tries the next address at once when one fails`() throws {
        let server = try ScriptedServer()
        let connect = ScriptedConnect(still, "name.test", server.port)
        try connect.resolve(["127.0.0.2", "127.0.0.1"])
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints == [server.endpoint])
        #expect(openConnections(toPort: server.port) == 1)
    }

    @Test func `leaves out addresses that the rules refuse, and tries the others`() throws {
        let still = try StillEngine(
            "access: { destinations: { allow: [127.0.0.1], deny: [127.0.0.2] } }")
        let server = try ScriptedServer("0.0.0.0:0")
        let connect = ScriptedConnect(still, "name.test", server.port, isChecked: true)
        try connect.resolve(["127.0.0.2", "127.0.0.3", "127.0.0.1"])
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints.map(\.address) == [try #require(IPAddress("127.0.0.1"))])
        still.settle()
        #expect(server.accept() != nil)
        #expect(server.accept() == nil, "nothing went to the others")
    }

    @Test func `reports the last address's refusal when all addresses refuse`() throws {
        let nobody = try ScriptedServer(listens: false)
        let connect = ScriptedConnect(still, "name.test", nobody.port)
        try connect.resolve(["127.0.0.2", "127.0.0.3", "127.0.0.1"])
        still.turn(until: "it fails") { !connect.outcomes.isEmpty }
        #expect(connect.failures == [.server(.connectionRefused)])
        #expect(openConnections(toPort: nobody.port) == 0)
    }

    @Test func `waits for the rest of an answer when all addresses so far have failed`() throws {
        let server = try ScriptedServer()
        let connect = ScriptedConnect(still, "name.test", server.port)
        try connect.resolve(["127.0.0.2"], isComplete: false)
        still.settle()
        #expect(connect.outcomes.isEmpty)
        try connect.resolveMore(["127.0.0.2", "127.0.0.1"])
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints == [server.endpoint])
    }

    @Test func `accepts the rest of an answer before its first part`() throws {
        let server = try ScriptedServer()
        let connect = ScriptedConnect(still, "name.test", server.port)
        try connect.resolveMore(["127.0.0.1"])
        try connect.resolve(["127.0.0.2"], isComplete: false)
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints == [server.endpoint])
        #expect(connect.outcomes.count == 1)
    }

    @Test func `ignores answers that come after it has ended`() throws {
        let server = try ScriptedServer()
        let connect = ScriptedConnect(still, "name.test", server.port)
        try connect.resolve(["127.0.0.1"], isComplete: false)
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        try connect.resolveMore(["127.0.0.1", "127.0.0.2"])
        try connect.resolve(["127.0.0.3"])
        still.settle()
        #expect(connect.outcomes.count == 1)
        #expect(openConnections(toPort: server.port) == 1)
    }

    @Test func `tries the next address beside a silent one, and closes the slower one`() throws {
        let silent = try SilentServer()
        let server = try ScriptedServer("127.0.0.2:\(silent.server.port)")
        let connect = ScriptedConnect(still, "name.test", server.port)
        try connect.resolve(["127.0.0.1", "127.0.0.2"])
        #expect(openConnections(toPort: server.port) == silent.filling + 1)
        still.turn(until: "it is connected") { !connect.outcomes.isEmpty }
        #expect(connect.endpoints == [server.endpoint])
        #expect(openConnections(toPort: server.port) == silent.filling + 1)
    }

    @Test func `fails when the name has no address, with the lookup's error`() throws {
        let connect = ScriptedConnect(still, "name.test", 80)
        connect.operation.resolved(.failed(.nxdomain))
        #expect(connect.failures == [.name(.nxdomain)])
        #expect(isOver(connect))
    }

    // MARK: Time

    @Test func `gives up at its timeout, and closes its attempts`() throws {
        let silent = try SilentServer()
        let connect = ScriptedConnect(
            still, "name.test", silent.server.port, timeoutMilliseconds: 0)
        try connect.resolve(["127.0.0.1"])
        #expect(openConnections(toPort: silent.server.port) == silent.filling + 1)
        connect.operation.deadlineReached()
        guard case .failure(.connectTimeout)? = connect.outcomes.first else {
            Issue.record("\(connect.outcomes)")
            return
        }
        #expect(openConnections(toPort: silent.server.port) == silent.filling)
        #expect(still.metrics.value(.upstreamConnectTimedOut) == 1)
        still.settle()
        #expect(connect.outcomes.count == 1)
        #expect(isOver(connect))
    }

    @Test func `gives up if the lookup is not answered in time`() throws {
        let connect = ScriptedConnect(still, "name.test", 80, timeoutMilliseconds: 0)
        connect.operation.deadlineReached()
        #expect(connect.failures == [.server(.connectTimeout)])
    }

    // MARK: Cancelling

    enum Moment: CaseIterable { case started, resolving, racing, connected, betweenAddresses }

    @Test(arguments: Moment.allCases)
    func `calls no handler and keeps no descriptor when it is cancelled`(_ moment: Moment) throws {
        let server = try ScriptedServer()
        let handlers = still.loop.handlerCount
        let isLiteral = moment == .started
        let connect = ScriptedConnect(
            still, isLiteral ? "127.0.0.1" : "name.test", server.port)
        switch moment {
        case .started, .resolving: break
        case .racing, .connected: try connect.resolve(["127.0.0.1", "127.0.0.2"])
        case .betweenAddresses:
            try connect.resolve(["127.0.0.2"], isComplete: false)
            still.settle()
        }
        let peer = moment == .connected ? try server.nextPeer() : nil
        connect.operation.cancel()
        #expect(openConnections(toPort: server.port) == 0)
        still.settle()
        connect.operation.cancel()
        connect.operation.deadlineReached()
        try connect.resolve(["127.0.0.1"])
        try connect.resolveMore(["127.0.0.1"])
        still.settle()
        #expect(connect.outcomes.isEmpty)
        #expect(peer?.hasEnded ?? true)
        #expect(openConnections(toPort: server.port) == 0)
        #expect(still.loop.handlerCount == handlers)
    }
}

/// A server whose queue is full: attempts to connect to it neither succeed nor fail.
private final class SilentServer {
    let server: ScriptedServer
    private var fillers: [Int32] = []
    /// Connections that fill the queue.
    var filling: Int { fillers.count }

    init() throws {
        server = try ScriptedServer(backlog: 0)
        fillers = [try Sockets.connect(to: server.endpoint)]
    }

    deinit { for filler in fillers { Descriptors.close(filler) } }
}
