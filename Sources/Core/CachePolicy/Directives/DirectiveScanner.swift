import HTTPCore

/// One directive as written in the field.
struct Directive {
    /// The name.
    var name: ByteRange
    /// The argument: a token, or the contents of a quoted string; `nil` if there is none.
    var argument: ByteRange?
    /// Whether something after the name or argument does not follow the grammar.
    var isMalformed = false

    /// The argument as delta-seconds (RFC 9111 §1.2.2), at most `CacheDirectives.maximumSeconds`;
    /// `nil` if it is not one or more digits.
    func seconds(in bytes: Span<UInt8>) -> Int64? {
        guard let argument, !isMalformed else { return nil }
        return DeltaSeconds.parse(argument, in: bytes)
    }
}

/// delta-seconds = 1*DIGIT (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The number, at most 2^31; `nil` if the range is empty or contains anything but digits.
    static func parse(_ range: ByteRange, in bytes: Span<UInt8>) -> Int64? {
        guard !range.isEmpty else { return nil }
        var value: Int64 = 0
        for index in range.indices {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            value = min(value * 10 + Int64(digit), CacheDirectives.maximumSeconds)
        }
        return value
    }
}

/// Splits the value of one field line into its directives.
///
///     Cache-Control   = #cache-directive
///     cache-directive = token [ "=" ( token / quoted-string ) ]
///
/// No whitespace is allowed around `=` (RFC 9111 §5.2). Empty list elements are skipped (RFC 9110
/// §5.6.1.2). After anything else the rest of the element is skipped and the directive is marked as
/// malformed, so that what was recognized still counts if it forbids something.
struct DirectiveScanner {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    /// The next directive; `nil` at the end.
    mutating func next(in bytes: Span<UInt8>) -> Directive? {
        skipSeparators(in: bytes)
        guard position < end else { return nil }
        let name = takeToken(in: bytes)
        var directive = Directive(name: name)
        if name.isEmpty { directive.isMalformed = true }
        if position < end, bytes[position] == UInt8(ascii: "="), !name.isEmpty {
            position += 1
            directive.argument = takeArgument(in: bytes)
            if directive.argument == nil { directive.isMalformed = true }
        }
        skipSpace(in: bytes)
        if position < end, bytes[position] != UInt8(ascii: ",") {
            directive.isMalformed = true
            skipElement(in: bytes)
        }
        return directive
    }

    private mutating func skipSeparators(in bytes: Span<UInt8>) {
        while position < end,
            ASCII.isWhitespace(bytes[position]) || bytes[position] == UInt8(ascii: ",")
        {
            position += 1
        }
    }

    private mutating func skipSpace(in bytes: Span<UInt8>) {
        while position < end, ASCII.isWhitespace(bytes[position]) { position += 1 }
    }

    private mutating func takeToken(in bytes: Span<UInt8>) -> ByteRange {
        let start = position
        position = bytes.endOfToken(from: start, to: end)
        return ByteRange(from: start, to: position)
    }

    /// Consumes a token, or a quoted string, whose contents it returns with escapes unprocessed;
    /// `nil` if there is neither or the closing quote is missing.
    private mutating func takeArgument(in bytes: Span<UInt8>) -> ByteRange? {
        guard position < end else { return nil }
        guard bytes[position] == UInt8(ascii: "\"") else {
            let token = takeToken(in: bytes)
            return token.isEmpty ? nil : token
        }
        let start = position + 1
        guard let close = QuotedString.end(from: position, to: end, in: bytes) else {
            position = end
            return nil
        }
        position = close
        return ByteRange(from: start, to: close - 1)
    }

    /// Skips to the next comma outside a quoted string.
    private mutating func skipElement(in bytes: Span<UInt8>) {
        while position < end, bytes[position] != UInt8(ascii: ",") {
            if bytes[position] == UInt8(ascii: "\"") {
                position = QuotedString.end(from: position, to: end, in: bytes) ?? end
            } else {
                position += 1
            }
        }
    }
}

/// quoted-string (RFC 9110 §5.6.4).
enum QuotedString {
    /// The offset after the closing quote of the string that opens at `start`; `nil` if it does not
    /// close before `end`.
    static func end(from start: Int, to end: Int, in bytes: Span<UInt8>) -> Int? {
        var index = start + 1
        while index < end {
            switch bytes[index] {
            case UInt8(ascii: "\""): return index + 1
            case UInt8(ascii: "\\"): index += 2
            default: index += 1
            }
        }
        return nil
    }
}
