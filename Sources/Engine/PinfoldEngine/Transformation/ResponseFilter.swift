import ContentCoding
import EventLoop
import HTTPCore
import PinfoldTLS
import Transformation

/// Stands between an exchange and its stream to the server if the route has rules for responses:
/// the exchange sees only what satisfies them. It refuses by status and type, collects content that
/// must be checked, has it checked and translated (on another thread unless it is small), and then
/// passes on a response with the resulting head and content. So neither the store nor the client
/// sees anything of a refused response.
///
///     head ──► refused
///       ├────► passing ─────────────────────────────► the response's end
///       └────► gathering ──► refused, or passing (too large)
///                  └───────► working ──► refused, or passed as a whole
final class ResponseFilter: EventHandler, UpstreamStream {
    enum Step {
        /// Waiting for the final head.
        case head
        /// Passing everything on as it arrives.
        case passing
        case gathering(HeldResponse)
        /// Checks or translation are in progress; the underlying stream has ended.
        case working(HeldResponse)
        case ended
    }

    let environment: Environment
    let rules: RouteTransformation
    let checks: ResponseChecks
    let stream: any UpstreamStream
    /// The exchange that gets the responses; `nil` once it has left.
    var exchange: Exchange?
    var step = Step.head
    /// The head that the stream parses into.
    var response = ResponseHead()
    /// The method of the request.
    private(set) var method = Method.get
    private(set) var accepted = AcceptedCodings()
    /// The tags of changed responses in the request's conditions.
    private(set) var conditions: [[UInt8]] = []
    /// The tag of a stored response in the server's form that is in the request's conditions; `nil`
    /// if none.
    private var originTag: [UInt8]?
    /// Whether the stream has ended, and may be in use by another exchange.
    private var streamHasEnded = false
    private var requestWasSent = false
    /// When another thread was given the content, in microseconds of the monotonic clock; 0 if none
    /// was.
    var workBegan: Int64 = 0

    init(
        _ stream: any UpstreamStream, for exchange: Exchange, by rules: RouteTransformation,
        checks: ResponseChecks
    ) {
        self.stream = stream
        self.exchange = exchange
        self.rules = rules
        self.checks = checks
        environment = exchange.environment
        super.init()
        stream.setConsumer(self)
    }

    // MARK: The request

    func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft {
        accepted = MessageFacts.acceptedCodings(of: request, in: bytes)
        return stream.makeHead(for: request, in: bytes, host: host, room: room)
    }

    func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool {
        method = request.method
        guard let lines = head.finished() else { return false }
        originTag = rules.storesOrigin ? exchange?.validatedTag : exchange?.unchangedTag
        let changed = rules.ask.upstreamLines(
            lines.readable.octets, keeping: originTag,
            keepsDate: exchange?.caching.validation != nil)
        if let tags = rules.ask.entityTags {
            conditions = tags.conditions(in: lines.readable.octets)
        }
        // Room for the fields that the stream appends.
        let count = changed?.count ?? lines.count
        let upgradeBytes = upgrade.reduce(0) { $0 + $1.count + ", ".utf8.count }
        var draft = HeadDraft(environment.loop.buffers.take(bytes: count + upgradeBytes + 1024))
        if let changed {
            draft.fields.append(changed.span)
        } else {
            draft.fields.append(bytes: lines.readable)
        }
        return stream.sendHead(draft, of: request, upgrade: upgrade)
    }

    /// Whether a 304 with this tag, or without one, is about a response that is stored unchanged.
    func confirmsUnchanged(_ tag: [UInt8]?) -> Bool {
        guard let originTag else { return false }
        return tag == nil ? conditions.isEmpty : EntityTagMapping.areSame(originTag, tag)
    }

    func send(_ content: UnsafeRawBufferPointer, owner: Buffer) {
        if !streamHasEnded { stream.send(content, owner: owner) }
    }

    func finish(trailers: TrailerSection?) -> Bool {
        streamHasEnded || stream.finish(trailers: trailers)
    }

    func flush() -> Bool { streamHasEnded || stream.flush() }

    func resume() {
        if !streamHasEnded { stream.resume() }
    }

    func leaveBuffer() {
        if !streamHasEnded { stream.leaveBuffer() }
    }

    func cancel() {
        exchange = nil
        end()
    }

    func giveBack() {
        exchange = nil
        if !streamHasEnded {
            streamHasEnded = true
            stream.giveBack()
        }
        end()
    }

    func handOver() -> UpstreamHandover {
        streamHasEnded = true
        step = .ended
        exchange = nil
        return stream.handOver()
    }

    func setConsumer(_ consumer: any UpstreamConsumer) {
        exchange = consumer as? Exchange
    }

    /// Releases everything.
    func end() {
        step = .ended
        if token != .none { environment.loop.remove(self) }
        guard !streamHasEnded else { return }
        streamHasEnded = true
        stream.cancel()
    }

    // MARK: Properties of the stream

    var timeline: ConnectionTimeline { stream.timeline }
    var endpoint: Endpoint { stream.endpoint }
    var wasReused: Bool { stream.wasReused }
    var tlsVersion: TLSVersion? { stream.tlsVersion }
    var tlsSummary: TLSSummary? { stream.tlsSummary }
    var carrier: HTTPCarrier { stream.carrier }
    var isEventStream: Bool { !streamHasEnded && stream.isEventStream }
    var requestIsSent: Bool { streamHasEnded ? requestWasSent : stream.requestIsSent }
    var serverCertificate: ServerCertificate? { stream.serverCertificate }
}

// The stream's events.
extension ResponseFilter: UpstreamConsumer {
    func upstreamReady(_ upstream: any UpstreamStream) {}
    var mayBeRepeated: Bool { exchange?.mayBeRepeated ?? false }
    var takesLargeParts: Bool { exchange?.takesLargeParts ?? true }
    var clientNetwork: IPNetwork? { exchange?.clientNetwork }

    func upstreamFailed(_ failure: StreamError) {
        streamHasEnded = true
        let exchange = exchange.take()
        end()
        exchange?.upstreamFailed(failure)
    }

    func upstreamHead(_ head: UnsafeRawBufferPointer) {
        guard let exchange else { return }
        exchange.serverProgressed()
        exchange.headArrived(isFinal: !response.isInterim)
        if response.isInterim || response.status == 101 {
            exchange.response = response
            return exchange.upstreamHead(head)
        }
        do throws(TransformationError) {
            try decide(by: head)
        } catch {
            if exchange.balanced != nil, ServerFailureReason.isFailure(response.status) {
                exchange.response = response
                // It may go to another server.
                guard exchange.takesAnswer() else { return }
            }
            refuse(error, head)
        }
    }

    func upstreamHeadWithoutBody() {
        if case .passing = step { exchange?.upstreamHeadWithoutBody() }
    }

    func upstreamBody(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool
    ) -> Bool {
        switch step {
        case .passing:
            return exchange?.upstreamBody(bytes, owner: owner, isLast: isLast) ?? true
        case .gathering(let held):
            exchange?.serverProgressed()
            return gather(bytes, owner: owner, isLast: isLast, of: held)
        case .head, .working, .ended: return true
        }
    }

    func upstreamEnded(trailers: TrailerSection?) {
        requestWasSent = stream.requestIsSent
        streamHasEnded = true
        switch step {
        case .gathering(let held):
            held.trailers = trailers
            work(on: held)
        case .passing:
            let exchange = exchange.take()
            end()
            exchange?.upstreamEnded(trailers: trailers)
        case .head, .working, .ended: end()
        }
    }

    func upstreamDrained() { exchange?.upstreamDrained() }
}
