import HTTPCore

// What this side sends, and the lives of streams (RFC 9113 §5).
extension HTTP2Connection {
    /// A client: how many more streams may be opened now. Until the server's SETTINGS have arrived
    /// there is one at most, and no more are opened while many have ended and not been released.
    public var roomForStreams: Int {
        guard role == .client, !isEnding, nextStream <= UInt32(Int32.max) else { return 0 }
        guard streams.count < max(16, 2 * limits.streams) else { return 0 }
        guard hasPeerSettings else { return max(0, 1 - places) }
        return max(0, min(limits.streams, Int(peer.maxConcurrentStreams)) - places)
    }

    /// A client: opens a stream; `nil` if there is no room. Its HEADERS must be sent before those
    /// of a stream that is opened later; if it is not needed after all it is released.
    public mutating func open(now: Int64) -> StreamRef? {
        guard roomForStreams > 0 else { return nil }
        let id = nextStream
        nextStream += 2
        places += 1
        let slot = streams.insert(
            StreamRecord(
                id: id, state: .idle, priority: .unstated, facts: .hasPlace,
                sendWindow: peer.initialWindowSize,
                receiving: ReceiveWindow(limits.streamWindow),
                openedAt: UInt32(truncatingIfNeeded: now)))
        return StreamRef(id: id, slot: slot)
    }

    /// HEADERS are sent: a head, an interim one, or trailers, which end the stream.
    ///
    /// - Returns: whether they may be; if not, the stream is closed, and nothing may be sent.
    public mutating func sendHead(_ ref: StreamRef, endsStream: Bool) -> Bool {
        guard phase != .failed, let record = streams.record(ref) else { return false }
        let before = record.pointee.state
        let reaction =
            endsStream ? before.after(.sentHeadersAndEnd) : before.after(.sentHeaders)
        guard case .proceed(let state) = reaction else { return false }
        record.pointee.facts.insert(.hasSent)
        hasSentSincePing = true
        if state != before { move(ref.slot, to: state) }
        return true
    }

    /// How much content may be sent on a stream in one frame, in bytes: what both windows and the
    /// peer's greatest frame allow. DATA without content needs no window.
    public func sendable(_ ref: StreamRef) -> Int {
        guard phase != .failed, let record = streams.record(ref), record.pointee.state.isSending
        else { return 0 }
        let window = min(sendWindow, record.pointee.sendWindow)
        return max(0, min(Int(window), peer.maxFrameSize))
    }

    /// DATA with `count` bytes of content is sent, as many as ``sendable(_:)`` allows. If the
    /// stream has more to send, it remains among those that want to.
    ///
    /// - Returns: whether it may be; if not, the stream is closed, and nothing may be sent.
    public mutating func sentData(_ ref: StreamRef, _ count: Int, endsStream: Bool) -> Bool {
        guard phase != .failed, let record = streams.record(ref) else { return false }
        let before = record.pointee.state
        let reaction = endsStream ? before.after(.sentDataAndEnd) : before.after(.sentData)
        guard case .proceed(let state) = reaction else { return false }
        if count > 0 {
            let window = min(sendWindow, record.pointee.sendWindow)
            precondition(count <= min(Int(window), peer.maxFrameSize))
            let bytes = Int32(truncatingIfNeeded: count)
            sendWindow &-= bytes
            record.pointee.sendWindow &-= bytes
            budget.sent(bytes)
            hasSentSincePing = true
            if record.pointee.facts.contains(.isReady) { sentInTurn(bytes, ref.slot) }
        }
        if endsStream { move(ref.slot, to: state) }
        return true
    }

    private mutating func sentInTurn(_ bytes: Int32, _ slot: Int32) {
        if streams[slot].sendWindow <= 0 {
            ready.remove(slot, from: &streams)
        } else {
            ready.sent(bytes, slot, in: &streams)
        }
    }

    // MARK: Whose turn it is

    /// A stream has content to send. It need not be said again until
    /// ``wantsNothingSent(_:)`` or the stream's end.
    public mutating func wantsToSend(_ ref: StreamRef) {
        guard streams.contains(ref), streams[ref.slot].state.isSending,
            !streams[ref.slot].facts.contains(.wantsToSend)
        else { return }
        streams[ref.slot].facts.insert(.wantsToSend)
        if streams[ref.slot].sendWindow > 0 { ready.insert(ref.slot, in: &streams) }
    }

    /// A stream has nothing to send for now.
    public mutating func wantsNothingSent(_ ref: StreamRef) {
        guard streams.contains(ref) else { return }
        unwant(ref.slot)
    }

    private mutating func unwant(_ slot: Int32) {
        streams[slot].facts.remove(.wantsToSend)
        if streams[slot].facts.contains(.isReady) { ready.remove(slot, from: &streams) }
    }

    /// The stream that should send now, by urgency and turn (RFC 9218 §10); `nil` if none can.
    public func nextToSend() -> StreamRef? {
        let slot = ready.first
        guard slot >= 0, sendWindow > 0, !hasFailed else { return nil }
        return StreamRef(id: streams[slot].id, slot: slot)
    }

    /// A stream's priority, as its Priority field says. One that came in a frame counts for more.
    public mutating func setPriority(_ ref: StreamRef, _ priority: StreamPriority) {
        guard streams.contains(ref),
            !streams[ref.slot].facts.contains(.hasUpdatedPriority)
        else { return }
        change(ref.slot, to: priority)
    }

    /// A stream's priority; a stream of which the client has said nothing is served in turn with
    /// others.
    public func priority(of ref: StreamRef) -> StreamPriority {
        streams.contains(ref) ? streams[ref.slot].priority : .unstated
    }

    mutating func change(_ slot: Int32, to priority: StreamPriority) {
        guard streams[slot].priority != priority else { return }
        let isReady = streams[slot].facts.contains(.isReady)
        if isReady { ready.remove(slot, from: &streams) }
        streams[slot].priority = priority
        if isReady { ready.insert(slot, in: &streams) }
    }

    // MARK: The end of a stream

    /// Resets a stream. It remains the caller's until ``released(_:)``.
    public mutating func reset(_ ref: StreamRef, _ code: ErrorCode) {
        guard streams.contains(ref), !streams[ref.slot].state.isClosed else { return }
        let wasSent = streams[ref.slot].state != .idle
        close(ref.slot, .resetByUs)
        if wasSent { writeReset(ref.id, code) }
    }

    /// Counts something that the caller has found: a malformed head or trailers.
    public mutating func count(_ abuse: Abuse, now: Int64) { spend(abuse, now: now) }

    /// Everything that belongs to a stream is gone, on this connection and behind it. One that is
    /// not closed is reset.
    public mutating func released(_ ref: StreamRef) {
        guard let record = streams.record(ref) else { return }
        if !record.pointee.state.isClosed { reset(ref, .cancel) }
        if record.pointee.receiving.waiting > 0 { giveBackWindow(ref.slot) }
        givePlaceBack(ref.slot)
        streams.remove(ref.slot)
    }

    /// A stream is in another state, in which it may have ended.
    @inline(__always)
    mutating func move(_ slot: Int32, to state: StreamState) {
        streams[slot].state = state
        if !state.isSending, streams[slot].facts.contains(.wantsToSend) { unwant(slot) }
        guard state == .ended else { return }
        budget.streamEnded()
        givePlaceBack(slot)
    }

    /// A stream is reset by either side.
    mutating func close(_ slot: Int32, _ state: StreamState) {
        if state == .resetByUs, streams[slot].state != .idle { resets.insert(streams[slot].id) }
        streams[slot].state = state
        unwant(slot)
        giveBackWindow(slot)
        // A server's place among the concurrent ones is kept until it is released.
        if role == .client { givePlaceBack(slot) }
    }

    @inline(__always)
    private mutating func givePlaceBack(_ slot: Int32) {
        guard streams[slot].facts.contains(.hasPlace) else { return }
        streams[slot].facts.remove(.hasPlace)
        places &-= 1
    }
}
