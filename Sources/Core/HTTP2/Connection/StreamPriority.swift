/// How urgently a response is wanted (RFC 9218 §4).
public struct StreamPriority: Equatable, BitwiseCopyable, Sendable {
    /// From 0, the most urgent, to 7.
    public var urgency: UInt8
    /// Whether the recipient can use parts of it as they arrive.
    public var isIncremental: Bool

    /// - Precondition: `urgency` is at most 7.
    public init(urgency: UInt8 = 3, isIncremental: Bool = false) {
        precondition(urgency <= 7)
        self.urgency = urgency
        self.isIncremental = isIncremental
    }

    /// The priority of a stream of which the client has said nothing: such clients expect to be
    /// served evenly (RFC 9218 §10).
    static let unstated = StreamPriority(isIncremental: true)

    /// Reads the value of a Priority field or of PRIORITY_UPDATE: a dictionary (RFC 9651 §3.2).
    /// Members that are unknown, out of range or of another type are ignored; so is the whole value
    /// if it is no dictionary (RFC 9218 §4).
    public init(reading value: Span<UInt8>) {
        self.init()
        var reader = DictionaryReader(position: 0)
        var read = self
        while reader.skipToMember(of: value) {
            guard let member = reader.member(of: value) else { return }
            switch (member.key, member.value) {
            case (UInt8(ascii: "u"), .digit(let urgency)) where urgency <= 7:
                read.urgency = urgency
            case (UInt8(ascii: "i"), .boolean(let isIncremental)):
                read.isIncremental = isIncremental
            default: break
            }
        }
        if reader.position == value.count { self = read }
    }
}

/// Reads as much of a dictionary as priorities need: keys of one letter, with one digit or a
/// boolean.
private struct DictionaryReader {
    enum Value {
        case digit(UInt8)
        case boolean(Bool)
        case other
    }

    var position: Int
    private var isFirst = true

    init(position: Int) { self.position = position }

    /// Moves to the next member. Returns false at the end, and if something else follows: the
    /// position is then before the end.
    mutating func skipToMember(of bytes: Span<UInt8>) -> Bool {
        skipSpaces(of: bytes)
        guard position < bytes.count else { return false }
        if isFirst {
            isFirst = false
            return true
        }
        guard bytes[position] == UInt8(ascii: ",") else { return false }
        let comma = position
        position += 1
        skipSpaces(of: bytes)
        // A comma must be followed by a member.
        guard position < bytes.count else {
            position = comma
            return false
        }
        return true
    }

    /// The member at the position, with the key's only letter, or 0 for a longer key; `nil` if it
    /// is malformed.
    mutating func member(of bytes: Span<UInt8>) -> (key: UInt8, value: Value)? {
        let start = position
        guard isLetter(bytes[position]) || bytes[position] == UInt8(ascii: "*") else { return nil }
        while position < bytes.count, isKey(bytes[position]) { position += 1 }
        let key = position == start + 1 ? bytes[start] : 0
        var value = Value.boolean(true)
        if position < bytes.count, bytes[position] == UInt8(ascii: "=") {
            position += 1
            let first = position
            guard skipItem(of: bytes), position > first else { return nil }
            value = .other
            if position == first + 1, isDigit(bytes[first]) {
                value = .digit(bytes[first] - UInt8(ascii: "0"))
            } else if position == first + 2, bytes[first] == UInt8(ascii: "?"),
                bytes[first + 1] & 0xFE == UInt8(ascii: "0")
            {
                value = .boolean(bytes[first + 1] == UInt8(ascii: "1"))
            }
        }
        // Parameters have no meaning here.
        while position < bytes.count, bytes[position] == UInt8(ascii: ";") {
            position += 1
            let first = position
            guard skipItem(of: bytes), position > first else { return nil }
        }
        return (key, value)
    }

    /// Passes over an item or an inner list, up to what may follow one. Returns false if a string
    /// or a list is not closed, or a byte may not be there.
    private mutating func skipItem(of bytes: Span<UInt8>) -> Bool {
        var isQuoted = false
        var isListed = false
        while position < bytes.count {
            let byte = bytes[position]
            guard byte >= 0x20, byte < 0x7F else { return false }
            if isQuoted {
                if byte == UInt8(ascii: "\\") { position += 1 }
                if byte == UInt8(ascii: "\"") { isQuoted = false }
            } else {
                switch byte {
                case UInt8(ascii: "\""): isQuoted = true
                case UInt8(ascii: "("):
                    if isListed { return false }
                    isListed = true
                case UInt8(ascii: ")"):
                    if !isListed { return false }
                    isListed = false
                case UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: " "):
                    if !isListed { return true }
                default: break
                }
            }
            position += 1
        }
        return !isQuoted && !isListed && position == bytes.count
    }

    private mutating func skipSpaces(of bytes: Span<UInt8>) {
        while position < bytes.count,
            bytes[position] == UInt8(ascii: " ") || bytes[position] == UInt8(ascii: "\t")
        {
            position += 1
        }
    }

    private func isLetter(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
    }

    private func isKey(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "*"): true
        default: isLetter(byte) || isDigit(byte)
        }
    }
}
