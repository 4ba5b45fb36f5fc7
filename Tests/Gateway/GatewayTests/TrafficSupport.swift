import CLinux
import CacheStore
import EventLoop
import HTTPCore
import PinfoldResolver
import Testing

@testable import Gateway
@testable import PinfoldEngine

// Everything that a test of connections to servers makes or asks for is made here, over a worker
// whose loop the test turns by hand.

extension StillWorker {
    /// One that may connect to this host.
    /// - Parameters:
    ///   - more: further sections of the configuration.
    ///   - ports: those that CONNECT may name.
    ///   - store: its cache.
    static func reachingLoopback(
        _ more: String = "", connectPorts ports: [UInt16] = [443], store: CacheStore? = nil,
        transformations: TransformationWork = .none
    ) throws -> StillWorker {
        let still = try StillWorker(
            """
            access: { destinations: { allow: [127.0.0.0/8] }, connectPorts: \(ports) }
            \(more)
            """, store: store, transformations: transformations)
        store == nil ? try still.receivePlaces() : try still.worker.environment.start()
        return still
    }

    /// Takes in what environments tell each other about places, and nothing of what the resolver
    /// says: tests play its answers.
    private func receivePlaces() throws {
        let environment = worker.environment
        let receiver = MailboxReceiver(environment.mailbox) { [unowned environment] in
            switch $0 {
            case .placeGranted(let limit): environment.pool?.placeGranted(limit)
            case .transformed(let token, let outcome): environment.tell(outcome, to: token)
            default: break
            }
        }
        try environment.loop.add(
            receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
    }

    /// Turns the loop until a condition holds; records an issue if it does not.
    func turn(
        until what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
        _ condition: () -> Bool
    ) {
        for _ in 0..<4000 {
            if condition() { return }
            worker.loop.turn(waitingAtMost: 5)
        }
        Issue.record(what, sourceLocation: sourceLocation)
    }

    /// Turns the loop a few times, for what must not happen.
    func settle() {
        for _ in 0..<4 { worker.loop.turn(waitingAtMost: 0) }
    }

    /// The connection that arrives at a server.
    func peer(
        of server: ScriptedServer, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Peer {
        var peer: Peer?
        turn(until: "a connection arrives", sourceLocation: sourceLocation) {
            peer = server.accept()
            return peer != nil
        }
        return try #require(peer, sourceLocation: sourceLocation)
    }

    /// Sends a text and turns the loop until the worker has read all of it from its upstreams.
    func deliver(
        _ text: some StringProtocol, from peer: Peer,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let metrics = worker.metrics
        let before = metrics.value(.upstreamBytesReceived)
        peer.send(text)
        turn(until: "it is read", sourceLocation: sourceLocation) {
            metrics.value(.upstreamBytesReceived) == before + UInt64(text.utf8.count)
        }
    }

    func origin(_ server: ScriptedServer) throws -> Origin {
        let host = Array(server.host.utf8)
        let found = worker.environment.origins.origin(
            host: host.span, port: server.port, scheme: .http, policy: worker.policy)
        return try #require(found)
    }

    /// Asks for a connection to a server.
    @discardableResult
    func acquire(
        _ server: ScriptedServer, for consumer: ScriptedConsumer = ScriptedConsumer(),
        fresh: Bool = false
    ) throws -> ScriptedConsumer {
        consumer.worker = worker
        pool.acquire(try origin(server), for: consumer, fresh: fresh)
        return consumer
    }

    /// A consumer whose request has arrived at a server, and the server's end.
    func exchange(
        _ server: ScriptedServer, for consumer: ScriptedConsumer = ScriptedConsumer()
    ) throws -> (consumer: ScriptedConsumer, peer: Peer) {
        try acquire(server, for: consumer)
        let peer = try peer(of: server)
        turn(until: "the request arrives") { !peer.read().isEmpty }
        return (consumer, peer)
    }

    /// Answers what a consumer asked for, so that its connection goes back to the pool.
    func answer(_ consumer: ScriptedConsumer, from peer: Peer) {
        peer.send("HTTP/1.1 204 No Content\r\n\r\n")
        turn(until: "the response is passed on") { consumer.isOver }
    }

    /// What is taken of the limits for an origin, and what the gauges show.
    func counts(_ origin: Origin) -> PoolCounts {
        let limit = pool.limit(of: origin)
        let metrics = worker.metrics
        return PoolCounts(
            places: limit.taken, allPlaces: worker.shared.engine.upstreamLimit.taken,
            waitingExchanges: limit.waitingExchanges.load(ordering: .relaxed),
            open: metrics.value(.upstreamConnectionsOpen),
            idle: metrics.value(.upstreamConnectionsIdle),
            waiting: metrics.value(.poolWaiting))
    }
}

/// What connections take of limits; nothing by default.
struct PoolCounts: Equatable {
    var places = 0
    var allPlaces = 0
    var waitingExchanges = 0
    var open: Int64 = 0
    var idle: Int64 = 0
    var waiting: Int64 = 0
}

/// A consumer that sends what it is given, and notes what it is told.
final class ScriptedConsumer: UpstreamConsumer {
    enum Event: Equatable {
        case ready
        case failed(Reason, responseStarted: Bool)
        case head(UInt16)
        case headWithoutBody
        case body(String)
        case ended(trailers: String?)
    }

    var worker: Worker?
    /// What is sent, and whether that is all.
    var request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
    var endsRequest = true
    var expectsContinue = false
    var method = Method.get
    /// Takes content; else it asks for a pause at each part.
    var takesContent = true
    var mayBeRepeated = true
    var clientNetwork: IPNetwork? { nil }
    var response = ResponseHead()

    private(set) var events: [Event] = []
    private(set) var heads: [String] = []
    private(set) var drains = 0
    /// The connection while it is the consumer's, and the last one that was.
    private(set) var upstream: UpstreamConnection?
    private(set) var lastUpstream: UpstreamConnection?

    var isReady: Bool { upstream != nil }
    var failure: Reason? {
        guard case .failed(let reason, _) = events.last else { return nil }
        return reason
    }
    /// It has been told that its response has ended, well or not.
    var isOver: Bool {
        switch events.last {
        case .failed, .ended: true
        default: false
        }
    }
    /// The content without how it was cut in parts.
    var content: String {
        events.reduce(into: "") { if case .body(let part) = $1 { $0 += part } }
    }

    init(_ request: String? = nil) {
        if let request { self.request = request }
    }

    /// Forgets what happened, for another exchange.
    func forget() {
        events = []
        heads = []
    }

    /// Queues more of the request, and writes it.
    func send(_ text: String) -> Bool {
        guard let upstream, let worker else { return false }
        let buffer = Self.buffer(text, worker)
        upstream.send(buffer.readable, owner: buffer)
        return upstream.flush()
    }

    static func buffer(_ text: String, _ worker: Worker) -> Buffer {
        let buffer = worker.loop.buffers.take(bytes: max(1, text.utf8.count))
        buffer.writable.copyBytes(from: text.utf8)
        buffer.end = text.utf8.count
        return buffer
    }

    func upstreamReady(_ upstream: any UpstreamStream) {
        self.upstream = upstream as? UpstreamConnection
        lastUpstream = self.upstream
        events.append(.ready)
        guard worker != nil else { return }
        #expect(sendHead(on: upstream))
        _ = endsRequest ? upstream.finish(trailers: nil) : upstream.flush()
    }

    private func sendHead(on upstream: any UpstreamStream) -> Bool {
        let bytes = Array(request.utf8)
        var parser = RequestHeadParser()
        var parsed = RequestHead()
        guard case .complete = try? parser.parse(bytes.span, into: &parsed) else { return false }
        var head = upstream.makeHead(
            for: parsed, in: bytes.span, host: bytes.span.extracting(parsed.authority.indices),
            room: bytes.count)
        head.fields.appendForwardedFields(
            parsed.fields, of: bytes.span, omitting: FieldIDSet([.host]))
        return upstream.sendHead(
            head,
            of: OutgoingRequest(
                framing: .none, method: method, expectsContinue: expectsContinue),
            upgrade: [])
    }

    func upstreamFailed(_ failure: StreamFailure) {
        upstream = nil
        events.append(
            .failed(failure.fault.reason, responseStarted: failure.responseStarted))
    }

    func upstreamHead(_ head: UnsafeRawBufferPointer) {
        heads.append(String(decoding: head, as: UTF8.self))
        events.append(.head(response.status))
    }

    func upstreamHeadWithoutBody() { events.append(.headWithoutBody) }

    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        events.append(.body(String(decoding: bytes, as: UTF8.self)))
        return takesContent
    }

    func upstreamEnded(trailers: TrailerSection?) {
        upstream = nil
        events.append(
            .ended(trailers: trailers.map { String(decoding: $0.bytes, as: UTF8.self) }))
    }

    func upstreamDrained() { drains += 1 }
}

/// An operation under way, and what it was called back with.
final class ScriptedConnect {
    private(set) var operation: ConnectOperation!
    private(set) var outcomes: [Result<Endpoint, ExchangeFault>] = []
    /// The descriptor of the connection that was made.
    private(set) var descriptor: Int32?

    /// - Parameter isJudged: the destination is held to the rules of access.
    init(
        _ still: StillWorker, _ host: String, _ port: UInt16, isJudged: Bool = false,
        timeoutMilliseconds: Int64 = 60_000
    ) {
        operation = ConnectOperation(
            environment: still.worker.environment, host: host, port: port, client: nil,
            rules: isJudged ? still.worker.policy.destinationRules : nil,
            hostMatch: DestinationRules.HostMatch()
        ) { [unowned self] result in
            if case .success(let made) = result { descriptor = made.transport.descriptor }
            outcomes.append(result.map(\.endpoint).mapError(\.fault))
        }
        operation.start(timeoutMilliseconds: timeoutMilliseconds)
    }

    deinit {
        operation.cancel()
        if let descriptor { Descriptors.close(descriptor) }
    }

    var endpoints: [Endpoint] { outcomes.compactMap { try? $0.get() } }
    var failures: [Reason] {
        outcomes.compactMap {
            if case .failure(let fault) = $0 { fault.reason } else { nil }
        }
    }

    /// A lookup's answer arrives.
    func resolve(_ addresses: [String], isComplete: Bool = true) throws {
        operation.resolved(.resolved(try Self.answer(addresses, isComplete: isComplete)))
    }

    /// The rest of an answer arrives.
    func resolveMore(_ addresses: [String], isComplete: Bool = true) throws {
        operation.arrived(try Self.answer(addresses, isComplete: isComplete))
    }

    private static func answer(_ addresses: [String], isComplete: Bool) throws -> ResolvedAnswer {
        ResolvedAnswer(
            addresses: try addresses.map { try #require(IPAddress($0)) }, source: .dns,
            isComplete: isComplete, expiresAtMilliseconds: .max)
    }
}
