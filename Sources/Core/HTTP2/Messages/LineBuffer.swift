import HTTPCore

/// The field lines of a message as they are written, within limits, into memory of the caller's.
struct LineBuffer {
    let base: UnsafeMutableRawPointer
    /// How many bytes may be written; ``WordCopy/slack`` more are there.
    let limit: Int
    /// The most lines.
    let lineLimit: Int
    var position = 0
    private(set) var lines = 0
    /// Where the line of cookies ends, if it was the last one written.
    private var cookieEnd = -1
    /// The lines of cookies that are apart from each other.
    private var cookieLines = 0
    /// The names of fields whose values must never enter a table.
    private(set) var sensitive = SensitiveNames()

    /// - Parameter reserve: how many bytes at the end of the memory are used otherwise.
    init(
        _ memory: UnsafeMutableRawBufferPointer, limit: Int, lineLimit: Int, reserve: Int = 0
    ) {
        let room = memory.count - WordCopy.slack - reserve
        guard let base = memory.baseAddress, room > 0 else {
            preconditionFailure("\(memory.count) bytes for a head")
        }
        self.base = base
        self.limit = min(limit, room)
        self.lineLimit = lineLimit
    }

    /// Whether `count` bytes and the empty line fit.
    @inline(__always)
    func hasRoom(_ count: Int) -> Bool { position &+ count &+ 2 <= limit }

    /// Appends a line, unless it has to be examined why it cannot be, or remembered.
    @inline(__always)
    mutating func appendPlain(_ line: HeaderLine) -> Bool {
        guard lines < lineLimit, hasRoom(line.count), !line.isSensitive else { return false }
        WordCopy.copy(line.start, to: base + position, count: line.count)
        position &+= line.count
        lines &+= 1
        return true
    }

    /// Appends a line; returns why it cannot be.
    mutating func append(_ line: HeaderLine) -> MessageError? {
        guard lines < lineLimit else { return .tooManyFields }
        guard hasRoom(line.count) else { return .headTooLarge }
        WordCopy.copy(line.start, to: base + position, count: line.count)
        position &+= line.count
        lines &+= 1
        if line.isSensitive { noteSensitive(line) }
        return nil
    }

    /// Appends a part of the cookies (RFC 9113 §8.2.3). An empty one says nothing, and is left out:
    /// joined, it would be whitespace at the end of the value.
    mutating func appendCookie(_ line: HeaderLine) -> MessageError? {
        guard line.valueCount > 0 else { return nil }
        guard cookieEnd == position else {
            if let error = append(line) { return error }
            cookieEnd = position
            cookieLines &+= 1
            return nil
        }
        guard hasRoom(line.valueCount &+ 2) else { return .headTooLarge }
        (base + (position &- 2)).storeBytes(of: UInt16(0x203B).littleEndian, as: UInt16.self)
        WordCopy.copy(line.value, to: base + position, count: line.valueCount &+ 2)
        position &+= line.valueCount &+ 2
        cookieEnd = position
        if line.isSensitive { noteSensitive(line) }
        return nil
    }

    @inline(never)
    private mutating func noteSensitive(_ line: HeaderLine) {
        // An encoder keeps secrets out of its table by itself.
        guard !StaticNames.isSecret(StaticNames.index(line.start, line.nameCount)) else { return }
        sensitive.insert(line.name)
    }

    /// Counts a line that is written by other means.
    mutating func countLine() { lines &+= 1 }

    @inline(__always)
    mutating func append(_ text: StaticString) {
        (base + position).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        position &+= text.utf8CodeUnitCount
    }

    /// Ends the section; returns whether lines moved before that.
    @inline(__always)
    mutating func end() -> Bool {
        let moves = cookieLines > 1
        if moves { joinCookies() }
        append("\r\n")
        return moves
    }

    /// Where the value of the line is that begins with `prefix`, a name with a colon and a space.
    func value(of prefix: StaticString) -> ByteRange? {
        let written = UnsafeRawBufferPointer(start: base, count: position)
        let prefixCount = prefix.utf8CodeUnitCount
        var start = 0
        while let end = written[start...].firstIndex(of: 0x0A) {
            if end &- start > prefixCount,
                WordCopy.equal(base + start, prefix.utf8Start, count: prefixCount)
            {
                return ByteRange(from: start &+ prefixCount, to: end &- 1)
            }
            start = end &+ 1
        }
        return nil
    }

    /// Joins lines of cookies that are apart from each other into the first one.
    @inline(never)
    private mutating func joinCookies() {
        let prefix: StaticString = "cookie: "
        let prefixCount = prefix.utf8CodeUnitCount
        let written = UnsafeRawBufferPointer(start: base, count: position)
        var cookies: [UInt8] = []
        var others: [UInt8] = []
        var first: Int?
        var start = 0
        while start < written.count {
            // No line contains a line feed.
            let end = written[start...].firstIndex(of: 0x0A).map { $0 + 1 } ?? written.count
            if end - start > prefixCount,
                WordCopy.equal(base + start, prefix.utf8Start, count: prefixCount)
            {
                if first == nil { first = start } else { cookies += "; ".utf8 }
                cookies += written[(start + prefixCount)..<(end - 2)]
            } else if first != nil {
                others += written[start..<end]
            }
            start = end
        }
        position = first ?? position
        append(prefix)
        append(cookies)
        append("\r\n")
        append(others)
    }

    private mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes {
            guard let source = $0.baseAddress else { return }
            (base + position).copyMemory(from: source, byteCount: $0.count)
        }
        position &+= bytes.count
    }
}
