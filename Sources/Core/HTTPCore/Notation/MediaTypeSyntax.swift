/// The syntax of a media type with its parameters (RFC 9110 §8.3.1, §5.6.6).
///
///     media-type = token "/" token *( OWS ";" OWS [ parameter ] )
///     parameter  = token "=" ( token / quoted-string )
///
/// A value that does not parse to its end is not a media type. A reader that used only its
/// beginning would see another type than one that uses its end: in `application/json;,text/html`
/// browsers see `text/html`, because they split the field at commas outside quotation marks and use
/// the last type (Fetch, "extract a MIME type"). What is accepted beyond the grammar is what
/// servers and clients really send and nobody reads differently: white space around "=", an empty
/// value, and malformed parameters, which are skipped as browsers do (MIME Sniffing, "parse a MIME
/// type"). A malformed parameter has no "=", or an unquoted value that is not a token (`; utf-8`,
/// `; boundary=a b`, `; profile=http://a/`). It must contain no comma, and nothing that could hide
/// one: no quotation mark, backslash or comment. Nor may it be a charset: readers disagree on which
/// one is meant.
public enum MediaTypeSyntax {
    /// Reads a field's entire value.
    ///
    /// - Parameter parameter: called for each parameter with a name and "=", with the ranges of its
    ///   name and its value, the latter without quotation marks; also for one whose value is not a
    ///   token.
    /// - Returns: the ranges of type and subtype; `nil` if the value is not a media type.
    public static func read(
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

    /// The range of a parameter's value, and where it ends; `nil` if its closing quotation mark is
    /// missing, or if it is neither a token nor acceptable as a malformed parameter.
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

    /// Where a malformed parameter ends: at its ";" or at the end; `nil` if it cannot be skipped.
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

    /// The end of the token that begins at `start`.
    private static func token(_ value: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < value.count, ASCII.isToken(value[index]) { index += 1 }
        return index
    }

    /// The end of the white space that begins at `start`.
    private static func space(_ value: Span<UInt8>, _ start: Int) -> Int {
        var index = start
        while index < value.count, ASCII.isWhitespace(value[index]) { index += 1 }
        return index
    }
}
