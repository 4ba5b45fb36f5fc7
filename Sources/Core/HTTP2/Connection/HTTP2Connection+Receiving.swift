import HTTPCore

// Frames as they arrive (RFC 9113 §4, §6).
extension HTTP2Connection {
    /// Takes what is at the front of the received bytes: at most one event. To be called until it
    /// needs more. A frame other than DATA is taken when it is complete, so the caller must be able
    /// to keep 16,393 bytes; of DATA, as much as there is.
    public mutating func receive(_ bytes: Span<UInt8>, now: Int64) -> Received {
        guard phase == .frame, pending.isEmpty else { return receiveOther(bytes.bytes, now: now) }
        return receiveFrame(bytes.bytes, now: now)
    }

    @inline(never)
    private mutating func receiveOther(_ bytes: RawSpan, now: Int64) -> Received {
        if !pending.isEmpty { return Received(0, takePending()) }
        switch phase {
        case .frame, .firstFrame: return receiveFrame(bytes, now: now)
        case .content: return receiveContent(bytes, after: 0)
        case .skipping: return skip(bytes, after: 0)
        case .preface: return receivePreface(bytes)
        case .failed:
            return Received(bytes.byteCount, bytes.isEmpty ? .needMore : .nothing)
        }
    }

    private mutating func takePending() -> Event {
        if pending.contains(.streamFailed) {
            pending.remove(.streamFailed)
            return .streamFailed(failedStream, streamReason)
        }
        if pending.contains(.failed) {
            pending = []
            return .failed(connectionReason)
        }
        pending.remove(.warned)
        return .warned
    }

    /// What ``receive(_:now:)`` would report of the connection as a whole, for a caller that reads
    /// no more: a warning, or the error that ends it.
    public mutating func takeUnreported() -> Event? {
        pending.remove(.streamFailed)
        return pending.isEmpty ? nil : takePending()
    }

    private mutating func receivePreface(_ bytes: RawSpan) -> Received {
        let expected = UnsafeRawBufferPointer(
            start: HTTP2Connection.preface.utf8Start,
            count: HTTP2Connection.preface.utf8CodeUnitCount)
        let count = min(bytes.byteCount, expected.count - prefaceBytes)
        for index in 0..<count {
            let byte = bytes.unsafeLoad(fromUncheckedByteOffset: index, as: UInt8.self)
            guard byte == expected[prefaceBytes + index] else {
                return failed(.badPreface, bytes)
            }
        }
        prefaceBytes += count
        guard prefaceBytes == expected.count else { return Received(count, .needMore) }
        phase = .firstFrame
        return Received(count, .nothing)
    }

    private mutating func receiveFrame(_ bytes: RawSpan, now: Int64) -> Received {
        guard bytes.byteCount >= FrameHeader.bytes else { return Received(0, .needMore) }
        guard output.count <= limits.controlBytes else { return Received(0, .controlIsFull) }
        let header = FrameHeader(reading: bytes)
        guard header.length <= PeerSettings.frameSizes.lowerBound else {
            return failed(.frameTooLarge, bytes)
        }
        receivedAt = now
        if !block.isEmpty, blockStream == 0 { block.clear() }
        if blockStream != 0 || phase == .firstFrame {
            if let reason = misplaced(header) { return failed(reason, bytes) }
        }
        let end = FrameHeader.bytes &+ header.length
        if header.type == .headers {
            guard bytes.byteCount >= end else { return Received(0, .needMore) }
            return receiveHeaders(header, bytes, now: now)
        }
        return receiveRest(header, bytes, now: now)
    }

    /// A frame other than HEADERS.
    private mutating func receiveRest(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        switch header.type {
        case .data: return receiveData(header, bytes, now: now)
        // Only the beginning of these is needed, or nothing.
        case .goaway: return receiveGoaway(header, bytes, now: now)
        case .priority, .resetStream, .settings, .pushPromise, .ping, .windowUpdate,
            .continuation, .priorityUpdate:
            break
        default:
            spend(.unknownFrame, now: now)
            return skip(header.length, bytes)
        }
        let end = FrameHeader.bytes &+ header.length
        guard bytes.byteCount >= end else { return Received(0, .needMore) }
        switch header.type {
        case .windowUpdate: return receiveWindowUpdate(header, bytes, now: now)
        case .resetStream: return receiveReset(header, bytes, now: now)
        case .settings: return receiveSettings(header, bytes, now: now)
        case .ping: return receivePing(header, bytes, now: now)
        case .continuation: return receiveContinuation(header, bytes, now: now)
        case .priority: return receivePriority(header, bytes, now: now)
        case .priorityUpdate: return receivePriorityUpdate(header, bytes, now: now)
        default: return failed(.pushPromise, bytes)
        }
    }

    /// Why a frame may not come now, if it may not.
    private func misplaced(_ header: FrameHeader) -> ConnectionReason? {
        if phase == .firstFrame {
            return header.type == .settings && !header.flags.contains(.acknowledgment)
                ? nil : .settingsMissing
        }
        return header.type == .continuation && header.streamID == blockStream
            ? nil : .fieldBlockInterrupted
    }

    /// Passes over a frame's payload.
    mutating func skip(_ length: Int, _ bytes: RawSpan) -> Received {
        guard phase != .failed else { return Received(bytes.byteCount, .nothing) }
        skipLeft = length
        phase = .skipping
        return skip(bytes, after: FrameHeader.bytes)
    }

    /// Passes over what is left of a frame, after `offset` bytes that have been taken.
    private mutating func skip(_ bytes: RawSpan, after offset: Int) -> Received {
        let count = min(skipLeft, bytes.byteCount &- offset)
        skipLeft &-= count
        if skipLeft == 0 { phase = .frame }
        let consumed = offset &+ count
        return Received(consumed, consumed == 0 ? .needMore : .nothing)
    }

    // MARK: What goes wrong

    /// Ends the connection with an error.
    @inline(never)
    mutating func failed(_ reason: ConnectionReason, _ bytes: RawSpan) -> Received {
        fail(reason)
        pending = []
        return Received(bytes.byteCount, .failed(reason))
    }

    /// Counts what costs and brings nothing. Returns false if the connection has failed by that:
    /// nothing more is sent then.
    @discardableResult
    mutating func spend(_ abuse: Abuse, now: Int64) -> Bool {
        spend(abuse, abuse.cost, now: now)
    }

    @inline(never)
    @discardableResult
    mutating func spend(_ abuse: Abuse, _ cost: Int32, now: Int64) -> Bool {
        switch budget.spend(abuse, cost, now: now) {
        case nil, .calm: return true
        case .warned:
            pending.insert(.warned)
            announceLast(saysWhy: true)
            return true
        case .exhausted:
            fail(.abuse)
            return false
        }
    }

    /// Counts padding, which is not much as long as there is some.
    @inline(__always)
    mutating func spendPadding(_ count: Int, now: Int64) {
        guard count > 0 else { return }
        padding &+= count
        guard padding >= 1024 else { return }
        padding &-= 1024
        spend(.padding, now: now)
    }

    /// Resets a stream because of what the peer sent on it.
    @inline(never)
    mutating func fault(_ slot: Int32, _ reason: StreamReason, now: Int64) -> Event {
        let ref = StreamRef(id: streams[slot].id, slot: slot)
        spend(.resetCaused, now: now)
        close(slot, .resetByUs)
        writeReset(ref.id, reason.code)
        return .streamFailed(ref, reason)
    }

    /// The same, if the event must come after another one.
    mutating func faultLater(_ slot: Int32, _ reason: StreamReason, now: Int64) {
        failedStream = StreamRef(id: streams[slot].id, slot: slot)
        streamReason = reason
        _ = fault(slot, reason, now: now)
        pending.insert(.streamFailed)
    }

    /// Answers a frame on a stream that is closed already.
    mutating func refuseLate(_ id: UInt32, _ code: ErrorCode, now: Int64) {
        spend(.resetCaused, now: now)
        writeReset(id, code)
    }
}
