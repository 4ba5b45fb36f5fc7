import HTTPCore

/// The events of a JSON text, which was parsed as a whole. The bytes must not change while the tape
/// is used: most strings are ranges of the text.
struct JSONTape: ~Copyable {
    private let bytes: UnsafeRawBufferPointer
    private let parser: JSONParser
    private let yieldPoint: YieldPoint?

    /// Parses the whole text. Events are stored only if `builds` is true; otherwise the text is
    /// only checked.
    ///
    /// - Parameter memory: the number of bytes that may be used for parsing.
    static func reading(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits, builds: Bool, memory: Int = .max
    ) throws(DocumentError) -> JSONTape {
        guard bytes.count <= limits.bytes else {
            throw DocumentError(.json, .tooLarge(maximum: limits.bytes))
        }
        let yieldPoint = limits.yieldPoint
        let bounds = JSONLimits(
            depth: limits.depth, values: limits.values, digits: limits.digits, memory: memory,
            interlude: yieldPoint.map { yieldPoint in { yieldPoint.run() } })
        var parser = JSONParser(bytes, limits: bounds, keepsEvents: builds)
        do throws(JSONParsingError) { try parser.parse() } catch {
            throw Self.error(error, parser, bytes, limits)
        }
        return JSONTape(bytes: bytes, parser: parser, yieldPoint: yieldPoint)
    }

    private init(
        bytes: UnsafeRawBufferPointer, parser: consuming JSONParser, yieldPoint: YieldPoint?
    ) {
        self.bytes = bytes
        self.parser = parser
        self.yieldPoint = yieldPoint
    }

    /// Passes the events to a sink.
    borrowing func replay(into sink: inout some DocumentSink) throws(DocumentError) {
        let decoded = parser.decodedBytes
        var untilYieldPoint = YieldPoint.values
        for event in parser.eventList {
            untilYieldPoint -= 1
            if untilYieldPoint == 0 {
                untilYieldPoint = YieldPoint.values
                yieldPoint?.run()
            }
            switch event.kind {
            case .string: try sink.string(Self.slice(bytes, event))
            case .name: try sink.key(Self.slice(bytes, event))
            case .number: try sink.number(Self.slice(bytes, event))
            case .decodedString: try sink.string(Self.slice(decoded, event))
            case .decodedName: try sink.key(Self.slice(decoded, event))
            case .null: try sink.null()
            case .false: try sink.boolean(false)
            case .true: try sink.boolean(true)
            case .array: try sink.beginArray()
            case .arrayEnd: try sink.endArray()
            case .object: try sink.beginDictionary()
            case .objectEnd: try sink.endDictionary()
            }
        }
    }

    @inline(__always)
    private static func slice(
        _ bytes: UnsafeRawBufferPointer, _ event: JSONEvent
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: bytes.baseAddress.map { $0 + Int(event.offset) }, count: Int(event.length))
    }

    // MARK: - Errors

    private static func error(
        _ error: JSONParsingError, _ parser: borrowing JSONParser, _ bytes: UnsafeRawBufferPointer,
        _ limits: DocumentLimits
    ) -> DocumentError {
        var path = DocumentPath()
        var level = 0
        while !path.isFull, let step = parser.path(at: level) {
            if let name = step.name { path.append(name: name) } else { path.append(step.index) }
            level += 1
        }
        let lastName = parser.path(at: parser.levels - 1)?.name ?? ""
        return DocumentError(
            .json, reason(error, bytes, limits, lastName: lastName),
            at: DocumentLocation(offset: error.offset, in: bytes), path: path.text)
    }

    private static func reason(
        _ error: JSONParsingError, _ bytes: UnsafeRawBufferPointer, _ limits: DocumentLimits,
        lastName: String
    ) -> DocumentError.Reason {
        switch error.reason {
        case .notUTF8: .encoding
        case .tooDeep: .tooDeep(maximum: limits.depth)
        case .tooManyValues: .tooManyValues(maximum: limits.values)
        case .numberTooLong:
            .numberOutOfRange(
                String(
                    decoding: bytes[error.offset..<error.offset + error.length], as: UTF8.self))
        case .duplicateName: .duplicateKey(lastName)
        case .tooLarge: .tooLarge(maximum: Int(UInt32.max) - 1)
        case .outOfMemory: .memory
        case .noValue: .malformed("there is no value")
        case .endInValue: .malformed("the text ends within a value")
        case .endInArray: .malformed("the text ends within an array")
        case .endInObject: .malformed("the text ends within an object")
        case .endInString: .malformed("the text ends within a string")
        case .moreAfterValue: .malformed("more after the value")
        case .notAValue: .malformed("not a value")
        case .noCommaInArray: .malformed("neither , nor ] behind an element")
        case .noCommaInObject: .malformed("neither , nor } behind a member")
        case .notAName: .malformed("not a member's name")
        case .noColon: .malformed("no colon behind a member's name")
        case .noFraction: .malformed("no digit behind a decimal point")
        case .noExponent: .malformed("no digit in an exponent")
        case .controlCharacter: .malformed("a control character in a string")
        case .notAnEscape: .malformed("not an escape")
        case .notFourHexDigits: .malformed("not four hex digits behind \\u")
        case .halfOfSurrogatePair:
            .malformed("the escape of a surrogate without its other half")
        }
    }
}
