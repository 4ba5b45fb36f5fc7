import HTTPCore

/// The value of one request field for comparison by Vary, byte by byte (RFC 9111 §4.1): its lines
/// joined by commas, whitespace around commas outside quoted strings left out, and letters in lower
/// case for the fields whose members are case-insensitive.
///
/// Fields that are not lists keep their value as it is: there a comma is no separator.
/// The order of members is kept: for most lists it means something.
struct NormalisedValue {
    /// Whether the request has the field.
    let isPresent: Bool
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
        let first = Self.line(after: -1, name: name, fields: fields, in: head)
        isPresent = first != nil
        line = first ?? 0
        position = 0
        end = 0
        style = first.map { Self.style(of: fields[$0].id) } ?? .exact
        if first != nil { open(fields[line].value) }
    }

    /// Whether the value is seen at a glance to be `normalised`: it stands on one line, has no
    /// quoted string, and differs at most by whitespace after commas. False says nothing.
    func isPlainly(_ normalised: Span<UInt8>, fields: FieldSection, in head: Span<UInt8>) -> Bool {
        let id = fields[line].id
        guard id != .other, !fields.repeated.contains(id) else { return false }
        var index = position
        for expected in normalised.indices {
            guard index < end else { return false }
            let byte = style == .caselessList ? Bytes.lowercased(head[index]) : head[index]
            guard byte == normalised[expected] else { return false }
            index += 1
            guard style != .exact else { continue }
            if byte == UInt8(ascii: "\"") { return false }
            if byte == UInt8(ascii: ",") {
                while index < end, Bytes.isWhitespace(head[index]) { index += 1 }
            }
        }
        return index == end
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
        while index < fields.count {
            if head.extracting(fields[index].name.indices).isCaseless(equalTo: name) {
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
            return style == .caselessList ? Bytes.lowercased(byte) : byte
        }
    }

    /// Goes over a comma, or whitespace next to one or at the value's ends.
    private mutating func skipsSeparator(_ byte: UInt8, in head: Span<UInt8>) -> Bool {
        if byte == UInt8(ascii: ",") {
            position += 1
            needsSeparator = hasContent
            return true
        }
        guard Bytes.isWhitespace(byte) else { return false }
        if needsSeparator || !hasContent {
            position += 1
            return true
        }
        var after = position
        while after < end, Bytes.isWhitespace(head[after]) { after += 1 }
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

extension Span where Element == UInt8 {
    /// Whether the bytes are those of `lowercase`, which has no capital letters, letter case not
    /// counting.
    func isCaseless(equalTo lowercase: Span<UInt8>) -> Bool {
        guard count == lowercase.count else { return false }
        for index in indices where Bytes.lowercased(self[index]) != lowercase[index] {
            return false
        }
        return true
    }
}
