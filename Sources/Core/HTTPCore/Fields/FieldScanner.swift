/// Parses a field section line by line up to its empty line (RFC 9112 §5, §2.2). Shared by request
/// heads, response heads and trailer sections.
///
///     field-line = field-name ":" OWS field-value OWS
///
/// It is stricter than the grammar: no bare LF as line ending, no bare CR anywhere; no obs-fold and
/// no whitespace before the colon, except where these are repaired afterwards (``LineRepair``).
///
///     name ──► value ──► name ──► (the empty line)
///       ├────► space ──► spacedValue ──► name
///       └────► fold ──► name
struct FieldScanner: Sendable {
    private enum State: UInt8 {
        case name, value
        // In lines to be repaired: the white space before a colon, the value after it, and a line
        // that continues the previous value.
        case space, spacedValue, fold
    }

    private var state = State.name
    private var id = FieldID.other
    /// The next byte to examine; after the end of the section, the first byte that follows it.
    private(set) var position: Int
    private var lineStart: Int
    private var nameEnd = 0
    /// How far an invalid line has been examined to determine the error.
    private var examined = 0
    private let repair: LineRepair

    /// Creates a scanner for a section that begins at `position`.
    @inline(__always)
    init(from position: Int, repairing repair: LineRepair = .none) {
        self.position = position
        self.repair = repair
        lineStart = position
    }

    /// Scans on and appends complete lines to `fields`. Returns true when the section is complete,
    /// false when more bytes are needed. `limit` is the maximum number of fields; beyond it, throws
    /// `tooManyFields`.
    @inline(__always)
    mutating func scan(
        _ bytes: HeadBytes, into fields: inout FieldSection, limit: Int
    ) throws(WireError) -> Bool {
        while true {
            if case .name = state, position == lineStart {
                lineStart = try takeWholeLines(bytes, &fields, limit)
                position = lineStart
                if position &+ 1 < bytes.count, bytes[position] == Byte.carriageReturn,
                    bytes[position &+ 1] == Byte.lineFeed
                {
                    fields.end = UInt32(truncatingIfNeeded: lineStart)
                    position &+= 2
                    return true
                }
            }
            switch try readLine(bytes, &fields, limit) {
            case .field: continue
            case .empty: return true
            case .incomplete: return false
            }
        }
    }

    /// Appends the fields of all lines that have arrived completely and whose names end near their
    /// beginnings: in most heads, all lines. Keeps no state of a line in the scanner, so that
    /// everything stays in registers.
    ///
    /// - Returns: where the first line begins that does not qualify.
    @inline(__always)
    private func takeWholeLines(
        _ bytes: HeadBytes, _ fields: inout FieldSection, _ limit: Int
    ) throws(WireError) -> Int {
        var start = lineStart
        while start < bytes.count, bytes[start] != Byte.carriageReturn,
            let colon = bytes.nearColon(from: start)
        {
            // A known name needs no examination of its bytes one by one.
            var id = FieldID.recognize(bytes, from: start, to: colon)
            if id == .other {
                guard let unknown = FieldID.unknown(bytes, from: start, to: colon) else { break }
                id = unknown
            }
            var end = colon &+ 1
            guard try bytes.findValueEnd(&end) else { break }
            guard fields.count < limit else { throw .tooManyFields }
            fields.append(
                id, name: ByteRange(from: start, to: colon),
                value: bytes.trimmed(from: colon &+ 1, to: end), bytes)
            start = end &+ 2
        }
        return start
    }

    /// How far a line has been scanned.
    private enum LineProgress { case field, empty, incomplete }

    /// Scans one line, byte by byte if necessary.
    @inline(never)
    private mutating func readLine(
        _ bytes: HeadBytes, _ fields: inout FieldSection, _ limit: Int
    ) throws(WireError) -> LineProgress {
        if case .name = state {
            position = bytes.endOfToken(from: position)
            guard position < bytes.count else { return .incomplete }
            nameEnd = position
            if bytes[position] == Byte.colon, position != lineStart {
                id = FieldID.recognizeOutOfLine(bytes, from: lineStart, to: nameEnd)
                position &+= 1
                state = .value
            } else if let irregular = irregularity(bytes[position], isFirst: fields.isEmpty) {
                state = irregular
            } else {
                guard try isEmptyLine(bytes, first: fields.isEmpty) else { return .incomplete }
                fields.end = UInt32(truncatingIfNeeded: lineStart)
                return .empty
            }
        }
        guard case .value = state else {
            return try scanIrregular(bytes, &fields, limit) ? .field : .incomplete
        }
        guard try bytes.findValueEnd(&position) else { return .incomplete }
        guard fields.count < limit else { throw .tooManyFields }
        fields.append(
            id, name: ByteRange(from: lineStart, to: nameEnd),
            value: bytes.trimmed(from: nameEnd &+ 1, to: position), bytes)
        endLine()
        return .field
    }

    /// The state for a line that has `byte` where its colon or the first byte of its name should
    /// be; `nil` if such a line is not repaired.
    private func irregularity(_ byte: UInt8, isFirst: Bool) -> State? {
        guard repair != .none, ASCII.isWhitespace(byte) else { return nil }
        if position != lineStart { return .space }
        return isFirst ? nil : .fold
    }

    /// Scans a line that will be repaired. Returns false when more bytes are needed.
    private mutating func scanIrregular(
        _ bytes: HeadBytes, _ fields: inout FieldSection, _ limit: Int
    ) throws(WireError) -> Bool {
        if case .space = state {
            while position < bytes.count, ASCII.isWhitespace(bytes[position]) { position &+= 1 }
            guard position < bytes.count else { return false }
            id = FieldID.recognizeOutOfLine(bytes, from: lineStart, to: nameEnd)
            guard bytes[position] == Byte.colon, repair.repairs(id) else {
                position = nameEnd
                // This throws the right error as soon as enough of the line has arrived.
                return try isEmptyLine(bytes, first: false)
            }
            position &+= 1
            state = .spacedValue
        }
        guard case .fold = state else {
            guard try bytes.findValueEnd(&position) else { return false }
            guard fields.count < limit else { throw .tooManyFields }
            let colon = bytes.first(Byte.colon, from: nameEnd, to: position) ?? nameEnd
            fields.append(
                id, name: ByteRange(from: lineStart, to: nameEnd),
                value: bytes.trimmed(from: colon &+ 1, to: position), bytes)
            endIrregularLine(&fields)
            return true
        }
        guard let last = fields.last, repair.repairs(last.id) else { throw .obsoleteLineFolding }
        guard try bytes.findValueEnd(&position) else { return false }
        let more = bytes.trimmed(from: lineStart, to: position)
        guard repair.repairs(fieldNamed(at: more, bytes)) else { throw .obsoleteLineFolding }
        if !more.isEmpty {
            let start = last.value.isEmpty ? more.start : last.value.start
            fields.setValue(
                ByteRange(from: Int(start), to: Int(more.end)), at: fields.count &- 1)
        }
        endIrregularLine(&fields)
        return true
    }

    /// The field that a continuation line would be without its leading white space: some programs
    /// read it that way.
    private func fieldNamed(at line: ByteRange, _ bytes: HeadBytes) -> FieldID {
        let start = Int(line.start)
        let end = bytes.endOfToken(from: start)
        let rest = bytes.trimmed(from: end, to: Int(line.end))
        guard end > start, !rest.isEmpty, bytes[Int(rest.start)] == Byte.colon else {
            return .other
        }
        return FieldID.recognizeOutOfLine(bytes, from: start, to: end)
    }

    private mutating func endIrregularLine(_ fields: inout FieldSection) {
        fields.isIrregular = true
        endLine()
    }

    private mutating func endLine() {
        position &+= 2
        lineStart = position
        state = .name
    }

    /// Whether the line is the empty one: false if its line feed has not arrived yet. Throws the
    /// error of a line that has no proper name.
    @inline(never)
    private mutating func isEmptyLine(
        _ bytes: HeadBytes, first: Bool
    ) throws(WireError) -> Bool {
        let byte = bytes[position]
        guard position == lineStart else {
            switch byte {
            case Byte.space, Byte.tab:
                guard let fault = faultOfSpacedName(bytes) else { return false }
                throw fault
            case Byte.carriageReturn: throw .missingColon
            case Byte.lineFeed: throw .bareLineFeed
            default: throw .badFieldNameByte
            }
        }
        switch byte {
        case Byte.carriageReturn:
            guard position &+ 1 < bytes.count else { return false }
            guard bytes[position &+ 1] == Byte.lineFeed else { throw .bareCarriageReturn }
            position &+= 2
            return true
        case Byte.lineFeed: throw .bareLineFeed
        case Byte.space, Byte.tab:
            throw first ? .whitespaceBeforeFirstField : .obsoleteLineFolding
        case Byte.colon: throw .emptyFieldName
        default: throw .badFieldNameByte
        }
    }
}

extension FieldScanner {
    /// The error of a line that has white space at `position`, after what may be a name: only the
    /// bytes that follow show whether a colon comes next, later, or not at all. `nil` if more bytes
    /// are needed.
    private mutating func faultOfSpacedName(_ bytes: HeadBytes) -> WireError? {
        examined = max(examined, position)
        while examined < bytes.count {
            switch bytes[examined] {
            case Byte.colon:
                let isSpace = (position..<examined).allSatisfy { ASCII.isWhitespace(bytes[$0]) }
                return isSpace ? .spaceBeforeColon : .badFieldNameByte
            case Byte.carriageReturn: return .missingColon
            case Byte.lineFeed: return .bareLineFeed
            default: examined &+= 1
            }
        }
        return nil
    }
}

extension FieldSection {
    /// Appends a field that was parsed from a line.
    @inline(__always)
    fileprivate mutating func append(
        _ id: FieldID, name: ByteRange, value: ByteRange, _ bytes: HeadBytes
    ) {
        append(Field(id: id, name: name, value: value))
        if id == .other {
            let (start, end) = (Int(name.start), Int(name.end))
            unknownNames.insert(
                count: end &- start, middle: bytes[(start &+ end) &>> 1], last: bytes[end &- 1])
        }
    }
}

extension HeadBytes {
    /// Moves `position` to the CR that ends a field value; returns false if its line feed has not
    /// arrived yet.
    @inline(__always)
    fileprivate func findValueEnd(_ position: inout Int) throws(WireError) -> Bool {
        while true {
            position = endOfFieldValue(from: position)
            guard position < count else { return false }
            switch self[position] {
            case Byte.carriageReturn:
                guard position &+ 1 < count else { return false }
                guard self[position &+ 1] == Byte.lineFeed else { throw .bareCarriageReturn }
                return true
            case Byte.tab: position &+= 1
            case Byte.lineFeed: throw .bareLineFeed
            default: throw .badFieldValueByte
            }
        }
    }
}

/// Bytes that the grammar names.
enum Byte {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let quote: UInt8 = 0x22
    static let hash: UInt8 = 0x23
    static let percent: UInt8 = 0x25
    static let asterisk: UInt8 = 0x2A
    static let comma: UInt8 = 0x2C
    static let dot: UInt8 = 0x2E
    static let slash: UInt8 = 0x2F
    static let colon: UInt8 = 0x3A
    static let semicolon: UInt8 = 0x3B
    static let equals: UInt8 = 0x3D
    static let question: UInt8 = 0x3F
    static let at: UInt8 = 0x40
    static let openBracket: UInt8 = 0x5B
    static let backslash: UInt8 = 0x5C
    static let closeBracket: UInt8 = 0x5D
    static let underscore: UInt8 = 0x5F
}
