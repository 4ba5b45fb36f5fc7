import HTTPCore

/// The syntax of values, by what their names mean. Each function examines the `count` bytes from
/// `value`, and may read up to eight bytes after them.
enum ValueSyntax {
    /// The longest authority: a name of 253 bytes with a final dot, and a port.
    static let authorityBytes = 260

    /// Visible ASCII, spaces, tabs and bytes above ASCII, with no space or tab at either end (RFC
    /// 9113 §8.2.1, RFC 9110 §5.5).
    @inline(__always)
    static func faultOfField(_ value: UnsafeRawPointer, _ count: Int) -> MessageError? {
        guard count > 0 else { return nil }
        var offset = 0
        var odd: UInt64 = 0
        while offset &+ 8 <= count {
            odd |= oddInField(WordCopy.word(value + offset))
            offset &+= 8
        }
        if offset < count {
            odd |= oddInField(
                padded(
                    WordCopy.word(value + offset), to: count &- offset, with: 0x2121_2121_2121_2121)
            )
        }
        let first = value.load(as: UInt8.self)
        let last = (value + (count &- 1)).load(as: UInt8.self)
        if odd == 0, first != 0x20, last != 0x20 { return nil }
        return faultOfOddField(value, count)
    }

    @inline(__always)
    private static func oddInField(_ word: UInt64) -> UInt64 {
        WordSearch.below(0x20, in: word) | WordSearch.equal(0x7F, in: word)
    }

    /// A word whose first `count` bytes, of 1 to 7, count, and the others are replaced.
    @inline(__always)
    private static func padded(_ word: UInt64, to count: Int, with filler: UInt64) -> UInt64 {
        let mask = UInt64.max &<< UInt64(truncatingIfNeeded: count &* 8)
        return word & ~mask | filler & mask
    }

    @inline(never)
    private static func faultOfOddField(_ value: UnsafeRawPointer, _ count: Int) -> MessageError? {
        let bytes = UnsafeRawBufferPointer(start: value, count: count)
        guard bytes.allSatisfy(ByteClass.isFieldValue) else { return .badFieldValueByte }
        if ASCII.isWhitespace(bytes[0]) || ASCII.isWhitespace(bytes[count &- 1]) {
            return .whitespaceAroundValue
        }
        return nil
    }

    /// A path with an optional query, or `*`: visible ASCII without `#` (RFC 9113 §8.3.1).
    @inline(__always)
    static func faultOfPath(_ value: UnsafeRawPointer, _ count: Int) -> MessageError? {
        guard count > 0 else { return .emptyPath }
        var offset = 0
        var odd: UInt64 = 0
        while offset &+ 8 <= count {
            odd |= oddInPath(WordCopy.word(value + offset))
            offset &+= 8
        }
        if offset < count {
            odd |= oddInPath(
                padded(
                    WordCopy.word(value + offset), to: count &- offset, with: 0x2121_2121_2121_2121)
            )
        }
        if odd == 0, value.load(as: UInt8.self) == UInt8(ascii: "/") { return nil }
        return faultOfOddPath(value, count)
    }

    @inline(__always)
    private static func oddInPath(_ word: UInt64) -> UInt64 {
        WordSearch.below(0x21, in: word) | WordSearch.equal(0x7F, in: word)
            | WordSearch.equal(UInt8(ascii: "#"), in: word) | (word & WordSearch.highBits)
    }

    @inline(never)
    private static func faultOfOddPath(_ value: UnsafeRawPointer, _ count: Int) -> MessageError? {
        let bytes = UnsafeRawBufferPointer(start: value, count: count)
        if let odd = bytes.first(where: { !ByteClass.isTarget($0) }) {
            return odd == UInt8(ascii: "#") ? .fragmentInPath : .badPathByte
        }
        if bytes[0] == UInt8(ascii: "/") || count == 1 && bytes[0] == UInt8(ascii: "*") {
            return nil
        }
        return .malformedPath
    }

    /// The values of all other roles, which are rarely examined.
    @inline(never)
    static func faultOfRare(
        _ role: FieldRole, _ value: UnsafeRawPointer, _ count: Int
    ) -> MessageError? {
        let bytes = UnsafeRawBufferPointer(start: value, count: count)
        switch role {
        case .contentLength: return faultOfLength(bytes)
        case .authority, .host: return faultOfAuthority(bytes)
        case .te: return holds(bytes, "trailers") ? nil : .forbiddenTE
        case .method:
            return !bytes.isEmpty && bytes.allSatisfy(ByteClass.isToken) ? nil : .malformedMethod
        case .protocolName:
            return !bytes.isEmpty && bytes.allSatisfy(ByteClass.isToken) ? nil : .malformedProtocol
        case .scheme:
            return holds(bytes, "http") || holds(bytes, "https") ? nil : .unsupportedScheme
        case .status:
            let isStatus = bytes.count == 3 && bytes.allSatisfy(ASCII.isDigit) && bytes[0] > 0x30
            return isStatus ? nil : .malformedStatus
        case .connection, .unknownPseudo, .invalid, .regular, .cookie, .priority, .path: return nil
        }
    }

    private static func holds(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        bytes.count == text.utf8CodeUnitCount
            && bytes.indices.allSatisfy { ASCII.lowercased(bytes[$0]) == text.utf8Start[$0] }
    }

    /// A decimal number up to 2^63 - 1.
    private static func faultOfLength(_ bytes: UnsafeRawBufferPointer) -> MessageError? {
        guard !bytes.isEmpty, bytes.allSatisfy(ASCII.isDigit) else {
            return .malformedContentLength
        }
        return number(bytes) == nil ? .contentLengthTooLarge : nil
    }

    /// The number that digits write; `nil` if it exceeds 2^63 - 1.
    static func number(_ digits: UnsafeRawBufferPointer) -> Int64? {
        var value: Int64 = 0
        for byte in digits {
            let (tens, isLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, isLarger) = tens.addingReportingOverflow(Int64(byte &- 0x30))
            guard !isLarge, !isLarger else { return nil }
            value = sum
        }
        return value
    }

    /// The bytes that an authority may have; whether they are a host and a port is decided where a
    /// head is parsed.
    private static func faultOfAuthority(_ bytes: UnsafeRawBufferPointer) -> MessageError? {
        guard !bytes.isEmpty else { return .emptyAuthority }
        if bytes.contains(UInt8(ascii: "@")) { return .userinfoInAuthority }
        guard bytes.count <= authorityBytes, bytes.allSatisfy(isAuthority) else {
            return .malformedAuthority
        }
        return nil
    }

    /// Unreserved characters, sub-delimiters, `%`, `:` and brackets (RFC 3986 §3.2).
    private static func isAuthority(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"),
            UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "&"), UInt8(ascii: "'"),
            UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "="), UInt8(ascii: "%"),
            UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: ASCII.isLetter(byte) || ASCII.isDigit(byte)
        }
    }
}
