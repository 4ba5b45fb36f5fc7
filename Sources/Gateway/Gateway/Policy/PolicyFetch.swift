import EventLoop
import HTTPCore
import PinReporting
import PinfoldConfiguration
import PinfoldEngine

/// How an attempt to fetch the policy ended.
enum PolicyFetchResult: Sendable, Equatable {
    /// All that was sent, or one byte more than a policy may have. The tag is the server's for it.
    case received([UInt8], tag: [UInt8]?)
    /// It is what the tag stands for that was named.
    case unchanged
    /// There was no answer, or none with a policy. `retryAfter` is the delay that the server
    /// requested in milliseconds, if any.
    case failed(String, retryAfter: Int64?)
    /// The process is ending.
    case interrupted
}

/// One request for the policy, through the engine, on the connection of the one before if that is
/// still there.
///
/// The server is verified by the origin's context. What is received is judged elsewhere: this only
/// keeps it from being endless.
final class PolicyFetch: EventHandler, UpstreamConsumer {
    /// The maximum duration, in milliseconds.
    static let milliseconds: Int64 = 15_000
    /// The longest tag of an answer that is named in the next request.
    static let maximumTagBytes = 256
    private static let interimResponses = 16

    private let environment: Environment
    private let destination: ReportDestination
    private let origin: Origin
    private let tag: [UInt8]?
    /// Whether only a connection will do that has not carried anything.
    private var isFresh = false
    private var completion: ((PolicyFetchResult) -> Void)?
    private var upstream: (any UpstreamStream)?
    private var interim = 0
    private var content: [UInt8] = []
    private var answerTag: [UInt8]?
    var response = ResponseHead()
    var mayBeRepeated: Bool { true }
    var clientNetwork: IPNetwork? { nil }

    /// - Parameters:
    ///   - destination: what is asked for, and `origin` its server, which is kept between requests.
    ///   - tag: of what is known already; `nil` for nothing.
    ///   - environment: one of ``Poster/makeEnvironment(on:resolver:)``.
    ///   - completion: called once, within `start()`, `cancel()` or later.
    init(
        _ destination: ReportDestination, of origin: Origin, tag: [UInt8]?,
        in environment: Environment, completion: @escaping (PolicyFetchResult) -> Void
    ) {
        self.environment = environment
        self.tag = tag
        self.completion = completion
        self.destination = destination
        self.origin = origin
    }

    /// Starts it; the loop keeps it alive until it has ended.
    func start() {
        do throws(Errno) {
            try environment.loop.add(self)
        } catch {
            return fail("\(error)")
        }
        environment.loop.setDeadline(self, after: Self.milliseconds)
        environment.upstreams.acquire(origin, for: self, fresh: isFresh)
    }

    /// The process is ending.
    func cancel() { end(.interrupted) }

    // MARK: The request

    func upstreamReady(_ upstream: any UpstreamStream) {
        self.upstream = upstream
        guard sendHead(on: upstream) else { return fail("its URL is too long") }
        _ = upstream.finish(trailers: nil)
    }

    private static let fields: StaticString =
        "User-Agent: pinfold\r\nAccept: application/yaml, text/plain, */*\r\n"
    private static let condition: StaticString = "If-None-Match: "

    private func sendHead(on upstream: any UpstreamStream) -> Bool {
        let text = "GET \(destination.path) HTTP/1.1\r\nHost: \(destination.authority)\r\n\r\n"
        let (bytes, authority) = (Array(text.utf8), origin.authority)
        var parser = RequestHeadParser(limits: HeadLimits())
        var request = RequestHead()
        guard case .complete = try? parser.parse(bytes.span, into: &request) else { return false }
        let conditionBytes =
            tag.map { Self.condition.utf8CodeUnitCount + $0.count + 2 } ?? 0
        var head = upstream.makeHead(
            for: request, in: bytes.span, host: authority.span,
            room: Self.fields.utf8CodeUnitCount + conditionBytes)
        head.fields.append(Self.fields)
        if let tag {
            head.fields.append(Self.condition)
            head.fields.append(tag.span)
            head.fields.appendLineEnd()
        }
        return upstream.sendHead(
            head, of: OutgoingRequest(framing: .none, method: .get), upgrade: [])
    }

    func upstreamDrained() {}

    // MARK: The answer

    /// The final head decides: redirects are not followed, since it is the operator who says where
    /// a policy comes from.
    func upstreamHead(_ head: UnsafeRawBufferPointer) {
        guard !response.isInterim else {
            interim += 1
            if interim > Self.interimResponses { fail("its answer does not end") }
            return
        }
        func value(_ id: FieldID) -> [UInt8]? {
            response.fields.only(id).map {
                Array(head[Int($0.value.start)..<Int($0.value.end)])
            }
        }
        switch response.status {
        case 200:
            answerTag = value(.etag).flatMap { Self.isTag($0) ? $0 : nil }
        case 304 where tag != nil: end(.unchanged)
        default:
            let retryAfter = value(.retryAfter).flatMap {
                Poster.retryAfter($0, now: environment.wallSeconds)
            }
            end(.failed("it answered \(response.status)", retryAfter: retryAfter))
        }
    }

    /// An entity tag (RFC 9110 §8.8.3) that can be sent back.
    static func isTag(_ value: [UInt8]) -> Bool {
        let opaque = value.starts(with: "W/".utf8) ? value.dropFirst(2) : value[...]
        let quote = UInt8(ascii: "\"")
        return value.count <= maximumTagBytes && opaque.count >= 2 && opaque.first == quote
            && opaque.last == quote
            && opaque.dropFirst().dropLast().allSatisfy {
                $0 == 0x21 || 0x23...0x7E ~= $0 || $0 >= 0x80
            }
    }

    func upstreamHeadWithoutBody() {}

    func upstreamBody(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool
    ) -> Bool {
        content += bytes.prefix(PolicyEnvelope.maximumBytes + 1 - content.count)
        // Whatever follows, it is too long.
        if content.count > PolicyEnvelope.maximumBytes { receive() }
        return true
    }

    func upstreamEnded(trailers: TrailerSection?) {
        upstream = nil
        receive()
    }

    private func receive() { end(.received(content, tag: answerTag)) }

    // MARK: Failures

    override func deadlineReached() {
        fail(upstream == nil ? "it cannot be connected to in time" : "it did not answer in time")
    }

    func upstreamFailed(_ failure: StreamError) {
        let hasBegun = failure.responseStarted
        // A server may close a connection at any time that it has kept.
        if !isFresh, !hasBegun, upstream?.wasReused ?? false {
            (upstream, isFresh) = (nil, true)
            return environment.upstreams.acquire(origin, for: self, fresh: true)
        }
        upstream = nil
        fail(
            hasBegun
                ? "its answer is not complete" : Poster.text(failure, destination.origin.host))
    }

    private func fail(_ text: String) { end(.failed(text, retryAfter: nil)) }

    private func end(_ result: PolicyFetchResult) {
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
