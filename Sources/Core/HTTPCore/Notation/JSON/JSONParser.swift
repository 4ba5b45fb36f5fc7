/// Parses JSON (RFC 8259): the one grammar for all JSON that is read here.
///
/// The whole text is checked, and its events are collected, before anyone sees one of them. What is
/// checked: the grammar, that the text is UTF-8, that no object has two names with the same bytes
/// once escapes are decoded, that no escape is half a surrogate pair, and the limits. Numbers are
/// not converted, and may be of any size. A byte order mark at the start is skipped (§8.1).
///
/// The first error is reported, with two exceptions: the escape of a low surrogate that has no
/// high one before it, after the string; and a duplicate among many names, after the object
/// (``JSONNames``).
///
/// The time is proportional to the size of the text, times its logarithm for the names of large
/// objects. There is no recursion.
public struct JSONParser: ~Copyable {
    /// An open array or object.
    struct Open: BitwiseCopyable {
        let isObject: Bool
        /// The number of names, and of decoded bytes, before its first.
        let names: Int
        let decoded: Int
        /// The number of an array's elements so far.
        var elements = 0
    }

    let text: JSONSource
    private let limits: JSONLimits
    let keepsEvents: Bool
    /// The bytes of memory that are left.
    var memory: Int
    var events = PlainArray<JSONEvent>()
    var decoded = PlainArray<UInt8>()
    private var open = PlainArray<Open>()
    var names = JSONNames()
    private var values = 0

    /// - Parameters:
    ///   - bytes: the text; it must not change as long as the parser or its events are used.
    ///   - keepsEvents: whether events are collected; if not, the text is only checked.
    public init(_ bytes: UnsafeRawBufferPointer, limits: JSONLimits, keepsEvents: Bool) {
        text = JSONSource(bytes)
        self.limits = limits
        self.keepsEvents = keepsEvents
        memory = limits.memory
    }

    /// The events of the text, if they are kept; valid as long as the parser is.
    public var eventList: UnsafeBufferPointer<JSONEvent> { events.elements }

    /// The strings and names that had escapes, one after another; valid as long as the parser is.
    public var decodedBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(decoded.elements) }

    /// The number of arrays and objects that are open at an error.
    public var levels: Int { open.count }

    /// What is open at an error, from the outermost array or object on: the name of the last
    /// member, or the index of the element. `nil` for levels that there are not, and for an object
    /// of which no name was read.
    public func path(at level: Int) -> (name: String?, index: Int)? {
        guard open.elements.indices.contains(level) else { return nil }
        let container = open.elements[level]
        guard container.isObject else { return (nil, container.elements) }
        let end = level + 1 < open.count ? open.elements[level + 1].names : names.count
        guard container.names < end else { return nil }
        let name = names.bytes(of: end - 1, text.base, decoded.elements)
        return (String(decoding: name, as: UTF8.self), 0)
    }

    // MARK: - Grammar

    /// Parses the text; once for each parser.
    public mutating func parse() throws(JSONParsingError) {
        let text = text
        guard text.count < Int(UInt32.max) else { throw JSONParsingError(.tooLarge, at: 0) }
        // A guess that most texts stay below: the events are then never moved.
        if keepsEvents { try events.grow(to: text.count / 8 + 16, within: &memory) }
        var at = text.skippingSpace(from: text.hasByteOrderMark ? 3 : 0)
        switch text.byte(at) {
        case 0, UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "]"), UInt8(ascii: "}"):
            throw JSONParsingError(.noValue, at: at)
        default: break
        }
        var isInObject = false
        nextValue: while true {
            // At the first byte of what must be a value.
            switch text.byte(at) {
            case JSONSource.quotationMark: at = try string(at: at)
            case UInt8(ascii: "{"):
                try begin(.object, at: at)
                at = text.skippingSpace(from: at &+ 1)
                if text.byte(at) != UInt8(ascii: "}") {
                    at = try name(at: at)
                    isInObject = true
                    continue nextValue
                }
                at &+= 1
                isInObject = try end(.objectEnd)
            case UInt8(ascii: "["):
                try begin(.array, at: at)
                at = text.skippingSpace(from: at &+ 1)
                if text.byte(at) != UInt8(ascii: "]") {
                    isInObject = false
                    continue nextValue
                }
                at &+= 1
                isInObject = try end(.arrayEnd)
            case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                at = try number(at: at)
            case UInt8(ascii: "t"):
                at = try text.word("true", tail: 0x6575_7274, at: at)
                try value(JSONEvent(.true), endingAt: at)
            case UInt8(ascii: "f"):
                at = try text.word("false", tail: 0x6573_6C61, at: at)
                try value(JSONEvent(.false), endingAt: at)
            case UInt8(ascii: "n"):
                at = try text.word("null", tail: 0x6C6C_756E, at: at)
                try value(JSONEvent(.null), endingAt: at)
            default: throw text.notAValue(at: at)
            }
            // A value has ended, and maybe the arrays and objects around it.
            while true {
                guard open.count > 0 else { return try text.finish(from: at) }
                at = text.skippingSpace(from: at)
                let next = text.byte(at)
                if isInObject {
                    if next == UInt8(ascii: ",") {
                        at = try name(at: text.skippingSpace(from: at &+ 1))
                        continue nextValue
                    }
                    guard next == UInt8(ascii: "}") else {
                        throw text.error(.noCommaInObject, orAtEnd: .endInObject, at: at)
                    }
                    at &+= 1
                    isInObject = try end(.objectEnd)
                } else {
                    // In two steps, or the compiler fails with the thread sanitizer (Swift 6.3).
                    let array = open.last
                    array.pointee.elements &+= 1
                    if next == UInt8(ascii: ",") {
                        at = text.skippingSpace(from: at &+ 1)
                        continue nextValue
                    }
                    guard next == UInt8(ascii: "]") else {
                        throw text.error(.noCommaInArray, orAtEnd: .endInArray, at: at)
                    }
                    at &+= 1
                    isInObject = try end(.arrayEnd)
                }
            }
        }
    }

    /// Reads a member's name and the colon behind it. Returns the index of its value.
    @inline(__always)
    private mutating func name(at mark: Int) throws(JSONParsingError) -> Int {
        let text = text
        guard text.byte(mark) == JSONSource.quotationMark else {
            throw text.error(.notAName, orAtEnd: .endInObject, at: mark)
        }
        let at = text.skippingSpace(from: try name(in: open.last.pointee.names, at: mark))
        guard text.byte(at) == UInt8(ascii: ":") else { throw JSONParsingError(.noColon, at: at) }
        return text.skippingSpace(from: at &+ 1)
    }

    // MARK: - Events

    @inline(__always)
    mutating func add(_ event: JSONEvent) throws(JSONParsingError) {
        if keepsEvents { try events.append(event, within: &memory) }
    }

    /// A value that is neither array nor object.
    @inline(__always)
    mutating func value(_ event: JSONEvent, endingAt end: Int) throws(JSONParsingError) {
        try countValue(at: end)
        try add(event)
    }

    @inline(__always)
    private mutating func countValue(at offset: Int) throws(JSONParsingError) {
        guard values < limits.values else { throw JSONParsingError(.tooManyValues, at: offset) }
        values &+= 1
        if values % JSONLimits.valuesBetweenCalls == 0 { limits.interlude?() }
    }

    private mutating func begin(_ kind: JSONEvent.Kind, at offset: Int) throws(JSONParsingError) {
        try countValue(at: offset)
        guard open.count < limits.depth else { throw JSONParsingError(.tooDeep, at: offset) }
        let container = Open(
            isObject: kind == .object, names: names.count, decoded: decoded.count)
        try open.append(container, within: &memory)
        try add(JSONEvent(kind))
    }

    /// Returns whether what is around the array or object that has ended is an object.
    private mutating func end(_ kind: JSONEvent.Kind) throws(JSONParsingError) -> Bool {
        let container = open.last.pointee
        if container.names < names.count {
            let error = names.duplicate(
                from: container.names, text.base, decoded.elements, within: memory)
            if let error { throw error }
            names.cut(to: container.names)
        }
        if !keepsEvents { decoded.cut(to: container.decoded) }
        open.cut(to: open.count &- 1)
        try add(JSONEvent(kind))
        return open.count > 0 && open.last.pointee.isObject
    }

    /// Reads a number, of which only the length is limited.
    @inline(__always)
    private mutating func number(at start: Int) throws(JSONParsingError) -> Int {
        let end = try text.endOfNumber(at: start)
        guard end &- start <= limits.digits else {
            throw JSONParsingError(.numberTooLong, at: start, length: end - start)
        }
        try value(JSONEvent(.number, start, end &- start), endingAt: end)
        return end
    }
}
