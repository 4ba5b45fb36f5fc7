/// Which irregular lines in a response head are accepted: lines that old servers send and that can
/// be read in one way only. A recipient may, or must, repair them before it forwards them.
///
/// - A line continued on the next one (obs-fold): the line ending is replaced by spaces (RFC 9112
///   §5.2).
/// - White space before the colon: it is removed (RFC 9112 §5.1).
/// - The same length given several times, on several lines or in a list: it is given once (RFC 9110
///   §8.6).
///
/// During parsing such lines are only noted (``FieldSection/isIrregular``), because the parser does
/// not own the bytes; ``ResponseHead/repair(in:)`` then repairs them in place, without moving
/// anything, so that all offsets stay valid. Requests are never repaired.
enum LineRepair: UInt8 {
    /// Requests and trailer sections: such lines are refused.
    case none
    /// All fields except those that determine where the message ends or what happens to the
    /// connection, which recipients behind a gateway may read differently.
    case harmless
    /// All of them: a user agent forwards nothing.
    case all

    private static let framing = FieldIDSet([
        .contentLength, .transferEncoding, .connection, .trailer,
    ])

    /// Whether an irregular line of this field is repaired.
    func repairs(_ id: FieldID) -> Bool {
        switch self {
        case .none: false
        case .harmless: !Self.framing.contains(id)
        case .all: true
        }
    }
}

extension ResponseHead {
    /// Repairs the irregular lines, in the bytes that the head was parsed from. To be called once
    /// after a head is complete, before anything is read from those bytes; most heads need no
    /// change.
    ///
    /// - Parameter head: the head's bytes, from its first one on.
    @inline(__always)
    @inlinable public mutating func repair(in head: UnsafeMutableRawBufferPointer) {
        if fields.isIrregular { repairLines(in: head) }
    }

    @inline(never)
    @usableFromInline mutating func repairLines(in head: UnsafeMutableRawBufferPointer) {
        fields.isIrregular = false
        for index in 0..<fields.count {
            let end = lineEnd(index)
            let name = Int(fields[index].name.end)
            if head[name] != Byte.colon, let colon = head[name..<end].firstIndex(of: Byte.colon) {
                head[colon] = Byte.space
                head[name] = Byte.colon
            }
            for offset in name..<end where Self.endsLine(head[offset]) {
                head[offset] = Byte.space
            }
        }
        keepFirstLength(in: head)
    }

    /// Keeps the first of several equal lengths. The others are replaced by white space: after that
    /// length or, if they are on another line, at the end of the line before it.
    private mutating func keepFirstLength(in head: UnsafeMutableRawBufferPointer) {
        guard let first = fields.firstIndex(where: { $0.id == .contentLength }) else { return }
        for index in (0..<fields.count).reversed() where fields[index].id == .contentLength {
            let (start, end) = (Int(fields[index].name.start), lineEnd(index))
            if index > first {
                for offset in (start - Self.lineEndBytes)..<end { head[offset] = Byte.space }
                fields.remove(at: index)
            } else {
                let value = fields[index].value
                let digits = head[value.indices].prefix(while: ASCII.isDigit)
                for offset in digits.endIndex..<end { head[offset] = Byte.space }
                fields.setValue(ByteRange(from: Int(value.start), to: digits.endIndex), at: index)
            }
        }
    }

    private static let lineEndBytes = 2

    /// Where the CRLF of a line begins.
    private func lineEnd(_ index: Int) -> Int {
        let next = index + 1 < fields.count ? fields[index + 1].name.start : fields.end
        return Int(next) - Self.lineEndBytes
    }

    private static func endsLine(_ byte: UInt8) -> Bool {
        byte == Byte.carriageReturn || byte == Byte.lineFeed
    }
}
