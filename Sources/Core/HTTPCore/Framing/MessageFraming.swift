/// Reads Content-Length and Transfer-Encoding, for requests and responses alike (RFC 9112 §6).
///
/// Stricter than the RFC where it leaves a choice: several equal Content-Length values are refused
/// in requests, empty list elements are refused in Transfer-Encoding, and chunked is the only
/// coding that is known.
enum MessageFraming {
    /// The framing that the fields specify: `chunked`, `length`, or `nil` if they specify none.
    @inline(__always)
    static func read(
        _ fields: borrowing FieldSection, _ version: HTTPVersion, _ bytes: HeadBytes
    ) throws(WireError) -> BodyFraming? {
        if fields.contains(.transferEncoding) {
            guard version.hasTransferCodings else { throw .transferEncodingInHTTP10 }
            guard !fields.contains(.contentLength) else {
                throw .contentLengthWithTransferEncoding
            }
            try checkTransferEncoding(fields, bytes)
            return .chunked
        }
        return try length(fields, bytes)
    }

    /// The framing that Content-Length specifies; `nil` if there is none.
    static func length(
        _ fields: borrowing FieldSection, _ bytes: HeadBytes
    ) throws(WireError) -> BodyFraming? {
        guard let field = fields.first(.contentLength) else { return nil }
        guard !fields.repeated.contains(.contentLength) else { throw .repeatedContentLength }
        return .length(try parseContentLength(bytes, field.value))
    }

    /// As ``read(_:_:_:)``, but if `readsEqualLengths`, the same length may be given several times,
    /// on several lines or in a list (RFC 9110 §8.6): such a section is marked for repair.
    @inline(__always)
    static func read(
        _ fields: inout FieldSection, _ version: HTTPVersion, _ bytes: HeadBytes,
        readingEqualLengths readsEqualLengths: Bool
    ) throws(WireError) -> BodyFraming? {
        do throws(WireError) {
            return try read(fields, version, bytes)
        } catch .repeatedContentLength where readsEqualLengths {
            return .length(try readEqualLengths(&fields, bytes))
        } catch {
            throw error
        }
    }

    /// The one number to which all members of all Content-Length fields must be equal.
    @inline(never)
    private static func readEqualLengths(
        _ fields: inout FieldSection, _ bytes: HeadBytes
    ) throws(WireError) -> UInt64 {
        var length: UInt64?
        for index in 0..<fields.count where fields[index].id == .contentLength {
            var start = Int(fields[index].value.start)
            let end = Int(fields[index].value.end)
            repeat {
                let comma = bytes.first(Byte.comma, from: start, to: end) ?? end
                let member = bytes.trimmed(from: start, to: comma)
                let value = try parseContentLength(bytes, member)
                guard length == nil || length == value else { throw .repeatedContentLength }
                length = value
                // A comma must be followed by a member.
                start = comma &+ 1
            } while start <= end
        }
        guard let length else { throw .malformedContentLength }
        fields.isIrregular = true
        return length
    }

    /// `Content-Length = 1*DIGIT`, below 2^63.
    private static func parseContentLength(
        _ bytes: HeadBytes, _ range: ByteRange
    ) throws(WireError) -> UInt64 {
        guard !range.isEmpty else { throw .malformedContentLength }
        var value: UInt64 = 0
        var isTooLarge = false
        for index in range.indices {
            let byte = bytes[index]
            guard ASCII.isDigit(byte) else {
                throw byte == Byte.comma ? .repeatedContentLength : .malformedContentLength
            }
            let digit = UInt64(byte &- 0x30)
            isTooLarge = isTooLarge || value > (UInt64(Int64.max) &- digit) / 10
            value = value &* 10 &+ digit
        }
        guard !isTooLarge else { throw .contentLengthTooLarge }
        return value
    }

    /// Accepts the only list of codings that is supported: chunked, once.
    ///
    /// - Parameter passesOverIdentity: whether `identity`, which RFC 2616 had, is ignored.
    /// - Returns: false if there is no coding besides `identity`.
    @discardableResult
    static func checkTransferEncoding(
        _ fields: borrowing FieldSection, _ bytes: HeadBytes, passesOverIdentity: Bool = false
    ) throws(WireError) -> Bool {
        var isChunked = false
        var isUnknown = false
        for index in 0..<fields.count where fields[index].id == .transferEncoding {
            var list = TokenList(fields[index].value, allowsEmpty: false)
            repeat {
                guard let coding = try list.next(bytes, fault: .malformedTransferEncoding) else {
                    break
                }
                if bytes.holds(lowercase: "chunked", at: coding) {
                    guard !isChunked else { throw .repeatedChunked }
                    isChunked = true
                } else if passesOverIdentity, bytes.holds(lowercase: "identity", at: coding) {
                    continue
                } else {
                    guard !isChunked else { throw .chunkedNotFinal }
                    isUnknown = true
                }
            } while true
        }
        guard !isUnknown else { throw .unknownTransferCoding }
        return isChunked
    }
}

/// An iterator over a comma-separated list of tokens (RFC 9110 §5.6.1).
struct TokenList {
    private var position: Int
    private let end: Int
    private let allowsEmpty: Bool
    private var isAtElement = true

    /// Creates an iterator over a field's value. `allowsEmpty` permits empty elements between,
    /// before and after commas.
    init(_ value: ByteRange, allowsEmpty: Bool) {
        position = Int(value.start)
        end = Int(value.end)
        self.allowsEmpty = allowsEmpty
    }

    /// The next token, or `nil` at the end of the list. Throws `fault` if the value is not a list
    /// of tokens.
    mutating func next(
        _ bytes: HeadBytes, fault: WireError
    ) throws(WireError) -> ByteRange? {
        while isAtElement {
            skipSpace(bytes)
            let start = position
            while position < end, ByteClass.isToken(bytes[position]) { position &+= 1 }
            let token = ByteRange(from: start, to: position)
            skipSpace(bytes)
            isAtElement = position < end
            if isAtElement {
                guard bytes[position] == Byte.comma else { throw fault }
                position &+= 1
            }
            if !token.isEmpty { return token }
            guard allowsEmpty else { throw fault }
        }
        return nil
    }

    /// A value contains line endings only if it continues on the next line (``LineRepair``).
    private mutating func skipSpace(_ bytes: HeadBytes) {
        while position < end,
            ASCII.isWhitespace(bytes[position]) || bytes[position] == Byte.carriageReturn
                || bytes[position] == Byte.lineFeed
        {
            position &+= 1
        }
    }
}
