/// A JSON value (RFC 8259).
public enum JSONValue: Sendable, Equatable {
    case null
    case boolean(Bool)
    /// The number as written: the only number that is used here is an `id`.
    case number(String)
    case string(String)
    case array([JSONValue])
    /// The members in order; no name occurs twice.
    case object([(name: String, value: JSONValue)])

    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let one), .boolean(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        case (.string(let one), .string(let other)): one == other
        case (.array(let one), .array(let other)): one == other
        case (.object(let one), .object(let other)):
            one.count == other.count && zip(one, other).allSatisfy { $0 == $1 }
        default: false
        }
    }

    /// The value of an object's member; `nil` if it is absent, or if this is not an object.
    public subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The kind of value, as error messages call it.
    public var name: String {
        switch self {
        case .null: "null"
        case .boolean: "a Boolean"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The value as JSON.
    public var text: String {
        switch self {
        case .null: "null"
        case .boolean(let value): value ? "true" : "false"
        case .number(let text): text
        case .string(let text): JSONText.quoted(text)
        case .array(let values): "[\(values.map(\.text).joined(separator: ","))]"
        case .object(let members):
            "{"
                + members.map { "\(JSONText.quoted($0.name)):\($0.value.text)" }
                .joined(separator: ",") + "}"
        }
    }
}

/// Why a text is not JSON, and at which byte, counted from 1.
public struct JSONSyntaxError: Error, Equatable {
    public var text: String
    public var position: Int
}

/// Reads one JSON text.
public struct JSONReader {
    /// The maximum nesting depth of arrays and objects.
    public static let depth = 32

    private let bytes: ArraySlice<UInt8>
    private var index: Int

    /// Reads `bytes` as a single value, with nothing but white space around it.
    public static func read(_ bytes: ArraySlice<UInt8>) throws(JSONSyntaxError) -> JSONValue {
        var reader = JSONReader(bytes: bytes, index: bytes.startIndex)
        let value = try reader.value(depth: 0)
        reader.skipSpace()
        guard reader.index == bytes.endIndex else {
            throw reader.error("there is data after the value")
        }
        return value
    }

    private func error(_ text: String) -> JSONSyntaxError {
        JSONSyntaxError(text: text, position: index - bytes.startIndex + 1)
    }

    private var next: UInt8? { index < bytes.endIndex ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { index += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func value(depth: Int) throws(JSONSyntaxError) -> JSONValue {
        guard depth < Self.depth else { throw error("arrays and objects are nested too deeply") }
        skipSpace()
        guard let next else { throw error("the text ends where a value is expected") }
        switch next {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .boolean(true))
        case UInt8(ascii: "f"): return try word("false", .boolean(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw error("not a JSON value")
        }
    }

    private mutating func word(
        _ word: StaticString, _ value: JSONValue
    ) throws(JSONSyntaxError) -> JSONValue {
        let count = word.utf8CodeUnitCount
        let matches = bytes[index...].prefix(count).elementsEqual(
            UnsafeBufferPointer(start: word.utf8Start, count: count))
        guard matches else { throw error("not a JSON value") }
        index += count
        return value
    }

    private mutating func digits() -> Int {
        let start = index
        while let byte = next, byte &- 0x30 < 10 { index += 1 }
        return index - start
    }

    private mutating func number() throws(JSONSyntaxError) -> JSONValue {
        let start = index
        if next == UInt8(ascii: "-") { index += 1 }
        let leadsWithZero = next == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !leadsWithZero || whole == 1 else {
            throw error("a number is malformed")
        }
        if next == UInt8(ascii: ".") {
            index += 1
            guard digits() > 0 else { throw error("a number is malformed") }
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            index += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { index += 1 }
            guard digits() > 0 else { throw error("a number is malformed") }
        }
        return .number(String(decoding: bytes[start..<index], as: UTF8.self))
    }

    private mutating func array(depth: Int) throws(JSONSyntaxError) -> JSONValue {
        index += 1
        var values: [JSONValue] = []
        if take(UInt8(ascii: "]")) { return .array(values) }
        while true {
            values.append(try value(depth: depth + 1))
            if take(UInt8(ascii: "]")) { return .array(values) }
            guard take(UInt8(ascii: ",")) else { throw error("expected ',' or ']'") }
        }
    }

    private mutating func object(depth: Int) throws(JSONSyntaxError) -> JSONValue {
        index += 1
        var members: [(name: String, value: JSONValue)] = []
        var names: Set<String> = []
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw error("expected a name in quotes") }
            let name = try string()
            guard names.insert(name).inserted else {
                throw error("a duplicate name in an object")
            }
            guard take(UInt8(ascii: ":")) else { throw error("expected ':'") }
            members.append((name, try value(depth: depth + 1)))
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { throw error("expected ',' or '}'") }
        }
    }

    private mutating func string() throws(JSONSyntaxError) -> String {
        index += 1
        var text: [UInt8] = []
        var clean = index
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                text += bytes[clean..<index]
                index += 1
                guard let string = String(validating: text, as: UTF8.self) else {
                    throw error("a string is not UTF-8")
                }
                return string
            case UInt8(ascii: "\\"):
                text += bytes[clean..<index]
                index += 1
                try escape(into: &text)
                clean = index
            case 0..<0x20: throw error("a control character in a string")
            default: index += 1
            }
        }
        throw error("an unterminated string")
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSONSyntaxError) {
        guard let byte = next else { throw error("an unterminated string") }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var code = UInt32(try unit())
            if (0xD800...0xDBFF).contains(code) {
                guard next == UInt8(ascii: "\\") else { throw error("half a surrogate pair") }
                index += 1
                guard next == UInt8(ascii: "u") else { throw error("half a surrogate pair") }
                index += 1
                let low = UInt32(try unit())
                guard (0xDC00...0xDFFF).contains(low) else {
                    throw error("half a surrogate pair")
                }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw error("half a surrogate pair") }
            text += Array(String(Character(scalar)).utf8)
        default: throw error("not a JSON escape")
        }
    }

    private mutating func unit() throws(JSONSyntaxError) -> UInt16 {
        let digits = bytes[index...].prefix(4).compactMap(ASCII.hexValue)
        guard digits.count == 4 else { throw error("\\u without four hex digits") }
        index += 4
        return digits.reduce(0) { $0 << 4 | UInt16($1) }
    }
}
