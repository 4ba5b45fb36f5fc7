/// A destination for JSON text.
public protocol JSONOutput: ~Copyable {
    mutating func append(_ byte: UInt8)
    mutating func append(_ bytes: UnsafeRawBufferPointer)
    mutating func append(_ text: StaticString)
}

/// Bytes as the contents of a JSON string (RFC 8259 §7).
public enum JSONText {
    /// Appends bytes that are expected to be UTF-8. Invalid bytes are replaced by U+FFFD, one for
    /// each maximal subpart of a truncated character (Unicode 15 §3.9), so that the line is UTF-8
    /// whatever a client sent. Quotation marks, backslashes and control characters are escaped; so
    /// are DEL and U+0080 to U+009F, which terminals interpret, and U+2028 and U+2029, which end
    /// lines in JavaScript.
    @inlinable
    public static func append<Output: JSONOutput & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, to output: inout Output
    ) {
        var clean = 0
        var index = 0
        while index < bytes.count {
            if index + 8 <= bytes.count,
                isPlain(bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            {
                index += 8
                continue
            }
            let byte = bytes[index]
            if byte >= 0x20 && byte < 0x7f && byte != UInt8(ascii: "\"")
                && byte != UInt8(ascii: "\\")
            {
                index += 1
                continue
            }
            if byte >= 0x80, let length = characterLength(bytes, at: index) {
                index += length
                continue
            }
            output.append(UnsafeRawBufferPointer(rebasing: bytes[clean..<index]))
            index += appendEscaped(bytes, at: index, to: &output)
            clean = index
        }
        output.append(UnsafeRawBufferPointer(rebasing: bytes[clean...]))
    }

    /// Whether all eight bytes are printable ASCII and none needs an escape. A byte is below `n` if
    /// subtracting `n` borrows into its highest bit; it equals `n` if the difference, as bits, is
    /// below 1. (A borrow into the next byte only comes from a byte that is special itself.)
    @inlinable
    static func isPlain(_ eight: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        func hasByte(_ word: UInt64, below limit: UInt64) -> UInt64 {
            (word &- ones &* limit) & ~word
        }
        let special =
            eight | hasByte(eight, below: 0x20) | hasByte(eight ^ ones &* 0x22, below: 1)
            | hasByte(eight ^ ones &* 0x5c, below: 1) | hasByte(eight ^ ones &* 0x7f, below: 1)
        return special & tops == 0
    }

    /// Appends the escape or replacement for the byte or character at `index`, which cannot be
    /// written as it is; returns how many bytes it replaces.
    @inlinable
    static func appendEscaped<Output: JSONOutput & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, at index: Int, to output: inout Output
    ) -> Int {
        let byte = bytes[index]
        switch byte {
        case UInt8(ascii: "\""): output.append("\\\"")
        case UInt8(ascii: "\\"): output.append("\\\\")
        case UInt8(ascii: "\n"): output.append("\\n")
        case UInt8(ascii: "\r"): output.append("\\r")
        case UInt8(ascii: "\t"): output.append("\\t")
        case 0..<0x80: appendUnicode(byte, to: &output)
        case 0xc2 where index + 1 < bytes.count && bytes[index + 1] & 0xe0 == 0x80:
            appendUnicode(bytes[index + 1], to: &output)
            return 2
        case 0xe2 where isLineSeparator(bytes, at: index):
            output.append(bytes[index + 2] == 0xa8 ? "\\u2028" : "\\u2029")
            return 3
        default:
            output.append("\\ufffd")
            return brokenLength(bytes, at: index)
        }
        return 1
    }

    @inlinable
    static func appendUnicode<Output: JSONOutput & ~Copyable>(
        _ value: UInt8, to output: inout Output
    ) {
        output.append("\\u00")
        output.append(ASCII.hexDigit(value >> 4))
        output.append(ASCII.hexDigit(value))
    }

    /// The length of the well-formed multibyte character at `index`; `nil` if there is none or it
    /// is a control character.
    @inlinable
    static func characterLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int? {
        let length = expectedLength(bytes[index])
        guard length > 0, partLength(bytes, at: index) == length else { return nil }
        if bytes[index] == 0xc2 && bytes[index + 1] < 0xa0 { return nil }
        return isLineSeparator(bytes, at: index) ? nil : length
    }

    /// Whether U+2028 or U+2029 is at `index`.
    @inlinable
    static func isLineSeparator(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Bool {
        bytes[index] == 0xe2 && index + 2 < bytes.count && bytes[index + 1] == 0x80
            && bytes[index + 2] & 0xfe == 0xa8
    }

    /// How many bytes are replaced together: those that could begin a character, but at least one.
    @inlinable
    static func brokenLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        max(1, partLength(bytes, at: index))
    }

    /// The length that a first byte announces; 0 if it cannot begin a character (Unicode 15 table
    /// 3-7).
    @inlinable
    static func expectedLength(_ first: UInt8) -> Int {
        switch first {
        case 0xc2...0xdf: 2
        case 0xe0...0xef: 3
        case 0xf0...0xf4: 4
        default: 0
        }
    }

    /// How many bytes from `index` on are the beginning of a character, or all of one.
    @inlinable
    static func partLength(_ bytes: UnsafeRawBufferPointer, at index: Int) -> Int {
        let first = bytes[index]
        let length = expectedLength(first)
        guard length > 0 else { return 0 }
        var count = 1
        while count < length && index + count < bytes.count {
            let byte = bytes[index + count]
            guard count == 1 ? isSecond(byte, after: first) : byte & 0xc0 == 0x80 else { break }
            count += 1
        }
        return count
    }

    /// Whether a byte may be a character's second byte: overlong forms, surrogates and values
    /// beyond U+10FFFF are rejected here.
    @inlinable
    static func isSecond(_ byte: UInt8, after first: UInt8) -> Bool {
        switch first {
        case 0xe0: (0xa0...0xbf).contains(byte)
        case 0xed: (0x80...0x9f).contains(byte)
        case 0xf0: (0x90...0xbf).contains(byte)
        case 0xf4: (0x80...0x8f).contains(byte)
        default: byte & 0xc0 == 0x80
        }
    }

    /// The text as a JSON string, including its quotation marks.
    public static func quoted(_ text: String) -> String {
        var text = text
        return text.withUTF8 { quoted(UnsafeRawBufferPointer($0)) }
    }

    /// Bytes that are expected to be UTF-8 as a JSON string, including its quotation marks.
    public static func quoted(_ bytes: UnsafeRawBufferPointer) -> String {
        var output = JSONBytes()
        output.append(UInt8(ascii: "\""))
        append(bytes, to: &output)
        output.append(UInt8(ascii: "\""))
        return String(decoding: output.bytes, as: UTF8.self)
    }
}

/// JSON collected in an array.
private struct JSONBytes: JSONOutput {
    var bytes: [UInt8] = []

    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    mutating func append(_ more: UnsafeRawBufferPointer) { bytes.append(contentsOf: more) }

    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }
}

/// A JSON object under construction.
public struct JSONObject {
    private var members: [String] = []

    public init() {}

    /// Adds a string, or null.
    public mutating func add(_ name: String, _ value: String?) {
        add(raw: name, value.map(JSONText.quoted) ?? "null")
    }

    /// Adds a number, or null.
    public mutating func add(_ name: String, _ value: Int?) {
        add(raw: name, value.map { "\($0)" } ?? "null")
    }

    /// Adds a Boolean, or null.
    public mutating func add(_ name: String, _ value: Bool?) {
        add(raw: name, value.map { "\($0)" } ?? "null")
    }

    /// Adds an array of strings.
    public mutating func add(_ name: String, _ values: [String]) {
        add(raw: name, "[\(values.map(JSONText.quoted).joined(separator: ","))]")
    }

    /// Adds an object, or null.
    public mutating func add(_ name: String, _ value: JSONObject?) {
        add(raw: name, value?.text ?? "null")
    }

    /// Adds an array of objects.
    public mutating func add(_ name: String, _ values: [JSONObject]) {
        add(raw: name, "[\(values.map(\.text).joined(separator: ","))]")
    }

    /// Adds a value that is already JSON.
    public mutating func add(raw name: String, _ value: String) {
        members.append("\(JSONText.quoted(name)):\(value)")
    }

    /// The object, on one line.
    public var text: String { "{\(members.joined(separator: ","))}" }
}
