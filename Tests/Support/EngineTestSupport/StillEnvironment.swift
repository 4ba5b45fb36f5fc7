import EventLoop
import PinfoldEngine
import PinfoldMetrics
import Testing

/// An environment whose loop does not run by itself: a test turns it, step by step.
package protocol StillEnvironment: AnyObject {
    var environment: Environment { get }
}

extension StillEnvironment {
    package var loop: EventLoop { environment.loop }
    package var metrics: WorkerMetrics { environment.metrics }

    /// Turns the loop until a condition holds; records an issue if it does not.
    package func turn(
        until what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
        _ condition: () -> Bool
    ) {
        for _ in 0..<4000 {
            if condition() { return }
            loop.turn(waitingAtMost: 5)
        }
        Issue.record(what, sourceLocation: sourceLocation)
    }

    /// Turns the loop a few times, so that what must not happen has had the chance to.
    package func settle() {
        for _ in 0..<4 { loop.turn(waitingAtMost: 0) }
    }

    /// Waits for a connection to arrive at a server.
    package func peer(
        of server: ScriptedServer, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Peer {
        var peer: Peer?
        turn(until: "a connection arrives", sourceLocation: sourceLocation) {
            peer = server.accept()
            return peer != nil
        }
        return try #require(peer, sourceLocation: sourceLocation)
    }

    /// Sends a text and turns the loop until the environment has read all of it.
    package func deliver(
        _ text: some StringProtocol, from peer: Peer,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let before = metrics.value(.upstreamBytesReceived)
        peer.send(text)
        turn(until: "it is read", sourceLocation: sourceLocation) {
            metrics.value(.upstreamBytesReceived) == before + UInt64(text.utf8.count)
        }
    }

    /// Turns the loop until a peer has received a text.
    package func await(
        _ text: String, at peer: Peer, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        turn(until: "it arrives: \(text)", sourceLocation: sourceLocation) {
            peer.read().contains(text)
        }
    }

    package func origin(_ server: ScriptedServer) throws -> Origin {
        let host = Array(server.host.utf8)
        let found = environment.origins.origin(
            host: host.span, port: server.port, scheme: .http, policy: environment.policy)
        return try #require(found)
    }

    /// Asks for a connection to a server.
    @discardableResult
    package func acquire(
        _ server: ScriptedServer, for consumer: ScriptedConsumer = ScriptedConsumer(),
        fresh: Bool = false
    ) throws -> ScriptedConsumer {
        consumer.environment = environment
        environment.upstreams.acquire(try origin(server), for: consumer, fresh: fresh)
        return consumer
    }

    /// A consumer whose request has arrived at a server, and the server's end.
    package func exchange(
        _ server: ScriptedServer, for consumer: ScriptedConsumer = ScriptedConsumer()
    ) throws -> (consumer: ScriptedConsumer, peer: Peer) {
        try acquire(server, for: consumer)
        let peer = try peer(of: server)
        turn(until: "the request arrives") { !peer.read().isEmpty }
        return (consumer, peer)
    }

    /// Answers a consumer's request, so that its connection returns to the pool.
    package func answer(_ consumer: ScriptedConsumer, from peer: Peer) {
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        turn(until: "the response is passed on") { consumer.isOver }
    }

    /// How much of the limits is in use for an origin, and what the gauges show.
    package func counts(_ origin: Origin) -> PoolCounts {
        let limit = environment.upstreams.limit(of: origin)
        return PoolCounts(
            permits: limit.taken, allPermits: environment.shared.upstreamLimit.taken,
            waitingExchanges: limit.waitingExchanges.load(ordering: .relaxed),
            open: metrics.value(.upstreamConnectionsOpen),
            idle: metrics.value(.upstreamConnectionsIdle),
            waiting: metrics.value(.poolWaiting))
    }
}

/// How much of the limits connections use; nothing by default.
package struct PoolCounts: Equatable {
    package var permits = 0
    package var allPermits = 0
    package var waitingExchanges = 0
    package var open: Int64 = 0
    package var idle: Int64 = 0
    package var waiting: Int64 = 0

    package init(
        permits: Int = 0, allPermits: Int = 0, waitingExchanges: Int = 0, open: Int64 = 0,
        idle: Int64 = 0, waiting: Int64 = 0
    ) {
        self.permits = permits
        self.allPermits = allPermits
        self.waitingExchanges = waitingExchanges
        self.open = open
        self.idle = idle
        self.waiting = waiting
    }
}
