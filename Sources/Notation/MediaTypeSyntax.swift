/// How a media type with its parameters is written (RFC 9110 §8.3.1, §5.6.6).
///
///     media-type = token "/" token *( OWS ";" OWS [ parameter ] )
///     parameter  = token "=" ( token / quoted-string )
///
/// What does not parse to its end is no media type. A reader who went by its beginning would see
/// another type than one who goes by its end: of `application/json;,text/html` browsers take
/// `text/html`. Three things are read beyond the grammar, because servers and clients send them and
/// nobody reads them in another way: white space around "=", an empty value, and a boundary with
/// `=`, `/`, `?` or `:` outside quotation marks.
package enum MediaTypeSyntax {
    /// Reads a field's value, all of it.
    ///
    /// - Parameter parameter: told of each parameter, by where its name and its value are, the
    ///   quotation marks of the value left out.
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
            guard !name.isEmpty else { continue }
            position = space(value, name.upperBound)
            guard position < value.count, value[position] == UInt8(ascii: "=") else { return nil }
            position = space(value, position + 1)
            guard let content = content(value, position, isBoundary: isBoundary(value, name)) else {
                return nil
            }
            parameter(name, content.range)
            position = space(value, content.end)
        }
        return essence
    }

    /// Whether a byte may be in a boundary outside quotation marks, although no token may hold it.
    package static func isBareBoundary(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "="), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: ":"): true
        default: false
        }
    }

    private static func isBoundary(_ value: Span<UInt8>, _ name: Range<Int>) -> Bool {
        value.extracting(name).equalsIgnoringCase("boundary".utf8.span)
    }

    /// A parameter's value, and where it ends; nil: its last quotation mark is missing.
    private static func content(
        _ value: Span<UInt8>, _ start: Int, isBoundary: Bool
    ) -> (range: Range<Int>, end: Int)? {
        guard start < value.count, value[start] == UInt8(ascii: "\"") else {
            var end = token(value, start)
            while isBoundary, end < value.count, isBareBoundary(value[end]) {
                end = token(value, end + 1)
            }
            return (start..<end, end)
        }
        var index = start + 1
        while index < value.count, value[index] != UInt8(ascii: "\"") {
            index += value[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return index < value.count ? (start + 1..<index, index + 1) : nil
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
