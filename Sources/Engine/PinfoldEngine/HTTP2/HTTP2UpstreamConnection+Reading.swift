import EventLoop
import HTTP2
import HTTPCore

// What a server sends: frames, which answer the requests of its streams.
extension HTTP2UpstreamConnection {
    func drive() {
        guard !isDriving, isOpen else { return }
        isDriving = true
        controlIsFull = false
        budget.renew(environment.loop)
        while isOpen, !budget.isSpent {
            guard takeFrame() || !controlIsFull && readInput() else { break }
        }
        isDriving = false
        guard isOpen else { return }
        flushHeads()
        input.rest()
        scratch = nil
        send()
        if isOpen, budget.isSpent { environment.loop.requeue(self) }
    }

    /// Handles what is at the front of the input, or follows from what was; returns false if more
    /// input is needed.
    private func takeFrame() -> Bool {
        let input = self.input.buffer
        let bytes = input?.readable ?? UnsafeRawBufferPointer(start: nil, count: 0)
        let received = http.receive(bytes.octets, now: environment.loop.now)
        input?.start += received.consumed
        switch received.event {
        case .needMore: return received.consumed > 0
        case .controlIsFull:
            // A server that does not read is not read from.
            send()
            controlIsFull = isOpen && http.hasControl
            return isOpen && !controlIsFull
        case .nothing: break
        case .headers(let ref, let block, let endsStream):
            takeHead(of: ref, http.bytes(of: block, in: bytes), endsStream: endsStream)
        case .trailers(let ref, let block): takeTrailers(of: ref, http.bytes(of: block, in: bytes))
        case .discarded(let block): discard(http.bytes(of: block, in: bytes))
        case .data(let ref, let range, let endsStream):
            budget.spend(.dataFrame)
            guard let input, let stream = stream(ref) else { break }
            stream.arrived(
                UnsafeRawBufferPointer(rebasing: bytes[range]), in: input, endsStream: endsStream)
        case .reset(let ref, let code):
            budget.spend(.part)
            if code.asksForHTTP1 { origin.speaksHTTP1Again(in: environment) }
            stream(ref)?.resetByServer(code)
        case .streamFailed(let ref, let reason):
            budget.spend(.part)
            stream(ref)?.failed(ExchangeError(reason))
        case .settings:
            encoder.peerTableLimit(Int(http.peer.headerTableSize))
            origin.http2.takesExtendedConnect = http.peer.enablesConnectProtocol
            isSettling ? settled() : pool.roomChanged(self)
        case .windowGrew, .pingAnswered, .priority: budget.spend(.part)
        case .goaway(let lastStream, let code): goaway(after: lastStream, code)
        case .warned: pool.withdraw(self)
        case .failed(let reason): failed(reason)
        }
        return isOpen
    }

    func stream(_ ref: StreamRef) -> HTTP2UpstreamStream? {
        let slot = Int(ref.slot)
        guard slot >= 0, slot < streams.count, let stream = streams[slot], stream.ref == ref else {
            return nil
        }
        return stream
    }

    // MARK: Bytes

    /// Reads once. Returns `false` if nothing was read.
    private func readInput() -> Bool {
        switch input.read(
            from: transport, by: environment.loop.buffers, isLarge: true, spending: &budget)
        {
        case .bytes(let count):
            environment.metrics.add(.upstreamBytesReceived, UInt64(count))
            return true
        case .nothing: break
        case .turnIsOver:
            budget.exhaust()
            return true
        case .ended(.closed), .ended(.truncated): ended(by: .server(.upstreamClosed))
        case .ended(.failed(let error)): ended(by: ExchangeError(upstream: error))
        }
        return false
    }

    /// The server has ended the connection, perhaps because nobody used it.
    private func ended(by fault: ExchangeError) {
        isIdle ? pool.discardIdle(self) : fail(fault)
    }

    // MARK: Responses

    /// Where heads are assembled, which are mostly small, but may have any size within the limit.
    private func scratchMemory() -> UnsafeMutableRawBufferPointer {
        if let scratch { return scratch.memory }
        let taken = environment.loop.buffers.take(
            atLeast: parser.limits.headBytes + ResponseAssembler.overhead
                + HTTP2UpstreamStream.Switching.addedBytes)
        scratch = taken
        return taken.memory
    }

    private func takeHead(
        of ref: StreamRef, _ block: UnsafeRawBufferPointer, endsStream: Bool
    ) {
        budget.spend(.part)
        let memory = scratchMemory()
        var assembler = ResponseAssembler(memory, limits: parser.limits)
        do throws(HeaderCompressionError) {
            try decoder.decode(block.octets, into: &assembler)
        } catch {
            return cannotDecode()
        }
        guard let stream = stream(ref), let consumer = stream.consumer else { return }
        let head: UnsafeRawBufferPointer
        var switches = false
        do throws(MessageError) {
            let assembled = try assembler.finish(endsStream: endsStream)
            var count = assembled.count
            if stream.switching != nil, assembled.status / 100 == 2 {
                switches = true
                count = stream.makeSwitchHead(count, in: memory)
            }
            head = UnsafeRawBufferPointer(rebasing: memory[..<count])
        } catch {
            return refuse(stream, ExchangeError(response: error))
        }
        let framing: BodyFraming?
        do throws(WireError) {
            framing = try parse(head, stream.context, endsStream, into: &consumer.response)
        } catch {
            parser.reset()
            return refuse(stream, .response(error))
        }
        origin.portIsProven = true
        guard let framing else {
            http.interimHead(ref)
            return stream.interimHead(head)
        }
        if switches { return stream.switched(head, endsStream: endsStream) }
        if case .length(let count) = framing { stream.contentLeft = count }
        guard expect(framing, of: stream, endsStream: endsStream) else {
            return stream.failed(.response(.truncatedBody))
        }
        stream.finalHead(head, endsStream: endsStream)
    }

    /// Parses in place, because accessing the consumer's head through the protocol would copy it
    /// each time. Returns how the content ends; `nil` for an interim response.
    private func parse(
        _ bytes: UnsafeRawBufferPointer, _ context: ResponseContext, _ endsStream: Bool,
        into head: inout ResponseHead
    ) throws(WireError) -> BodyFraming? {
        guard case .complete = try parser.parse(bytes.octets, answering: context, into: &head)
        else { throw .truncatedHead }
        guard !head.isInterim else { return nil }
        try head.decideContent(follows: !endsStream)
        return head.framing
    }

    /// Takes note of how much content must follow. Returns false if it cannot.
    private func expect(
        _ framing: BodyFraming, of stream: HTTP2UpstreamStream, endsStream: Bool
    ) -> Bool {
        guard !endsStream, let ref = stream.ref else { return true }
        let now = environment.loop.now
        switch framing {
        case .none: return http.expectContent(ref, 0, now: now)
        case .length(let count): return http.expectContent(ref, count, now: now)
        case .chunked, .untilClose: return true
        }
    }

    private func takeTrailers(of ref: StreamRef, _ block: UnsafeRawBufferPointer) {
        budget.spend(.part)
        let memory = scratchMemory()
        var assembler = TrailerAssembler(memory)
        do throws(HeaderCompressionError) {
            try decoder.decode(block.octets, into: &assembler)
        } catch {
            return cannotDecode()
        }
        guard let stream = stream(ref) else { return }
        do throws(MessageError) {
            let count = try assembler.finish()
            let lines = UnsafeRawBufferPointer(rebasing: memory[..<count])
            let trailers = try? TrailerSection(parsing: lines.octets, limits: ChunkedLimits())
            stream.responseEnded(trailers: trailers)
        } catch {
            refuse(stream, ExchangeError(response: error))
        }
    }

    /// A response is malformed: an error of its stream (RFC 9113 §8.1.1).
    private func refuse(_ stream: HTTP2UpstreamStream, _ fault: ExchangeError) {
        http.count(.malformedMessage, now: environment.loop.now)
        if let ref = stream.ref { http.reset(ref, .protocolError) }
        stream.failed(fault)
    }

    private func discard(_ block: UnsafeRawBufferPointer) {
        do throws(HeaderCompressionError) {
            try decoder.discard(block.octets)
        } catch {
            cannotDecode()
        }
    }

    private func cannotDecode() {
        http.fail(.headerCompression)
        failed(.headerCompression)
    }

    /// Lets the consumers send on the heads with which no content arrived.
    private func flushHeads() {
        while let stream = unflushed.popLast() {
            stream.flushHead()
            guard isOpen else { return }
        }
    }

    /// The server processes no streams beyond `last`: their requests may be sent elsewhere.
    private func goaway(after last: UInt32, _ code: ErrorCode) {
        pool.withdraw(self)
        if code.asksForHTTP1 { origin.speaksHTTP1Again(in: environment) }
        for stream in streams.compactMap({ $0 }) {
            guard let ref = stream.ref, ref.id > last else { continue }
            stream.failed(.server(.upstreamNotProcessed))
            guard isOpen else { return }
        }
        if openStreams == 0 { close() }
    }
}

extension ExchangeError {
    /// Why a response over HTTP/2 is refused.
    init(response error: MessageError) {
        if let wireError = error.wireError {
            self = .response(wireError)
        } else {
            self = .upstreamMalformed(error.explanation)
        }
    }

    /// Why a stream has been reset because of what its server sent.
    init(_ reason: StreamReason) {
        switch reason {
        case .contentTooShort: self = .response(.truncatedBody)
        default: self = .upstreamMalformed(reason.explanation)
        }
    }
}
