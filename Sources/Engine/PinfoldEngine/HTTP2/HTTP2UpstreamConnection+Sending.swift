import EventLoop
import HTTP2
import HTTPCore

// What a connection sends: the frames of its own, and those of its streams in turn.
extension HTTP2UpstreamConnection {
    /// Streams' output is moved to the connection's up to so many bytes, and one frame.
    private static let backlogBytes = 128 << 10
    /// The largest content of a DATA frame.
    private static let frameBytes = 16 << 10

    /// Whether as much is waiting to be written.
    private var hasBacklog: Bool { output.pendingBytes >= Self.backlogBytes }

    /// Everything that can be sent is sent at the end of the turn.
    func sendSoon() {
        guard !isDriving, !isSending, !willSend, isOpen else { return }
        willSend = true
        environment.loop.afterTurn { [self] in
            willSend = false
            send()
        }
    }

    /// Writes until there is nothing more to be sent, or the socket is full.
    func send() {
        guard isOpen, !isSending else { return }
        isSending = true
        budget.renew(environment.loop)
        while isOpen, fill(), flush() {}
        isSending = false
        guard isOpen, output.isEmpty else { return }
        if http.isDone, openStreams == 0 { close() }
    }

    /// Moves to the output what it has room for; returns whether there is any output.
    private func fill() -> Bool {
        if !hasBacklog { queueControl() }
        repeat {
            pump()
            tellDrained()
        } while isOpen && !hasBacklog && http.nextToSend() != nil
        return isOpen && !output.isEmpty
    }

    /// Writes once; returns whether all was written and there is more.
    private func flush() -> Bool {
        let before = output.pendingBytes
        let result = transport.flush(&output, on: environment.loop, spending: &budget)
        let now = environment.loop.now
        if output.pendingBytes < before { idleTime.note(at: now) }
        switch result {
        case .drained:
            frames?.clear()
            return http.hasControl || http.nextToSend() != nil
        case .blocked:
            look(at: now + IdleTime.firstLook(of: origin.timeouts.bodyMilliseconds))
            return false
        case .turnIsOver:
            environment.loop.requeue(self)
            return false
        case .failed:
            failedWriting()
            return false
        }
    }

    // MARK: Frames

    /// A buffer with room for `count` more bytes of frames.
    private func frameBuffer(_ count: Int) -> Buffer {
        if let frames, frames.writable.count >= count { return frames }
        let taken = environment.loop.buffers.take(atLeast: count)
        frames = taken
        return taken
    }

    private func queue(_ count: Int, in buffer: Buffer) {
        noteQueued(count)
        output.appendWritten(count, to: buffer)
    }

    private func noteQueued(_ bytes: Int) {
        queuedBytes += UInt64(bytes)
        environment.metrics.add(.upstreamBytesSent, UInt64(bytes))
    }

    /// Queues the connection's own frames.
    func queueControl() {
        guard http.hasControl else { return }
        let bytes = http.control
        let buffer = frameBuffer(bytes.count)
        buffer.writable.copyMemory(from: bytes)
        queue(bytes.count, in: buffer)
        http.tookControl(bytes.count)
    }

    /// Gives a stream its number, and queues the head of its request. Returns false if the server
    /// accepts no more streams.
    func sendHead(
        of stream: HTTP2UpstreamStream, room: Int, endsStream: Bool,
        _ encode: (inout HeaderEncoder, inout HeadWriter) -> Void
    ) -> Bool {
        guard isOpen, let ref = http.open(now: environment.loop.now) else { return false }
        stream.ref = ref
        reservedStreams -= 1
        let slot = Int(ref.slot)
        while streams.count <= slot { streams.append(nil) }
        streams[slot] = stream
        guard http.sendHead(ref, endsStream: endsStream) else { return false }
        queueBlock(of: ref, room: room, endsStream: endsStream, encode)
        sendSoon()
        return true
    }

    private func sendTrailers(_ trailers: TrailerSection, of ref: StreamRef) {
        guard http.sendHead(ref, endsStream: true) else { return }
        let lines = environment.loop.buffers.take(atLeast: trailers.bytes.count + 2)
        var writer = HeadWriter(lines.writable)
        writer.appendForwardedFields(trailers)
        lines.end = writer.count
        queueBlock(of: ref, room: HeaderEncoder.bound(lines.count), endsStream: true) {
            $0.encodeTrailers(lines: lines.readable.octets, into: &$1)
        }
    }

    private func queueBlock(
        of ref: StreamRef, room: Int, endsStream: Bool,
        _ encode: (inout HeaderEncoder, inout HeadWriter) -> Void
    ) {
        // Settings, and their acknowledgments, come first: they decide how this is read.
        queueControl()
        let buffer = frameBuffer(FrameHeader.bytes + room)
        let memory = buffer.writable
        var writer = HeadWriter(
            UnsafeMutableRawBufferPointer(rebasing: memory[FrameHeader.bytes...]))
        encode(&encoder, &writer)
        // There is room for all that was announced.
        guard !writer.overflowed, let start = memory.baseAddress else {
            return http.reset(ref, .internalError)
        }
        guard writer.count <= http.peer.maxFrameSize else {
            let end = FrameHeader.bytes + writer.count
            return queueParts(
                UnsafeRawBufferPointer(rebasing: memory[FrameHeader.bytes..<end]), of: ref,
                endsStream: endsStream)
        }
        FrameHeader(
            length: writer.count, type: .headers,
            flags: endsStream ? [.endHeaders, .endStream] : .endHeaders, streamID: ref.id
        ).store(to: start)
        queue(FrameHeader.bytes + writer.count, in: buffer)
    }

    /// Queues a field block that needs several frames.
    private func queueParts(_ block: UnsafeRawBufferPointer, of ref: StreamRef, endsStream: Bool) {
        let size = http.peer.maxFrameSize
        let frames = block.count / size + 1
        let whole = environment.loop.buffers.take(bytes: block.count + frames * FrameHeader.bytes)
        var writer = HeadWriter(whole.writable)
        writer.appendHeaders(
            block.octets, streamID: ref.id, endsStream: endsStream, maxFrameSize: size)
        queue(writer.count, in: whole)
    }

    /// Moves `count` bytes of a stream's content to the output, in one frame.
    private func sendData(_ count: Int, of stream: HTTP2UpstreamStream, endsStream: Bool) {
        guard let ref = stream.ref, http.sentData(ref, count, endsStream: endsStream) else {
            return
        }
        queueControl()
        let buffer = frameBuffer(FrameHeader.bytes)
        if let start = buffer.writable.baseAddress {
            FrameHeader(
                length: count, type: .data, flags: endsStream ? .endStream : [], streamID: ref.id
            ).store(to: start)
        }
        queue(FrameHeader.bytes, in: buffer)
        if count > 0 {
            noteQueued(count)
            stream.content.move(count, to: &output)
        }
        stream.contentMoved()
    }

    // MARK: Streams

    /// Sends what a stream has queued, as far as it is its turn. Returns whether that is all.
    func send(of stream: HTTP2UpstreamStream) -> Bool {
        guard isOpen, let ref = stream.ref, self.stream(ref) === stream else { return true }
        if http.nextToSend() == nil {
            while !hasBacklog, sendFrame(of: stream) {}
        }
        endIfComplete(stream)
        sendSoon()
        if stream.isFlushed { return true }
        http.wantsToSend(ref)
        return false
    }

    /// Sends a frame of a stream's content; returns false if that is not possible now.
    private func sendFrame(of stream: HTTP2UpstreamStream) -> Bool {
        guard let ref = stream.ref else { return false }
        let all = stream.content.pendingBytes
        let count = min(all, http.sendable(ref), Self.frameBytes)
        guard count > 0 else { return false }
        let ends = count == all && stream.isEnding && stream.trailers == nil
        sendData(count, of: stream, endsStream: ends)
        if ends { stream.endIsSent = true }
        return true
    }

    /// Ends a stream all of whose content has been sent.
    private func endIfComplete(_ stream: HTTP2UpstreamStream) {
        guard stream.isEnding, !stream.endIsSent, stream.content.isEmpty, let ref = stream.ref
        else { return }
        if let trailers = stream.trailers {
            sendTrailers(trailers, of: ref)
        } else {
            sendData(0, of: stream, endsStream: true)
        }
        stream.endIsSent = true
        stream.contentMoved()
    }

    /// Sends frames of streams in turn as far as there is room.
    private func pump() {
        while !hasBacklog, let ref = http.nextToSend() {
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

    /// Tells the consumers of streams all of whose output has been taken.
    private func tellDrained() {
        guard !drained.isEmpty else { return }
        var told: [HTTP2UpstreamStream] = []
        swap(&told, &drained)
        for stream in told where stream.isFlushed { stream.wasDrained() }
    }
}
