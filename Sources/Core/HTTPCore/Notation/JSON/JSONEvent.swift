/// One event of a JSON text.
public struct JSONEvent: BitwiseCopyable, Sendable {
    /// What it is. A name precedes its member's value.
    public enum Kind: UInt8, BitwiseCopyable, Sendable {
        case null, `false`, `true`
        case number
        /// A string without escapes, which is in the text as it is; and one whose escapes were
        /// decoded.
        case string, decodedString
        /// The same for the name of a member.
        case name, decodedName
        case array, arrayEnd
        case object, objectEnd
    }

    public let kind: Kind
    /// Where the bytes of a number, a string or a name begin: in the text or, if they were decoded,
    /// in ``JSONParser/decodedBytes``. 0 for other events.
    public let offset: UInt32
    /// The number of these bytes.
    public let length: UInt32

    @inline(__always)
    init(_ kind: Kind, _ offset: Int = 0, _ length: Int = 0) {
        self.kind = kind
        self.offset = UInt32(truncatingIfNeeded: offset)
        self.length = UInt32(truncatingIfNeeded: length)
    }
}

/// Upper limits on a JSON text, each inclusive.
public struct JSONLimits {
    /// Nested arrays and objects.
    public var depth: Int
    /// Values, not counting names.
    public var values: Int
    /// The characters of a number.
    public var digits: Int
    /// The bytes of memory for events, names and decoded strings.
    public var memory: Int
    /// Called after every ``valuesBetweenCalls`` values.
    public var interlude: (() -> Void)?
    public static let valuesBetweenCalls = 64

    public init(
        depth: Int, values: Int = .max, digits: Int = .max, memory: Int = .max,
        interlude: (() -> Void)? = nil
    ) {
        self.depth = depth
        self.values = values
        self.digits = digits
        self.memory = memory
        self.interlude = interlude
    }
}

/// Why a text is not JSON (RFC 8259), or exceeds a limit, and where.
public struct JSONParsingError: Error, Equatable {
    /// What is wrong.
    public enum Reason: Equatable, Sendable {
        /// The text has no value, or ends within one, an array, an object or a string.
        case noValue, endInValue, endInArray, endInObject, endInString
        case moreAfterValue, notAValue
        case noCommaInArray, noCommaInObject, notAName, noColon
        case noFraction, noExponent
        case controlCharacter, notAnEscape, notFourHexDigits, halfOfSurrogatePair, notUTF8
        /// A name that the object already has.
        case duplicateName
        case tooDeep, tooManyValues, numberTooLong
        /// 4 GiB or more.
        case tooLarge
        case outOfMemory
    }

    public var reason: Reason
    /// The byte of the text, from 0, at which it is wrong; an escape, a name or a number that is
    /// too long begins there.
    public var offset: Int
    /// The number of bytes of the name (with its quotation marks) or number; 0 in other cases.
    public var length: Int

    init(_ reason: Reason, at offset: Int, length: Int = 0) {
        self.reason = reason
        self.offset = offset
        self.length = length
    }
}
