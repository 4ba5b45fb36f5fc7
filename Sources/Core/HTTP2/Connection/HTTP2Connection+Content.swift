import HTTPCore

// DATA (RFC 9113 §6.1), and the windows for it (§5.2, §6.9).
extension HTTP2Connection {
    /// DATA of fewer bytes than this, other than at the end, is not worth its frame.
    private static let tinyBytes = 16

    mutating func receiveData(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID != 0 else { return failed(.streamIDMissing, bytes) }
        var start = FrameHeader.bytes
        var content = header.length
        var pad = 0
        if header.flags.contains(.padded) {
            guard content > 0 else { return failed(.badFrameLength, bytes) }
            guard bytes.byteCount > start else { return Received(0, .needMore) }
            pad = Int(bytes.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self))
            guard pad < content else { return failed(.paddingTooLong, bytes) }
            start &+= 1
            content &-= 1 &+ pad
            spendPadding(pad, now: now)
        }
        let length = Int32(truncatingIfNeeded: header.length)
        guard length <= receiving.available else {
            return failed(.windowExceeded, bytes)
        }
        let endsStream = header.flags.contains(.endStream)
        let slot = streams.find(header.streamID)
        let state = slot < 0 ? state(ofUnknown: header.streamID) : streams[slot].state
        switch endsStream ? state.after(.receivedDataAndEnd) : state.after(.receivedData) {
        case .proceed:
            if let reason = accept(
                slot, content: content, length: length, endsStream: endsStream, now: now)
            {
                let event = fault(slot, reason, now: now)
                passOver(length)
                return skipped(header.length, bytes, event)
            }
        case .ignore:
            // A server sends on until it learns that a client has reset the stream.
            spend(.lateFrame, role == .client ? 1 : Abuse.lateFrame.cost, now: now)
            if role == .client { budget.moved(length) }
            passOver(length)
            return skip(header.length, bytes)
        case .resetStream(let code):
            passOver(length)
            guard slot >= 0, !state.isClosed else {
                refuseLate(header.streamID, code, now: now)
                return skip(header.length, bytes)
            }
            return skipped(header.length, bytes, fault(slot, .frameAfterEnd, now: now))
        case .endConnection: return failed(.frameOnIdleStream, bytes)
        case .illegal: return failed(.internalError, bytes)
        }
        guard phase != .failed else { return Received(bytes.byteCount, .nothing) }
        contentStream = StreamRef(id: header.streamID, slot: slot)
        contentLeft = content
        paddingLeft = pad
        contentEnds = endsStream
        phase = .content
        if growth.arrived(header.length, now: now) { writePing(.measure) }
        return receiveContent(bytes, after: start)
    }

    /// Passes over a frame's payload, with an event.
    private mutating func skipped(
        _ length: Int, _ bytes: RawSpan, _ event: Event
    ) -> Received {
        guard phase != .failed else { return Received(bytes.byteCount, event) }
        return Received(skip(length, bytes).consumed, event)
    }

    /// What the peer may send beyond a window while it does not know yet that the window is smaller
    /// than the default.
    @inline(__always)
    private var slack: Int32 {
        settingsAcknowledged ? 0 : max(0, PeerSettings.initialWindow &- limits.streamWindow)
    }

    /// Content of a stream that may receive it. Returns why it may not be so much.
    @inline(__always)
    private mutating func accept(
        _ slot: Int32, content: Int, length: Int32, endsStream: Bool, now: Int64
    ) -> StreamReason? {
        guard length <= streams[slot].receiving.available &+ slack else { return .windowExceeded }
        guard streams[slot].facts.contains(.hasHead) else { return .contentBeforeHead }
        let left = streams[slot].contentLeft
        if left >= 0 {
            guard content <= left else { return .contentTooLong }
            guard !endsStream || content == left else { return .contentTooShort }
            streams[slot].contentLeft = left &- Int64(content)
        }
        receiving.arrived(length)
        streams[slot].receiving.arrived(length)
        let overhead = length &- Int32(truncatingIfNeeded: content)
        if overhead > 0 { take(overhead, slot) }
        if content < HTTP2Connection.tinyBytes, !endsStream {
            if content == 0 {
                spend(.emptyData, now: now)
            } else if !streams[slot].facts.contains(.isTunnel) {
                spend(.tinyData, now: now)
            }
        }
        budget.moved(Int32(truncatingIfNeeded: content))
        return nil
    }

    /// Content for which there is no stream counts towards the connection's window all the same.
    private mutating func passOver(_ length: Int32) {
        receiving.arrived(length)
        takeForConnection(length)
    }

    /// What has arrived of a DATA frame's payload, after `offset` bytes that have been taken.
    @inline(__always)
    mutating func receiveContent(_ bytes: RawSpan, after offset: Int) -> Received {
        let count = min(contentLeft, bytes.byteCount &- offset)
        contentLeft &-= count
        var consumed = offset &+ count
        let range = offset..<consumed
        if contentLeft == 0 {
            let pad = min(paddingLeft, bytes.byteCount &- consumed)
            paddingLeft &-= pad
            consumed &+= pad
            if paddingLeft == 0 { phase = .frame }
        }
        let slot = contentStream.slot
        guard streams.contains(contentStream), streams[slot].state.isReceiving else {
            return Received(consumed, consumed == 0 ? .needMore : .nothing)
        }
        if phase == .frame, contentEnds {
            move(slot, to: streams[slot].state == .open ? .halfClosedRemote : .ended)
            return Received(consumed, .data(contentStream, range, endsStream: true))
        }
        if count > 0 { return Received(consumed, .data(contentStream, range, endsStream: false)) }
        return Received(consumed, consumed == 0 ? .needMore : .nothing)
    }

    // MARK: What is done with content

    /// How much content must follow a head, as Content-Length says; more or less is an error of the
    /// stream (RFC 9113 §8.1.1). Not for a response whose content is not sent, as to HEAD.
    ///
    /// - Returns: whether it can be; if not, the stream has been reset.
    public mutating func expectContent(_ ref: StreamRef, _ length: UInt64, now: Int64) -> Bool {
        guard streams.contains(ref) else { return false }
        guard streams[ref.slot].state.isReceiving else {
            guard length > 0, !streams[ref.slot].state.isClosed else { return length == 0 }
            _ = fault(ref.slot, .contentTooShort, now: now)
            return false
        }
        streams[ref.slot].contentLeft = Int64(clamping: length)
        return true
    }

    /// Content has been taken: the peer may send as much again. Of a stream whose content is not
    /// taken, it can send no more than its window.
    @inline(__always)
    public mutating func consumed(_ ref: StreamRef, _ count: Int) {
        guard streams.contains(ref) else { return }
        let waiting = streams[ref.slot].receiving.waiting
        // What waited when the stream was closed has been given back then.
        take(Int32(truncatingIfNeeded: min(count, Int(waiting))), ref.slot)
    }

    private mutating func take(_ count: Int32, _ slot: Int32) {
        guard count > 0 else { return }
        let increment = streams[slot].receiving.taken(count, desired: growth.stream)
        if increment > 0, streams[slot].state.isReceiving {
            writeWindowUpdate(streams[slot].id, increment)
        }
        let aside = min(count, streams[slot].aside)
        streams[slot].aside &-= aside
        takeForConnection(count &- aside)
    }

    /// From now on a stream carries another protocol, which may send in pieces of a few bytes.
    public mutating func becomesTunnel(_ ref: StreamRef) {
        guard streams.contains(ref) else { return }
        streams[ref.slot].facts.insert(.isTunnel)
    }

    /// Content has not been taken, but no other stream shall have to wait for that: from now on it
    /// counts towards its stream's window alone. What has been set aside is taken first.
    public mutating func setAside(_ ref: StreamRef, _ count: Int) {
        guard streams.contains(ref) else { return }
        let waiting = streams[ref.slot].receiving.waiting &- streams[ref.slot].aside
        let aside = Int32(truncatingIfNeeded: min(count, Int(waiting)))
        streams[ref.slot].aside &+= aside
        takeForConnection(aside)
    }

    @inline(__always)
    private mutating func takeForConnection(_ count: Int32) {
        let increment = receiving.taken(count, desired: growth.connection)
        if increment > 0 { writeWindowUpdate(0, increment) }
    }

    /// Content that waited on a stream will not be taken any more.
    mutating func giveBackWindow(_ slot: Int32) {
        let waiting = streams[slot].receiving.waiting
        guard waiting > 0 else { return }
        streams[slot].receiving.waiting = 0
        let aside = streams[slot].aside
        streams[slot].aside = 0
        takeForConnection(waiting &- aside)
    }

    // MARK: The peer's windows

    mutating func receiveWindowUpdate(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.length == 4 else { return failed(.badFrameLength, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        let increment = Int32(
            truncatingIfNeeded: number(in: bytes, at: FrameHeader.bytes) & 0x7FFF_FFFF)
        guard header.streamID != 0 else {
            guard increment > 0 else { return failed(.zeroWindowUpdate, bytes) }
            let (sum, overflows) = sendWindow.addingReportingOverflow(increment)
            guard !overflows else { return failed(.windowTooLarge, bytes) }
            spendWindow(increment, sum, now: now)
            let hasGrown = sendWindow <= 0 && sum > 0
            sendWindow = sum
            return Received(consumed, hasGrown ? .windowGrew(nil) : .nothing)
        }
        let slot = streams.find(header.streamID)
        let state = slot < 0 ? state(ofUnknown: header.streamID) : streams[slot].state
        switch state.after(.receivedWindowUpdate) {
        case .proceed: break
        case .ignore, .resetStream:
            spend(.lateFrame, 1, now: now)
            return Received(consumed, .nothing)
        case .endConnection: return failed(.frameOnIdleStream, bytes)
        case .illegal: return failed(.internalError, bytes)
        }
        guard increment > 0 else {
            return Received(consumed, fault(slot, .zeroWindowUpdate, now: now))
        }
        let before = streams[slot].sendWindow
        let (sum, overflows) = before.addingReportingOverflow(increment)
        guard !overflows else {
            return Received(consumed, fault(slot, .windowTooLarge, now: now))
        }
        spendWindow(increment, sum, now: now)
        setSendWindow(slot, sum)
        guard before <= 0, sum > 0 else { return Received(consumed, .nothing) }
        return Received(
            consumed, .windowGrew(StreamRef(id: header.streamID, slot: slot)))
    }

    /// Announcements cost little, but for windows that are opened by a few bytes at a time.
    private mutating func spendWindow(_ increment: Int32, _ window: Int32, now: Int64) {
        spend(increment < 256 && window < 4096 ? .tinyWindow : .windowUpdate, now: now)
    }

    /// What may be sent on a stream; it is among the ready ones if it can send.
    mutating func setSendWindow(_ slot: Int32, _ window: Int32) {
        streams[slot].sendWindow = window
        let isReady = streams[slot].facts.contains(.isReady)
        if window <= 0 {
            if isReady { ready.remove(slot, from: &streams) }
        } else if !isReady, streams[slot].facts.contains(.wantsToSend) {
            ready.insert(slot, in: &streams)
        }
    }
}
