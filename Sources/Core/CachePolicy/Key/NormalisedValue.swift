import HTTPCore

/// The value of one request field for comparison by Vary, byte by byte (RFC 9111 §4.1): its lines
/// joined by commas, whitespace around commas outside quoted strings left out, and letters in lower
/// case for the fields whose members are case-insensitive.
///
/// A field that Connection names is absent: it is no part of the request that goes on, and what is
/// answered to that request is for those who do not send the field.
///
/// Fields that are not lists keep their value as it is: there a comma is no separator.
/// The order of members is kept: for most lists it means something.
struct NormalisedValue {
    /// Whether the request has the field.
    let isPresent: Bool
    /// Whether there may be more lines of it.
    private let isRepeatable: Bool
    /// How its value is read.
    private let style: Style
    /// Index of the line being read.
    private var line: Int
    /// Offset of the next byte, and end, of that line's value.
    private var position: Int
    private var end: Int
    private var isQuoted = false
    private var isEscaped = false
    /// Whether a member's byte has been given, so that a separator stands before the next one.
    private var needsSeparator = false
    private var hasContent = false

    private enum Style {
        case exact
        case list
        case caselessList
    }

    /// The value of the field called `name`, in lower case.
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

    /// Whether the value is seen at a glance to be `normalised`: it stands on one line, has no
    /// quoted string, and differs at most by whitespace after commas. False says nothing.
    func isPlainly(_ normalised: Span<UInt8>, in head: Span<UInt8>) -> Bool {
        guard !isRepeatable else { return false }
        let value = head.extracting(position..<end)
        let foldsCase = style == .caselessList
        let isList = style != .exact
        var index = 0
        for place in normalised.indices {
            guard index < value.count else { return false }
            // In bounds by the line above, which the compiler does not see through.
            let byte = value[unchecked: index]
            guard (foldsCase ? ASCII.lowercased(byte) : byte) == normalised[unchecked: place] else {
                return false
            }
            index &+= 1
            guard isList, byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\"") else { continue }
            if byte == UInt8(ascii: "\"") { return false }
            while index < value.count, ASCII.isWhitespace(value[index]) { index &+= 1 }
        }
        return index == value.count
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
            // What Connection names ends here: the origin never saw it, and answered without.
            if Int(range.count) == name.count, !fields[index].isNominated,
                head.extracting(range.indices).equals(lowercase: name)
            {
                return index
            }
            index += 1
        }
        return nil
    }

    /// The next byte of the normalised value; nil at its end.
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
                // Lines that should not be there twice stay apart by a byte no value has.
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

    /// Goes over a comma, or whitespace next to one or at the value's ends.
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
