/// A token bucket, kept as the time at which what has been taken is paid for: the generic cell rate
/// algorithm (ITU-T I.371, Annex A). There is nothing to fill: time does that, and a bucket is two
/// numbers whatever its rate, so that a rate can change while it is in use.
///
///     ──────────┬───────────────┬──────────────► time
///               now             paid
///               └── the debt ───┘     with `burst`: paid may be that much after now
///
/// All times and costs are in nanoseconds; a cost is the time in which that much is earned. The
/// clock may stop or go back: nothing is earned until it has passed the latest time seen.
struct RateBucket: Sendable, Equatable {
    /// When everything that was taken is paid for; `.min` if nothing was.
    private var paid = Int64.min
    private var seen = Int64.min

    /// How long to wait until something may be taken; 0 if at once.
    /// - Parameters:
    ///   - burst: how much may be taken in advance, beyond what is taken now.
    func wait(burst: Int64, at now: Int64) -> Int64 {
        let now = max(now, seen)
        guard paid > now else { return 0 }
        return max(0, paid - now - burst)
    }

    /// Takes something, whether or not it is its time. Returns when it is, which may be past.
    /// - Parameter late: how long ago whoever takes it had its turn, and was not served: it loses
    ///   nothing by that.
    mutating func take(_ cost: Int64, burst: Int64, late: Int64 = 0, at now: Int64) -> Int64 {
        seen = max(now, seen)
        let start = max(paid, seen.addingSaturated(-max(0, late)))
        paid = start.addingSaturated(cost)
        return start.addingSaturated(-burst)
    }

    /// Gives back what was taken and not used.
    mutating func giveBack(_ cost: Int64) {
        guard paid > .min else { return }
        paid = paid.addingSaturated(-cost)
    }

    /// Whether nothing is owed.
    func isAtRest(at now: Int64) -> Bool { paid <= max(now, seen) }

    /// How much is owed.
    func debt(at now: Int64) -> Int64 { isAtRest(at: now) ? 0 : paid - max(now, seen) }
}

extension Int64 {
    /// The sum, or the nearest number there is.
    func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        guard overflow else { return sum }
        return other < 0 ? .min : .max
    }

    /// The product of two numbers that are not negative, or the largest number there is.
    func multipliedSaturated(by other: Int64) -> Int64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}

/// The cost of bytes.
enum ByteCost {
    /// The nanoseconds in which so many bytes are earned, rounded up.
    /// - Parameter speed: bytes per second, at least 1.
    static func of(_ bytes: Int, at speed: Int) -> Int64 {
        guard bytes > 0 else { return 0 }
        let (high, low) = UInt64(bytes).multipliedFullWidth(by: 1_000_000_000)
        let speed = UInt64(max(1, speed))
        guard high < speed else { return .max }
        let (quotient, remainder) = speed.dividingFullWidth((high, low))
        return Int64(clamping: quotient).addingSaturated(remainder > 0 ? 1 : 0)
    }
}
