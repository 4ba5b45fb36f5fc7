/// The head of a frame (RFC 6455, section 5.2).
///
///     +-+---+-------+-+-------------+-------------------------------+----------------+
///     |F| R | opcode|M| length (7)  | length (16 or 64, if 126, 127)| key (32, if M) |
///     +-+---+-------+-+-------------+-------------------------------+----------------+
struct WebSocketFrameHead: Hashable, Sendable {
    enum Opcode: UInt8, Sendable {
        case continuation = 0
        case text = 1
        case binary = 2
        case close = 8
        case ping = 9
        case pong = 10

        var isControl: Bool { rawValue >= 8 }
    }

    /// The maximum size of a control frame's content, in bytes.
    static let maximumControlBytes = 125

    var isFinal: Bool
    /// The first reserved bit, which is set in the first frame of a compressed message (RFC 7692,
    /// section 6).
    var isCompressed = false
    var opcode: Opcode
    /// The length of the content in bytes.
    var length: UInt64
    /// The masking key; its first byte is the most significant.
    var maskingKey: UInt32?

    /// Parses a head at the beginning of some bytes. Returns it with its length, or `nil` if more
    /// bytes are needed.
    ///
    /// - Parameter compressed: Whether messages may be compressed.
    static func parse(
        _ bytes: [UInt8], compressed: Bool = false
    ) throws(WebSocketError) -> (head: WebSocketFrameHead, count: Int)? {
        guard let first = bytes.first else { return nil }
        let isCompressed = first & 0x40 != 0
        guard first & 0x30 == 0, compressed || !isCompressed else { throw .reservedBits }
        guard let opcode = Opcode(rawValue: first & 0x0F) else { throw .unknownOpcode }
        guard !isCompressed || opcode == .text || opcode == .binary else { throw .reservedBits }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { throw .fragmentedControl }
        guard bytes.count > 1 else { return nil }
        let short = bytes[1] & 0x7F
        guard short <= maximumControlBytes || !opcode.isControl else { throw .controlTooLong }
        let lengthBytes = short == 126 ? 2 : short == 127 ? 8 : 0
        let isMasked = bytes[1] & 0x80 != 0
        let count = 2 + lengthBytes + (isMasked ? 4 : 0)
        guard bytes.count >= 2 + lengthBytes else { return nil }
        var length = UInt64(short)
        if lengthBytes > 0 {
            length = bytes[2..<(2 + lengthBytes)].reduce(0) { $0 << 8 | UInt64($1) }
            // The length must use the fewest bytes possible, and its first bit must be zero
            // (section 5.2).
            guard length > (lengthBytes == 2 ? 125 : 65_535), length >> 63 == 0 else {
                throw .badLength
            }
        }
        guard bytes.count >= count else { return nil }
        let key = bytes[(2 + lengthBytes)..<count].reduce(0) { $0 << 8 | UInt32($1) }
        let head = WebSocketFrameHead(
            isFinal: isFinal, isCompressed: isCompressed, opcode: opcode, length: length,
            maskingKey: isMasked ? key : nil)
        return (head, count)
    }

    /// Appends the encoded head.
    func append(to output: inout [UInt8]) {
        output.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
        let mask: UInt8 = maskingKey == nil ? 0 : 0x80
        switch length {
        case ...125: output.append(mask | UInt8(length))
        case ...65_535:
            output.append(mask | 126)
            Self.append(length, bytes: 2, to: &output)
        default:
            output.append(mask | 127)
            Self.append(length, bytes: 8, to: &output)
        }
        if let maskingKey { Self.append(UInt64(maskingKey), bytes: 4, to: &output) }
    }

    private static func append(_ number: UInt64, bytes: Int, to output: inout [UInt8]) {
        for index in (0..<bytes).reversed() {
            output.append(UInt8(truncatingIfNeeded: number >> UInt64(index * 8)))
        }
    }

    /// Masks or unmasks content (section 5.3).
    ///
    /// - Parameter offset: The position of the first byte within the frame's content.
    static func mask(_ bytes: inout [UInt8], from start: Int, key: UInt32, offset: UInt64) {
        let shift = UInt32(offset & 3) * 8
        // The key, rotated to where the first byte is.
        let key = key << shift | key >> (32 - shift)
        let wide = (UInt64(key) << 32 | UInt64(key)).bigEndian
        bytes.withUnsafeMutableBytes { bytes in
            var index = start
            while index + 8 <= bytes.count {
                let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
                bytes.storeBytes(of: word ^ wide, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            for (position, index) in (index..<max(index, bytes.count)).enumerated() {
                bytes[index] ^= UInt8(truncatingIfNeeded: key >> UInt32(24 - (position & 3) * 8))
            }
        }
    }
}

/// A violation of RFC 6455 by the peer, or of a limit.
public enum WebSocketError: Error, Hashable, Sendable, CaseIterable {
    /// A reserved bit is set that no negotiated extension uses.
    case reservedBits
    /// The opcode is not defined in RFC 6455.
    case unknownOpcode
    /// A control frame is fragmented.
    case fragmentedControl
    /// A control frame has more than 125 bytes.
    case controlTooLong
    /// A length is not encoded in the fewest bytes, or is 2⁶³ or more.
    case badLength
    /// A client's frame is not masked, or a server's frame is.
    case wrongMasking
    /// A continuation frame without a message to continue.
    case unexpectedContinuation
    /// A new message begins before the previous one has ended.
    case messageWithinMessage
    /// A text message, or the reason in a close frame, is not valid UTF-8.
    case notUTF8
    /// A close frame has one byte of content, or a code that may not be sent.
    case badClose
    /// A message is larger than the limit.
    case tooLarge
    /// A message is marked as compressed, but is not valid compressed data, or depends on an
    /// earlier message.
    case corruptCompression

    /// The status code with which the connection is closed (section 7.4.1).
    public var closeCode: UInt16 {
        switch self {
        case .notUTF8, .corruptCompression: 1007
        case .tooLarge: 1009
        default: 1002
        }
    }
}
