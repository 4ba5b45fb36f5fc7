/// The fields of a line of an access log that decide what became of a request, or tell who made it.
enum LogField: Int, CaseIterable {
    case time, id, client, listener, host, method, target, status, reason, rule, reported, user
    case tunnel, authority, upstream, parent, intercepted, inspected, passed
    case upstreamTLS, cache

    /// Its name in the log.
    var name: String {
        switch self {
        case .upstreamTLS: "upstream_tls"
        default: "\(self)"
        }
    }
}

/// One line, of either format. It is used again for the next line, so that nothing is allocated.
struct LogLine {
    /// Which format it had.
    enum Format { case json, combined }

    private(set) var format = Format.json
    /// The line, and behind it the values that are written with escapes.
    private var bytes: [UInt8] = []
    /// Where the line ends.
    private var lineEnd = 0
    /// Where the value of each field is; empty and negative for none.
    private var starts: [Int]
    private var ends: [Int]

    init() {
        starts = Array(repeating: -1, count: LogField.allCases.count)
        ends = starts
    }

    /// Reads a line.
    /// - Returns: whether it is one of an access log.
    mutating func read(_ line: UnsafeRawBufferPointer) -> Bool {
        bytes.removeAll(keepingCapacity: true)
        bytes.append(contentsOf: line)
        for index in starts.indices { (starts[index], ends[index]) = (-1, -1) }
        while let last = bytes.last, last == 0x0D || last == 0x20 { bytes.removeLast() }
        lineEnd = bytes.count
        if bytes.first == UInt8(ascii: "{") {
            format = .json
            return readJSON()
        }
        format = .combined
        return readCombined()
    }

    func has(_ field: LogField) -> Bool { starts[field.rawValue] >= 0 }

    /// A field's bytes; empty if it is not there.
    func bytes(_ field: LogField) -> ArraySlice<UInt8> {
        let start = starts[field.rawValue]
        return start < 0 ? [] : bytes[start..<ends[field.rawValue]]
    }

    /// A field's text; `nil` if it is not there. Invalid UTF-8 is replaced.
    func text(_ field: LogField) -> String? {
        has(field) ? String(decoding: bytes(field), as: UTF8.self) : nil
    }

    mutating func set(_ field: LogField, _ range: Range<Int>) {
        (starts[field.rawValue], ends[field.rawValue]) = (range.lowerBound, range.upperBound)
    }

    // MARK: JSON

    /// An object of strings, numbers, booleans and null on one line, as the access log has them.
    private mutating func readJSON() -> Bool {
        var at = 1
        while true {
            at = skipSpace(at)
            guard at < lineEnd else { return false }
            if bytes[at] == UInt8(ascii: "}") { return skipSpace(at + 1) == lineEnd }
            guard let key = readString(&at) else { return false }
            at = skipSpace(at)
            guard at < lineEnd, bytes[at] == UInt8(ascii: ":") else { return false }
            at = skipSpace(at + 1)
            guard at < lineEnd else { return false }
            let field = Self.field(bytes[key])
            if bytes[at] == UInt8(ascii: "\"") {
                guard let value = readString(&at) else { return false }
                if let field { set(field, value) }
            } else {
                let start = at
                while at < lineEnd, !Self.endsWord(bytes[at]) { at += 1 }
                guard at > start, at < lineEnd, Self.isWord(bytes[start..<at]) else {
                    return false
                }
                if let field, bytes[start] != UInt8(ascii: "n") { set(field, start..<at) }
            }
            at = skipSpace(at)
            guard at < lineEnd else { return false }
            if bytes[at] == UInt8(ascii: ",") { at += 1 }
        }
    }

    private func skipSpace(_ start: Int) -> Int {
        var at = start
        while at < lineEnd, bytes[at] == 0x20 || bytes[at] == 0x09 { at += 1 }
        return at
    }

    private static func endsWord(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == 0x20 || byte == 0x09
    }

    /// A number, true, false or null.
    private static func isWord(_ word: ArraySlice<UInt8>) -> Bool {
        guard let first = word.first else { return false }
        switch first {
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return word.dropFirst().allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "e"),
                    UInt8(ascii: "E"), UInt8(ascii: "+"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
        case UInt8(ascii: "t"): return word.elementsEqual("true".utf8)
        case UInt8(ascii: "f"): return word.elementsEqual("false".utf8)
        case UInt8(ascii: "n"): return word.elementsEqual("null".utf8)
        default: return false
        }
    }

    /// Reads a string at a position, which moves behind it.
    /// - Returns: where its value is; behind the line, if that is written with escapes.
    private mutating func readString(_ at: inout Int) -> Range<Int>? {
        guard at < lineEnd, bytes[at] == UInt8(ascii: "\"") else { return nil }
        let start = at + 1
        var end = start
        while end < lineEnd, bytes[end] != UInt8(ascii: "\""), bytes[end] != UInt8(ascii: "\\") {
            end += 1
        }
        guard end < lineEnd else { return nil }
        if bytes[end] == UInt8(ascii: "\"") {
            at = end + 1
            return start..<end
        }
        guard let text = unescaped(start, &at) else { return nil }
        // The end of the line is no longer that of the bytes.
        return append(text)
    }

    /// Reads the rest of a string with escapes (RFC 8259 §7).
    private func unescaped(_ start: Int, _ at: inout Int) -> [UInt8]? {
        var text: [UInt8] = []
        var index = start
        var high: UInt32?
        while index < lineEnd {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\"") {
                guard high == nil else { return nil }
                at = index + 1
                return text
            }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                index += 1
                continue
            }
            guard index + 1 < lineEnd else { return nil }
            switch bytes[index + 1] {
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
                text.append(bytes[index + 1])
            case UInt8(ascii: "u"):
                guard let unit = hexadecimal(index + 2, digits: 4) else { return nil }
                index += 6
                guard let scalar = Self.scalar(unit, &high) else { return nil }
                if let scalar { text.append(contentsOf: String(Character(scalar)).utf8) }
                continue
            default: return nil
            }
            index += 2
        }
        return nil
    }

    /// The character of a unit of UTF-16; `nil` if its second unit must follow.
    /// - Returns: `nil` if it is none.
    private static func scalar(_ unit: UInt32, _ high: inout UInt32?) -> Unicode.Scalar?? {
        if let first = high.take() {
            guard 0xDC00...0xDFFF ~= unit else { return nil }
            return .some(Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (unit - 0xDC00)))
        }
        if 0xD800...0xDBFF ~= unit {
            high = unit
            return .some(nil)
        }
        return Unicode.Scalar(unit).map { .some($0) }
    }

    // MARK: Bytes of both formats

    /// The value of hexadecimal digits.
    func hexadecimal(_ start: Int, digits: Int) -> UInt32? {
        guard start + digits <= bytes.count else { return nil }
        var value: UInt32 = 0
        for byte in bytes[start..<start + digits] {
            let letter = byte | 0x20
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                value = value << 4 | UInt32(byte - UInt8(ascii: "0"))
            default:
                guard UInt8(ascii: "a")...UInt8(ascii: "f") ~= letter else { return nil }
                value = value << 4 | UInt32(letter - UInt8(ascii: "a") + 10)
            }
        }
        return value
    }

    var count: Int { bytes.count }

    subscript(index: Int) -> UInt8 { bytes[index] }

    /// Appends a value behind the line.
    mutating func append(_ text: [UInt8]) -> Range<Int> {
        let start = bytes.count
        bytes += text
        return start..<bytes.count
    }

    /// Appends a byte.
    mutating func append(_ byte: UInt8) { bytes.append(byte) }

    /// Appends bytes that are there already.
    mutating func append(from start: Int, count: Int) {
        for index in start..<(start + count) { bytes.append(bytes[index]) }
    }

    func slice(_ range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

    // MARK: Names

    private static let names: [[(name: [UInt8], field: LogField)]] = {
        var byLength: [[(name: [UInt8], field: LogField)]] = []
        for field in LogField.allCases {
            let name = Array(field.name.utf8)
            while byLength.count <= name.count { byLength.append([]) }
            byLength[name.count].append((name, field))
        }
        return byLength
    }()

    /// The field of a name; `nil` if it does not matter.
    static func field(_ name: ArraySlice<UInt8>) -> LogField? {
        guard name.count < names.count, let first = name.first else { return nil }
        for (known, field) in names[name.count]
        where known[0] == first && name.elementsEqual(known) { return field }
        return nil
    }
}
