import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS

/// How an attempt to deliver a report ended.
enum PostResult: Equatable {
    case delivered
    /// The server will not accept this report, whenever it is sent.
    case rejected(status: UInt16)
    /// It was not delivered this time. `answered` means that the server did answer, or closed the
    /// connection after everything had been sent. `retryAfter` is the delay it requested in
    /// milliseconds, if any.
    case failed(String, answered: Bool, retryAfter: Int64?)
    /// The process is ending.
    case interrupted
}

/// Uploads a report to its destination through the engine, on a connection that carries nothing
/// else.
///
/// TLS is verified by the given context, which has no pinsets, and no error here counts as a pin
/// failure: no report is ever made about a report.
final class ReportPoster: EventHandler, UpstreamConsumer {
    /// The maximum duration of a delivery, in milliseconds.
    private static let milliseconds: Int64 = 15_000
    /// The maximum number of interim responses before the final one.
    private static let interimResponses = 16
    /// The fields besides Host and Content-Length.
    private static let fields: StaticString =
        "User-Agent: pinfold\r\nContent-Type: application/json\r\n"

    private let environment: Environment
    private let destination: ReportDestination
    private let body: [UInt8]
    private let origin: Origin
    private var completion: ((PostResult) -> Void)?
    private var upstream: (any UpstreamStream)?
    private var interim = 0
    /// Whether all of the request has been written. A connection on which writing fails drops the
    /// rest, and does not say so.
    private var isSent = false
    /// Whether it was accepted before all of it was sent: the rest follows (RFC 9110 §7.5).
    private var isAccepted = false
    var response = ResponseHead()
    /// A report may arrive twice.
    var mayBeRepeated: Bool { true }
    var clientNetwork: IPNetwork? { nil }

    /// - Parameters:
    ///   - body: JSON.
    ///   - context: how the destination is verified, if it uses TLS.
    ///   - environment: one of ``makeEnvironment(on:resolver:)``.
    ///   - completion: called once, within `start()`, `cancel()` or later.
    init(
        _ body: [UInt8], to destination: ReportDestination, context: TLSClientContext,
        in environment: Environment, completion: @escaping (PostResult) -> Void
    ) {
        self.environment = environment
        self.destination = destination
        self.body = body
        self.completion = completion
        origin = Origin(named: destination.origin, context: context, policy: environment.policy)
    }

    /// What deliveries need of the engine.
    static func makeEnvironment(
        on loop: EventLoop, resolver: Resolver
    ) throws -> Environment {
        var timeouts = TimeoutsConfiguration()
        // Two steps, TCP and TLS. What follows has the rest of the time.
        timeouts.connectMilliseconds = milliseconds / 2
        timeouts.firstByteMilliseconds = milliseconds
        timeouts.bodyMilliseconds = milliseconds
        var limits = LimitsConfiguration()
        limits.headBytes = 16 << 10
        return try Environment(
            standaloneOn: loop, resolver: resolver,
            policy: try PolicySnapshot(forOwnConnections: timeouts, limits))
    }

    /// Starts the delivery; the loop keeps it alive until it has ended.
    func start() {
        do throws(Errno) {
            try environment.loop.add(self)
        } catch {
            return fail("\(error)", answered: false)
        }
        environment.loop.setDeadline(self, after: Self.milliseconds)
        environment.upstreams.acquire(origin, for: self, fresh: true)
    }

    /// The process is ending.
    func cancel() { end(.interrupted) }

    // MARK: The request

    func upstreamReady(_ upstream: any UpstreamStream) {
        self.upstream = upstream
        guard sendHead(on: upstream) else { return fail("its URL is too long", answered: false) }
        let content = environment.loop.buffers.holding(body)
        upstream.send(content.readable, owner: content)
        isSent = upstream.finish(trailers: nil)
    }

    private func sendHead(on upstream: any UpstreamStream) -> Bool {
        let text = "POST \(destination.path) HTTP/1.1\r\nHost: \(destination.authority)\r\n\r\n"
        let (bytes, authority) = (Array(text.utf8), origin.authority)
        var parser = RequestHeadParser(limits: HeadLimits())
        var request = RequestHead()
        guard case .complete = try? parser.parse(bytes.span, into: &request) else { return false }
        var head = upstream.makeHead(
            for: request, in: bytes.span, host: authority.span,
            room: Self.fields.utf8CodeUnitCount)
        head.fields.append(Self.fields)
        return upstream.sendHead(
            head, of: OutgoingRequest(framing: .length(UInt64(body.count)), method: .post),
            upgrade: [])
    }

    func upstreamDrained() {
        isSent = true
        if isAccepted { end(.delivered) }
    }

    // MARK: The answer

    /// A server's response to a report.
    struct Answer: Equatable {
        var status: UInt16
        /// Milliseconds, or `nil` if not specified.
        var retryAfter: Int64?
    }

    /// The final head decides; the content means nothing.
    func upstreamHead(_ head: UnsafeRawBufferPointer) {
        guard !response.isInterim else {
            interim += 1
            if interim > Self.interimResponses { fail("its answer does not end", answered: true) }
            return
        }
        var answer = Answer(status: response.status)
        if let field = response.fields.only(.retryAfter) {
            answer.retryAfter = Self.retryAfter(
                Array(head[Int(field.value.start)..<Int(field.value.end)]),
                now: environment.wallSeconds)
        }
        let result = Self.result(answer)
        if result == .delivered, !isSent { isAccepted = true } else { end(result) }
    }

    func upstreamHeadWithoutBody() {}

    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool { true }

    /// The server accepted the report, and takes no more of it: it has closed the connection, or
    /// is about to.
    func upstreamEnded(trailers: TrailerSection?) {
        upstream = nil
        fail(Self.cutOff, answered: true)
    }

    /// 2xx means delivered. 4xx means never, except 408, 425 and 429. Everything else, including
    /// redirects, which are not followed, means not now.
    static func result(_ answer: Answer) -> PostResult {
        switch answer.status {
        case 200..<300: .delivered
        case 400..<500 where ![408, 425, 429].contains(answer.status):
            .rejected(status: answer.status)
        default:
            .failed(
                "it answered \(answer.status)", answered: true, retryAfter: answer.retryAfter)
        }
    }

    /// Retry-After (RFC 9110 §10.2.3) in milliseconds, or `nil` if it is invalid.
    static func retryAfter(_ value: [UInt8], now: Int64) -> Int64? {
        RetryAfter.milliseconds(value, now: now).map {
            min($0, ReportBackoff.longestAskedMilliseconds)
        }
    }

    // MARK: Failures

    override func deadlineReached() {
        guard upstream != nil else { return fail(Self.slowHandshake, answered: false) }
        let text = isSent ? "it did not answer in time" : "it accepted the report too slowly"
        fail(text, answered: isSent || isAccepted)
    }

    func upstreamFailed(_ failure: StreamError) {
        // A server that is lost over one report must not delay the ones after it.
        let isLost = upstream != nil
        upstream = nil
        let text = isAccepted ? Self.cutOff : Self.text(failure, destination.origin.host)
        fail(text, answered: isLost)
    }

    /// The server has a report that is not whole, whatever it answered.
    private static let cutOff = "it did not take all of the report"
    private static let slowHandshake = "TLS: the handshake did not complete in time"

    /// What is logged about a connection that failed.
    static func text(_ failure: StreamError, _ host: String) -> String {
        switch failure.error {
        case .nameNotResolved(let error): return "\(host) has no address (\(error.rawValue))"
        case .connectFailed, .connectTimeout, .gateway(.descriptorsExhausted):
            guard let last = failure.attempts?.lastFailure else {
                return "\(host) was not resolved in time"
            }
            return "cannot connect to \(last.endpoint): \(last.error)"
        case .tlsFailed(let error): return "TLS: \(error)"
        case .tlsTimeout: return slowHandshake
        case .response(.truncatedHead), .server(.upstreamClosed), .upstreamReset,
            .upstreamUnanswered:
            return "it closed the connection without an answer"
        case .response(.headTooLarge): return "its answer is too long"
        case .response(let error): return "its answer is not HTTP: \(error)"
        case .server(.upstreamSpeaksTLS): return "its answer is not HTTP"
        default: return failure.error.explanation
        }
    }

    private func fail(_ text: String, answered: Bool) {
        end(.failed(text, answered: answered, retryAfter: nil))
    }

    private func end(_ result: PostResult) {
        guard let completion else { return }
        self.completion = nil
        environment.loop.remove(self)
        if let upstream {
            self.upstream = nil
            upstream.cancel()
        } else {
            environment.upstreams.abandon(origin, self)
        }
        completion(result)
    }
}
