import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import PinfoldMetrics

/// One request and its response, from the head's last byte to the response's last byte written.
///
/// The phases are in the files beside this one, in the order in which a request passes them:
/// `Exchange+Route` (who is asked, may they be), `Exchange+Rewriting` (what the route's rules make
/// of the request), `Exchange+Lookup` (what the cache says),
/// `Exchange+Collapse` (waiting for another's response), `Exchange+Gather` (content that trickles
/// in), `Exchange+Forward` (the way upstream, the request's body), `Exchange+Retry` (sending it
/// another time), `Exchange+Response` (the answer), `Exchange+Storing` (stored while it streams),
/// `Exchange+Validation` (what it means for what is stored), `Exchange+Stored` (answers from the
/// cache), `Exchange+Translating` (in another form than they are stored in), `Exchange+Reply`
/// (answers of the gateway's own), `Exchange+Finish` (metrics and log).
/// One without a client asks about a stored response in the background (`Exchange+Background`).
///
/// What may follow on what, and what goes on when something fails, is ``ExchangeState``'s; this
/// class does what it says (`Exchange+State`).
///
/// It sees heads, content and ends; which protocol version carries them is known to the streams on
/// both sides only. Objects are used again for other exchanges.
package final class Exchange: EventHandler, UpstreamConsumer, QueueMember {
    let environment: Environment
    /// Parts of the environment that every request meets: the compiler counts no references on the
    /// way to them, as it does where one object lies behind another.
    let metrics: WorkerMetrics
    let origins: OriginTable
    let store: CacheStore?
    /// Where it is; `handle` changes it.
    var state = ExchangeState<any UpstreamStream>()
    /// The client's stream; nil once it is gone, and in the background.
    package var client: (any DownstreamStream)?

    // The request.
    package var request = RequestHead()
    var requestBuffer: Buffer?
    var requestHeadStart = 0
    var hasRequestBody = false
    package var ingress: Ingress?
    /// The client is one of those that may be served.
    private(set) var isServed = false
    package var peer: Endpoint?
    /// The client whose request made an exchange in the background necessary.
    var onBehalfOf: Endpoint?
    /// The request's body, if all of it came with the head and it could be sent again: where it
    /// is in the head's buffer.
    var replayableBody: Range<Int>?
    /// Bytes of content taken from the client, whatever became of them.
    package var receivedBodyBytes: UInt64 = 0
    var contentHasEnded = true

    // The way upstream.
    package var origin: Origin?
    /// Only a connection that carried no request before will do.
    package var needsFreshConnection = false
    package var response = ResponseHead()
    var interimCount = 0
    /// What a CONNECT waits for.
    var opening: (any TunnelOpening)?
    /// What has the connections once it is a tunnel; nil before.
    var carrier: (any TunnelCarrier)?
    /// The tunnel that was asked for ends in the gateway.
    package var isIntercepted = false
    /// Why the tunnel is relayed although its host is intercepted; nil for all others.
    package var interceptionPass: InterceptionPass?
    /// What inspecting the tunnel came to; nil where it was not.
    package var inspection: TunnelInspection?

    /// The index of the name of the host entry that applies (`RouteLabels`).
    package var hostLabel = RouteLabels.noHost
    /// When the request's head was last sent to the server, by the monotonic clock in microseconds;
    /// 0: it never was.
    var sentAt: Int64 = 0
    /// The server may have read the request, on this connection or on one that has died since.
    package var wasSent: Bool { sentAt != 0 }
    /// How long the head of the response took; nil: there was none.
    var firstByteMicroseconds: UInt64?
    /// The connection had carried requests before, and ended without a byte of an answer.
    package internal(set) var wasLeftUnanswered = false
    var isEventStream = false

    // The cache.
    var key: CacheKey?
    package var forwardReason: ForwardReason?
    var stored: CachedResponse?
    var validation: Validation?
    var ticket: StoreTicket?
    /// Begun when the request goes out, if its response may be stored: an invalidation since then
    /// makes a store void.
    var storeFlight: StoreFlight?
    var serving: StoredBodyReader?
    /// What is stored as the origin sent it and is not what clients are sent, until it is that.
    var translating: StoredTranslation?
    var requestTime: Int64 = 0
    package var notStoredReason: NotStoredReason?
    /// Since when reading pauses for the disk to follow, in the loop's milliseconds; nil: it does
    /// not. And how long it has in all.
    var storeWaitBegan: Int64?
    var storeWaited: Int64 = 0
    /// The stored response that is asked about in the background; nil in the exchange of a client.
    var revalidated: CachedResponse?
    /// What was stored and is no longer right, if the response under way arrives in full.
    var outdated: CachedResponse?
    /// How it takes part in asking once for many.
    var collapsing = Collapsing.none
    /// Who waits for the response, while it leads; nil: nobody yet.
    var followers: FollowerQueue?
    /// Its neighbours in the line in which it waits itself.
    package var nextInQueue: Exchange?
    package var previousInQueue: Exchange?
    /// How long it still waits for others' responses without progress, in milliseconds; nil: it has
    /// not waited.
    var patience: Int64?
    /// What is sent when the origin's 304 has been read to its end.
    var confirmed: ConfirmedResponse?

    /// What its route's rules made of the request; nil, mostly: nothing.
    var rewritten: RewrittenRequest?
    /// The rules that the request began under, where a reload has changed them since; nil: it has
    /// not.
    var rulesBeforeReload: RouteTransformation??
    /// What holds for its messages, to their end; nil: no rules.
    var rules: RouteTransformation? { rulesBeforeReload ?? origin?.transformation }
    /// The response had no length, and was gathered until its connection ended.
    var wasGatheredToTheEnd = false
    /// What its route's rules changed of the messages; nil, mostly: nothing.
    package var transformed: TransformationRecord?
    /// Content taken in before there was a connection.
    var gathered: GatheredContent? {
        didSet { if let oldValue, oldValue !== gathered { environment.release(oldValue) } }
    }
    /// The limit under which it counts as one whose request is still arriving.
    var uploadsOf: SharedLimit?
    /// Until when it waits to be one of those, in the loop's milliseconds; 0: it does not.
    var uploadWaitEnds: Int64 = 0
    /// The client among whose exchanges it counts.
    var countedFor: ClientAccount?

    // What is reported.
    var started: Int64 = 0
    package var status: UInt16 = 0
    package var cacheResult = CacheResult.none
    package var fault: ExchangeError?
    /// The head could not be parsed, and its sender seems to take JSON.
    var refusedWantsJSON = false
    package var id: UInt64 = 0
    /// What a relay moved: from the client, and to it.
    package var relayedBytes: (fromClient: UInt64, toClient: UInt64) = (0, 0)
    package var upstreamEndpoint: Endpoint?
    package var upstreamVersion = UpstreamTLSVersion.none
    /// What was tried to connect to, where no connection came of it; nil, mostly: nothing.
    package var failedAttempts: FailedAttempts?

    /// A stored response that the origin has confirmed, in the form that the client needs.
    final class ConfirmedResponse {
        let stored: CachedResponse
        let freshened: FreshenedResponse
        let hit: CacheHit
        let cacheStatus: CacheStatus

        init(
            stored: CachedResponse, freshened: FreshenedResponse, hit: CacheHit,
            cacheStatus: CacheStatus
        ) {
            self.stored = stored
            self.freshened = freshened
            self.hit = hit
            self.cacheStatus = cacheStatus
        }
    }

    init(environment: Environment) {
        self.environment = environment
        metrics = environment.metrics
        origins = environment.origins
        store = environment.shared.store
    }

    /// How long the connection took that the request is on, where it was made for it; nil: there is
    /// none, or it carried requests before.
    package var connectionTimes: ConnectionTimes? {
        guard let upstream = state.upstream, !upstream.wasReused else { return nil }
        return upstream.connectionTimes
    }

    /// Whether the request is on a connection that carried others before.
    package var reusesConnection: Bool { state.upstream?.wasReused ?? false }

    /// The stream that carries the request to its server, while there is one.
    @inline(__always)
    var upstream: (any UpstreamStream)? { state.upstream }

    /// The request head's bytes, which all of `request`'s ranges count from.
    var requestHead: UnsafeRawBufferPointer {
        guard let requestBuffer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let end = requestHeadStart + request.length
        return UnsafeRawBufferPointer(rebasing: requestBuffer.memory[requestHeadStart..<end])
    }

    /// The request head's bytes as a span, for the time of a call.
    package func withRequestHead<R>(_ body: (Span<UInt8>) -> R) -> R {
        body(requestHead.octets)
    }

    /// Whether the buffer holds the head of the exchange's request, or content of it.
    package func holds(_ buffer: Buffer) -> Bool {
        requestBuffer === buffer || rewritten != nil && rewritten?.buffer === buffer
    }

    /// Takes a complete request head; ``route()`` is what follows.
    ///
    /// - Parameters:
    ///   - headStart: where the head begins in the buffer.
    ///   - isServed: the client may be served; else it is told that it may not.
    @inline(__always)
    package func begin(
        client: any DownstreamStream, ingress: consuming Ingress, peer: Endpoint,
        buffer: consuming Buffer?, headStart: Int, hasBody: Bool, isServed: Bool
    ) {
        self.isServed = isServed
        hasRequestBody = hasBody
        contentHasEnded = !hasBody
        prepare(client: client, ingress: ingress, peer: peer)
        requestBuffer = consume buffer
        requestHeadStart = headStart
        if hasBody, let requestBuffer { rememberReplayableBody(requestBuffer) }
    }

    /// Answers a request whose head could not be read.
    /// `seen` holds what was received of it.
    package func refuse(
        _ fault: ExchangeError, seen: Buffer?, client: any DownstreamStream, ingress: Ingress,
        peer: Endpoint
    ) {
        request.length = 0
        request.fields.removeAll()
        request.version = .http11
        request.method = .other
        request.keepAlive = false
        if let seen { guess(from: seen.readable) }
        hasRequestBody = false
        contentHasEnded = true
        prepare(client: client, ingress: ingress, peer: peer)
        reply(with: fault, closing: true)
    }

    /// What the answer's form depends on, from a head that could not be parsed.
    private func guess(from bytes: UnsafeRawBufferPointer) {
        let seen = bytes.octets
        if seen.starts(with: "HEAD ") { request.method = .head }
        refusedWantsJSON = AcceptedMediaTypes(unreadHead: seen).prefersJSON
    }

    @inline(__always)
    private func prepare(
        client: any DownstreamStream, ingress: consuming Ingress, peer: Endpoint
    ) {
        id = environment.nextExchangeID()
        started = environment.turnMicroseconds()
        self.client = client
        let isCounted = ingress.isCounted
        self.ingress = consume ingress
        self.peer = peer
        handle(
            .begin(
                .init(
                    hasContent: hasRequestBody, isIdempotent: request.isIdempotent,
                    hasClient: true)))
        if isCounted { environment.exchangeBegan() }
    }

    /// Lets go of something, if there is anything: mostly there is not, and to see that costs less
    /// than to let go of nothing.
    @inline(__always)
    private func clear<Part>(_ part: inout Part?) { if part != nil { part = nil } }

    /// Back to the state of a new object, its storage kept.
    func reset() {
        if token != .none { environment.loop.remove(self) }
        clear(&client)
        requestBuffer = nil
        onBehalfOf = nil
        replayableBody = nil
        receivedBodyBytes = 0
        origin = nil
        needsFreshConnection = false
        hostLabel = RouteLabels.noHost
        sentAt = 0
        firstByteMicroseconds = nil
        wasLeftUnanswered = false
        isEventStream = false
        interimCount = 0
        if gathered != nil { gathered = nil }
        uploadWaitEnds = 0
        clear(&opening)
        clear(&carrier)
        isIntercepted = false
        interceptionPass = nil
        inspection = nil
        clear(&key)
        forwardReason = nil
        clear(&stored)
        clear(&validation)
        clear(&revalidated)
        clear(&outdated)
        if case .none = collapsing {} else { collapsing = .none }
        patience = nil
        clear(&ticket)
        storeWaitBegan = nil
        storeWaited = 0
        clear(&serving)
        clear(&translating)
        clear(&rewritten)
        rulesBeforeReload = nil
        wasGatheredToTheEnd = false
        clear(&transformed)
        status = 0
        cacheResult = .none
        clear(&fault)
        refusedWantsJSON = false
        relayedBytes = (0, 0)
        upstreamEndpoint = nil
        upstreamVersion = .none
        clear(&failedAttempts)
        notStoredReason = nil
        clear(&confirmed)
    }

    /// Registers the exchange for answers from other threads and deadlines of its own.
    func register() -> Bool {
        if token != .none { return true }
        do {
            try environment.loop.add(self)
            return true
        } catch {
            return false
        }
    }

    /// One thing only: it may end the exchange, and the object may then be another one already.
    package override func deadlineReached() {
        switch state.step {
        case .loading, .serving: serving?.proceed()
        case .waiting: waitTimedOut()
        case .gathering: forward()
        case .requesting, .discarding, .responding: storeWaitEnded(hasDrained: false)
        case .connecting, .opening: connectionWaitTimedOut()
        case .ended, .routing, .finishing, .tunnelling: break
        }
    }

    /// Another step of a stored response that is read to be translated.
    package override func continueWork() {
        if case .loading = state.step { serving?.proceed() }
    }
}
