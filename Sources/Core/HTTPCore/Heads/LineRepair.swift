/// What is read of lines in a response's head that old servers send and that can be read in one way
/// only: a recipient may, or has to, mend them before it passes them on.
///
/// - A line that goes on in the next one (obs-fold): spaces take the place of the line end
///   (RFC 9112 §5.2).
/// - White space before the colon: it is removed (RFC 9112 §5.1).
/// - One length said several times, on several lines or in a list: it is said once
///   (RFC 9110 §8.6).
///
/// While a head is parsed such lines are only noted (``FieldSection/isIrregular``), for its bytes
/// are not the parser's; ``ResponseHead/repair(in:)`` then mends them where they lie, without
/// moving anything, so that all offsets stay. Requests are never read so.
enum LineRepair: UInt8 {
    /// Requests and trailer sections: such lines are refused.
    case none
    /// All but the fields that say where the message ends or what becomes of the connection, which
    /// recipients behind a gateway may read in another way.
    case harmless
    /// All of them: a user agent passes nothing on.
    case all

    private static let framing = FieldIDSet([
        .contentLength, .transferEncoding, .connection, .trailer,
    ])

    /// Whether a line of a field is mended.
    func mends(_ id: FieldID) -> Bool {
        switch self {
        case .none: false
        case .harmless: !Self.framing.contains(id)
        case .all: true
        }
    }
}

extension ResponseHead {
    /// Mends the lines that were irregular, in the bytes that the head was parsed from. To be
    /// called once after a head is complete, before anything is read from those bytes; it does
    /// nothing to most heads.
    ///
    /// - Parameter head: the head's bytes, from its first one on.
    @inline(__always)
    package mutating func repair(in head: UnsafeMutableRawBufferPointer) {
        if fields.isIrregular { repairLines(in: head) }
    }

    @inline(never)
    private mutating func repairLines(in head: UnsafeMutableRawBufferPointer) {
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
        sayLengthOnce(in: head)
    }

    /// Leaves the first of several equal lengths. What is said besides becomes white space: behind
    /// that length, or, a line of it, behind the line before.
    private mutating func sayLengthOnce(in head: UnsafeMutableRawBufferPointer) {
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
