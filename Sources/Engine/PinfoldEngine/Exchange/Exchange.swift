import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import PinfoldMetrics

/// One request and its response, from the head's last byte to the response's last byte written.
///
/// The phases are in the files next to this one, in the order in which a request passes through
/// them: `Exchange+Route` (finding the origin, and whether it may be contacted),
/// `Exchange+Rewriting` (applying the route's rules to the request), `Exchange+Lookup` (the cache),
/// `Exchange+Collapse` (waiting for the response to an identical request), `Exchange+Gather`
/// (collecting content that arrives slowly), `Exchange+Forward` (the connection, the request's
/// body), `Exchange+Retry` (sending the request again), `Exchange+Response` (the server's
/// response), `Exchange+Storing` (storing it while it streams), `Exchange+Validation` (what it
/// means for a stored response), `Exchange+Stored` (responses from the cache),
/// `Exchange+Translating` (stored responses that are translated before they are sent),
/// `Exchange+Reply` (the gateway's own replies), `Exchange+Finish` (metrics and log). An exchange
/// without a client revalidates a stored response in the background (`Exchange+Background`).
///
/// ``ExchangeState`` decides which step may follow another and what happens after a failure; this
/// class carries that out (`Exchange+State`).
///
/// An exchange sees heads, content and ends; only the streams on both sides know which protocol
/// version carries them. Exchange objects are reused.
package final class Exchange: EventHandler, UpstreamConsumer, QueueMember {
    let environment: Environment
    /// Parts of the environment that every request uses. They are kept here because the compiler
    /// counts references on the way to an object that is reached through another object.
    let metrics: WorkerMetrics
    let origins: OriginTable
    let store: CacheStore?
    /// The current state; changed by `handle`.
    var state = ExchangeState<any UpstreamStream>()
    /// The client's stream; `nil` once the client is gone, and for an exchange in the background.
    package var client: (any DownstreamStream)?

    // The request.
    package var request = RequestHead()
    var requestBuffer: Buffer?
    var requestHeadStart = 0
    var hasRequestBody = false
    package var ingress: Ingress?
    /// Whether the client may be served.
    private(set) var isServed = false
    package var peer: Endpoint?
    /// The client whose request caused this background exchange.
    var onBehalfOf: Endpoint?
    /// The position of the request's body in the head's buffer, if all of it arrived with the head
    /// and it can be sent again.
    var replayableBody: Range<Int>?
    /// Bytes of content accepted from the client, whether or not they were forwarded.
    package var receivedBodyBytes: UInt64 = 0
    var contentHasEnded = true

    // The server's side.
    package var origin: Origin?
    /// Whether a connection is needed that has not carried a request.
    package var needsFreshConnection = false
    package var response = ResponseHead()
    var interimCount = 0
    /// What a CONNECT is waiting for.
    var opening: (any TunnelOpening)?
    /// The owner of the connections once this is a tunnel; `nil` before that.
    var carrier: (any TunnelCarrier)?
    /// Whether the requested tunnel ends in the gateway.
    package var isIntercepted = false
    /// Why the tunnel is relayed although its host is intercepted; `nil` for any other exchange.
    package var interceptionPass: InterceptionPass?
    /// The result of inspecting the tunnel; `nil` if it was not inspected.
    package var inspection: TunnelInspection?

    /// The index of the name of the host entry that applies (`RouteLabels`).
    package var hostLabel = RouteLabels.noHost
    /// When the request's head was last sent to the server, in microseconds of the monotonic clock;
    /// 0 if it never was.
    var sentAt: Int64 = 0
    /// Whether the server may have read the request, on this connection or on one that has since
    /// died.
    package var wasSent: Bool { sentAt != 0 }
    /// How long the head of the response took; `nil` if there was none.
    var firstByteMicroseconds: UInt64?
    /// Whether the connection had carried requests before and ended without a byte of a response.
    package internal(set) var wasLeftUnanswered = false
    var isEventStream = false

    // The cache.
    var key: CacheKey?
    package var forwardReason: ForwardReason?
    var stored: CachedResponse?
    var validation: ValidationRequest?
    var ticket: StoreTicket?
    /// Begun when the request is sent, if its response may be stored. An invalidation after that
    /// prevents the response from being stored.
    var storeFlight: StoreFlight?
    var serving: StoredBodyReader?
    /// A stored response in the origin's form that is being translated for the client.
    var translating: StoredTranslation?
    var requestTime: Int64 = 0
    package var notStoredReason: NotStoredReason?
    /// When reading was paused so that the disk can catch up, in the loop's milliseconds, or `nil`
    /// if it is not paused; and how long it has been paused in all.
    var storeWaitBegan: Int64?
    var storeWaited: Int64 = 0
    /// The stored response that is being revalidated in the background; `nil` in an exchange of a
    /// client.
    var revalidated: CachedResponse?
    /// A stored response that is outdated if the current response arrives completely.
    var outdated: CachedResponse?
    /// Its part in collapsing identical requests.
    var collapsing = Collapsing.none
    /// The exchanges that wait for this one's response while it leads; `nil` if there are none.
    var followers: FollowerQueue?
    /// Its neighbours in the queue in which it waits itself.
    package var nextInQueue: Exchange?
    package var previousInQueue: Exchange?
    /// How much longer it waits for other exchanges' responses without progress, in milliseconds;
    /// `nil` if it has not waited.
    var patience: Int64?
    /// The response to send once the origin's 304 has been read completely.
    var confirmed: ConfirmedResponse?

    /// The request as rewritten by its route's rules; usually `nil`, for unchanged.
    var rewritten: RewrittenRequest?
    /// The rules under which the request began, if a reload has changed them since; `nil` if not.
    var rulesBeforeReload: RouteTransformation??
    /// The rules that apply to its messages until they end; `nil` if there are none.
    var rules: RouteTransformation? { rulesBeforeReload ?? origin?.transformation }
    /// Whether the response had no length and was collected until its connection ended.
    var wasGatheredToTheEnd = false
    /// What its route's rules changed in the messages; usually `nil`, for nothing.
    package var transformed: TransformationRecord?
    /// Content collected before there was a connection.
    var gathered: GatheredContent? {
        didSet { if let oldValue, oldValue !== gathered { environment.release(oldValue) } }
    }
    /// The limit in which it counts as an upload that is still arriving.
    var uploadLimit: SharedLimit?
    /// Until when it waits to be counted there, in the loop's milliseconds; 0 if it does not wait.
    var uploadWaitEnds: Int64 = 0
    /// The client whose exchanges it is counted with.
    var countedFor: ClientAccount?

    // What is reported.
    var started: Int64 = 0
    package var status: UInt16 = 0
    package var cacheResult = CacheResult.none
    package var fault: ExchangeError?
    /// Whether the head could not be parsed, but its sender seems to accept JSON.
    var refusedWantsJSON = false
    package var id: UInt64 = 0
    /// The bytes that a relay moved from and to the client.
    package var relayedBytes: (fromClient: UInt64, toClient: UInt64) = (0, 0)
    package var upstreamEndpoint: Endpoint?
    package var upstreamVersion = UpstreamTLSVersion.none
    /// The addresses tried if no connection could be made; usually `nil`.
    package var failedAttempts: FailedAttempts?

    /// A stored response confirmed by the origin, in the form that the client needs.
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

    /// How long the request's connection took to establish, if it was made for this request; `nil`
    /// if there is none or it had carried requests before.
    package var connectionTimes: ConnectionTimes? {
        guard let upstream = state.upstream, !upstream.wasReused else { return nil }
        return upstream.connectionTimes
    }

    /// Whether the request uses a connection that had carried others before.
    package var reusesConnection: Bool { state.upstream?.wasReused ?? false }

    /// The stream that carries the request to its server, while there is one.
    @inline(__always)
    var upstream: (any UpstreamStream)? { state.upstream }

    /// The bytes of the request's head; all ranges of `request` are relative to them.
    var requestHead: UnsafeRawBufferPointer {
        guard let requestBuffer else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let end = requestHeadStart + request.length
        return UnsafeRawBufferPointer(rebasing: requestBuffer.memory[requestHeadStart..<end])
    }

    /// The bytes of the request's head as a span, valid during a call.
    package func withRequestHead<R>(_ body: (Span<UInt8>) -> R) -> R {
        body(requestHead.octets)
    }

    /// Whether the buffer contains the request's head or content.
    package func holds(_ buffer: Buffer) -> Bool {
        requestBuffer === buffer || rewritten != nil && rewritten?.buffer === buffer
    }

    /// Accepts a complete request head; the next call is ``route(at:)``.
    ///
    /// - Parameters:
    ///   - headStart: where the head begins in the buffer.
    ///   - isServed: whether the client may be served; if not, the reply says so.
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

    /// Answers a request whose head could not be read. `seen` contains the part that was received.
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

    /// Guesses from an unparsable head what the form of the reply depends on.
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

    /// Releases a part if there is one. Usually there is none, and checking that is cheaper than
    /// releasing nothing.
    @inline(__always)
    private func clear<Part>(_ part: inout Part?) { if part != nil { part = nil } }

    /// Resets the object to its initial state, keeping its storage.
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

    /// Registers the exchange with the loop, for answers from other threads and for deadlines.
    func register() -> Bool {
        if token != .none { return true }
        do {
            try environment.loop.add(self)
            return true
        } catch {
            return false
        }
    }

    /// Does one thing only: it may end the exchange, after which the object may already be in use
    /// for another.
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

    /// Continues with a stored response that is being read for translation.
    package override func continueWork() {
        if case .loading = state.step { serving?.proceed() }
    }
}
