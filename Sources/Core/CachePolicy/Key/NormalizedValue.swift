import HTTPCore

/// The value of one request field, normalized for comparison byte by byte by Vary (RFC 9111 §4.1):
/// its lines are joined by commas, whitespace around commas outside quoted strings is removed, and
/// letters are lowercased for fields whose members are case-insensitive.
///
/// A field that Connection nominates counts as absent: it is not part of the forwarded request, and
/// the response is for those who do not send the field.
///
/// Fields that are not lists keep their value as it is, because commas are not separators in them.
/// The order of members is kept: it is significant in most lists. In Accept-Encoding and
/// Accept-Language it is not, unless members have weights: their canonical order is that of
/// `ListMeaning` (``bytes(name:fields:in:by:)``).
struct NormalizedValue {
    /// Whether the request has the field.
    let isPresent: Bool
    /// Whether the field may have several lines.
    private let isRepeatable: Bool
    /// How its value is normalized.
    private let style: Style
    /// The index of the current line.
    private var line: Int
    /// The offset of the next byte, and the end, of that line's value.
    private var position: Int
    private var end: Int
    private var isQuoted = false
    private var isEscaped = false
    /// Whether a byte of a member has been returned, so that a separator must precede the next
    /// member.
    private var needsSeparator = false
    private var hasContent = false

    private enum Style {
        case exact
        case list
        case caselessList
    }

    /// The value of the field called `name`, which is in lower case.
    init(name: Span<UInt8>, fields: FieldSection, in head: Span<UInt8>) {
        guard let first = Self.line(after: -1, name: name, fields: fields, in: head) else {
            isPresent = false
            isRepeatable = false
            style = .exact
            line = 0
            position = 0
            end = 0
            return
        }
        let field = fields[first]
        isPresent = true
        isRepeatable = Self.isOther(field.id) || fields.repeated.contains(field.id)
        style = Self.style(of: field.id)
        line = first
        position = Int(field.value.start)
        end = Int(field.value.end)
    }

    private static func isOther(_ id: FieldID) -> Bool {
        if case .other = id { true } else { false }
    }

    /// Whether a quick check shows that the value equals `normalized`: it is on one line, has no
    /// quoted string, and differs at most in whitespace after commas. False means nothing.
    func isPlainly(_ normalized: Span<UInt8>, in head: Span<UInt8>) -> Bool {
        guard !isRepeatable else { return false }
        let value = head.extracting(position..<end)
        let foldsCase = style == .caselessList
        let isList = style != .exact
        var index = 0
        for place in normalized.indices {
            guard index < value.count else { return false }
            // In bounds because of the line above, which the compiler does not recognize.
            let byte = value[unchecked: index]
            guard (foldsCase ? ASCII.lowercased(byte) : byte) == normalized[unchecked: place] else {
                return false
            }
            index &+= 1
            guard isList, byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\"") else { continue }
            if byte == UInt8(ascii: "\"") { return false }
            while index < value.count, ASCII.isWhitespace(value[index]) { index &+= 1 }
        }
        return index == value.count
    }

    /// Whether the order of the value's members says nothing, unless they have weights.
    var isUnordered: Bool { style == .caselessList }

    /// The whole value in its canonical order. To be called before ``next(name:fields:in:)``.
    ///
    /// - Parameters:
    ///   - meanings: the fields whose values are replaced by what they mean.
    ///   - count: how many bytes there may be: of a longer value, one more is returned.
    mutating func bytes(
        name: Span<UInt8>, fields: FieldSection, in head: Span<UInt8>, by meanings: FieldMeanings,
        upTo count: Int = .max
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        // What a value means may be shorter than the value.
        let most = max(count, ListMeaning.maximumBytes)
        while let byte = next(name: name, fields: fields, in: head) {
            bytes.append(byte)
            if bytes.count > most { return bytes }
        }
        guard isUnordered, bytes.count <= ListMeaning.maximumBytes else { return bytes }
        let isOfCodings = name.equals("accept-encoding")
        if meanings.contains(name) {
            let meaning =
                isOfCodings ? ListMeaning.codings(in: bytes) : ListMeaning.languages(in: bytes)
            if let meaning { return meaning }
        }
        return ListMeaning.ordered(bytes, isOfCodings: isOfCodings)
    }

    private mutating func open(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
        isQuoted = false
        isEscaped = false
    }

    private static func style(of id: FieldID) -> Style {
        switch id {
        case .acceptEncoding, .acceptLanguage: .caselessList
        case .userAgent, .cookie, .authorization, .referer, .origin, .host, .range, .ifRange,
            .ifModifiedSince, .ifUnmodifiedSince:
            .exact
        default: .list
        }
    }

    private static func line(
        after index: Int, name: Span<UInt8>, fields: FieldSection, in head: Span<UInt8>
    ) -> Int? {
        var index = index + 1
        let end = fields.endIndex
        while index < end {
            let range = fields[index].name
            // A field nominated by Connection ends here: the origin never saw it.
            if Int(range.count) == name.count, !fields[index].isNominated,
                head.extracting(range.indices).equals(lowercase: name)
            {
                return index
            }
            index += 1
        }
        return nil
    }

    /// The next byte of the normalized value; `nil` at its end.
    @inline(__always)
    mutating func next(
        name: Span<UInt8>, fields: FieldSection, in head: Span<UInt8>
    ) -> UInt8? {
        while true {
            if position == end {
                guard
                    let following = Self.line(after: line, name: name, fields: fields, in: head)
                else { return nil }
                line = following
                open(fields[line].value)
                needsSeparator = hasContent
                continue
            }
            let byte = head[position]
            guard style != .exact else {
                // Lines that should not be repeated are separated by a byte that no value contains.
                if needsSeparator {
                    needsSeparator = false
                    return 0
                }
                hasContent = true
                position += 1
                return byte
            }
            if !isQuoted, skipsSeparator(byte, in: head) { continue }
            if needsSeparator {
                needsSeparator = false
                return UInt8(ascii: ",")
            }
            track(byte)
            hasContent = true
            position += 1
            return style == .caselessList ? ASCII.lowercased(byte) : byte
        }
    }

    /// Skips a comma, or whitespace next to one or at either end of the value.
    private mutating func skipsSeparator(_ byte: UInt8, in head: Span<UInt8>) -> Bool {
        if byte == UInt8(ascii: ",") {
            position += 1
            needsSeparator = hasContent
            return true
        }
        guard ASCII.isWhitespace(byte) else { return false }
        if needsSeparator || !hasContent {
            position += 1
            return true
        }
        var after = position
        while after < end, ASCII.isWhitespace(head[after]) { after += 1 }
        guard after == end || head[after] == UInt8(ascii: ",") else { return false }
        position = after
        return true
    }

    private mutating func track(_ byte: UInt8) {
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\"") {
            isQuoted.toggle()
        } else if isQuoted, byte == UInt8(ascii: "\\") {
            isEscaped = true
        }
    }
}
