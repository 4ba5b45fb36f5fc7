import EventLoop
import HTTPCore
import HTTPTypes
import PinfoldEngine
import PinfoldTLS
import Trust

/// A stream that a transport answers instead of a server.
///
///     request ──► called ──► answered ──► over     (`sendHead`, the head, the end)
///        └───────────┴───────────┴──────────►      (`cancel`, a fault)
final class TransportStream: UpstreamStream {
    private enum Stage { case request, called, answered, over }

    let number: UInt64
    let endpoint: Endpoint
    let wasReused = false
    let timeline = ConnectionTimeline()
    var tlsVersion: TLSVersion? { nil }
    var tlsSummary: TLSSummary? { nil }
    let carrier = HTTPCarrier.http1
    private(set) var isEventStream = false
    private(set) var requestIsSent = false
    var serverCertificate: ServerCertificate? { nil }

    private let transport: any SessionTransport
    /// Whose stream it is.
    unowned let source: TransportStreams
    private unowned let runtime: RuntimeLoop
    private let origin: Origin
    private let limits: HeadLimits
    /// `nil` once the exchange is over.
    private var consumer: (any UpstreamConsumer)?
    private var stage = Stage.request
    /// Where the method, the path and the host end in the draft of the head.
    private var ends = (method: 0, path: 0, host: 0)
    private var context = ResponseContext(method: .get, repairsLines: false)
    private let pipe: ContentPipe
    private var call: Task<Void, Never>?
    /// How much is missing of what Content-Length announces; `nil` without one.
    private var missingBytes: UInt64?
    /// What the consumer has not accepted of the latest part.
    private var waiting: [UInt8] = []
    private var passed = 0
    /// Answered when the latest part has been accepted.
    private var acceptance: AwaitedWork<Void>?
    private var isPaused = false
    private var isDelivering = false
    /// What comes after the latest part.
    private var ending: TransportEvent?

    private static let reservedBytes = 64

    init(
        _ number: UInt64, of transport: any SessionTransport, in source: TransportStreams,
        for consumer: any UpstreamConsumer, at origin: Origin, _ endpoint: Endpoint,
        on runtime: RuntimeLoop
    ) {
        (self.number, self.transport, self.source) = (number, transport, source)
        self.consumer = consumer
        (self.origin, self.endpoint, self.runtime) = (origin, endpoint, runtime)
        limits = origin.policy.headLimits
        let post = runtime.post
        pipe = ContentPipe { post(.transport(stream: number, .drained)) }
    }

    private var buffers: BufferPool { runtime.loop.buffers }

    // MARK: The request

    func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft {
        let room = room + request.length + host.count + Self.reservedBytes
        var head = HeadDraft(buffers.take(atLeast: room))
        head.fields.appendMethod(of: request, in: bytes)
        ends.method = head.fields.count
        head.fields.appendOriginForm(of: request, in: bytes)
        ends.path = head.fields.count
        head.fields.append(host)
        ends.host = head.fields.count
        return head
    }

    func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool {
        if case .length(let count) = request.framing {
            head.fields.append(field: .contentLength, decimal: count)
        }
        guard let head = head.finished(), let sent = makeRequest(head.readable) else {
            return false
        }
        context = ResponseContext(
            method: request.method, isUserAgent: request.isUserAgents, repairsLines: false)
        stage = .called
        let (post, number) = (runtime.post, number)
        call = TransportCall.begin(
            TransportRequest(
                head: sent, content: TransportContent(pipe: pipe),
                framing: TransportRequest.Framing(request.framing)),
            of: transport
        ) { post(.transport(stream: number, $0)) }
        return true
    }

    private func makeRequest(_ bytes: UnsafeRawBufferPointer) -> HTTPRequest? {
        func text(_ range: Range<Int>) -> String {
            String(decoding: bytes[range], as: UTF8.self)
        }
        guard let method = HTTPRequest.Method(rawValue: text(0..<ends.method)) else { return nil }
        let lines = UnsafeRawBufferPointer(rebasing: bytes[ends.host...])
        return HTTPRequest(
            method: method, scheme: origin.isSecure ? "https" : "http",
            authority: text(ends.path..<ends.host), path: text(ends.method..<ends.path),
            headerFields: runtime.fieldLineCache.fields(of: lines, includesEngineFields: false)
                .fields)
    }

    func send(_ content: UnsafeRawBufferPointer, owner: Buffer) {
        if content.count > 0 { pipe.push(Array(content)) }
    }

    func finish(trailers: TrailerSection?) -> Bool {
        requestIsSent = true
        pipe.finish()
        return true
    }

    func flush() -> Bool { pipe.takesMore() }

    // MARK: The response

    /// Handles what the transport's task tells.
    func handle(_ event: TransportEvent) {
        guard consumer != nil else { return }
        switch event {
        case .drained: if !requestIsSent { consumer?.upstreamDrained() }
        case .head(let head, let length): answer(head, length)
        case .part(let part, let acceptance):
            (waiting, passed, self.acceptance) = (part, 0, acceptance)
            deliver()
        case .end, .failed:
            ending = event
            deliver()
        }
    }

    private func answer(_ head: HTTPResponse, _ length: Int?) {
        guard stage == .called, let consumer else { return }
        guard head.status.code >= 200 else {
            return fail(
                ClientError(
                    .transportFailed,
                    "the transport answered with the status \(head.status.code); expected that of "
                        + "a final response"))
        }
        let bytes = TransportHead.bytes(head, length: length, method: context.method)
        do throws(WireError) {
            var parser = ResponseHeadParser(limits: limits)
            guard
                case .complete(bytes.count) = try parser.parse(
                    bytes.span, answering: context, into: &consumer.response)
            else { throw .truncatedHead }
        } catch {
            return fail(.response(error))
        }
        stage = .answered
        let framing = consumer.response.framing
        missingBytes = if case .length(let count) = framing { count } else { nil }
        bytes.withUnsafeBytes { memory in
            isEventStream = consumer.response.isEventStream(in: memory.octets)
            consumer.upstreamHead(memory)
        }
        guard self.consumer === consumer else { return }
        if framing == .none || framing == .length(0) { return end([:]) }
        consumer.upstreamHeadWithoutBody()
    }

    /// Passes on what there is, as far as the consumer accepts it.
    private func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        defer { isDelivering = false }
        while let consumer, !isPaused, passed < waiting.count {
            var count = min(waiting.count - passed, BufferPool.largeBytes)
            if let missingBytes { count = Int(min(UInt64(count), missingBytes)) }
            let buffer = buffers.take(atLeast: count)
            buffer.writable.copyBytes(from: waiting[passed..<(passed + count)])
            buffer.end = count
            passed += count
            missingBytes = missingBytes.map { $0 - UInt64(count) }
            let isLast = missingBytes == 0
            let goesOn = consumer.upstreamBody(buffer.readable, owner: buffer, isLast: isLast)
            guard self.consumer === consumer else { return }
            // What there is beyond the announced length belongs to nobody.
            if isLast { return end([:]) }
            isPaused = !goesOn
        }
        guard consumer != nil, !isPaused else { return }
        waiting = []
        passed = 0
        acceptance.take()?.end(())
        switch ending.take() {
        case .end(let trailers):
            guard missingBytes == nil || missingBytes == 0 else {
                return fail(.response(.truncatedBody))
            }
            end(trailers)
        case .failed(let error): fail(error)
        case .head, .part, .drained, nil: break
        }
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        deliver()
    }

    func leaveBuffer() {}

    func setConsumer(_ consumer: any UpstreamConsumer) { self.consumer = consumer }

    // MARK: The end

    private func end(_ trailers: HTTPFields) {
        guard let consumer else { return }
        let isChunked = consumer.response.framing == .chunked
        leave()
        consumer.upstreamEnded(trailers: isChunked ? TransportHead.trailers(trailers) : nil)
    }

    private func fail(_ error: any Error) {
        if let error = error as? TransportError {
            let fault = error.fault(afterHead: stage == .answered)
            // For the engine, there was a connection.
            if error.isBeforeSending, stage != .answered { note(ClientError(fault)) }
            return fail(fault)
        }
        let error =
            error as? ClientError
            ?? ClientError(
                .transportFailed, "the transport failed: \(error)", underlying: error)
        // The engine has no case for it.
        note(error)
        fail(.server(.upstreamClosed))
    }

    /// Keeps an error for the one who waits for the response.
    private func note(_ error: ClientError) {
        ((consumer as? Exchange)?.client as? Transfer)?.transportError = error
    }

    private func fail(_ fault: ExchangeError) {
        guard let consumer else { return }
        let isStarted = stage == .answered
        leave()
        consumer.upstreamFailed(StreamError(fault, responseStarted: isStarted))
    }

    /// Nobody waits for the response any more.
    func cancel() { leave() }

    func giveBack() { leave() }

    /// There is no connection. A 101 does not come that far.
    func handOver() -> UpstreamHandover {
        leave()
        return UpstreamHandover(transport: Transport(descriptor: -1))
    }

    private func leave() {
        guard consumer != nil else { return }
        consumer = nil
        stage = .over
        pipe.cut()
        call?.cancel()
        (waiting, acceptance, ending) = ([], nil, nil)
        runtime.transportStreamEnded(number)
    }
}

extension TransportError {
    /// Whether nothing of the request was sent.
    fileprivate var isBeforeSending: Bool {
        switch self {
        case .nameNotResolved, .connectionRefused, .connectTimedOut, .notTrusted: true
        case .connectionLost, .timedOut: false
        }
    }

    /// The same fault in the engine's terms.
    ///
    /// - Parameter afterHead: Whether the head of the response has arrived.
    fileprivate func fault(afterHead: Bool) -> ExchangeError {
        switch self {
        case .nameNotResolved: .nameNotResolved(.nxdomain)
        case .connectionRefused: .connectFailed(.connectionRefused)
        case .connectTimedOut: .connectTimeout
        case .notTrusted:
            .tlsFailed(.trust(TrustError(.chain(.other(code: 0, text: "so the transport says")))))
        case .connectionLost: afterHead ? .response(.truncatedBody) : .server(.upstreamClosed)
        case .timedOut: .server(afterHead ? .upstreamBodyTimeout : .firstByteTimeout)
        }
    }
}
