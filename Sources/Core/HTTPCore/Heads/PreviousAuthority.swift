/// The scheme and authority of the previous absolute-form target on a connection, as bytes and as
/// parsed values.
///
/// A client of a proxy requests from the same server many times in a row. Once an authority has
/// been validated, later ones are only compared with it, eight bytes at a time, which takes a sixth
/// of the instructions. Only identical bytes match, and their meaning depends on them alone if the
/// target ends after them or continues with `/` or `?`.
struct PreviousAuthority: Sendable {
    private static let capacity = 64

    /// `scheme://authority`, eight bytes in each word, the first one lowest.
    private var words = InlineArray<8, UInt64>(repeating: 0)
    /// The length in bytes; 0 if there was no such target, or if it was too long.
    private var count = 0
    private var scheme = Scheme.http
    /// Both count from the target's first byte.
    private var authority = ByteRange()
    private var host = ByteRange()
    private var hostKind = HostKind.none
    private var port: UInt16 = 0
    private var hasExplicitPort = false

    /// Fills in the values of a target that begins like the previous one; returns false if it does
    /// not.
    @inline(__always)
    func resolve(_ head: inout RequestHead, _ bytes: HeadBytes) -> Bool {
        let start = Int(head.target.start)
        guard count > 0, Int(head.target.count) >= count, begins(bytes, at: start) else {
            return false
        }
        let end = start &+ count
        guard end == Int(head.target.end) || PreviousAuthority.isEnd(bytes[end]) else {
            return false
        }
        head.form = .absolute
        head.scheme = scheme
        head.authority = ByteRange(
            start: authority.start &+ head.target.start, count: authority.count)
        head.host = ByteRange(start: host.start &+ head.target.start, count: host.count)
        head.hostKind = hostKind
        head.port = port
        head.hasExplicitPort = hasExplicitPort
        head.path = ByteRange(from: end, to: Int(head.target.end))
        return true
    }

    /// Whether a byte ends an authority within a target.
    @inline(__always)
    private static func isEnd(_ byte: UInt8) -> Bool {
        byte == Byte.slash || byte == Byte.question
    }

    @inline(__always)
    private func begins(_ bytes: HeadBytes, at start: Int) -> Bool {
        var offset = 0
        while offset &+ 8 <= count {
            guard bytes.word(at: start &+ offset) == words[unchecked: offset &>> 3] else {
                return false
            }
            offset &+= 8
        }
        return offset == count
            || bytes.shortWord(from: start &+ offset, to: start &+ count)
                == words[unchecked: offset &>> 3]
    }

    /// Stores the values of an absolute-form target that has been validated.
    mutating func note(_ head: borrowing RequestHead, _ bytes: HeadBytes) {
        let start = Int(head.target.start)
        count = 0
        let length = Int(head.path.start) &- start
        guard length <= PreviousAuthority.capacity else { return }
        count = length
        for offset in stride(from: 0, to: count, by: 8) {
            words[offset &>> 3] = bytes.shortWord(
                from: start &+ offset, to: start &+ min(offset &+ 8, count))
        }
        scheme = head.scheme
        authority = ByteRange(
            start: head.authority.start &- head.target.start, count: head.authority.count)
        host = ByteRange(start: head.host.start &- head.target.start, count: head.host.count)
        hostKind = head.hostKind
        port = head.port
        hasExplicitPort = head.hasExplicitPort
    }
}
