import HTTPCore

/// One field line of a stored head.
struct StoredLine {
    /// The name, if the policy uses it, otherwise `other`.
    let id: FieldID
    let name: ByteRange
    let value: ByteRange
    /// The whole line including its CRLF.
    let line: ByteRange
}

/// An iterator over the field lines of a stored head, which are always written as `Name: value
/// CRLF`. It ends before the trailers (`StoredTrailers`), if there are any.
///
/// Holds only offsets and does not allocate; for a head in any other format it returns `nil` and
/// sets `isDamaged`.
struct StoredLines {
    private var position: Int
    /// Whether the head ends inside a line or has a line without a colon.
    private(set) var isDamaged = false
    /// Where the empty line before the trailers is, once the end is reached; `nil` if there are
    /// none.
    private(set) var trailers: Int?
    /// The status line's code; 0 if there is none.
    let status: UInt16
    /// The status line including its CRLF.
    let statusLine: ByteRange

    /// Creates an iterator that begins after the status line.
    init(_ head: Span<UInt8>) {
        if StoredHead.isUsual(head), head.starts(with: "HTTP/1.1 ") {
            position = StoredHead.usualBytes
            status = 200
            statusLine = ByteRange(from: 0, to: position)
            return
        }
        guard let end = Self.lineEnd(from: 0, in: head), let status = Self.status(in: head) else {
            position = head.count
            isDamaged = true
            status = 0
            statusLine = ByteRange()
            return
        }
        position = end
        self.status = status
        statusLine = ByteRange(from: 0, to: end)
    }

    /// The next line; `nil` at the end.
    mutating func next(in head: Span<UInt8>) -> StoredLine? {
        guard position < head.count else { return nil }
        let start = position
        if trailersBegin(in: head) { return nil }
        guard let (known, colon) = FieldID.name(from: start, in: head),
            let end = Self.lineEnd(from: colon, in: head)
        else {
            isDamaged = true
            position = head.count
            return nil
        }
        position = end
        var from = colon + 1
        while from < end - 2, ASCII.isWhitespace(head[from]) { from += 1 }
        var to = end - 2
        while to > from, ASCII.isWhitespace(head[to - 1]) { to -= 1 }
        return StoredLine(
            id: Self.isUsed(known) ? known : .other, name: ByteRange(from: start, to: colon),
            value: ByteRange(from: from, to: to), line: ByteRange(from: start, to: end))
    }

    /// Whether the policy looks for the field in stored heads.
    private static func isUsed(_ id: FieldID) -> Bool {
        switch id {
        case .age, .date, .etag, .vary, .pragma, .expires, .setCookie, .cacheStatus,
            .cacheControl, .lastModified, .contentRange, .contentLength, .contentLocation,
            .contentEncoding, .cdnCacheControl:
            true
        default: false
        }
    }

    /// Whether the empty line before the trailers is next. It is passed, and the iterator at its
    /// end.
    private mutating func trailersBegin(in head: Span<UInt8>) -> Bool {
        guard trailers == nil, position + 2 < head.count, head[position] == 0x0D,
            head[position + 1] == 0x0A
        else { return false }
        trailers = position
        position = head.count
        return true
    }

    /// Goes on with the trailers, at the end of the fields.
    mutating func readTrailers() {
        if let trailers { position = trailers + 2 }
    }

    /// Where the fields of a stored head end, before the empty line that trailers follow if there
    /// are any; `nil` if the head is damaged.
    static func end(of head: Span<UInt8>) -> Int? {
        var lines = StoredLines(head)
        while lines.next(in: head) != nil {}
        guard !lines.isDamaged else { return nil }
        guard let end = lines.trailers else { return head.count }
        lines.readTrailers()
        while lines.next(in: head) != nil {}
        return lines.isDamaged ? nil : end
    }

    /// The offset after the next CRLF.
    private static func lineEnd(from start: Int, in head: Span<UInt8>) -> Int? {
        let end = head.firstIndex(of: 0x0A, from: start)
        return end > start && end < head.count && head[end - 1] == 0x0D ? end + 1 : nil
    }

    /// `HTTP/1.1 SP 3DIGIT SP`, or with `PART/1.1` (``StoredFlags/parts``).
    private static func status(in head: Span<UInt8>) -> UInt16? {
        let code = ByteRange(start: 9, count: 3)
        let version = ByteRange(start: 0, count: 9)
        guard head.count > 12,
            head.holds("HTTP/1.1 ", at: version) || head.holds("PART/1.1 ", at: version),
            let status = DecimalNumber.parse(code, in: head), status >= 200
        else { return nil }
        return UInt16(status)
    }
}
