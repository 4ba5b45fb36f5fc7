import Logging

/// Admits the same message from the same cause to the operational log a few times per second, and
/// counts the others. Pure: the time is an argument.
///
///     first of a cause ──► window of a second ──► written up to `burst`, then counted
///                              │ ends
///                              ▼
///                          something counted? ── yes ──► a line with the number
///
/// Its memory is bounded: once there are `maximumCauses`, further causes of a message share one.
struct LogLimiter: Sendable {
    /// What makes messages the same. All parts come from the program and its configuration; a
    /// client can choose among them but not add to them.
    struct Cause: Hashable, Sendable {
        var message: String
        /// The token of the reason; empty if there is none.
        var reason = ""
        /// The subject: a host entry, a listener; empty if there is none.
        var subject = ""
    }

    /// Messages that were counted and not written.
    struct Suppressed: Equatable, Sendable {
        var cause: Cause
        var level: Logger.Level
        var count: UInt64
    }

    /// The maximum number of lines of one cause per window.
    static let burst = 5
    static let windowMilliseconds: Int64 = 1000
    static let maximumCauses = 256

    private struct Window {
        var start: Int64
        var level: Logger.Level
        var written = 0
        var suppressed: UInt64 = 0

        var end: Int64 { start + LogLimiter.windowMilliseconds }
    }

    private var windows: [Cause: Window] = [:]
    /// When the first window ends; `Int64.max` if there is none.
    private(set) var nextEnd = Int64.max

    /// Whether a message is written. `now` is in milliseconds of any monotonic clock.
    ///
    /// Call `ended(at:)` before, so that what a window counted is reported before its cause's next
    /// line.
    mutating func admits(_ cause: Cause, level: Logger.Level, now: Int64) -> Bool {
        var cause = cause
        if windows[cause] == nil, windows.count >= Self.maximumCauses {
            cause = Cause(message: cause.message)
        }
        var window = windows[cause] ?? Window(start: now, level: level)
        defer { windows[cause] = window }
        nextEnd = min(nextEnd, window.end)
        if window.written < Self.burst {
            window.written += 1
            return true
        }
        window.suppressed += 1
        return false
    }

    /// Removes the windows that have ended, and returns what they counted.
    mutating func ended(at now: Int64) -> [Suppressed] {
        guard now >= nextEnd else { return [] }
        var counted: [Suppressed] = []
        windows = windows.filter { cause, window in
            guard now >= window.end else { return true }
            if window.suppressed > 0 {
                counted.append(
                    Suppressed(cause: cause, level: window.level, count: window.suppressed))
            }
            return false
        }
        nextEnd = windows.values.map(\.end).min() ?? .max
        return counted
    }
}
