import HTTPCore

// HEADERS and CONTINUATION (RFC 9113 §4.3, §6.2, §6.10).
extension HTTP2Connection {
    mutating func receiveHeaders(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID != 0 else { return failed(.streamIDMissing, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        var start = FrameHeader.bytes
        var end = consumed
        var dependsOnItself = false
        if !header.flags.isDisjoint(with: [.padded, .priority]) {
            var needed = 0
            if header.flags.contains(.padded) { needed &+= 1 }
            if header.flags.contains(.priority) { needed &+= 5 }
            guard header.length >= needed else { return failed(.badFrameLength, bytes) }
            if header.flags.contains(.padded) {
                let count = Int(bytes.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self))
                guard count <= header.length &- needed else {
                    return failed(.paddingTooLong, bytes)
                }
                spendPadding(count, now: now)
                start &+= 1
                end &-= count
            }
            if header.flags.contains(.priority) {
                dependsOnItself = number(in: bytes, at: start) & 0x7FFF_FFFF == header.streamID
                start &+= 5
            }
        }
        let endsStream = header.flags.contains(.endStream)
        guard header.flags.contains(.endHeaders) else {
            blockStream = header.streamID
            blockEndsStream = endsStream
            blockDependsOnItself = dependsOnItself
            block.clear()
            return continued(bytes, start..<end, consumed)
        }
        return Received(
            consumed,
            opened(
                header.streamID, endsStream: endsStream, dependsOnItself: dependsOnItself,
                .received(start..<end), now: now))
    }

    mutating func receiveContinuation(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard blockStream != 0 else { return failed(.continuationUnexpected, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        let isLast = header.flags.contains(.endHeaders)
        let isEmpty = header.length == 0 && !isLast
        guard spend(isEmpty ? .emptyContinuation : .continuation, now: now) else {
            return Received(bytes.byteCount, .nothing)
        }
        let received = continued(bytes, FrameHeader.bytes..<consumed, consumed)
        guard isLast, phase != .failed else { return received }
        let id = blockStream
        blockStream = 0
        return Received(
            consumed,
            opened(
                id, endsStream: blockEndsStream, dependsOnItself: blockDependsOnItself, .assembled,
                now: now))
    }

    private mutating func continued(
        _ bytes: RawSpan, _ part: Range<Int>, _ consumed: Int
    ) -> Received {
        guard block.append(bytes.extracting(part), limit: limits.fieldBlockBytes) else {
            return failed(.fieldBlockTooLarge, bytes)
        }
        return Received(consumed, .nothing)
    }

    /// A field block is complete.
    @inline(__always)
    private mutating func opened(
        _ id: UInt32, endsStream: Bool, dependsOnItself: Bool, _ block: FieldBlock, now: Int64
    ) -> Event {
        if role == .server, id > lastPeerStream, id & 1 == 1, id <= lastProcessed {
            return accepted(
                id, endsStream: endsStream, dependsOnItself: dependsOnItself, block, now: now)
        }
        return continued(
            id, endsStream: endsStream, dependsOnItself: dependsOnItself, block, now: now)
    }

    /// A client opens a stream.
    @inline(__always)
    private mutating func accepted(
        _ id: UInt32, endsStream: Bool, dependsOnItself: Bool, _ block: FieldBlock, now: Int64
    ) -> Event {
        if id > lastPeerStream &+ 2 {
            firstSkipped = min(firstSkipped, lastPeerStream &+ (lastPeerStream == 0 ? 1 : 2))
            lastSkipped = id &- 2
        }
        lastPeerStream = id
        guard places < limits.streams, streams.count < 2 &* limits.streams, !dependsOnItself else {
            refuse(id, dependsOnItself ? .protocolError : .refusedStream, now: now)
            return .discarded(block)
        }
        var record = StreamRecord(
            id: id, state: endsStream ? .halfClosedRemote : .open, priority: .unstated,
            facts: [.hasPlace, .hasHead], sendWindow: peer.initialWindowSize,
            receiving: ReceiveWindow(limits.streamWindow),
            openedAt: UInt32(truncatingIfNeeded: now))
        if !early.isEmpty, let priority = early.take(id) {
            record.priority = priority
            record.facts.insert(.hasUpdatedPriority)
        }
        places &+= 1
        return .headers(
            StreamRef(id: id, slot: streams.insert(record)), block, endsStream: endsStream)
    }

    /// Refuses a stream that a client wants to open. One that did not know the limit yet has done
    /// nothing wrong.
    @inline(never)
    private mutating func refuse(_ id: UInt32, _ code: ErrorCode, now: Int64) {
        if code == .refusedStream {
            spend(
                .streamRefused, settingsAcknowledged ? Abuse.streamRefused.cost : 1, now: now)
        } else {
            spend(.resetCaused, now: now)
        }
        resets.insert(id)
        writeReset(id, code)
    }

    /// HEADERS on a stream that is known, or may not be opened.
    private mutating func continued(
        _ id: UInt32, endsStream: Bool, dependsOnItself: Bool, _ block: FieldBlock, now: Int64
    ) -> Event {
        let slot = streams.find(id)
        guard slot >= 0 else { return unknown(id, block, now: now) }
        let before = streams[slot].state
        switch endsStream ? before.after(.receivedHeadersAndEnd) : before.after(.receivedHeaders) {
        case .proceed(let state):
            let ref = StreamRef(id: id, slot: slot)
            if dependsOnItself {
                faultLater(slot, .streamDependsOnItself, now: now)
                return .discarded(block)
            }
            guard streams[slot].facts.contains(.hasHead) else {
                streams[slot].facts.insert(.hasHead)
                move(slot, to: state)
                return .headers(ref, block, endsStream: endsStream)
            }
            guard endsStream, streams[slot].contentLeft <= 0 else {
                faultLater(slot, endsStream ? .contentTooShort : .trailersWithoutEnd, now: now)
                return .discarded(block)
            }
            move(slot, to: state)
            return .trailers(ref, block)
        case .ignore: spendDiscarded(now: now)
        case .resetStream: faultLater(slot, .frameAfterEnd, now: now)
        case .endConnection: return failedEvent(.frameOnClosedStream)
        case .illegal: return failedEvent(.internalError)
        }
        return .discarded(block)
    }

    /// A server answers until it learns that a client has reset the stream.
    private mutating func spendDiscarded(now: Int64) {
        spend(.discardedFields, role == .client ? 2 : Abuse.discardedFields.cost, now: now)
    }

    /// HEADERS on a stream that is not in the table.
    private mutating func unknown(_ id: UInt32, _ block: FieldBlock, now: Int64) -> Event {
        switch state(ofUnknown: id) {
        case .resetByUs:
            spendDiscarded(now: now)
            return .discarded(block)
        case .idle:
            return failedEvent(id & 1 == 0 || role == .server ? .badStreamID : .frameOnIdleStream)
        case .open, .halfClosedLocal, .halfClosedRemote, .ended, .resetByPeer:
            // A number that was passed over was closed by that (RFC 9113 §5.1.1).
            let isSkipped = role == .server && id >= firstSkipped && id <= lastSkipped
            return failedEvent(isSkipped ? .badStreamID : .frameOnClosedStream)
        }
    }

    private mutating func failedEvent(_ reason: ConnectionReason) -> Event {
        fail(reason)
        pending = []
        return .failed(reason)
    }

    /// Four bytes as a number, the most significant first.
    @inline(__always)
    func number(in bytes: RawSpan, at offset: Int) -> UInt32 {
        UInt32(
            bigEndian: bytes.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: UInt32.self))
    }

    /// What a client says of a head that it has received: another one follows (RFC 9110 §15.2).
    public mutating func interimHead(_ ref: StreamRef) {
        guard streams.contains(ref) else { return }
        streams[ref.slot].facts.remove(.hasHead)
    }
}
