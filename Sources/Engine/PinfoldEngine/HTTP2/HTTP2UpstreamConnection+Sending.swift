import EventLoop
import HTTP2
import HTTPCore

// What a connection sends: the frames of its own, and those of its streams in turn.
extension HTTP2UpstreamConnection {
    /// Everything that can be sent is sent at the end of the turn.
    func sendSoon() {
        guard !isDriving, !isSending, !willSend, isOpen else { return }
        willSend = true
        if openStreams >= FrameOutput.sharedFrom { environment.loop.expectMore() }
        environment.loop.afterTurn { [self] in
            willSend = false
            send()
        }
    }

    /// Writes until there is nothing more to be sent, the socket is full, or the turn's share has
    /// been written.
    func send() {
        guard isOpen, !isSending else { return }
        isSending = true
        budget.renew(environment.loop)
        let start = output.totalBytes
        while isOpen, fill(), flush() {
            guard output.totalBytes - start < FrameOutput.bytesPerTurn else {
                environment.loop.requeue(self)
                break
            }
        }
        isSending = false
        guard isOpen, output.isEmpty else { return }
        if http.isDone, openStreams == 0 { close() }
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

    /// Writes once; returns whether all was written and there is more.
    private func flush() -> Bool {
        let before = output.pendingBytes
        let result = transport.flush(
            &output.queue, on: environment.loop, spending: &budget)
        let now = environment.loop.now
        if output.pendingBytes < before { idleTime.note(at: now) }
        switch result {
        case .drained:
            noteWritten()
            output.wasWritten()
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

    /// Queues the connection's own frames.
    func queueControl() { output.appendControl(of: &http) }

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
        // There is room for all that was announced.
        if output.appendBlock(
            of: ref.id, room: room, endsStream: endsStream, in: &http,
            { encode(&encoder, &$0) }) == nil
        {
            http.reset(ref, .internalError)
        }
        sendSoon()
        return true
    }

    private func sendTrailers(_ trailers: TrailerSection, of ref: StreamRef) {
        guard http.sendHead(ref, endsStream: true) else { return }
        _ = output.appendTrailers(trailers, of: ref.id, in: &http, by: &encoder)
    }

    /// Moves `count` bytes of a stream's content to the output, in one frame.
    private func sendData(_ count: Int, of stream: HTTP2UpstreamStream, endsStream: Bool) {
        guard let ref = stream.ref, http.sentData(ref, count, endsStream: endsStream) else {
            return
        }
        _ = output.appendData(
            count, of: ref.id, endsStream: endsStream, from: &stream.content, in: &http)
        stream.contentMoved()
    }

    // MARK: Streams

    /// Sends what a stream has queued, as far as it is its turn. Returns whether that is all.
    func send(of stream: HTTP2UpstreamStream) -> Bool {
        guard isOpen, let ref = stream.ref, self.stream(ref) === stream else { return true }
        if http.nextToSend() == nil, !isTelling {
            while !output.hasBacklog, sendFrame(of: stream) {}
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
        let count = min(all, http.sendable(ref), FrameOutput.frameBytes)
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

    /// Tells the consumers of streams all of whose output has been taken.
    private func tellDrained() {
        guard !drained.isEmpty else { return }
        var told: [HTTP2UpstreamStream] = []
        swap(&told, &drained)
        // Whoever is told first must not take all the room there is.
        isTelling = told.count > 1
        defer { isTelling = false }
        for stream in told where stream.isFlushed { stream.wasDrained() }
    }
}
