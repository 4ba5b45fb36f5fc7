import HTTPCore

// The frames that carry neither fields nor content (RFC 9113 §6.3 to §6.8, RFC 9218 §7.1).
extension HTTP2Connection {
    /// What PING was sent for; its data says so.
    enum PingPurpose: UInt64, CaseIterable {
        /// Whether the peer is still there.
        case ask = 0x7069_6E66_6F6C_6401
        /// How fast content arrives.
        case measure = 0x7069_6E66_6F6C_6402
        /// Whether the peer has seen that no more streams should be opened.
        case drain = 0x7069_6E66_6F6C_6403
    }

    mutating func receiveReset(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID != 0 else { return failed(.streamIDMissing, bytes) }
        guard header.length == 4 else { return failed(.badFrameLength, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        let slot = streams.find(header.streamID)
        let state = slot < 0 ? state(ofUnknown: header.streamID) : streams[slot].state
        switch state.after(.receivedReset) {
        case .proceed(let next):
            spend(.resetReceived, resetCost(slot, now: now), now: now)
            close(slot, next)
            let code = ErrorCode(rawValue: number(in: bytes, at: FrameHeader.bytes))
            return Received(
                consumed, .reset(StreamRef(id: header.streamID, slot: slot), code))
        case .ignore, .resetStream:
            spend(.lateFrame, now: now)
            return Received(consumed, .nothing)
        case .endConnection: return failed(.frameOnIdleStream, bytes)
        case .illegal: return failed(.internalError, bytes)
        }
    }

    /// What a reset by the peer costs. A stream that lived for a while has held its place for so
    /// long, and one that was answered was wanted.
    private func resetCost(_ slot: Int32, now: Int64) -> Int32 {
        guard role == .server else { return AbuseBudget.reset / 16 }
        let age = UInt32(truncatingIfNeeded: now) &- streams[slot].openedAt
        let cost: Int32 =
            switch age {
            case 0..<50: AbuseBudget.reset
            case 50..<200: AbuseBudget.reset / 4
            case 200..<1000: AbuseBudget.reset / 16
            default: 1
            }
        return streams[slot].facts.contains(.hasSent) ? min(cost, AbuseBudget.reset / 4) : cost
    }

    mutating func receivePriority(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID != 0 else { return failed(.streamIDMissing, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        let isMeasured = header.length == 5
        let dependsOnItself =
            isMeasured
            && number(in: bytes, at: FrameHeader.bytes) & 0x7FFF_FFFF == header.streamID
        spend(.priority, now: now)
        guard !isMeasured || dependsOnItself else { return Received(consumed, .nothing) }
        // Such an error ends the stream; without a stream, the connection.
        let slot = streams.find(header.streamID)
        let state = slot < 0 ? state(ofUnknown: header.streamID) : streams[slot].state
        guard !state.isClosed else { return Received(consumed, .nothing) }
        guard slot >= 0, state != .idle else {
            return failed(isMeasured ? .streamDependsOnItself : .badFrameLength, bytes)
        }
        return Received(
            consumed,
            fault(slot, isMeasured ? .streamDependsOnItself : .badPriorityLength, now: now))
    }

    mutating func receivePriorityUpdate(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard role == .server else { return failed(.priorityUpdateFromServer, bytes) }
        guard header.streamID == 0 else { return failed(.streamIDUnexpected, bytes) }
        guard header.length >= 4 else { return failed(.badFrameLength, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        let id = number(in: bytes, at: FrameHeader.bytes) & 0x7FFF_FFFF
        // No stream 0 has a priority, and this side opens none (RFC 9218 §7.1).
        guard id & 1 == 1 else { return failed(.badStreamID, bytes) }
        spend(.priority, now: now)
        let text = bytes.extracting((FrameHeader.bytes &+ 4)..<consumed)
        let priority = text.withUnsafeBytes { StreamPriority(reading: $0.octets) }
        let slot = streams.find(id)
        guard slot >= 0 else {
            if state(ofUnknown: id) == .idle { early.insert(id, priority) }
            return Received(consumed, .nothing)
        }
        streams[slot].facts.insert(.hasUpdatedPriority)
        change(slot, to: priority)
        return Received(consumed, .priority(StreamRef(id: id, slot: slot), priority))
    }

    // MARK: SETTINGS

    mutating func receiveSettings(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID == 0 else { return failed(.streamIDUnexpected, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        if header.flags.contains(.acknowledgment) {
            guard header.length == 0 else { return failed(.badFrameLength, bytes) }
            if settingsAcknowledged { spend(.settings, now: now) }
            settingsAcknowledged = true
            return Received(consumed, .nothing)
        }
        guard header.length % 6 == 0 else { return failed(.badFrameLength, bytes) }
        let isFirst = !hasPeerSettings
        guard isFirst || spend(.settings, now: now) else {
            return Received(bytes.byteCount, .nothing)
        }
        let window = peer.initialWindowSize
        peer.leastHeaderTableSize = UInt32.max
        for position in stride(from: FrameHeader.bytes, to: consumed, by: 6) {
            let id = UInt16(
                bigEndian: bytes.unsafeLoadUnaligned(
                    fromUncheckedByteOffset: position, as: UInt16.self))
            do throws(ConnectionReason) {
                try peer.take(
                    SettingID(rawValue: id), number(in: bytes, at: position + 2),
                    isFirst: isFirst, role: role)
            } catch {
                return failed(error, bytes)
            }
        }
        peer.leastHeaderTableSize = min(peer.leastHeaderTableSize, peer.headerTableSize)
        hasPeerSettings = true
        if phase == .firstFrame { phase = .frame }
        guard changeSendWindows(from: window, to: peer.initialWindowSize) else {
            return failed(.windowTooLarge, bytes)
        }
        var writer = output.writer(FrameHeader.bytes)
        writer.appendSettingsAcknowledgment()
        output.wrote(writer)
        return Received(consumed, .settings)
    }

    /// The windows of all streams change with the initial one, and may become negative (RFC 9113
    /// §6.9.2). Returns false if one becomes too large.
    private mutating func changeSendWindows(from old: Int32, to new: Int32) -> Bool {
        guard old != new else { return true }
        for slot in streams.slots where streams[slot].id != 0 && !streams[slot].state.isClosed {
            let (difference, _) = new.subtractingReportingOverflow(old)
            let (sum, overflows) = streams[slot].sendWindow.addingReportingOverflow(difference)
            guard !overflows else { return false }
            setSendWindow(slot, sum)
        }
        return true
    }

    // MARK: PING and GOAWAY

    mutating func receivePing(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID == 0 else { return failed(.streamIDUnexpected, bytes) }
        guard header.length == 8 else { return failed(.badFrameLength, bytes) }
        let consumed = FrameHeader.bytes &+ header.length
        let data = UInt64(
            bigEndian: bytes.unsafeLoadUnaligned(
                fromUncheckedByteOffset: FrameHeader.bytes, as: UInt64.self))
        guard header.flags.contains(.acknowledgment) else {
            let cost = hasSentSincePing ? 1 : Abuse.ping.cost
            hasSentSincePing = false
            guard spend(.ping, cost, now: now) else {
                return Received(bytes.byteCount, .nothing)
            }
            var writer = output.writer(17)
            writer.appendPing(data, isAcknowledgment: true)
            output.wrote(writer)
            return Received(consumed, .nothing)
        }
        switch PingPurpose(rawValue: data) {
        case .ask:
            guard let asked = askedAt else { break }
            askedAt = nil
            roundTripMilliseconds = now - asked
            return Received(consumed, .pingAnswered(milliseconds: now - asked))
        case .measure:
            guard growth.isMeasuring else { break }
            growth.measured(now: now)
            return Received(consumed, .nothing)
        case .drain:
            guard drain == .announced else { break }
            announceLast()
            return Received(consumed, .nothing)
        case nil: break
        }
        spend(.ping, now: now)
        return Received(consumed, .nothing)
    }

    mutating func receiveGoaway(
        _ header: FrameHeader, _ bytes: RawSpan, now: Int64
    ) -> Received {
        guard header.streamID == 0 else { return failed(.streamIDUnexpected, bytes) }
        guard header.length >= 8 else { return failed(.badFrameLength, bytes) }
        guard bytes.byteCount >= FrameHeader.bytes &+ 8 else { return Received(0, .needMore) }
        let last = number(in: bytes, at: FrameHeader.bytes) & 0x7FFF_FFFF
        let code = ErrorCode(rawValue: number(in: bytes, at: FrameHeader.bytes &+ 4))
        guard last <= peerLastProcessed else { return failed(.goawayIncreased, bytes) }
        spend(.goaway, now: now)
        peerLastProcessed = last
        if role == .client {
            for slot in streams.slots where streams[slot].id > last {
                if !streams[slot].state.isClosed { close(slot, .resetByPeer) }
            }
        }
        return Received(
            skip(header.length, bytes).consumed, .goaway(lastStream: last, code))
    }
}
