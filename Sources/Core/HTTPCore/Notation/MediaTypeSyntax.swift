/// How a media type with its parameters is written (RFC 9110 §8.3.1, §5.6.6).
///
///     media-type = token "/" token *( OWS ";" OWS [ parameter ] )
///     parameter  = token "=" ( token / quoted-string )
///
/// What does not parse to its end is no media type. A reader who went by its beginning would see
/// another type than one who goes by its end: of `application/json;,text/html` browsers take
/// `text/html`, for they divide the field at commas outside quotation marks and take the last type
/// (Fetch, "extract a MIME type"). Read beyond the grammar is what servers and clients send and
/// nobody reads in another way: white space around "=", an empty value, and slips, which are passed
/// over as browsers do (MIME Sniffing, "parse a MIME type"). A slip is a parameter without "=", or
/// with an unquoted value that is no token (`; utf-8`, `; boundary=a b`, `; profile=http://a/`). It
/// has no comma, and nothing that could hide one: no quotation mark, backslash or comment. Nor is
/// it a charset: which one is meant readers tell differently.
package enum MediaTypeSyntax {
    /// Reads a field's value, all of it.
    ///
    /// - Parameter parameter: told of each parameter with a name and "=", by where its name and its
    ///   value are, the quotation marks of the value left out; also of one whose value is no token.
    /// - Returns: where type and subtype are; nil: it is no media type.
    package static func read(
        _ value: Span<UInt8>, parameter: (Range<Int>, Range<Int>) -> Void = { _, _ in }
    ) -> Range<Int>? {
        var position = space(value, 0)
        let start = position
        position = token(value, start)
        guard position > start, position < value.count, value[position] == UInt8(ascii: "/")
        else { return nil }
        let subtype = position + 1
        position = token(value, subtype)
        guard position > subtype else { return nil }
        let essence = start..<position
        position = space(value, position)
        while position < value.count {
            guard value[position] == UInt8(ascii: ";") else { return nil }
            position = space(value, position + 1)
            let name = position..<token(value, position)
            let equals = space(value, name.upperBound)
            guard !name.isEmpty, equals < value.count, value[equals] == UInt8(ascii: "=") else {
                guard let end = endOfSlip(value, position) else { return nil }
                position = end
                continue
            }
            position = space(value, equals + 1)
            let isCharset = value.extracting(name).equalsIgnoringCase("charset".utf8.span)
            guard let content = content(value, position, mayBeSlip: !isCharset) else { return nil }
            parameter(name, content.range)
            position = space(value, content.end)
        }
        return essence
    }

    /// A parameter's value, and where it ends; nil: its last quotation mark is missing, or it is
    /// neither a token nor a slip.
    private static func content(
        _ value: Span<UInt8>, _ start: Int, mayBeSlip: Bool
    ) -> (range: Range<Int>, end: Int)? {
        guard start < value.count, value[start] == UInt8(ascii: "\"") else {
            let end = token(value, start)
            let next = space(value, end)
            if next == value.count || value[next] == UInt8(ascii: ";") { return (start..<end, end) }
            guard mayBeSlip, let end = endOfSlip(value, start) else { return nil }
            return (start..<end, end)
        }
        var index = start + 1
        while index < value.count, value[index] != UInt8(ascii: "\"") {
            index += value[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index < value.count ? (start + 1..<index, index + 1) : nil
    }

    /// Where the parameter's ";" is, or the end; nil: it is no slip.
    private static func endOfSlip(_ value: Span<UInt8>, _ start: Int) -> Int? {
        var index = start
        while index < value.count, value[index] != UInt8(ascii: ";") {
            switch value[index] {
            case UInt8(ascii: ","), UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "("),
                UInt8(ascii: ")"):
                return nil
            case 0x20..<0x7F, UInt8(ascii: "\t"): index += 1
            default: return nil
            }
        }
        return index
    }

    /// Where the token that begins at `start` ends.
    private static func token(_ value: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < value.count, ASCII.isToken(value[index]) { index += 1 }
        return index
    }

    /// Where the white space that begins at `start` ends.
    private static func space(_ value: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < value.count, ASCII.isWhitespace(value[index]) { index += 1 }
        return index
    }
}
