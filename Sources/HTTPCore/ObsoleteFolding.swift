import Notation

/// Lines of a response head that go on in the next one (obs-fold, RFC 9112 §5.2), which some old
/// servers send. A user agent reads them as spaces; to a gateway they are a fault.
package enum ObsoleteFolding {
    /// Puts spaces in place of each line end that white space follows, but not behind the start
    /// line, where it must not be.
    ///
    /// - Parameter head: what has come of the head, and perhaps of what follows it.
    /// - Returns: false: there was none.
    package static func unfold(_ head: UnsafeMutableRawBufferPointer) -> Bool {
        guard var index = lineEnd(head, from: 0).map({ $0 + 2 }) else { return false }
        var hasUnfolded = false
        while let end = lineEnd(head, from: index), end > index, end + 2 < head.count {
            if head[end + 2] == Byte.space || head[end + 2] == Byte.tab {
                head[end] = Byte.space
                head[end + 1] = Byte.space
                hasUnfolded = true
            }
            index = end + 2
        }
        return hasUnfolded
    }

    /// Where the next CRLF begins.
    private static func lineEnd(_ head: UnsafeMutableRawBufferPointer, from start: Int) -> Int? {
        var index = start
        while index + 1 < head.count {
            if head[index] == Byte.carriageReturn, head[index + 1] == Byte.lineFeed { return index }
            index += 1
        }
        return nil
    }
}
