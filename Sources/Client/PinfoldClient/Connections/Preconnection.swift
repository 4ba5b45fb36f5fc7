import EventLoop
import HTTPCore
import PinfoldEngine

/// What the loop has to know to make connections in advance.
final class PreconnectRequest: Sendable {
    let session: UInt64
    /// The numbers of the connections, each of which has a place among the active requests.
    let numbers: [UInt64]
    let origin: RequestOrigin
    /// The head of a request that would use the connections, in the form that the engine expects.
    let head: [UInt8]
    /// The route through a proxy, or `nil` if the connections go directly to the server.
    let proxy: ProxyRoute?
    /// Whether the server is spoken to over HTTP/1.1, whatever else it speaks.
    let speaksOnlyHTTP1: Bool
    /// How long it may take, in milliseconds.
    let milliseconds: Int64
    /// Called once: with the error, or `nil` if the connections are there.
    let answer: @Sendable (ClientError?) -> Void

    /// The number by which it can be cancelled.
    var number: UInt64 { numbers.first ?? 0 }

    init(
        session: UInt64, numbers: [UInt64], origin: RequestOrigin, head: [UInt8],
        proxy: ProxyRoute?, speaksOnlyHTTP1: Bool, milliseconds: Int64,
        answer: @escaping @Sendable (ClientError?) -> Void
    ) {
        (self.session, self.numbers, self.origin) = (session, numbers, origin)
        (self.head, self.proxy, self.speaksOnlyHTTP1) = (head, proxy, speaksOnlyHTTP1)
        (self.milliseconds, self.answer) = (milliseconds, answer)
    }
}

/// Makes connections to a server in advance, or finds those that are idle.
///
/// It holds each of them until all are there, or one of them has failed: one that is given back
/// would be given to it again. Over HTTP/2 they are streams, which share a connection.
final class Preconnection: EventHandler {
    private let environment: Environment
    private let origin: Origin
    private let request: PreconnectRequest
    private let count: Int
    private var connections: [PreparedConnection] = []
    private var waiting: Int
    /// Called once, when it has ended.
    private var ended: ((ClientError?) -> Void)?

    init(
        _ request: PreconnectRequest, count: Int, to origin: Origin, in environment: Environment,
        ended: @escaping (ClientError?) -> Void
    ) {
        (self.request, self.count, self.origin) = (request, count, origin)
        self.environment = environment
        waiting = count
        self.ended = ended
    }

    func start() {
        do throws(Errno) { try environment.loop.add(self) } catch {
            return end(ClientError(.outOfResources, "the loop is full: \(error)"))
        }
        environment.loop.setDeadline(self, after: request.milliseconds)
        for _ in 0..<count {
            guard ended != nil else { return }
            let connection = PreparedConnection(
                of: self, speaksOnlyHTTP1: request.speaksOnlyHTTP1)
            connections.append(connection)
            environment.upstreams.acquire(origin, for: connection, fresh: false)
        }
    }

    /// A connection is there.
    fileprivate func prepared() {
        waiting -= 1
        if waiting == 0 { end(nil) }
    }

    fileprivate func failed(_ failure: StreamError) { end(ClientError(failure.error)) }

    override func deadlineReached() {
        end(
            ClientError(
                .timedOut, "there was no connection within \(request.milliseconds) ms"))
    }

    /// Ends it, and leaves the connections to others.
    func end(_ error: ClientError?) {
        guard let ended = ended.take() else { return }
        if token != .none { environment.loop.remove(self) }
        for connection in connections {
            if let upstream = connection.leave() {
                upstream.giveBack()
            } else {
                environment.upstreams.abandon(origin, connection)
            }
        }
        connections = []
        // When the pool has them, so that a request that follows at once finds them.
        environment.loop.afterTurn { ended(error) }
    }
}

/// One of the connections that are made in advance. Nothing is sent on it.
private final class PreparedConnection: UpstreamConsumer {
    private weak var preconnection: Preconnection?
    private var upstream: (any UpstreamStream)?
    let speaksOnlyHTTP1: Bool
    var response = ResponseHead()

    init(of preconnection: Preconnection, speaksOnlyHTTP1: Bool) {
        self.preconnection = preconnection
        self.speaksOnlyHTTP1 = speaksOnlyHTTP1
    }

    /// Returns the connection, or `nil` if it is still waited for or has failed.
    func leave() -> (any UpstreamStream)? {
        preconnection = nil
        return upstream.take()
    }

    func upstreamReady(_ upstream: any UpstreamStream) {
        guard let preconnection else { return upstream.giveBack() }
        self.upstream = upstream
        preconnection.prepared()
    }

    func upstreamFailed(_ failure: StreamError) {
        upstream = nil
        preconnection?.failed(failure)
    }

    /// An idle connection must be alive.
    var mayBeRepeated: Bool { false }
    var clientNetwork: IPNetwork? { nil }

    // Nothing is sent, so nothing is received.

    func upstreamHead(_ head: UnsafeRawBufferPointer) {}

    func upstreamHeadWithoutBody() {}

    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool { true }

    func upstreamEnded(trailers: TrailerSection?) {}

    func upstreamDrained() {}
}
