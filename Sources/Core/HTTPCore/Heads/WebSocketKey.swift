/// The key in a WebSocket's opening handshake over HTTP/1, and the answer by which a server shows
/// that it has understood the request (RFC 6455 §4.1, §4.2.2). In HTTP/2 there is neither (RFC 8441
/// §5): whoever passes such a request on to HTTP/1 makes the key, and checks the answer.
public enum WebSocketKey {
    /// A new key: 16 random bytes in base64.
    public static func make() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16)
        for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
        return encoded(bytes)
    }

    /// The value of Sec-WebSocket-Accept that belongs to a key.
    public static func answer(to key: Span<UInt8>) -> [UInt8] {
        var message: [UInt8] = []
        for index in key.indices { message.append(key[index]) }
        message += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8
        return encoded(SHA1.digest(of: message))
    }

    private static func encoded(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        bytes.withUnsafeBytes { Base64.write($0) { text.append($0) } }
        return text
    }
}

/// SHA-1 (RFC 3174), which is good for nothing but this.
private enum SHA1 {
    static func digest(of message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        var padded = message + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        padded += bytes(of: UInt64(message.count) * 8)
        for start in stride(from: 0, to: padded.count, by: 64) {
            add(padded[start..<(start + 64)], to: &state)
        }
        return state.flatMap(bytes(of:))
    }

    private static func bytes<Number: FixedWidthInteger>(of number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    private static func add(_ block: ArraySlice<UInt8>, to state: inout [UInt32]) {
        var words: [UInt32] = stride(from: block.startIndex, to: block.endIndex, by: 4).map {
            block[$0..<($0 + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<80 {
            let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16]
            words.append(rotated(mixed, 1))
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for index in 0..<80 {
            let (mixed, constant): (UInt32, UInt32) =
                switch index {
                case 0..<20: (b & c | ~b & d, 0x5A82_7999)
                case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
                case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotated(a, 5) &+ mixed &+ e &+ constant &+ words[index]
            (a, b, c, d, e) = (next, a, rotated(b, 30), c, d)
        }
        for (index, value) in [a, b, c, d, e].enumerated() { state[index] &+= value }
    }

    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word << count | word >> (32 - count)
    }
}
