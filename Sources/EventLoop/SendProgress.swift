/// Whether a slow peer still takes bytes from a full socket.
///
/// A socket is reported writable when a third of its buffer, which may be megabytes, is free again:
/// a peer that reads steadily can be slower than that for longer than a deadline.
package struct SendProgress {
    /// What waited in the kernel when it was last looked at.
    private var unsent = Int.max

    package init() {}

    /// Bytes were handed to the kernel: what waits there is more than it was.
    package mutating func restart() { unsent = .max }

    /// Whether less waits in the kernel than at the last call, or it is the first one since
    /// `restart`. A peer that takes nothing is thus noticed at the second call.
    package mutating func isMade(on descriptor: Int32) -> Bool {
        guard let now = Sockets.unsentBytes(descriptor) else { return false }
        defer { unsent = now }
        return now < unsent
    }
}
