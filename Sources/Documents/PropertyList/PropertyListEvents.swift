import Notation

/// An element that is open. Not within the generic type, where each use would look it up.
private enum Open {
    case plist(hasValue: Bool)
    case array
    case dictionary(awaitsValue: Bool)
    case leaf(PropertyListElement)
}

/// Makes the events of a value of the elements of a property list.
struct PropertyListEvents<Sink: DocumentSink>: XMLSink {
    private let sink: UnsafeMutablePointer<Sink>
    private let limits: DocumentLimits
    private var open: [Open] = []
    private var values = 0
    private var depth = 0
    /// Whether the leaf that is open has had its text.
    private var hasText = false
    private var keys = KeySets()
    /// What data says; or what a number is put into.
    private var scratch: [UInt8] = []

    init(_ sink: UnsafeMutablePointer<Sink>, limits: DocumentLimits) {
        self.sink = sink
        self.limits = limits
        open.reserveCapacity(32)
    }

    private static func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(.plist, reason)
    }

    private static func error(_ problem: String) -> DocumentError { error(.malformed(problem)) }

    mutating func start(_ tag: XMLTag) throws(DocumentError) {
        guard let last = open.indices.last else {
            guard tag.name.isText("plist") else {
                throw Self.error("the root element is \(tag.text)")
            }
            open.append(.plist(hasValue: false))
            return
        }
        guard let element = PropertyListElement(tag.name) else {
            throw Self.error("\(tag.text) is no value of a property list")
        }
        switch open[last] {
        case .plist(hasValue: true): throw Self.error("there is a second value")
        case .plist: open[last] = .plist(hasValue: true)
        case .leaf: throw Self.error("there is \(tag.text) in a value that has text only")
        case .dictionary(let awaitsValue):
            guard awaitsValue == (element != .key) else {
                throw Self.error(
                    "the dictionary has \(awaitsValue ? "key" : tag.text) without its partner")
            }
            open[last] = .dictionary(awaitsValue: !awaitsValue)
        case .array: break
        }
        try begin(
            element, isInDictionary: { if case .dictionary = open[last] { true } else { false } }())
    }

    private mutating func begin(
        _ element: PropertyListElement, isInDictionary: Bool
    ) throws(DocumentError) {
        if element == .key {
            guard isInDictionary else { throw Self.error("there is a key outside of a dictionary") }
        } else {
            values += 1
            guard values <= limits.values else {
                throw Self.error(.tooManyValues(maximum: limits.values))
            }
        }
        switch element {
        case .dict:
            try enter()
            keys.begin()
            open.append(.dictionary(awaitsValue: false))
            try sink.pointee.beginDictionary()
        case .array:
            try enter()
            open.append(.array)
            try sink.pointee.beginArray()
        default:
            hasText = false
            open.append(.leaf(element))
        }
    }

    private mutating func enter() throws(DocumentError) {
        guard depth < limits.depth else { throw Self.error(.tooDeep(maximum: limits.depth)) }
        depth += 1
    }

    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard case .leaf(let element)? = open.last else {
            guard text.allSatisfy(XMLCharacters.isSpace) else {
                throw Self.error("there is text outside of a value")
            }
            return
        }
        hasText = true
        try leaf(element, text)
    }

    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError) {
        switch open.popLast() {
        case .leaf(let element):
            if !hasText { try leaf(element, UnsafeRawBufferPointer(start: nil, count: 0)) }
        case .array:
            depth -= 1
            try sink.pointee.endArray()
        case .dictionary(let awaitsValue):
            guard !awaitsValue else {
                throw Self.error("the dictionary has key without its partner")
            }
            depth -= 1
            keys.end()
            try sink.pointee.endDictionary()
        case .plist(let hasValue):
            guard hasValue else { throw Self.error("there is no value in the property list") }
        case nil: break
        }
    }

    private mutating func leaf(
        _ element: PropertyListElement, _ text: UnsafeRawBufferPointer
    ) throws(DocumentError) {
        switch element {
        case .string: try sink.pointee.string(text)
        case .key:
            guard keys.insert(text) else {
                throw Self.error(.duplicateKey(String(decoding: text, as: UTF8.self)))
            }
            try sink.pointee.key(text)
        case .integer: try integer(text.trimmed)
        case .real: try real(text.trimmed)
        case .true, .false:
            guard text.allSatisfy(XMLCharacters.isSpace) else {
                throw Self.error("a truth value has text")
            }
            try sink.pointee.boolean(element == .true)
        case .date:
            guard let seconds = DateText.seconds(text.trimmed) else {
                throw Self.error("\"\(text.trimmed.quoted)\" is no date")
            }
            try sink.pointee.date(seconds)
        case .data:
            scratch.removeAll(keepingCapacity: true)
            guard Base64.decode(text, into: &scratch) else {
                throw Self.error("the data is not base64")
            }
            try scratch.withBytes { bytes throws(DocumentError) in try sink.pointee.data(bytes) }
        case .dict, .array: break
        }
    }

    private func integer(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard text.count <= limits.digits else {
            throw Self.error(.numberOutOfRange(text.quoted))
        }
        // As it comes from programs: no more to do.
        if text.count < 19, text.allSatisfy(ASCII.isDigit),
            text.count == 1 || text.first.map({ $0 != 0x30 }) ?? false
        {
            return try sink.pointee.number(text)
        }
        guard let number = PropertyListInteger(text) else {
            throw Self.error("\"\(text.quoted)\" is no whole number")
        }
        guard let digits = number.digits else {
            throw Self.error(.numberOutOfRange(text.quoted))
        }
        try digits.withBytes { bytes throws(DocumentError) in try sink.pointee.number(bytes) }
    }

    private mutating func real(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        if text.isPlainReal { return try sink.pointee.number(text) }
        let string = String(decoding: text, as: UTF8.self)
        guard text.count <= limits.digits else {
            throw Self.error(.numberOutOfRange(text.quoted))
        }
        let letters = string.lowercasedASCII
        let isNumber = letters.utf8.allSatisfy { ASCII.isDigit($0) || "+-.e".utf8.contains($0) }
        guard let value = Double(letters), isNumber || !value.isFinite else {
            throw Self.error("\"\(text.quoted)\" is no number")
        }
        guard value.isFinite else { throw Self.error(.numberOutOfRange(text.quoted)) }
        // The digits as they are, if JSON writes numbers so, too.
        let isReal = string.utf8.contains { ".eE".utf8.contains($0) }
        let written =
            DocumentNumber(string) == nil ? value.description : string + (isReal ? "" : ".0")
        try written.withBytes { bytes throws(DocumentError) in try sink.pointee.number(bytes) }
    }
}

/// The elements of which property lists are made, told by the bytes of their names.
enum PropertyListElement {
    case dict, array, key, string, integer, real, `true`, `false`, date, data

    init?(_ name: UnsafeRawBufferPointer) {
        guard name.count <= 8 else { return nil }
        switch name.reduce(UInt64(0), { $0 << 8 | UInt64($1) }) {
        case 0x6B6579: self = .key
        case 0x6469_6374: self = .dict
        case 0x7472_7565: self = .true
        case 0x7265_616C: self = .real
        case 0x6461_7465: self = .date
        case 0x6461_7461: self = .data
        case 0x61_7272_6179: self = .array
        case 0x66_616C_7365: self = .false
        case 0x7374_7269_6E67: self = .string
        case 0x69_6E74_6567_6572: self = .integer
        default: return nil
        }
    }
}

/// A whole number as property lists write it: decimal with or without sign, or `0x` and
/// hexadecimal digits.
struct PropertyListInteger {
    /// The number in decimal; nil: beyond 64 bits, with sign or without.
    let digits: String?

    init?(_ text: UnsafeRawBufferPointer) {
        let string = String(decoding: text, as: UTF8.self)
        let isNegative = string.hasPrefix("-")
        var rest = isNegative || string.hasPrefix("+") ? string.dropFirst() : string[...]
        let isHexadecimal = rest.hasPrefix("0x") || rest.hasPrefix("0X")
        if isHexadecimal { rest = rest.dropFirst(2) }
        let isDigit: (UInt8) -> Bool = {
            ASCII.isDigit($0) || (isHexadecimal && ($0 | 0x20) &- 0x61 < 6)
        }
        guard !rest.isEmpty, rest.utf8.allSatisfy(isDigit) else { return nil }
        guard let magnitude = UInt64(rest, radix: isHexadecimal ? 16 : 10) else {
            digits = nil
            return
        }
        if isNegative, magnitude > 0 {
            digits = magnitude <= 1 << 63 ? "-\(magnitude)" : nil
        } else {
            digits = "\(magnitude)"
        }
    }
}

extension XMLTag {
    fileprivate var text: String { name.quoted }
}

extension UnsafeRawBufferPointer {
    fileprivate func isText(_ text: StaticString) -> Bool {
        hasSameBytes(
            as: UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Whether it is as most reals are: one to nine digits, a point, and as many again. That is
    /// JSON and in range.
    fileprivate var isPlainReal: Bool {
        guard count <= 19, count >= 3, self[0] != 0x30 || self[1] == UInt8(ascii: ".") else {
            return false
        }
        var point = 0
        for (index, byte) in enumerated() where !ASCII.isDigit(byte) {
            guard byte == UInt8(ascii: "."), point == 0, index > 0 else { return false }
            point = index
        }
        return point > 0 && point < count - 1
    }

    /// Without the white space around it.
    fileprivate var trimmed: UnsafeRawBufferPointer {
        var start = 0
        var end = count
        while start < end, XMLCharacters.isSpace(self[start]) { start += 1 }
        while end > start, XMLCharacters.isSpace(self[end - 1]) { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: self[start..<end])
    }

    /// At most 40 bytes of it, for errors.
    fileprivate var quoted: String { String(decoding: prefix(40), as: UTF8.self) }
}
