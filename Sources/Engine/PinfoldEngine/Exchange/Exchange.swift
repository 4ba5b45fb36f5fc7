import CacheStore
import EventLoop
import HTTPCore
import PinfoldMetrics
import PinfoldTLS

/// One request and its response, from the head's last byte to the response's last byte written.
///
/// The phases are in the files next to this one, in the order in which a request passes through
/// them: `Exchange+Authentication` (who is asking, where the listener wants to know),
/// `Exchange+Rates` (whether the rate of a rule lets it proceed),
/// `Exchange+Route` (finding the origin, and whether it may be contacted),
/// `Exchange+Rewriting` (applying the route's rules to the request), `Exchange+Lookup` and
/// `Exchange+Query` (the cache), `Exchange+CacheRules` (the rules for its use),
/// `Exchange+Collapse` (waiting for the response to an identical request), `Exchange+Gather`
/// (collecting content that arrives slowly), `Exchange+Balancing` (which of several servers it
/// goes to), `Exchange+Forward` (the connection, the request's
/// body), `Exchange+Retry` (sending the request again), `Exchange+Response` (the server's
/// response), `Exchange+Storing` (storing it while it streams), `Exchange+Validation` (what it
/// means for a stored response), `Exchange+Stored` (responses from the cache),
/// `Exchange+Translating` (stored responses that are translated before they are sent),
/// `Exchange+Forms` (those that are decoded or compressed),
/// `Exchange+Reply` (the gateway's own replies), `Exchange+Finish` (metrics and log). An exchange
/// without a client revalidates a stored response in the background (`Exchange+Background`).
///
/// ``ExchangeState`` decides which step may follow another and what happens after a failure; this
/// class carries that out (`Exchange+State`).
///
/// What it knows is in its parts, in the folder `Parts`: where the request came from (``Intake``),
/// who is asking (``Caller``),
/// what is done before it is sent (``Upload``), its way to the server (``Forwarding``), the cache
/// (``Caching``, ``Storing``, ``Serving``, ``Collapsing``), the tunnel if it is one
/// (``Tunnelling``), the rates of rules (``Limiting``), and what is reported (``Report``,
/// ``Remarks``, ``Waits``). Only a part's own methods change it.
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

    /// The head of the request, and the latest one of the response. They keep their storage;
    /// parsers overwrite them before anything reads them.
    package var request = RequestHead()
    package var response = ResponseHead()

    // Its parts. Each is made new by one assignment in `reset`.
    package internal(set) var intake = Intake()
    package internal(set) var forwarding = Forwarding()
    package internal(set) var report = Report()
    // Most exchanges leave most of these as they are, and then they need not be made new.
    package internal(set) var remarks = Remarks() { didSet { changed.insert(.remarks) } }
    var caller = Caller() { didSet { changed.insert(.caller) } }
    var upload = Upload() { didSet { changed.insert(.upload) } }
    var caching = Caching() { didSet { changed.insert(.caching) } }
    var storing = Storing() { didSet { changed.insert(.storing) } }
    var serving = Serving() { didSet { changed.insert(.serving) } }
    var collapsing = Collapsing() { didSet { changed.insert(.collapsing) } }
    /// `nil` unless the request asks for a tunnel, or the server has switched protocols.
    package internal(set) var tunnel: Tunnelling? { didSet { changed.insert(.tunnel) } }
    /// What the rates of rules have to do with it; `nil` if nothing.
    var limiting: Limiting? { didSet { changed.insert(.limiting) } }
    /// What it has waited for.
    var waits = Waits() { didSet { changed.insert(.waits) } }
    /// The trace that it belongs to, once that is known (``joinTrace()``).
    var trace: ExchangeTrace? { didSet { changed.insert(.trace) } }
    /// Which of several servers it goes to; `nil` if there is only one.
    var balanced: Balanced? { didSet { changed.insert(.balanced) } }
    /// Which of these have been changed.
    private var changed: Parts = []
    /// Its neighbours in the queue in which it waits for another exchange's response.
    package var nextInQueue: Exchange?
    package var previousInQueue: Exchange?

    /// The parts that an exchange may leave as they are.
    private struct Parts: OptionSet {
        let rawValue: UInt16
        static let remarks = Parts(rawValue: 1)
        static let upload = Parts(rawValue: 2)
        static let caching = Parts(rawValue: 4)
        static let storing = Parts(rawValue: 8)
        static let serving = Parts(rawValue: 16)
        static let collapsing = Parts(rawValue: 32)
        static let tunnel = Parts(rawValue: 64)
        static let caller = Parts(rawValue: 128)
        static let limiting = Parts(rawValue: 256)
        static let balanced = Parts(rawValue: 512)
        static let waits = Parts(rawValue: 1024)
        static let trace = Parts(rawValue: 2048)
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
        return upstream.timeline.times
    }

    /// Whether the request uses a connection that had carried others before.
    package var reusesConnection: Bool { state.upstream?.wasReused ?? false }
    /// What the connection to the server carries; `nil` if there is none.
    package var upstreamCarrier: HTTPCarrier? { state.upstream?.carrier }
    /// What the handshake of that connection agreed on; `nil` without TLS.
    package var upstreamTLS: TLSSummary? { state.upstream?.tlsSummary }

    /// The stream that carries the request to its server, while there is one.
    @inline(__always)
    var upstream: (any UpstreamStream)? { state.upstream }

    /// The bytes of the request's head; all ranges of `request` are relative to them.
    var requestHead: UnsafeRawBufferPointer {
        intake.head(length: request.length)
    }

    /// The bytes of the request's head as a span, valid during a call.
    package func withRequestHead<R>(_ body: (Span<UInt8>) -> R) -> R {
        body(requestHead.octets)
    }

    /// Accepts a complete request head; the next call is ``route(at:)``. Returns false if that must
    /// not follow: the object is not free.
    ///
    /// - Parameters:
    ///   - headStart: where the head begins in the buffer.
    ///   - isServed: whether the client may be served; if not, the reply says so.
    @inline(__always)
    package func begin(
        client: any DownstreamStream, ingress: consuming Ingress, peer: Endpoint,
        buffer: consuming Buffer?, headStart: Int, hasBody: Bool, isServed: Bool
    ) -> Bool {
        let isCounted = ingress.isCounted
        intake.begin(
            from: peer, through: ingress, hasContent: hasBody, isServed: isServed)
        intake.takeHead(in: consume buffer, at: headStart)
        if hasBody { intake.rememberReplayable(request.framing) }
        return begin(client: client, isCounted: isCounted)
    }

    /// Requires a connection that has not carried a request; to be called before ``route(at:)``.
    package func needFreshConnection() { forwarding.needFreshConnection() }

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
        request.form = .origin
        if let seen { guess(from: seen.readable) }
        intake.begin(from: peer, through: ingress, hasContent: false, isServed: true)
        if begin(client: client, isCounted: ingress.isCounted) {
            reply(with: fault, closing: true)
        }
    }

    /// Guesses from an unparsable head what the form of the reply depends on.
    private func guess(from bytes: UnsafeRawBufferPointer) {
        var seen = bytes.octets
        // The parser passes over one empty line.
        if seen.starts(with: "\r\n") { seen = seen.extracting(2..<seen.count) }
        if seen.starts(with: "HEAD ") { request.method = .head }
        request.form = seen.starts(with: "CONNECT ") ? .authority : .origin
        intake.refuse(
            preferring: ReplyFormat(preferredBy: AcceptedMediaTypes(unreadHead: seen)))
    }

    @inline(__always)
    private func begin(client: any DownstreamStream, isCounted: Bool) -> Bool {
        report.begin(environment.nextExchangeID(), at: environment.turnMicroseconds())
        self.client = client
        if environment.keepsResponseHeads, isCounted { keepResponseHead(of: client) }
        let isBegun = goesOn(
            after: .begin(
                .init(
                    hasContent: intake.hasContent, isIdempotent: request.isIdempotent,
                    hasClient: true)))
        if isBegun, isCounted { environment.exchangeBegan() }
        return isBegun
    }

    /// Makes the object new, for another exchange. Only the heads keep their storage.
    func reset() {
        assert(nextInQueue == nil && previousInQueue == nil)
        if token != .none { environment.loop.remove(self) }
        // Usually it has left, and checking that is cheaper than releasing nothing.
        if client != nil { client = nil }
        // An exchange that has not ended would be reported when the next one begins.
        if case .ended = state.step { state = State() }
        intake = Intake()
        forwarding = Forwarding()
        // Late events of this exchange are reported with its id.
        report = Report(after: report)
        guard !changed.isEmpty else { return }
        if changed.contains(.remarks) { remarks = Remarks() }
        if changed.contains(.upload) { upload = Upload() }
        if changed.contains(.caching) { caching = Caching() }
        if changed.contains(.storing) { storing = Storing() }
        if changed.contains(.serving) { serving = Serving() }
        if changed.contains(.collapsing) { collapsing = Collapsing() }
        if changed.contains(.tunnel) { tunnel = nil }
        if changed.contains(.caller) { caller = Caller() }
        if changed.contains(.limiting) { limiting = nil }
        if changed.contains(.balanced) { balanced = nil }
        if changed.contains(.waits) { waits = Waits() }
        if changed.contains(.trace) { trace = nil }
        changed = []
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
        case .loading, .serving: serving.reader?.proceed()
        case .waiting: waitTimedOut()
        case .gathering: forward()
        case .responding where serving.reader != nil: readerOrStoreWaited()
        case .requesting, .discarding, .responding: storeWaitEnded(hasDrained: false)
        case .connecting, .opening: connectionWaitTimedOut()
        case .delayed: delayEnded()
        case .ended, .routing, .authenticating, .finishing, .tunnelling: break
        }
    }

    /// Continues with a stored response that is being read for translation.
    package override func continueWork() {
        switch state.step {
        case .loading, .serving, .responding: serving.reader?.proceed()
        default: break
        }
    }

    /// A deadline that was either that of the reader, which tries again, or that of the disk.
    private func readerOrStoreWaited() {
        serving.reader?.proceed()
        storeWaitEnded(hasDrained: false)
    }
}
