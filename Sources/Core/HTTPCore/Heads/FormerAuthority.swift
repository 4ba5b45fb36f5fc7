/// How the last target in absolute-form on a connection began, and what that means: its scheme and
/// authority.
///
/// A client of a proxy asks the same server many times in a row. What was judged once is compared
/// from then on, eight bytes at a time, which takes a sixth of the instructions. Only the same
/// bytes count as the same, and what they mean depends on them alone where the target ends behind
/// them or goes on with `/` or `?`.
struct FormerAuthority: Sendable {
    private static let capacity = 64

    /// `scheme://authority`, eight bytes in each word, the first one lowest.
    private var words = InlineArray<8, UInt64>(repeating: 0)
    /// How many bytes those are; 0: there was no such target, or it was too long.
    private var count = 0
    private var scheme = Scheme.http
    /// Both count from the target's first byte.
    private var authority = ByteRange()
    private var host = ByteRange()
    private var hostKind = HostKind.none
    private var port: UInt16 = 0
    private var hasExplicitPort = false

    /// Fills in what a target means that begins as the former one did; false: it does not.
    @inline(__always)
    func resolve(_ head: inout RequestHead, _ bytes: HeadBytes) -> Bool {
        let start = Int(head.target.start)
        guard count > 0, Int(head.target.count) >= count, begins(bytes, at: start) else {
            return false
        }
        let end = start &+ count
        guard end == Int(head.target.end) || FormerAuthority.isEnd(bytes[end]) else { return false }
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

    /// Keeps what a target in absolute-form means that has been judged.
    mutating func note(_ head: borrowing RequestHead, _ bytes: HeadBytes) {
        let start = Int(head.target.start)
        count = 0
        let length = Int(head.path.start) &- start
        guard length <= FormerAuthority.capacity else { return }
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
