/// Decides whether a loop looks for more events before it writes what it has collected.
///
/// Connections that carry many exchanges write once for all that have arrived. Where the other side
/// runs on the same processors, its next message is often there as soon as it has been given one:
/// then one write carries several answers, for one more system call that is worth it. Where that
/// brings nothing, or the processor comes back late because other programs use it, it is tried ever
/// more rarely.
struct Gathering {
    /// Turns until the next attempt, and how many there were before this one.
    private var left = 0
    private var pause = 0
    /// Attempts in a row that brought nothing.
    private var failures = 0

    /// An attempt that takes longer has been in vain, whatever it finds (nanoseconds).
    static let longest: Int64 = 200_000
    static let failuresInRow = 4
    static let pauses = 16...1024

    /// Whether to look this time.
    mutating func mayLook() -> Bool {
        guard left > 0 else { return true }
        left -= 1
        return false
    }

    mutating func looked(finding count: Int, taking nanoseconds: Int64) {
        if count > 0, nanoseconds <= Self.longest {
            failures = 0
            pause = 0
            return
        }
        failures += 1
        guard failures >= Self.failuresInRow || nanoseconds > Self.longest else { return }
        pause = min(max(2 * pause, Self.pauses.lowerBound), Self.pauses.upperBound)
        left = pause
    }
}
