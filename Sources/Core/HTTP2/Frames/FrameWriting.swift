import HTTPCore

/// The frames that are sent, into memory that the caller owns.
extension HeadWriter {
    /// Appends the nine bytes of a frame header.
    @inlinable @inline(__always)
    public mutating func append(_ header: FrameHeader) {
        var place: (UInt64, UInt64) = (0, 0)
        withUnsafeMutableBytes(of: &place) { memory in
            guard let start = memory.baseAddress else { return }
            header.store(to: start)
            append(bytes: UnsafeRawBufferPointer(start: start, count: FrameHeader.bytes))
        }
    }

    /// Appends 16 bits, the most significant first.
    @inlinable
    mutating func append(number: UInt16) {
        withUnsafeBytes(of: number.bigEndian) { append(bytes: $0) }
    }

    /// Appends 32 bits, the most significant first.
    @inlinable
    mutating func append(number: UInt32) {
        withUnsafeBytes(of: number.bigEndian) { append(bytes: $0) }
    }

    /// Appends a field block as a HEADERS frame and as many CONTINUATION frames as it needs (RFC
    /// 9113 §4.3, §6.2, §6.10).
    /// - Parameter maxFrameSize: the greatest payload that the recipient accepts, in bytes.
    public mutating func appendHeaders(
        _ block: Span<UInt8>, streamID: UInt32, endsStream: Bool, maxFrameSize: Int
    ) {
        var type = FrameType.headers
        var flags: FrameFlags = endsStream ? .endStream : []
        var position = 0
        repeat {
            let end = min(block.count, position + maxFrameSize)
            if end == block.count { flags.insert(.endHeaders) }
            append(
                FrameHeader(length: end - position, type: type, flags: flags, streamID: streamID))
            append(block.extracting(position..<end))
            type = .continuation
            flags = []
            position = end
        } while position < block.count
    }

    /// Appends the header of a DATA frame (RFC 9113 §6.1); `count` bytes of content must follow.
    @inlinable @inline(__always)
    public mutating func appendDataHeader(_ count: Int, streamID: UInt32, endsStream: Bool) {
        append(
            FrameHeader(
                length: count, type: .data, flags: endsStream ? .endStream : [],
                streamID: streamID))
    }

    /// Appends RST_STREAM (RFC 9113 §6.4): 13 bytes.
    public mutating func appendReset(_ streamID: UInt32, _ code: ErrorCode) {
        append(FrameHeader(length: 4, type: .resetStream, streamID: streamID))
        append(number: code.rawValue)
    }

    /// Appends the header of a SETTINGS frame (RFC 9113 §6.5) for this many settings.
    public mutating func appendSettingsHeader(_ settings: Int) {
        append(FrameHeader(length: settings * 6, type: .settings, streamID: 0))
    }

    /// Appends a setting: six bytes.
    public mutating func append(_ id: SettingID, _ value: UInt32) {
        append(number: id.rawValue)
        append(number: value)
    }

    /// Appends the acknowledgment of SETTINGS: 9 bytes.
    public mutating func appendSettingsAcknowledgment() {
        append(FrameHeader(length: 0, type: .settings, flags: .acknowledgment, streamID: 0))
    }

    /// Appends PING (RFC 9113 §6.7) with eight bytes of data: 17 bytes.
    public mutating func appendPing(_ data: UInt64, isAcknowledgment: Bool) {
        append(
            FrameHeader(
                length: 8, type: .ping, flags: isAcknowledgment ? .acknowledgment : [],
                streamID: 0))
        withUnsafeBytes(of: data.bigEndian) { append(bytes: $0) }
    }

    /// Appends GOAWAY (RFC 9113 §6.8); `textBytes` bytes of text must follow.
    public mutating func appendGoawayHeader(
        lastStream: UInt32, _ code: ErrorCode, textBytes: Int
    ) {
        append(FrameHeader(length: 8 + textBytes, type: .goaway, streamID: 0))
        append(number: lastStream)
        append(number: code.rawValue)
    }

    /// Appends WINDOW_UPDATE (RFC 9113 §6.9): 13 bytes.
    /// - Parameter streamID: 0 for the connection.
    public mutating func appendWindowUpdate(_ streamID: UInt32, _ increment: Int32) {
        assert(increment > 0)
        append(FrameHeader(length: 4, type: .windowUpdate, streamID: streamID))
        append(number: UInt32(truncatingIfNeeded: increment))
    }

    /// Appends PRIORITY_UPDATE (RFC 9218 §7.1).
    public mutating func appendPriorityUpdate(_ streamID: UInt32, _ priority: StreamPriority) {
        append(
            FrameHeader(
                length: priority.isIncremental ? 10 : 7, type: .priorityUpdate,
                streamID: 0))
        append(number: streamID)
        append("u=")
        append(byte: UInt8(ascii: "0") + priority.urgency)
        if priority.isIncremental { append(", i") }
    }
}
