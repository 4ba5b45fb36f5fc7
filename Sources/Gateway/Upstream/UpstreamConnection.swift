import EventLoop
import HTTPCore
import TLS

/// One connection to an origin, speaking HTTP/1.1 for one consumer after another.
///
///     handshaking ──► idle ◄──► active ──► closed
///          └────────────┴─────────────────────┘
///
/// While active, the request goes out through `output` and the response is read when the consumer
/// takes it: a paused connection reads nothing, and holds one buffer at most.
final class UpstreamConnection: EventHandler {
    enum State { case handshaking, idle, active, closed }
    private enum Part { case head, body, ended }

    private unowned let worker: Worker
    let origin: Origin
    let transport: Transport
    private(set) var state: State
    private var consumer: (any UpstreamConsumer)?

    private var output = OutputQueue()
    private var progress = SendProgress()
    private var input: Buffer?
    private var parser: ResponseHeadParser
    private var decoder = BodyDecoder(.none)
    private var part = Part.head
    private var context = ResponseContext(method: .get)
    private var keepAlive = true
    private var requestEnded = true
    private var paused = false
    private var mayHaveInput = false
    /// An edge said that the peer has finished: a short read then proves nothing.
    private var peerFinished = false
    private var isDriving = false
    private var wantsLargeBuffer = false
    /// Some byte of the current response was received.
    private(set) var responseStarted = false
    /// How many exchanges it carried before the current one.
    private(set) var uses = 0
    private var handshakeStarted: Int64 = 0

    init(worker: Worker, origin: Origin, descriptor: Int32, tls: TLSClientConnection?) {
        self.worker = worker
        self.origin = origin
        transport = Transport(descriptor: descriptor, tls: tls)
        state = tls == nil ? .idle : .handshaking
        parser = ResponseHeadParser(limits: origin.policy.headLimits)
    }

    // MARK: Establishing

    /// Begins the TLS handshake; `UpstreamPool.handshakeEnded` is told.
    func beginHandshake(timeoutMilliseconds: Int64) {
        handshakeStarted = Clock.monotonicMicroseconds()
        worker.loop.setDeadline(self, after: timeoutMilliseconds)
        continueHandshake()
    }

    private func continueHandshake() {
        guard let tls = transport.tls else { return }
        switch tls.handshake() {
        case .wantRead, .wantWrite: return
        case .complete:
            worker.loop.setDeadline(self, after: nil)
            state = .idle
            worker.metrics.add(tls.isResumed ? .tlsHandshakesResumed : .tlsHandshakesFull)
            worker.metrics.record(
                .tlsHandshake,
                microseconds: UInt64(max(0, Clock.monotonicMicroseconds() - handshakeStarted)))
            worker.countPins(origin, failure: nil)
            worker.upstreams.handshakeEnded(self, nil)
        case .failed(let error):
            worker.countHandshakeFailure(error, origin)
            close()
            worker.upstreams.handshakeEnded(self, .tlsFailed(error))
        }
    }

    // MARK: One exchange

    /// Gives the connection to a consumer.
    func begin(_ consumer: any UpstreamConsumer) {
        self.consumer = consumer
        state = .active
        part = .head
        responseStarted = false
        requestEnded = false
        paused = false
        keepAlive = true
        wantsLargeBuffer = false
        worker.loop.setDeadline(self, after: nil)
    }

    /// Queues the request's head. `context` says how the response will be framed.
    func send(head: Buffer, context: ResponseContext) {
        self.context = context
        worker.metrics.add(.upstreamBytesSent, UInt64(head.count))
        output.append(head.readable, owner: head)
    }

    /// Queues bytes of the request's body in its wire form.
    func send(bytes: UnsafeRawBufferPointer, owner: Buffer) {
        worker.metrics.add(.upstreamBytesSent, UInt64(bytes.count))
        output.append(bytes, owner: owner)
    }

    /// Queues a constant part of the request's body in its wire form.
    func send(_ text: StaticString) {
        worker.metrics.add(.upstreamBytesSent, UInt64(text.utf8CodeUnitCount))
        output.append(text)
    }

    /// Nothing more of the request follows: from now on the first byte's deadline runs.
    func endRequest() {
        requestEnded = true
    }

    /// Writes what is queued. False: the socket is full, `upstreamDrained` will follow.
    func flush() -> Bool {
        let before = output.pendingBytes
        switch transport.flush(&output) {
        case .drained:
            armResponseDeadline()
            return true
        case .blocked:
            if output.pendingBytes < before { progress.restart() }
            armBodyDeadline()
            return false
        case .failed:
            // The response may be there already: reading tells, and reports the failure else.
            output.discard()
            mayHaveInput = true
            worker.loop.afterTurn { [self] in drive() }
            return false
        }
    }

    /// With everything written, the server is waited for once the request is complete; until then
    /// the client is, whose own deadline runs.
    private func armResponseDeadline() {
        guard state == .active else { return }
        switch part {
        case .head:
            worker.loop.setDeadline(
                self, after: requestEnded ? origin.firstByteMilliseconds : nil)
        case .body where !requestEnded: armBodyDeadline()
        case .body, .ended: break
        }
    }

    private func armBodyDeadline() {
        worker.loop.setDeadline(
            self, after: origin.policy.configuration.timeouts.bodyMilliseconds)
    }

    /// The consumer takes content again.
    func resume() {
        guard paused else { return }
        paused = false
        armBodyDeadline()
        drive()
    }

    /// The consumer gives up; the connection cannot be used again.
    func cancel() {
        consumer = nil
        close()
    }

    /// Whether the request has been written to its end.
    var requestIsSent: Bool { requestEnded && output.isEmpty }

    /// Leaves HTTP: hands over the transport and the bytes read beyond the head, for a relay.
    func detach() -> (transport: Transport, leftover: Buffer?) {
        let leftover = input
        input = nil
        consumer = nil
        output.discard()
        state = .closed
        worker.loop.remove(self, keepingOpen: transport.descriptor)
        worker.upstreams.left(origin)
        return (transport, leftover)
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) { peerFinished = true }
        switch state {
        case .closed: return
        case .handshaking: continueHandshake()
        case .idle:
            if readiness.mayRead { checkIdle() }
        case .active:
            if readiness.mayRead { mayHaveInput = true }
            if readiness.mayWrite, !output.isEmpty, flush(), state == .active {
                consumer?.upstreamDrained()
            }
            if state == .active { drive() }
        }
    }

    /// Bytes or an end between exchanges: anything but TLS's own messages ends the connection.
    private func checkIdle() {
        if transport.tls != nil {
            let scratch = worker.loop.buffers.takeSmall()
            if case .wouldBlock = transport.read(into: scratch.writable) { return }
        }
        worker.upstreams.discardIdle(self)
    }

    override func deadlineReached() {
        switch state {
        case .closed: return
        case .idle: worker.upstreams.discardIdle(self)
        case .handshaking:
            worker.metrics.add(.tlsHandshakesTimeout)
            close()
            worker.upstreams.handshakeEnded(self, .tlsTimeout)
        case .active:
            if paused { return }  // the client is the slow one; its own deadline runs
            if !output.isEmpty, progress.isMade(on: transport.descriptor) {
                return armBodyDeadline()
            }
            fail(part == .head ? .firstByteTimeout : .upstreamBodyTimeout)
        }
    }

    // MARK: The response

    private func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        while state == .active, !paused {
            if let input, !input.isEmpty {
                guard advance(input) else { continue }
                if state != .active || paused { return }
            }
            guard state == .active, mayHaveInput else { return }
            guard read() else { return }
        }
    }

    /// Makes one step with the bytes at hand; true when more are needed.
    private func advance(_ input: Buffer) -> Bool {
        switch part {
        case .head: return advanceHead(input)
        case .body: return advanceBody(input)
        case .ended: return false
        }
    }

    private func advanceHead(_ input: Buffer) -> Bool {
        guard let consumer else { return true }
        let bytes = input.readable
        let progress: ParseProgress
        do throws(WireError) {
            progress = try parser.parse(
                Span(_unsafeElements: bytes.bindMemory(to: UInt8.self)), answering: context,
                into: &consumer.response)
        } catch {
            fail(.response(error))
            return false
        }
        guard case .complete(let headBytes) = progress else { return true }
        input.start += headBytes
        let head = UnsafeRawBufferPointer(rebasing: bytes[0..<headBytes])
        if consumer.response.isInterim {
            consumer.upstreamHead(head)
            return false
        }
        part = .body
        decoder = BodyDecoder(consumer.response.framing)
        keepAlive = consumer.response.keepAlive
        armBodyDeadline()
        consumer.upstreamHead(head)
        guard state == .active else { return false }
        if decoder.isComplete {
            end()
        } else if input.isEmpty {
            consumer.upstreamHeadWithoutBody()
        }
        return false
    }

    private func advanceBody(_ input: Buffer) -> Bool {
        let bytes = input.readable
        let step: BodyStep
        do throws(WireError) {
            step = try decoder.decode(Span(_unsafeElements: bytes.bindMemory(to: UInt8.self)))
        } catch {
            fail(.response(error))
            return false
        }
        switch step {
        case .data(let offset, let count, let consumed):
            input.start += consumed
            let content = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
            let goesOn =
                consumer?.upstreamBody(content, owner: input, isLast: decoder.isComplete) ?? false
            guard state == .active else { return false }
            if decoder.isComplete {
                end()
            } else if !goesOn {
                paused = true
            }
            return false
        case .needMore(let consumed):
            input.start += consumed
            return true
        case .end(let consumed):
            input.start += consumed
            end()
            return false
        }
    }

    /// Reads once; false when nothing more can be read now.
    private func read() -> Bool {
        let buffer = roomForReading()
        switch transport.read(into: buffer.writable, trustsShortRead: !peerFinished) {
        case .bytes(let count, let drained):
            buffer.end += count
            mayHaveInput = !drained || peerFinished
            wantsLargeBuffer = buffer.end == buffer.capacity
            if !responseStarted { responseStarted = true }
            worker.metrics.add(.upstreamBytesReceived, UInt64(count))
            if part == .body { armBodyDeadline() }
            return true
        case .wouldBlock:
            mayHaveInput = false
            return false
        case .endOfStream:
            inputEnded(cleanly: true)
            return false
        case .truncated:
            inputEnded(cleanly: false)
            return false
        case .failed(let fault):
            fail(fault)
            return false
        }
    }

    private func roomForReading() -> Buffer {
        if let input {
            if input.isEmpty {
                // With nothing unread, no consumer's queue refers to it: it was not paused.
                if wantsLargeBuffer, input.capacity < BufferPool.largeBytes {
                    return replaceInput(worker.loop.buffers.takeLarge())
                }
                input.clear()
                return input
            }
            input.compact()
            if input.end < input.capacity { return input }
            let larger = worker.loop.buffers.take(bytes: input.capacity * 2)
            larger.writable.copyMemory(from: input.readable)
            larger.end = input.count
            return replaceInput(larger)
        }
        return replaceInput(worker.loop.buffers.takeSmall())
    }

    private func replaceInput(_ buffer: Buffer) -> Buffer {
        input = buffer
        return buffer
    }

    private func inputEnded(cleanly: Bool) {
        switch part {
        case .ended: close()
        case .head:
            fail(parser.isWithinHead ? .response(.truncatedHead) : .upstreamClosed)
        case .body:
            guard cleanly else { return fail(.response(.truncatedBody)) }
            do throws(WireError) {
                try decoder.endOfInput()
                keepAlive = false
                end()
            } catch {
                fail(.response(error))
            }
        }
    }

    /// The response is complete: the connection goes back before the consumer hears of it.
    private func end() {
        guard let consumer else { return }
        part = .ended
        uses += 1
        let hadTrailers = !decoder.chunked.trailerBytes.isEmpty
        let trailers = hadTrailers ? decoder.chunked : nil
        let isClean = (input?.isEmpty ?? true) && requestEnded && output.isEmpty && keepAlive
        self.consumer = nil
        input = nil
        if isClean {
            state = .idle
            // Edges seen while active are gone: what is still unread must be looked at now.
            worker.upstreams.returned(self, mayHaveInput: mayHaveInput)
        } else {
            close()
        }
        consumer.upstreamEnded(trailers: trailers)
    }

    private func fail(_ fault: ExchangeFault) {
        let (consumer, started) = (consumer, responseStarted)
        self.consumer = nil
        close()
        consumer?.upstreamFailed(fault, responseStarted: started)
    }

    /// Called by the pool on an idle connection whose last exchange left an unread edge behind.
    func recheck() {
        guard state == .idle, mayHaveInput else { return }
        mayHaveInput = false
        checkIdleBytes()
    }

    private func checkIdleBytes() {
        let scratch = worker.loop.buffers.takeSmall()
        if case .wouldBlock = transport.read(into: scratch.writable) { return }
        worker.upstreams.discardIdle(self)
    }

    func close() {
        guard state != .closed else { return }
        let wasEstablished = state != .handshaking
        state = .closed
        input = nil
        output.discard()
        worker.loop.remove(self)
        Descriptors.close(transport.descriptor)
        if wasEstablished { worker.upstreams.left(origin) }
    }
}
