import EventLoop
import HTTPCore
import PinfoldTLS

@testable import PinfoldEngine

/// A simulated stream to a server: it keeps what it is sent, compares it with what the client sent,
/// and responds as its server's script says.
final class ScriptedStream: UpstreamStream {
    private enum Part { case request, head, body, over }

    let endpoint: Endpoint
    let wasReused: Bool
    let timeline = ConnectionTimeline()
    var tlsVersion: TLSVersion? { nil }
    var tlsSummary: TLSSummary? { nil }
    var carrier: HTTPCarrier { .http1 }
    var isEventStream: Bool { false }
    var serverCertificate: ServerCertificate? { nil }
    var requestIsSent: Bool { requestHasEnded && output.isEmpty }

    private let source: ScriptedUpstreams
    private var world: SimulatedWorld { source.world }
    /// The consumer; `nil` once there is none any more.
    private(set) var consumer: (any UpstreamConsumer)?
    /// Whose it is.
    private(set) var exchange: Exchange?
    /// What the client sent; `nil` for an exchange in the background.
    let request: SimulatedRequest?
    let number: Int
    private let handedOut: SimulatedAttempt
    private let buffers: BufferPool

    // What it was sent.
    private var part = Part.request
    private var method = Method.get
    private var framing = BodyFraming.none
    private var asksForUpgrade = false
    private var head: [UInt8] = []
    private var output: [(UnsafeRawBufferPointer, Buffer)] = []
    private var content: [UInt8] = []
    private var requestHasEnded = false

    // Its response.
    private var answer: Representation?
    /// Whether what was delivered last is still in use.
    private var hasLeftBuffer = false
    private var bytesLeft = 0
    private var isPaused = false
    private var isDriving = false
    private var hasAnswered = false
    private var hasFailed = false

    init(
        _ source: ScriptedUpstreams, for consumer: Exchange, wasReused: Bool, at endpoint: Endpoint
    ) {
        self.source = source
        self.consumer = consumer
        exchange = consumer
        buffers = consumer.environment.loop.buffers
        self.wasReused = wasReused
        self.endpoint = endpoint
        handedOut = SimulatedAttempt(
            step: source.world.stepNumber, trust: consumer.origin?.policy.trustGeneration)
        request = source.world.request(of: consumer)
        number = request?.number ?? -1
    }

    /// Whether its server can act now.
    var canGoOn: Bool { !isPaused && part != .over && part != .request || !output.isEmpty }

    // MARK: What it is sent

    func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft {
        check(part == .request && head.isEmpty, "a head is begun twice")
        let needed = room + Int(request.path.count) + host.count + 320
        var head = HeadDraft(buffers.take(bytes: needed))
        head.fields.appendMethod(of: request, in: bytes)
        head.fields.append(byte: 0x20)
        head.fields.appendOriginForm(of: request, in: bytes)
        head.fields.append(" HTTP/1.1\r\nHost: ")
        head.fields.append(host)
        head.fields.appendLineEnd()
        return head
    }

    func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool {
        check(consumer != nil && part == .request, "a second request's head")
        head.fields.appendLineEnd()
        guard let head = head.finished() else { return false }
        self.head = Array(head.readable)
        method = request.method
        framing = request.framing
        asksForUpgrade = request.asksForUpgrade
        part = .head
        check(asksForUpgrade == (self.request?.asksForUpgrade ?? false), "another protocol")
        check(framing == self.request?.framing ?? .none, "another framing than the client's")
        checkHead()
        return true
    }

    private func checkHead() {
        head.withUnsafeBytes { bytes in
            let named = ReceivedHead.value("\r\nx-request: ", in: bytes)
                .flatMap { ReceivedHead.number(in: bytes, at: $0) }
            check(request == nil || named == request?.number, "another request's head")
        }
    }

    func send(_ content: UnsafeRawBufferPointer, owner: Buffer) {
        check(consumer != nil, "content for a stream that was given up")
        check(part != .request && !requestHasEnded, "content before the head or behind the end")
        check(framing != .none, "content of a request without")
        output.append((content, owner))
    }

    func finish(trailers: TrailerSection?) -> Bool {
        check(consumer != nil && part != .request, "an end without a head")
        check(!requestHasEnded, "a second end")
        requestHasEnded = true
        check(trailers?.bytes == request?.trailers?.bytes, "other trailers than the client's")
        return flush()
    }

    func flush() -> Bool {
        check(consumer != nil, "a flush of a stream that was given up")
        let all = world.isSettling || world.random.chance(70)
        write(all ? output.count : world.random.below(output.count + 1))
        return output.isEmpty
    }

    private func write(_ count: Int) {
        for _ in 0..<count {
            let (bytes, owner) = output.removeFirst()
            withExtendedLifetime(owner) { content.append(contentsOf: bytes) }
        }
        guard let request else { return check(content.isEmpty, "content of nobody's") }
        guard count > 0 || requestIsSent else { return }
        let expected = request.content
        check(content.count <= expected.count, "more content than the client has sent")
        check(expected.hasBytes(content, at: 0), "other content than the client's")
        if requestIsSent { check(content.count == expected.count, "content ended too early") }
    }

    func resume() {
        check(consumer != nil, "a stream that was given up is to go on")
        guard isPaused else { return }
        isPaused = false
        if world.random.chance(50) { drive() }
    }

    func setConsumer(_ consumer: any UpstreamConsumer) {
        check(self.consumer != nil && part == .request, "handed on when it is in use")
        self.consumer = consumer
    }

    func leaveBuffer() { hasLeftBuffer = true }

    func cancel() {
        // Cancelling one that has failed does nothing more.
        check(consumer != nil || hasFailed, "a stream given up twice, or behind its end")
        hasFailed = false
        world.note("stream given up", 0, number)
        leave()
    }

    func giveBack() { cancel() }

    func handOver() -> UpstreamHandover {
        check(consumer != nil && asksForUpgrade, "handed over, and nobody asked to switch")
        leave()
        return UpstreamHandover(transport: world.makeServerTransport())
    }

    private func leave() {
        consumer = nil
        exchange = nil
        part = .over
        output.removeAll()
        source.forget(self)
    }

    // MARK: What its server does

    func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        for _ in 0...world.random.below(3) {
            guard let consumer, canGoOn else { return }
            if !output.isEmpty, world.isSettling || world.random.chance(60) {
                if flush() { consumer.upstreamDrained() }
                continue
            }
            guard !isPaused else { return }
            go(on: consumer)
        }
    }

    private func go(on consumer: any UpstreamConsumer) {
        if !world.isSettling, world.random.chance(5) { return fail(consumer) }
        switch part {
        case .request, .over: return
        case .head:
            // Some respond before they have read everything.
            guard requestIsSent || world.random.chance(world.isSettling ? 2 : 10) else { return }
            if asksForUpgrade, world.random.chance(60) {
                world.note("switches protocols", 0, number)
                send(
                    head: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                        + "Upgrade: websocket\r\n\r\n", to: consumer)
            } else if world.random.chance(8) {
                sendInterim(to: consumer)
            } else {
                answer(consumer)
            }
        case .body: sendBody(to: consumer)
        }
    }

    private func fail(_ consumer: any UpstreamConsumer) {
        let started = hasAnswered || part == .body || world.random.chance(15)
        world.note("stream fails", started ? 1 : 0, number)
        leave()
        hasFailed = true
        let isHTTP2 = world.carriers.servers == .http2 && !asksForUpgrade
        let fault = isHTTP2 ? faultOfHTTP2(started: started) : faultOfHTTP1(started: started)
        consumer.upstreamFailed(StreamError(fault, responseStarted: started))
    }

    private func faultOfHTTP1(started: Bool) -> ExchangeError {
        switch world.random.below(5) {
        case 0, 1: .server(.upstreamClosed)
        case 2: .upstreamReset(.connectionReset)
        case 3: .server(started ? .upstreamBodyTimeout : .firstByteTimeout)
        default: .response(.truncatedHead)
        }
    }

    /// Its stream is reset or malformed, GOAWAY leaves it out, or the connection ends.
    private func faultOfHTTP2(started: Bool) -> ExchangeError {
        switch world.random.below(7) {
        case 0: .server(.upstreamClosed)
        case 1: .upstreamHTTP2(.badFrameLength)
        case 2: .server(started ? .upstreamBodyTimeout : .firstByteTimeout)
        case 3: .upstreamMalformed("the response has no :status")
        case 4: .upstreamStreamReset(.internalError)
        default: started ? .upstreamStreamReset(.cancel) : .server(.upstreamNotProcessed)
        }
    }

    private func sendInterim(to consumer: any UpstreamConsumer) {
        hasAnswered = true
        let many = world.random.chance(2) ? 40 : 1
        for _ in 0..<many {
            guard self.consumer != nil else { return }
            world.note("interim", 0, number)
            let text =
                world.random.chance(50)
                ? "HTTP/1.1 100 Continue\r\n\r\n"
                : "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            send(head: text, to: consumer)
        }
    }

    /// Parses a head as a connection does, and passes it to the consumer; its memory is reused.
    /// - Parameter hasContent: whether content follows, which a head of HTTP/2 does not say.
    private func send(
        head text: String, hasContent: Bool = false, to consumer: any UpstreamConsumer
    ) {
        // With HTTP/2 there is no Upgrade to ask for.
        let carrier = asksForUpgrade ? .http1 : world.carriers.servers
        var bytes =
            switch carrier {
            case .http1: Array(text.utf8)
            case .http2: Array(text.assembledFromHTTP2.utf8)
            }
        var parser = ResponseHeadParser(carrier: carrier)
        guard
            case .complete(bytes.count)? = try? parser.parse(
                bytes.span,
                answering: ResponseContext(method: method, allowsSwitch: asksForUpgrade),
                into: &consumer.response)
        else { return world.fail("a server's head is not parsed:\n\(text)") }
        if consumer.response.version.marksEnd, !consumer.response.isInterim {
            check(
                (try? consumer.response.decideContent(follows: hasContent)) != nil,
                "a response whose content is not what its head says")
            check(!consumer.response.framing.endsWithConnection, "an end that is not marked")
        }
        bytes.withUnsafeMutableBytes { memory in
            consumer.upstreamHead(UnsafeRawBufferPointer(memory))
            memory.initializeMemory(as: UInt8.self, repeating: 0xEE)
        }
    }

    private func answer(_ consumer: any UpstreamConsumer) {
        hasAnswered = true
        let reply = head.withUnsafeBytes {
            world.reply(to: request, head: $0, method: method, handedOut)
        }
        world.note("answers", reply.status, number)
        answer = reply.content
        part = .body
        let hasContent = method != .head && !(answer?.body.isEmpty ?? true)
        send(
            head: reply.head, hasContent: hasContent || answer?.trailers != nil, to: consumer)
        world.noteAnswered(request, reply)
        guard self.consumer === consumer else { return }
        let framing = consumer.response.framing
        bytesLeft = framing == .none ? 0 : answer?.body.count ?? 0
        if framing == .none || framing == .length(0) { return end(consumer) }
        if world.random.chance(60) {
            sendBody(to: consumer)
        } else {
            consumer.upstreamHeadWithoutBody()
        }
    }

    private func sendBody(to consumer: any UpstreamConsumer) {
        guard let answer else { return end(consumer) }
        guard bytesLeft > 0 else { return end(consumer) }
        let count = world.random.chance(30) ? bytesLeft : 1 + world.random.below(bytesLeft)
        let start = answer.body.count - bytesLeft
        bytesLeft -= count
        let buffer = buffers.take(bytes: count)
        buffer.writable.copyBytes(from: answer.body[start..<(start + count)])
        buffer.end = count
        var isLast = false
        if case .length = consumer.response.framing { isLast = bytesLeft == 0 }
        world.note("sends content of a response", count, number)
        hasLeftBuffer = false
        let goesOn = consumer.upstreamBody(buffer.readable, owner: buffer, isLast: isLast)
        guard self.consumer === consumer else { return }
        if isLast { return end(consumer) }
        isPaused = !goesOn
        // Its buffer is reused for reading.
        if goesOn, !hasLeftBuffer {
            buffer.memory.initializeMemory(as: UInt8.self, repeating: 0xEE)
        }
    }

    private func end(_ consumer: any UpstreamConsumer) {
        world.note("response ends", 0, number)
        let trailers = consumer.response.framing == .chunked ? answer?.trailers : nil
        leave()
        consumer.upstreamEnded(trailers: trailers)
    }

    private func check(_ condition: Bool, _ what: StaticString) {
        if !condition { world.fail("stream for request \(number): \(what)") }
    }
}
