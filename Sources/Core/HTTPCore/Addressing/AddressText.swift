/// The text of an address or an endpoint, stored inline: log lines copy it without a `String`.
public struct AddressText: Sendable {
    /// The longest text: an IPv6 address with an IPv4 tail (45), brackets, colon and port (8).
    public static let maximumBytes = 56

    private var storage = InlineArray<56, UInt8>(repeating: 0)

    /// The length of the text in bytes.
    public private(set) var count = 0

    fileprivate init() {}

    /// Calls the body with the text's bytes (ASCII).
    public func withUnsafeBytes<Result>(
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        storage.span.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    fileprivate mutating func append(_ byte: UInt8) {
        storage[count] = byte
        count += 1
    }

    fileprivate mutating func append(decimal value: UInt32) {
        var divisor: UInt32 = 1
        while value / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
            divisor /= 10
        }
    }

    fileprivate mutating func append(hex value: UInt16) {
        var shift: UInt16 = 12
        while shift > 0, value >> shift == 0 { shift -= 4 }
        while true {
            let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
            append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            guard shift > 0 else { return }
            shift -= 4
        }
    }

    fileprivate mutating func append(v4 value: UInt32) {
        append(decimal: value >> 24)
        for shift: UInt32 in [16, 8, 0] {
            append(UInt8(ascii: "."))
            append(decimal: value >> shift & 255)
        }
    }

    /// RFC 5952 §4: lower case, no leading zeros, the longest run of two or more zero groups
    /// (the first of equals) as "::"; §5: the IPv4 tail for mapped addresses only.
    fileprivate mutating func append(v6 high: UInt64, _ low: UInt64) {
        if high == 0, low >> 32 == 0xffff {
            for byte in "::ffff:".utf8 { append(byte) }
            append(v4: UInt32(truncatingIfNeeded: low))
            return
        }
        func group(_ index: Int) -> UInt16 {
            UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> UInt64((3 - index % 4) * 16))
        }
        var run = (start: 8, length: 1)
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, group(end) == 0 { end += 1 }
            if end - start > run.length { run = (start, end - start) }
            start = end + 1
        }
        var index = 0
        while index < 8 {
            if index == run.start {
                append(UInt8(ascii: ":"))
                append(UInt8(ascii: ":"))
                index += run.length
                continue
            }
            if index > 0, index != run.start + run.length { append(UInt8(ascii: ":")) }
            append(hex: group(index))
            index += 1
        }
    }
}

extension IPAddress {
    /// In place of the address of a client of a Unix socket.
    static let unixText: AddressText = {
        var text = AddressText()
        for byte in IPNetwork.unixWord.utf8 { text.append(byte) }
        return text
    }()
}

extension IPAddress: CustomStringConvertible {
    /// The canonical text (RFC 5952), stored inline, without a `String`.
    public var text: AddressText {
        var text = AddressText()
        switch self {
        case .v4(let value): text.append(v4: value)
        case .v6(let high, let low): text.append(v6: high, low)
        }
        return text
    }

    /// The canonical text (RFC 5952): `127.0.0.1`, `2001:db8::1`, `::ffff:127.0.0.1`.
    public var description: String { String(text) }
}

extension Endpoint: CustomStringConvertible {
    /// `127.0.0.1:80` or `[::1]:80`, stored inline, without a `String`.
    public var text: AddressText {
        var text = AddressText()
        switch address {
        case .v4(let value):
            text.append(v4: value)
        case .v6(let high, let low):
            text.append(UInt8(ascii: "["))
            text.append(v6: high, low)
            text.append(UInt8(ascii: "]"))
        }
        text.append(UInt8(ascii: ":"))
        text.append(decimal: UInt32(port))
        return text
    }

    /// `127.0.0.1:80` or `[::1]:80`.
    public var description: String { String(text) }
}

extension String {
    /// The text as a string.
    public init(_ text: AddressText) {
        self = text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}
