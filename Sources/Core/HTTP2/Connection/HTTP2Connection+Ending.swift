import HTTPCore

// The beginning, the quiet and the end of a connection (RFC 9113 §3.4, §5.4.1, §6.7, §6.8).
extension HTTP2Connection {
    mutating func writeBeginning() {
        var writer = output.writer(160)
        var settings: InlineArray<7, (id: SettingID, value: UInt32)> = InlineArray(
            repeating: (.enablePush, 0))
        var count = 0
        func add(_ id: SettingID, _ value: Int) {
            settings[count] = (id, UInt32(truncatingIfNeeded: value))
            count += 1
        }
        switch role {
        case .server:
            add(.maxConcurrentStreams, limits.streams)
            if limits.takesExtendedConnect { add(.enableConnectProtocol, 1) }
        case .client:
            writer.append(HTTP2Connection.preface)
            add(.enablePush, 0)
        }
        if limits.headerTableBytes != 4096 { add(.headerTableSize, limits.headerTableBytes) }
        if limits.streamWindow != PeerSettings.initialWindow {
            add(.initialWindowSize, Int(limits.streamWindow))
        }
        add(.maxHeaderListSize, limits.headerListBytes)
        add(.noRFC7540Priorities, 1)
        writer.appendSettingsHeader(count)
        for index in 0..<count { writer.append(settings[index].id, settings[index].value) }
        let more = limits.connectionWindow - PeerSettings.initialWindow
        if more > 0 { writer.appendWindowUpdate(0, more) }
        output.wrote(writer)
    }

    mutating func writeReset(_ id: UInt32, _ code: ErrorCode) {
        guard phase != .failed else { return }
        var writer = output.writer(13)
        writer.appendReset(id, code)
        output.wrote(writer)
    }

    mutating func writeWindowUpdate(_ id: UInt32, _ increment: Int32) {
        guard phase != .failed else { return }
        var writer = output.writer(13)
        writer.appendWindowUpdate(id, increment)
        output.wrote(writer)
    }

    mutating func writePing(_ purpose: PingPurpose) {
        guard phase != .failed else { return }
        var writer = output.writer(17)
        writer.appendPing(purpose.rawValue, isAcknowledgment: false)
        output.wrote(writer)
    }

    // MARK: Errors

    /// Ends the connection with an error. The peer is told why, and for ``ConnectionReason/abuse``
    /// what was counted; nothing more is received or sent.
    public mutating func fail(_ reason: ConnectionReason) {
        guard phase != .failed else { return }
        phase = .failed
        connectionReason = reason
        pending.insert(.failed)
        lastProcessed = min(lastProcessed, lastPeerStream)
        writeGoaway(reason.code, reason.explanation, counts: reason == .abuse)
    }

    // MARK: The end

    /// Ends the connection when its streams have ended. A server first asks for no more streams,
    /// and says which is the last when the client must have seen that (RFC 9113 §6.8): on the
    /// answer to a PING, or when ``check(now:)`` finds that this takes too long.
    public mutating func drain(now: Int64) {
        guard drain == .none, phase != .failed else { return }
        guard role == .server else { return announceLast() }
        drain = .announced
        drainedAt = now
        var writer = output.writer(17)
        writer.appendGoawayHeader(lastStream: UInt32(Int32.max), .noError, textBytes: 0)
        output.wrote(writer)
        writePing(.drain)
    }

    /// Says which stream is the last; later ones are passed over.
    /// - Parameter saysWhy: whether the peer is told what was counted.
    mutating func announceLast(saysWhy: Bool = false) {
        guard drain != .final, phase != .failed else { return }
        drain = .final
        lastProcessed = lastPeerStream
        writeGoaway(.noError, "", counts: saysWhy)
    }

    /// GOAWAY with a text, to which what was counted is added.
    private mutating func writeGoaway(_ code: ErrorCode, _ text: StaticString, counts: Bool) {
        var bytes = InlineArray<1024, UInt8>(repeating: 0)
        var span = bytes.mutableSpan
        let count = span.withUnsafeMutableBytes { memory in
            var writer = HeadWriter(memory)
            writer.append(text)
            if counts {
                if writer.count > 0 { writer.append(": ") }
                budget.writeText(&writer)
            }
            return writer.count
        }
        var writer = output.writer(17 + count)
        writer.appendGoawayHeader(lastStream: lastProcessed, code, textBytes: count)
        writer.append(bytes.span.extracting(0..<count))
        output.wrote(writer)
    }

    // MARK: Quiet

    /// Looks after what time brings: PING if the peer has been quiet for long, an end if it does
    /// not answer, or has not acknowledged SETTINGS; the last step of a drain. Memory that is not
    /// needed is given back.
    ///
    /// - Returns: when it should be called next; `nil` if the connection has failed.
    public mutating func check(now: Int64) -> Int64? {
        guard phase != .failed else { return nil }
        if !settingsAcknowledged, now - startedAt >= limits.answerMilliseconds {
            fail(.settingsNotAcknowledged)
            return nil
        }
        if let askedAt, now - askedAt >= limits.answerMilliseconds {
            fail(.unanswered)
            return nil
        }
        if drain == .announced, now - drainedAt >= limits.answerMilliseconds { announceLast() }
        if askedAt == nil, now - receivedAt >= limits.quietMilliseconds {
            askedAt = now
            writePing(.ask)
        }
        trim()
        var next = (askedAt ?? receivedAt) + limits.quietMilliseconds
        if let askedAt { next = askedAt + limits.answerMilliseconds }
        if !settingsAcknowledged { next = min(next, startedAt + limits.answerMilliseconds) }
        if drain == .announced { next = min(next, drainedAt + limits.answerMilliseconds) }
        return next
    }

    /// Gives back memory that an idle connection does not need.
    public mutating func trim() {
        streams.trim()
        if blockStream == 0 { block.trim() }
        output.trim(to: 0)
    }
}
