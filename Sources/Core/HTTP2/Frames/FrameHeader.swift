/// The nine bytes before every frame's payload (RFC 9113 §4.1).
///
///     +-----------------------------------------------+
///     |                 Length (24)                   |
///     +---------------+---------------+---------------+
///     |   Type (8)    |   Flags (8)   |
///     +-+-------------+---------------+-------------------------------+
///     |R|                 Stream Identifier (31)                      |
///     +=+=============================================================+
public struct FrameHeader: Equatable, Sendable {
    /// The size of a frame header.
    public static let bytes = 9
    /// The greatest size of a payload that the format can express, 2^24 - 1.
    public static let greatestLength = 1 << 24 - 1

    /// The size of the payload in bytes.
    public var length: Int
    public var type: FrameType
    public var flags: FrameFlags
    /// The stream, or 0 for the connection; the reserved bit is never part of it.
    public var streamID: UInt32

    @inlinable
    public init(length: Int, type: FrameType, flags: FrameFlags = [], streamID: UInt32) {
        self.length = length
        self.type = type
        self.flags = flags
        self.streamID = streamID
    }

    /// Reads the header at the front of `bytes`, which has at least nine.
    @inlinable @inline(__always)
    public init(reading bytes: RawSpan) {
        precondition(bytes.byteCount >= FrameHeader.bytes)
        let first = UInt64(
            bigEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: 0, as: UInt64.self))
        let last = bytes.unsafeLoad(fromUncheckedByteOffset: 8, as: UInt8.self)
        length = Int(truncatingIfNeeded: first >> 40)
        type = FrameType(rawValue: UInt8(truncatingIfNeeded: first >> 32))
        flags = FrameFlags(rawValue: UInt8(truncatingIfNeeded: first >> 24))
        streamID = (UInt32(truncatingIfNeeded: first) << 8 | UInt32(last)) & 0x7FFF_FFFF
    }

    /// Writes the nine bytes to `memory`, as when a frame's length is known only after its payload.
    @inlinable @inline(__always)
    public func store(to memory: UnsafeMutableRawPointer) {
        assert(length >= 0 && length <= FrameHeader.greatestLength && streamID >> 31 == 0)
        let first =
            UInt64(truncatingIfNeeded: length) << 40 | UInt64(type.rawValue) << 32
            | UInt64(flags.rawValue) << 24 | UInt64(streamID) >> 8
        memory.storeBytes(of: first.bigEndian, as: UInt64.self)
        memory.storeBytes(
            of: UInt8(truncatingIfNeeded: streamID), toByteOffset: 8, as: UInt8.self)
    }
}

/// What a frame is (RFC 9113 §6, RFC 9218 §7.1). Any value may arrive: unknown types are ignored.
public struct FrameType: RawRepresentable, Equatable, Sendable {
    public let rawValue: UInt8

    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    @inlinable public static var data: FrameType { FrameType(rawValue: 0) }
    @inlinable public static var headers: FrameType { FrameType(rawValue: 1) }
    @inlinable public static var priority: FrameType { FrameType(rawValue: 2) }
    @inlinable public static var resetStream: FrameType { FrameType(rawValue: 3) }
    @inlinable public static var settings: FrameType { FrameType(rawValue: 4) }
    @inlinable public static var pushPromise: FrameType { FrameType(rawValue: 5) }
    @inlinable public static var ping: FrameType { FrameType(rawValue: 6) }
    @inlinable public static var goaway: FrameType { FrameType(rawValue: 7) }
    @inlinable public static var windowUpdate: FrameType { FrameType(rawValue: 8) }
    @inlinable public static var continuation: FrameType { FrameType(rawValue: 9) }
    @inlinable public static var priorityUpdate: FrameType { FrameType(rawValue: 16) }
}

/// The flags of a frame; what each bit means depends on the type. Undefined ones are ignored.
public struct FrameFlags: OptionSet, Sendable {
    public let rawValue: UInt8

    @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// DATA and HEADERS: the sender sends nothing more on the stream.
    @inlinable public static var endStream: FrameFlags { FrameFlags(rawValue: 0x1) }
    /// SETTINGS and PING: the frame answers one of the recipient's.
    @inlinable public static var acknowledgment: FrameFlags { FrameFlags(rawValue: 0x1) }
    /// HEADERS and CONTINUATION: the field block is complete.
    @inlinable public static var endHeaders: FrameFlags { FrameFlags(rawValue: 0x4) }
    /// DATA and HEADERS: the payload begins with the length of the padding at its end.
    @inlinable public static var padded: FrameFlags { FrameFlags(rawValue: 0x8) }
    /// HEADERS: five bytes of deprecated priority precede the field block.
    @inlinable public static var priority: FrameFlags { FrameFlags(rawValue: 0x20) }
}
