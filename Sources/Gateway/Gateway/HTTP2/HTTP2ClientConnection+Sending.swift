import EventLoop
import HTTP2
import HTTPCore
import PinfoldEngine

// What a connection sends: the frames of its own, and those of its streams in turn.
extension HTTP2ClientConnection {
    /// Everything that can be sent is sent at the end of the turn.
    func sendSoon() {
        guard !isDriving, !isSending, !willSend, isOpen else { return }
        willSend = true
        if openStreams >= FrameOutput.sharedFrom { loop.expectMore() }
        loop.afterTurn { [self] in
            willSend = false
            send()
        }
    }

    /// Writes until there is nothing more to be sent, the socket is full, or the turn's share has
    /// been written.
    func send() {
        guard isOpen, !isSending else { return }
        isSending = true
        budget.renew(loop)
        let start = output.totalBytes
        while isOpen, fill(), flush() {
            guard output.totalBytes - start < FrameOutput.bytesPerTurn else {
                loop.requeue(self)
                break
            }
        }
        isSending = false
        guard isOpen else { return }
        settle()
    }

    /// Moves to the output what it has room for; returns whether there is any output.
    private func fill() -> Bool {
        if !output.hasBacklog { queueControl() }
        repeat {
            pump()
            tellDrained()
        } while isOpen && !output.hasBacklog && http.nextToSend() != nil
        return isOpen && !output.isEmpty
    }

    /// Writes once; returns whether all was written.
    private func flush() -> Bool {
        let before = output.pendingBytes
        let result = transport.flush(&output.queue, on: loop, spending: &budget)
        if output.pendingBytes < before { idleTime.note(at: loop.now) }
        switch result {
        case .drained:
            output.wasWritten()
            return http.hasControl || http.nextToSend() != nil
        case .blocked: return false
        case .turnIsOver:
            loop.requeue(self)
            return false
        case .failed:
            output.discard()
            loop.afterTurn { [self] in close() }
            return false
        }
    }

    /// After something was sent: the connection may be idle, or at its end.
    private func settle() {
        if openStreams == 0, isBusy { becameIdle() }
        guard isOpen, output.isEmpty else { return }
        if openStreams == 0 { output.trim() }
        if hasEnded, openStreams == 0 { close() } else if http.isDone { finished() }
    }

    /// Nothing more will happen on it.
    private func finished() { http.hasFailed ? failed(http.connectionReason) : end() }

    // MARK: Frames

    /// Queues the connection's own frames.
    func queueControl() { output.appendControl(of: &http) }

    /// Queues a head, with as much room as it may need.
    func sendHead(
        status: UInt16, _ lines: Span<UInt8>, of stream: HTTP2ClientStream, endsStream: Bool
    ) {
        guard isOpen, http.sendHead(stream.ref, endsStream: endsStream) else { return }
        let bytes = output.appendBlock(
            of: stream.ref.id, room: HeaderEncoder.bound(lines.count), endsStream: endsStream,
            in: &http
        ) { encoder.encodeResponse(status: status, lines: lines, into: &$0) }
        note(bytes, of: stream)
    }

    private func sendTrailers(_ trailers: TrailerSection, of stream: HTTP2ClientStream) {
        guard http.sendHead(stream.ref, endsStream: true) else { return }
        note(
            output.appendTrailers(trailers, of: stream.ref.id, in: &http, by: &encoder),
            of: stream)
    }

    /// Frames have been queued, or a field block was larger than it could be.
    private func note(_ bytes: Int?, of stream: HTTP2ClientStream) {
        guard let bytes else { return failLater(stream) }
        stream.totalBytes += UInt64(bytes)
    }

    /// Moves `count` bytes of a stream's content to the output, in one frame.
    private func sendData(_ count: Int, of stream: HTTP2ClientStream, endsStream: Bool) {
        guard http.sentData(stream.ref, count, endsStream: endsStream) else { return }
        let bytes = output.appendData(
            count, of: stream.ref.id, endsStream: endsStream, from: &stream.content, in: &http)
        stream.totalBytes += UInt64(bytes)
        stream.progressed = loop.now
    }

    // MARK: Streams

    /// Sends what a stream has queued, as far as it is its turn. Returns whether that is all.
    func send(of stream: HTTP2ClientStream) -> Bool {
        guard isOpen, self.stream(stream.ref) === stream else { return false }
        queueHead(of: stream)
        if http.nextToSend() == nil, !isTelling {
            while !output.hasBacklog, sendFrame(of: stream) {}
        }
        endIfComplete(stream)
        sendSoon()
        if stream.isFlushed { return true }
        http.wantsToSend(stream.ref)
        return false
    }

    private func queueHead(of stream: HTTP2ClientStream) {
        guard let head = stream.head.take() else { return }
        let ends = stream.isEnding && stream.content.isEmpty && stream.trailers == nil
        sendHead(
            status: stream.status, head.readable.octets, of: stream,
            endsStream: ends && !stream.isMalformed)
        if ends { stream.endIsSent = true }
    }

    /// Sends a frame of a stream's content; returns false if that is not possible now.
    private func sendFrame(of stream: HTTP2ClientStream) -> Bool {
        let all = stream.content.pendingBytes
        let count = min(all, http.sendable(stream.ref), FrameOutput.frameBytes)
        guard count > 0 else { return false }
        let ends = count == all && stream.isEnding && stream.trailers == nil
        sendData(count, of: stream, endsStream: ends && !stream.isMalformed)
        if ends { stream.endIsSent = true }
        return true
    }

    /// Ends a stream all of whose content has been sent.
    private func endIfComplete(_ stream: HTTP2ClientStream) {
        guard stream.isEnding, !stream.endIsSent, stream.head == nil, stream.content.isEmpty else {
            return
        }
        stream.endIsSent = true
        if let trailers = stream.trailers { return sendTrailers(trailers, of: stream) }
        if !stream.isMalformed { sendData(0, of: stream, endsStream: true) }
    }

    /// Sends frames of streams in turn as far as there is room.
    private func pump() {
        while !output.hasBacklog, let ref = http.nextToSend() {
            guard let stream = stream(ref), sendFrame(of: stream) else {
                http.wantsNothingSent(ref)
                continue
            }
            guard stream.content.isEmpty else { continue }
            http.wantsNothingSent(ref)
            endIfComplete(stream)
            drained.append(stream)
        }
    }

    /// Tells the exchanges of streams all of whose output has been taken.
    private func tellDrained() {
        guard !drained.isEmpty else { return }
        var told: [HTTP2ClientStream] = []
        swap(&told, &drained)
        // Whoever is told first must not take all the room there is.
        isTelling = told.count > 1
        defer { isTelling = false }
        for stream in told where stream.isFlushed {
            stream.progressed = loop.now
            if let tunnel = stream.tunnel {
                tunnel.drained()
            } else {
                stream.exchange?.clientDrained()
            }
        }
    }

    // MARK: The ends of streams

    func takeStream(_ ref: StreamRef) -> HTTP2ClientStream {
        let stream = spares.popLast() ?? HTTP2ClientStream(self, ref)
        stream.reset(for: ref)
        stream.progressed = loop.now
        let slot = Int(ref.slot)
        while streams.count <= slot { streams.append(nil) }
        streams[slot] = stream
        openStreams += 1
        becameBusy()
        return stream
    }

    /// The exchange has ended, with its response or without one.
    func exchangeEnded(on stream: HTTP2ClientStream) {
        if stream.isMalformed {
            http.reset(stream.ref, .protocolError)
        } else if stream.endIsSent, case .underWay = stream.request {
            // The rest of the request is not needed (RFC 9113 §8.1).
            http.reset(stream.ref, .noError)
        }
        released(stream)
    }

    /// Ends a stream whose response cannot be completed.
    func fail(_ stream: HTTP2ClientStream, _ code: ErrorCode) {
        http.reset(stream.ref, code)
        abandon(stream)
    }

    /// The same at the end of the turn, because the exchange may be about to send more.
    func failLater(_ stream: HTTP2ClientStream) {
        let ref = stream.ref
        loop.afterTurn { [self] in
            if let stream = self.stream(ref) { fail(stream, .internalError) }
        }
    }

    /// The client is gone from a stream.
    func abandon(_ stream: HTTP2ClientStream) {
        stream.head = nil
        stream.content.discard()
        stream.cutTunnel()
        if let exchange = stream.exchange.take() {
            // One that has not begun is told nothing.
            stream.held.take() != nil ? environment.recycle(exchange) : exchange.clientGone()
        }
        if !stream.isDetached { released(stream) }
        sendSoon()
    }

    /// Nothing that was done for a stream goes on.
    func released(_ stream: HTTP2ClientStream) {
        guard self.stream(stream.ref) === stream else { return }
        http.released(stream.ref)
        streams[Int(stream.ref.slot)] = nil
        openStreams -= 1
        if stream.isCounted { worker.clientLeft(account) }
        stream.clear()
        if spares.count < Self.keptStreams { spares.append(stream) }
        sendSoon()
    }

    /// An exchange has accepted content.
    func consumed(_ count: Int, of stream: HTTP2ClientStream) {
        http.consumed(stream.ref, count)
    }

    /// A stream has become a tunnel, which counts as one of its client's connections.
    func handOver(
        _ tunnel: HTTP2StreamTunnel, _ transport: Transport
    ) -> DownstreamHandover {
        DownstreamHandover(
            transport: transport, leftover: nil, pending: OutputQueue(),
            closed: { [worker, account] isBroken in
                tunnel.ended(isBroken: isBroken) { worker.clientLeft(account) }
            })
    }
}
