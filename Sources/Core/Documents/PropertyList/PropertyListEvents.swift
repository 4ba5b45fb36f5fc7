import HTTPCore

/// An element that is open and has values. Outside the generic type, in which each use would look
/// up the type's metadata.
private enum Open {
    /// There is no element yet.
    case nothing
    case plist(hasValue: Bool)
    case array
    case dictionary(awaitsValue: Bool)
}

/// Converts the elements of a property list into the events of a value.
struct PropertyListEvents<Sink: DocumentSink>: XMLSink {
    private let sink: UnsafeMutablePointer<Sink>
    private let limits: DocumentLimits
    /// The innermost open element, and those around it.
    private var inner = Open.nothing
    private var outer: [Open] = []
    /// The open element that contains text.
    private var leaf: PropertyListElement?
    private var values = 0
    private var depth = 0
    /// Whether the text of the open leaf has been read.
    private var hasText = false
    private var keys = KeySets()
    /// The decoded data, or a number being converted.
    private var scratch: [UInt8] = []

    init(_ sink: UnsafeMutablePointer<Sink>, limits: DocumentLimits) {
        self.sink = sink
        self.limits = limits
        outer.reserveCapacity(32)
    }

    private static func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(.plist, reason)
    }

    private static func error(_ problem: String) -> DocumentError { error(.malformed(problem)) }

    mutating func start(_ tag: XMLTag) throws(DocumentError) {
        if case .nothing = inner {
            guard tag.name.isText("plist") else {
                throw Self.error("the root element is \(tag.text)")
            }
            return startRoot()
        }
        guard let element = PropertyListElement(tag.name) else {
            throw Self.error("\(tag.text) is not a property list value")
        }
        try start(element, tag.name)
    }

    mutating func startRoot() { push(.plist(hasValue: false)) }

    mutating func start(
        _ element: PropertyListElement, _ name: UnsafeRawBufferPointer
    ) throws(DocumentError) {
        guard leaf == nil else {
            throw Self.error("there is \(name.quoted) in a value that must be text")
        }
        switch inner {
        case .plist(hasValue: true): throw Self.error("there is a second value")
        case .plist: inner = .plist(hasValue: true)
        case .dictionary(let awaitsValue):
            guard awaitsValue == (element != .key) else {
                throw Self.error(
                    "the dictionary has \(awaitsValue ? "key" : name.quoted) without a partner")
            }
            inner = .dictionary(awaitsValue: !awaitsValue)
            if element == .key { return beginLeaf(element) }
        case .array, .nothing: break
        }
        try begin(element)
    }

    private mutating func push(_ container: Open) {
        outer.append(inner)
        inner = container
    }

    private mutating func beginLeaf(_ element: PropertyListElement) {
        hasText = false
        leaf = element
    }

    private mutating func begin(_ element: PropertyListElement) throws(DocumentError) {
        guard element != .key else { throw Self.error("there is a key outside a dictionary") }
        values += 1
        guard values <= limits.values else {
            throw Self.error(.tooManyValues(maximum: limits.values))
        }
        if values % YieldPoint.values == 0 { limits.yieldPoint?.run() }
        switch element {
        case .dict:
            try enter()
            keys.begin()
            push(.dictionary(awaitsValue: false))
            try sink.pointee.beginDictionary()
        case .array:
            try enter()
            push(.array)
            try sink.pointee.beginArray()
        default: beginLeaf(element)
        }
    }

    private mutating func enter() throws(DocumentError) {
        guard depth < limits.depth else { throw Self.error(.tooDeep(maximum: limits.depth)) }
        depth += 1
    }

    /// The name of the innermost open element that contains elements; `nil` if there is none.
    var container: StaticString? {
        switch inner {
        case .nothing: nil
        case .plist: "plist"
        case .array: "array"
        case .dictionary: "dict"
        }
    }

    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard let leaf else {
            guard text.isSpace else { throw Self.error("there is text outside a value") }
            return
        }
        hasText = true
        try give(leaf, text)
    }

    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError) { try end() }

    mutating func end() throws(DocumentError) {
        if let leaf {
            self.leaf = nil
            if !hasText { try give(leaf, UnsafeRawBufferPointer(start: nil, count: 0)) }
            return
        }
        let ended = inner
        inner = outer.popLast() ?? .nothing
        switch ended {
        case .array:
            depth -= 1
            try sink.pointee.endArray()
        case .dictionary(let awaitsValue):
            guard !awaitsValue else {
                throw Self.error("the dictionary has key without a partner")
            }
            depth -= 1
            keys.end()
            try sink.pointee.endDictionary()
        case .plist(let hasValue):
            guard hasValue else { throw Self.error("there is no value in the property list") }
        case .nothing: break
        }
    }

    private mutating func give(
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
            guard text.isSpace else { throw Self.error("a Boolean contains text") }
            try sink.pointee.boolean(element == .true)
        case .date:
            guard let seconds = DateText.seconds(text.trimmed) else {
                throw Self.error("\"\(text.trimmed.quoted)\" is not a date")
            }
            try sink.pointee.date(seconds)
        case .data:
            scratch.removeAll(keepingCapacity: true)
            guard Base64.decode(text, into: &scratch, skipping: XMLCharacters.isSpace) else {
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
        // As programs write it: nothing more to do.
        if text.count < 19, text.allSatisfy(ASCII.isDigit),
            text.count == 1 || text.first.map({ $0 != 0x30 }) ?? false
        {
            return try sink.pointee.number(text)
        }
        guard let number = PropertyListInteger(text) else {
            throw Self.error("\"\(text.quoted)\" is not an integer")
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
            throw Self.error("\"\(text.quoted)\" is not a number")
        }
        guard value.isFinite else { throw Self.error(.numberOutOfRange(text.quoted)) }
        // The digits unchanged, if JSON writes numbers in the same way.
        let isReal = string.utf8.contains { ".eE".utf8.contains($0) }
        let written =
            DocumentNumber(string) == nil ? value.description : string + (isReal ? "" : ".0")
        try written.withBytes { bytes throws(DocumentError) in try sink.pointee.number(bytes) }
    }
}

/// The elements of property lists, recognized by the bytes of their names.
enum PropertyListElement {
    case dict, array, key, string, integer, real, `true`, `false`, date, data

    init?(_ name: UnsafeRawBufferPointer) {
        // A NUL at the beginning would vanish in the word.
        guard name.count >= 3, name.count <= 7, name[0] != 0 else { return nil }
        var word: UInt64 = 0
        for index in 0..<name.count { word = word << 8 | UInt64(name[index]) }
        switch word {
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

    var isContainer: Bool { self == .dict || self == .array }
}

/// An integer as property lists write it: decimal with or without sign, or `0x` and hexadecimal
/// digits.
struct PropertyListInteger {
    /// The number in decimal; `nil` if it fits neither a signed nor an unsigned 64-bit integer.
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
        hasSameBytes(as: UnsafeRawBufferPointer(text))
    }

    /// Whether it consists of white space only.
    fileprivate var isSpace: Bool {
        var index = 0
        while index < count, XMLCharacters.isSpace(self[index]) { index &+= 1 }
        return index == count
    }

    /// Whether it looks like most reals: one to nine digits, a point, and again one to nine. That
    /// is valid JSON and in range.
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

    /// The text without surrounding white space.
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
