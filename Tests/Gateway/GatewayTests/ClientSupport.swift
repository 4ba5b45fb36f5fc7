import CLinux
import EventLoop
import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

// Everything that a test of client connections and of relays needs is made here.

extension StillWorker {
    /// A client's end of a connection that the worker has accepted.
    func client() throws -> Peer {
        let (near, far) = try Peer.pair()
        worker.accept(near, from: try #require(Endpoint("127.0.0.1:1")), on: listener)
        return far
    }

    /// The existing client connections, latest last.
    var clientConnections: [ClientConnection] {
        worker.loop.handlers.compactMap { $0 as? ClientConnection }
    }

    /// Sends a text and turns the loop until the worker has read all of it from its clients.
    func submit(
        _ text: some StringProtocol, from client: Peer,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let metrics = worker.metrics
        let before = metrics.value(.clientBytesReceived)
        client.send(text)
        turn(until: "it is read", sourceLocation: sourceLocation) {
            metrics.value(.clientBytesReceived) == before + UInt64(text.utf8.count)
        }
    }

    /// Turns the loop until a peer has received a text.
    func await(
        _ text: String, at peer: Peer, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        turn(until: "it arrives: \(text)", sourceLocation: sourceLocation) {
            peer.read().contains(text)
        }
    }

    /// The resources that clients and their exchanges occupy on the worker.
    var clientCounts: ClientCounts {
        let metrics = worker.metrics
        return ClientCounts(
            connections: metrics.value(.clientConnectionsOpen),
            places: worker.shared.clientConnections.load(ordering: .relaxed),
            clients: worker.shared.clients.count,
            exchanges: metrics.value(.exchangesInFlight),
            headBytes: metrics.value(.headBufferBytes),
            buffers: worker.loop.buffers.outstanding)
    }
}

/// What clients occupy; nothing by default.
struct ClientCounts: Equatable {
    var connections: Int64 = 0
    var places = 0
    var clients = 0
    var exchanges: Int64 = 0
    var headBytes: Int64 = 0
    var buffers = 0
}

extension ScriptedServer {
    /// A request to it through a proxy.
    func request(
        _ method: String = "GET", version: String = "1.1", fields: String = "", body: String = ""
    ) -> String {
        "\(method) http://\(endpoint)/p HTTP/\(version)\r\nHost: \(endpoint)\r\n\(fields)\r\n"
            + body
    }
}

/// A relay, and the far ends of what it joins.
final class ScriptedRelay {
    struct Ending: Equatable {
        var toUpstream: UInt64
        var toClient: UInt64
        var wasIdle = false
    }

    let client: Peer
    let upstream: Peer
    private let signals = BrokenPipeSignals()
    private(set) var endings: [Ending] = []

    /// - Parameters:
    ///   - early: what each side has already sent; `pending`: what is still to be sent to the
    ///     client.
    ///   - descriptor: replaces the upstream's.
    init(
        _ still: StillWorker, idleMilliseconds: Int64 = 60_000, earlyFromClient: String = "",
        earlyFromUpstream: String = "", pendingForClient: String = "",
        upstreamDescriptor descriptor: Int32? = nil
    ) throws {
        let (nearClient, client) = try Peer.pair()
        let (nearUpstream, upstream) = try Peer.pair()
        (self.client, self.upstream) = (client, upstream)
        if descriptor != nil { Descriptors.close(nearUpstream) }
        let worker = still.worker
        var pending = OutputQueue()
        let waiting = ScriptedConsumer.buffer(pendingForClient, worker)
        pending.append(waiting.readable, owner: waiting)
        let relay = Relay(
            environment: worker.environment, idleMilliseconds: idleMilliseconds
        ) { [weak self] in
            self?.endings.append(Ending(toUpstream: $0, toClient: $1, wasIdle: $2))
        }
        do {
            try relay.start(
                client: Transport(descriptor: nearClient),
                upstream: Transport(descriptor: descriptor ?? nearUpstream),
                earlyFromClient: ScriptedConsumer.buffer(earlyFromClient, worker),
                earlyFromUpstream: ScriptedConsumer.buffer(earlyFromUpstream, worker),
                pendingForClient: pending)
        } catch {
            // The caller still owns it.
            Descriptors.close(nearClient)
            throw error
        }
    }
}

/// Blocks SIGPIPE in its thread for as long as it lives: splice(2) has no flag like MSG_NOSIGNAL.
/// The gateway blocks it for good; here other tests are about its disposition.
private final class BrokenPipeSignals {
    private var before = sigset_t()

    private static var brokenPipe: sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        return signals
    }

    init() {
        var signals = Self.brokenPipe
        pthread_sigmask(SIG_BLOCK, &signals, &before)
    }

    deinit {
        var signals = Self.brokenPipe
        // Pending data would be delivered now.
        var wait = timespec()
        while sigtimedwait(&signals, nil, &wait) == SIGPIPE {}
        if sigismember(&before, SIGPIPE) == 0 { pthread_sigmask(SIG_UNBLOCK, &signals, nil) }
    }
}
