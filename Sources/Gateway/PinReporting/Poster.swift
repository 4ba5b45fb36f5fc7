import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS

/// How an attempt to deliver something ended.
package enum PostResult: Sendable, Equatable {
    case delivered
    /// The server will not accept this, whenever it is sent.
    case rejected(status: UInt16)
    /// It was not delivered this time. `answered` means that the server did answer, or closed the
    /// connection after everything had been sent. `retryAfter` is the delay it requested in
    /// milliseconds, if any.
    case failed(String, answered: Bool, retryAfter: Int64?)
    /// The process is ending.
    case interrupted
}

/// Uploads what the gateway itself has to say, such as a report, to its destination through the
/// engine, on a connection that carries nothing else, unless its owner keeps one.
///
/// TLS is verified by the given context, which has no pinsets, and no error here counts as a pin
/// failure: no report is ever made about a report.
package final class Poster: EventHandler, UpstreamConsumer {
    /// What is sent, and what the answer means.
    package struct Kind: Sendable {
        /// The value of Content-Type.
        let contentType: StaticString
        /// What an answer means.
        let meaning: @Sendable (Answer) -> PostResult
        /// The most bytes of an answer's content that are read; 0 if that means nothing.
        let answerBytes: Int

        package init(
            contentType: StaticString, answerBytes: Int = 0,
            meaning: @escaping @Sendable (Answer) -> PostResult
        ) {
            self.contentType = contentType
            self.answerBytes = answerBytes
            self.meaning = meaning
        }

        /// What the status of an answer means.
        package func result(_ status: UInt16) -> PostResult { meaning(Answer(status: status)) }

        /// A report, as JSON.
        static let report = Kind(contentType: "application/json", meaning: Poster.result)
    }

    /// The maximum duration of a delivery, in milliseconds.
    private static let milliseconds: Int64 = 15_000
    /// The maximum number of interim responses before the final one.
    private static let interimResponses = 16
    /// The fields besides Host and Content-Length, without the value of the last one.
    private static let fields: StaticString = "User-Agent: pinfold\r\nContent-Type: "

    private let environment: Environment
    private let destination: ReportDestination
    private let body: [UInt8]
    private let kind: Kind
    private let origin: Origin
    /// Whether only a connection will do that has not carried anything.
    private var isFresh: Bool
    private var completion: ((PostResult) -> Void)?
    private var upstream: (any UpstreamStream)?
    private var interim = 0
    /// Whether all of the request has been written. A connection on which writing fails drops the
    /// rest, and does not say so.
    private var isSent = false
    /// Whether it was accepted before all of it was sent: the rest follows (RFC 9110 §7.5).
    private var isAccepted = false
    /// Whether it was delivered, and the content of the answer follows.
    private var isReading = false
    /// The beginning of the answer's content, if it is read.
    package private(set) var answer: [UInt8] = []
    package var response = ResponseHead()
    /// It may arrive twice.
    package var mayBeRepeated: Bool { true }
    package var clientNetwork: IPNetwork? { nil }

    /// - Parameters:
    ///   - body: of the kind's type.
    ///   - context: how the destination is verified, if it uses TLS.
    ///   - kept: the destination, as an owner keeps it that reuses its connection and reads each
    ///     answer to its end; `nil` for a connection that is closed afterwards.
    ///   - environment: one of ``makeEnvironment(on:resolver:)``.
    ///   - completion: called once, within `start()`, `cancel()` or later.
    package init(
        _ body: [UInt8], as kind: Kind, to destination: ReportDestination,
        context: TLSClientContext, over kept: Origin? = nil, in environment: Environment,
        completion: @escaping (PostResult) -> Void
    ) {
        self.kind = kind
        self.environment = environment
        self.destination = destination
        self.body = body
        self.completion = completion
        origin =
            kept
            ?? Origin(named: destination.origin, context: context, policy: environment.policy)
        isFresh = kept == nil
    }

    /// What deliveries need of the engine.
    package static func makeEnvironment(
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
    package func start() {
        do throws(Errno) {
            try environment.loop.add(self)
        } catch {
            return fail("\(error)", answered: false)
        }
        environment.loop.setDeadline(self, after: Self.milliseconds)
        environment.upstreams.acquire(origin, for: self, fresh: isFresh)
    }

    /// The process is ending.
    package func cancel() { end(.interrupted) }

    // MARK: The request

    package func upstreamReady(_ upstream: any UpstreamStream) {
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
            room: Self.fields.utf8CodeUnitCount + kind.contentType.utf8CodeUnitCount + 2)
        head.fields.append(Self.fields)
        head.fields.append(kind.contentType)
        head.fields.appendLineEnd()
        return upstream.sendHead(
            head, of: OutgoingRequest(framing: .length(UInt64(body.count)), method: .post),
            upgrade: [])
    }

    package func upstreamDrained() {
        isSent = true
        if isAccepted, !isReading { end(.delivered) }
    }

    // MARK: The answer

    /// A server's response.
    package struct Answer: Equatable {
        package var status: UInt16
        /// Milliseconds, or `nil` if not specified.
        package var retryAfter: Int64?

        package init(status: UInt16, retryAfter: Int64? = nil) {
            self.status = status
            self.retryAfter = retryAfter
        }
    }

    /// The final head decides.
    package func upstreamHead(_ head: UnsafeRawBufferPointer) {
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
        let result = kind.meaning(answer)
        guard result == .delivered else { return end(result) }
        isReading = kind.answerBytes > 0
        isAccepted = isReading || !isSent
        if !isAccepted { end(result) }
    }

    package func upstreamHeadWithoutBody() {}

    package func upstreamBody(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool
    ) -> Bool {
        guard isReading else { return true }
        answer += bytes.prefix(kind.answerBytes - answer.count)
        return true
    }

    /// The answer is complete. If the request is not, the server accepted it, and takes no more of
    /// it: it has closed the connection, or is about to.
    package func upstreamEnded(trailers: TrailerSection?) {
        upstream = nil
        if isSent { return end(.delivered) }
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
    package static func retryAfter(_ value: [UInt8], now: Int64) -> Int64? {
        RetryAfter.milliseconds(value, now: now).map {
            min($0, ReportBackoff.longestAskedMilliseconds)
        }
    }

    // MARK: Failures

    package override func deadlineReached() {
        if isReading, isSent { return end(.delivered) }
        guard upstream != nil else { return fail(Self.slowHandshake, answered: false) }
        let text = isSent ? "it did not answer in time" : "it accepted the content too slowly"
        fail(text, answered: isSent || isAccepted)
    }

    package func upstreamFailed(_ failure: StreamError) {
        // A server may close a connection at any time that it has kept.
        if !isFresh, let former = upstream, former.wasReused, !failure.responseStarted {
            (upstream, isSent, isFresh) = (nil, false, true)
            return environment.upstreams.acquire(origin, for: self, fresh: true)
        }
        // A server that is lost over one must not delay the ones after it.
        let isLost = upstream != nil
        upstream = nil
        // What it did with it was said before.
        if isReading, isSent { return end(.delivered) }
        let text = isAccepted ? Self.cutOff : Self.text(failure, destination.origin.host)
        fail(text, answered: isLost)
    }

    /// What the server has is not whole, whatever it answered.
    private static let cutOff = "it did not take all of the content"
    private static let slowHandshake = "TLS: the handshake did not complete in time"

    /// What is logged about a connection that failed.
    package static func text(_ failure: StreamError, _ host: String) -> String {
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
