import HTTPCore

/// A resumable parser of what a server sends: RESP3, and RESP2, which is a part of it but for two
/// ways of writing null (https://github.com/redis/redis-specifications/blob/master/protocol).
///
///     type line CR LF                              + - : _ # , (   a value
///     type length CR LF bytes CR LF                $ ! =           a bulk string
///     type count CR LF value…                      * ~ % > |       an aggregate
///     $? CR LF (;length CR LF bytes CR LF)… ;0 CR LF               a streamed string
///     type ? CR LF value… . CR LF                  * ~ %           a streamed aggregate
///
/// Bytes may arrive in any pieces: the tokens are the same, but for how the bytes of a bulk string
/// are divided. Those are not copied: the token says where in the caller's memory they are. Lines
/// are, into memory that is used again (``line``).
///
/// After an error it has lost its place, and throws the same error again.
package struct RESPParser: Sendable {
    private enum State: Sendable {
        /// The first byte of a value is next.
        case type
        /// Within the line of a value of this type.
        case line(UInt8)
        /// Within a bulk string, or a part of a streamed one.
        case bytes(left: Int, isPart: Bool)
        /// The line end after that.
        case bytesEnd(isPart: Bool)
        /// A part of a streamed string is next.
        case part
        case failed(RESPError)
    }

    /// What the line of a string or an aggregate says of its size.
    private enum Size: Sendable {
        case count(Int)
        /// `?`: it has an end.
        case unknown
        /// `-1`: null, in RESP2.
        case null
        case malformed
    }

    /// An aggregate that has not ended.
    private struct Frame: Sendable {
        var kind: RESPAggregate
        /// Values to come; `nil` if that is not known.
        var left: Int?
        /// Whether the last of its values is half of an entry of a map.
        var isWithinEntry = false
        /// Whether an attribute came last: what it is about has to follow.
        var hasAttribute = false
    }

    private let limits: RESPLimits
    private var state = State.type
    private var frames: [Frame] = []
    /// Values of the reply so far, those announced included.
    private var elements = 0
    /// Bytes of the streamed string so far.
    private var streamed = 0
    /// Whether a CR was the last byte.
    private var endsLine = false
    /// Whether an attribute precedes the next reply.
    private var hasAttribute = false

    /// The text of the last simple string, error or big number, without its line end; until the
    /// next call.
    package private(set) var line: [UInt8] = []

    /// A parser at the beginning of a reply.
    package init(limits: RESPLimits = RESPLimits()) {
        self.limits = limits
        line.reserveCapacity(64)
        frames.reserveCapacity(limits.depth)
    }

    /// Whether no reply has begun: a connection may only end here.
    package var isBetweenReplies: Bool {
        if case .type = state { frames.isEmpty && !hasAttribute } else { false }
    }

    /// Takes the next token.
    /// - Parameters:
    ///   - bytes: what has arrived.
    ///   - position: how much of it has been taken; moved on.
    /// - Returns: `nil` if all has been taken, and more is needed.
    package mutating func next(
        _ bytes: Span<UInt8>, at position: inout Int
    ) throws(RESPError) -> RESPToken? {
        do throws(RESPError) {
            return try take(bytes, at: &position)
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private mutating func take(
        _ bytes: Span<UInt8>, at position: inout Int
    ) throws(RESPError) -> RESPToken? {
        while true {
            if case .type = state, let frame = frames.last, frame.left == 0 {
                return endAggregate()
            }
            guard position < bytes.count else {
                if case .failed(let error) = state { throw error }
                return nil
            }
            switch state {
            case .type:
                let type = bytes[position]
                try begin(type)
                position += 1
                if let count = shortCount(of: type, bytes, at: &position) {
                    return try begin(type, .count(count))
                }
            case .part:
                guard bytes[position] == UInt8(ascii: ";") else { throw .misplacedPart }
                beginLine(of: bytes[position])
                position += 1
            case .line(let type):
                guard try readLine(bytes, at: &position) else { return nil }
                if let token = try end(type) { return token }
            case .bytes(let left, let isPart):
                let count = min(left, bytes.count - position)
                let range = position..<position + count
                position += count
                state =
                    count == left
                    ? .bytesEnd(isPart: isPart) : .bytes(left: left - count, isPart: isPart)
                return .bulkBytes(range)
            case .bytesEnd(let isPart):
                guard try readBytesEnd(bytes, at: &position) else { return nil }
                state = isPart ? .part : .type
                if !isPart {
                    complete()
                    return .bulkEnds
                }
            case .failed(let error): throw error
            }
        }
    }

    // MARK: Lines

    private mutating func beginLine(of type: UInt8) {
        if !line.isEmpty { line.removeAll(keepingCapacity: true) }
        state = .line(type)
    }

    /// The count on a line that has only a few digits, and is here to its end: that of nearly every
    /// string or aggregate. The line is passed, and not copied. `nil` for every other line, of
    /// which nothing is passed.
    private func shortCount(
        of type: UInt8, _ bytes: Span<UInt8>, at position: inout Int
    ) -> Int? {
        switch type {
        case UInt8(ascii: "$"), UInt8(ascii: "!"), UInt8(ascii: "="), UInt8(ascii: "*"),
            UInt8(ascii: "~"), UInt8(ascii: "%"), UInt8(ascii: ">"), UInt8(ascii: "|"):
            break
        default: return nil
        }
        let end = min(bytes.count, position + min(limits.lineBytes, Self.shortDigits))
        var index = position
        var count = 0
        while index < end, ASCII.isDigit(bytes[index]) {
            count = count * 10 + Int(bytes[index] &- 0x30)
            index += 1
        }
        guard index > position, index + 1 < bytes.count, bytes[index] == 0x0D,
            bytes[index + 1] == 0x0A
        else { return nil }
        position = index + 2
        return count
    }

    private static let shortDigits = 9

    /// The first byte of a value.
    private mutating func begin(_ type: UInt8) throws(RESPError) {
        switch type {
        case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "_"),
            UInt8(ascii: "#"), UInt8(ascii: ","), UInt8(ascii: "("), UInt8(ascii: "$"),
            UInt8(ascii: "!"), UInt8(ascii: "="), UInt8(ascii: "*"), UInt8(ascii: "~"),
            UInt8(ascii: "%"), UInt8(ascii: "|"):
            break
        case UInt8(ascii: ">"): guard frames.isEmpty else { throw .misplacedPush }
        case UInt8(ascii: "."):
            guard let frame = frames.last, frame.left == nil, !frame.isWithinEntry,
                !frame.hasAttribute
            else { throw .misplacedEnd }
        case UInt8(ascii: ";"): throw .misplacedPart
        default: throw .unknownType(type)
        }
        beginLine(of: type)
    }

    /// Returns whether the line is complete.
    private mutating func readLine(
        _ bytes: Span<UInt8>, at position: inout Int
    ) throws(RESPError) -> Bool {
        if !endsLine {
            let room = limits.lineBytes - line.count
            let limit = position + min(bytes.count - position, room)
            var end = position
            while end < limit, bytes[end] != 0x0D, bytes[end] != 0x0A { end += 1 }
            bytes.extracting(position..<end).withUnsafeBufferPointer {
                line.append(contentsOf: $0)
            }
            position = end
            guard end < bytes.count else { return false }
            position += 1
            switch bytes[end] {
            case 0x0D: endsLine = true
            case 0x0A: throw .malformedLineEnd
            default: throw .lineTooLong(limit: limits.lineBytes)
            }
        }
        guard position < bytes.count else { return false }
        position += 1
        guard bytes[position - 1] == 0x0A else { throw .malformedLineEnd }
        endsLine = false
        return true
    }

    private mutating func readBytesEnd(
        _ bytes: Span<UInt8>, at position: inout Int
    ) throws(RESPError) -> Bool {
        if !endsLine {
            guard bytes[position] == 0x0D else { throw .malformedBulkEnd }
            endsLine = true
            position += 1
        }
        guard position < bytes.count else { return false }
        guard bytes[position] == 0x0A else { throw .malformedBulkEnd }
        endsLine = false
        position += 1
        return true
    }

    /// What follows from a line that is complete. `nil` if nothing does before the next bytes.
    private mutating func end(_ type: UInt8) throws(RESPError) -> RESPToken? {
        switch type {
        case UInt8(ascii: "+"): return try value(.simple)
        case UInt8(ascii: "-"): return try value(.error)
        case UInt8(ascii: ":"):
            guard let number = RESPNumber.integer(line.span) else { throw .malformedInteger }
            return try value(.integer(number))
        case UInt8(ascii: "_"):
            guard line.isEmpty else { throw .malformedNull }
            return try value(.null)
        case UInt8(ascii: "#"):
            if line.span.equals("t") { return try value(.boolean(true)) }
            guard line.span.equals("f") else { throw .malformedBoolean }
            return try value(.boolean(false))
        case UInt8(ascii: ","):
            guard let number = RESPNumber.double(line) else { throw .malformedDouble }
            return try value(.double(number))
        case UInt8(ascii: "("):
            guard RESPNumber.isBig(line) else { throw .malformedBigNumber }
            return try value(.bigNumber)
        case UInt8(ascii: ";"): return try beginPart()
        case UInt8(ascii: "."):
            guard line.isEmpty else { throw .malformedNull }
            return endAggregate()
        default: return try begin(type, size)
        }
    }

    /// What the line says, if it is that of a string or an aggregate.
    private var size: Size {
        let line = line.span
        if let count = RESPNumber.length(line) { return .count(count) }
        return line.equals("?") ? .unknown : line.equals("-1") ? .null : .malformed
    }

    /// A string or an aggregate whose line is complete.
    private mutating func begin(_ type: UInt8, _ size: Size) throws(RESPError) -> RESPToken {
        switch type {
        case UInt8(ascii: "$"): return try beginBulk(.string, size)
        case UInt8(ascii: "!"): return try beginBulk(.error, size)
        case UInt8(ascii: "="): return try beginBulk(.verbatim, size)
        case UInt8(ascii: "*"): return try beginAggregate(.array, size)
        case UInt8(ascii: "~"): return try beginAggregate(.set, size)
        case UInt8(ascii: "%"): return try beginAggregate(.map, size)
        case UInt8(ascii: ">"): return try beginAggregate(.push, size)
        case UInt8(ascii: "|"): return try beginAggregate(.attribute, size)
        default: throw .unknownType(type)
        }
    }

    /// A value of one line.
    private mutating func value(_ token: RESPToken) throws(RESPError) -> RESPToken {
        try count()
        state = .type
        complete()
        return token
    }

    // MARK: Bulk strings

    private mutating func beginBulk(
        _ kind: RESPBulk, _ size: Size
    ) throws(RESPError) -> RESPToken {
        if kind == .string, case .null = size { return try value(.null) }
        try count()
        if kind == .string, case .unknown = size {
            streamed = 0
            state = .part
            return .bulkBegins(kind, count: nil)
        }
        guard case .count(let count) = size else { throw .malformedLength }
        guard count <= limits.bulkBytes else { throw .bulkTooLong(limit: limits.bulkBytes) }
        guard kind != .verbatim || count >= 4 else { throw .malformedVerbatim }
        state = count == 0 ? .bytesEnd(isPart: false) : .bytes(left: count, isPart: false)
        return .bulkBegins(kind, count: count)
    }

    private mutating func beginPart() throws(RESPError) -> RESPToken? {
        guard let count = RESPNumber.length(line.span) else { throw .malformedLength }
        guard count <= limits.bulkBytes - streamed else {
            throw .bulkTooLong(limit: limits.bulkBytes)
        }
        guard count > 0 else {
            state = .type
            complete()
            return .bulkEnds
        }
        streamed += count
        state = .bytes(left: count, isPart: true)
        return nil
    }

    // MARK: Aggregates

    private mutating func beginAggregate(
        _ kind: RESPAggregate, _ size: Size
    ) throws(RESPError) -> RESPToken {
        if kind == .array, case .null = size { return try value(.null) }
        try count()
        guard frames.count < limits.depth else { throw .tooDeep(limit: limits.depth) }
        state = .type
        if case .unknown = size {
            switch kind {
            case .array, .set, .map: break
            case .push, .attribute: throw .malformedLength
            }
            frames.append(Frame(kind: kind, left: nil))
            return .aggregateBegins(kind, count: nil)
        }
        guard case .count(var count) = size else { throw .malformedLength }
        guard count <= limits.elements else { throw .tooManyElements(limit: limits.elements) }
        if kind == .map || kind == .attribute { count *= 2 }
        // What is announced is compared as if it were there; it counts when it is.
        guard count <= limits.elements - elements else {
            throw .tooManyElements(limit: limits.elements)
        }
        frames.append(Frame(kind: kind, left: count))
        return .aggregateBegins(kind, count: count)
    }

    private mutating func endAggregate() -> RESPToken {
        state = .type
        let frame = frames.removeLast()
        if frame.kind == .attribute {
            // It is no value of what it is in.
            if frames.isEmpty {
                hasAttribute = true
            } else {
                frames[frames.count - 1].hasAttribute = true
            }
        } else {
            complete()
        }
        return .aggregateEnds
    }

    /// A value begins.
    private mutating func count() throws(RESPError) {
        guard elements < limits.elements else {
            throw .tooManyElements(limit: limits.elements)
        }
        elements += 1
    }

    /// A value is complete.
    private mutating func complete() {
        guard let last = frames.indices.last else {
            elements = 0
            hasAttribute = false
            return
        }
        frames[last].hasAttribute = false
        if let left = frames[last].left {
            frames[last].left = left - 1
        } else if frames[last].kind == .map {
            frames[last].isWithinEntry.toggle()
        }
    }
}
