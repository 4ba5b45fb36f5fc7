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

    init(_ error: JSONParsingError) {
        text = Self.text(of: error.reason)
        // A duplicate is known once the name has been read.
        position = error.offset + (error.reason == .duplicateName ? error.length : 0) + 1
    }

    private static func text(of reason: JSONParsingError.Reason) -> String {
        switch reason {
        case .noValue: "there is no value"
        case .endInValue: "the text ends where a value is expected"
        case .moreAfterValue: "there is data after the value"
        case .notAValue: "not a JSON value"
        case .endInArray, .noCommaInArray: "expected ',' or ']'"
        case .noCommaInObject: "expected ',' or '}'"
        case .endInObject: "the text ends within an object"
        case .notAName: "expected a name in quotes"
        case .noColon: "expected ':'"
        case .noFraction, .noExponent, .numberTooLong: "a number is malformed"
        case .endInString: "an unterminated string"
        case .controlCharacter: "a control character in a string"
        case .notAnEscape: "not a JSON escape"
        case .notFourHexDigits: "\\u without four hex digits"
        case .halfOfSurrogatePair: "half a surrogate pair"
        case .notUTF8: "a string is not UTF-8"
        case .duplicateName: "a duplicate name in an object"
        case .tooDeep: "arrays and objects are nested too deeply"
        case .tooManyValues, .tooLarge, .outOfMemory: "the text is too long"
        }
    }
}

/// Reads one JSON text into a value: for small texts, such as a line of input or a list of logs.
public enum JSONReader {
    /// The maximum nesting depth of arrays and objects.
    public static let depth = 32

    /// Reads `bytes` as a single value, with nothing but white space around it.
    public static func read(_ bytes: ArraySlice<UInt8>) throws(JSONSyntaxError) -> JSONValue {
        let result: Result<JSONValue, JSONParsingError> = bytes.withUnsafeBytes { bytes in
            Result { () throws(JSONParsingError) -> JSONValue in
                var parser = JSONParser(
                    bytes, limits: JSONLimits(depth: depth), keepsEvents: true)
                try parser.parse()
                var index = 0
                return value(bytes, parser, &index)
            }
        }
        do throws(JSONParsingError) { return try result.get() } catch {
            throw JSONSyntaxError(error)
        }
    }

    /// The value whose events begin at `index`, which is moved behind them. It is at most ``depth``
    /// deep.
    private static func value(
        _ text: UnsafeRawBufferPointer, _ parser: borrowing JSONParser, _ index: inout Int
    ) -> JSONValue {
        let event = parser.eventList[index]
        index += 1
        switch event.kind {
        case .null: return .null
        case .false: return .boolean(false)
        case .true: return .boolean(true)
        case .number: return .number(string(event, in: text))
        case .string, .name: return .string(string(event, in: text))
        case .decodedString, .decodedName: return .string(string(event, in: parser.decodedBytes))
        case .array:
            var values: [JSONValue] = []
            while parser.eventList[index].kind != .arrayEnd {
                values.append(value(text, parser, &index))
            }
            index += 1
            return .array(values)
        case .object:
            var members: [(name: String, value: JSONValue)] = []
            while parser.eventList[index].kind != .objectEnd {
                let event = parser.eventList[index]
                let bytes = event.kind == .name ? text : parser.decodedBytes
                index += 1
                members.append((string(event, in: bytes), value(text, parser, &index)))
            }
            index += 1
            return .object(members)
        case .arrayEnd, .objectEnd: return .null
        }
    }

    private static func string(_ event: JSONEvent, in bytes: UnsafeRawBufferPointer) -> String {
        let start = Int(event.offset)
        return String(decoding: bytes[start..<start + Int(event.length)], as: UTF8.self)
    }
}
