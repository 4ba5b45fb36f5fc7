/// When the policy is asked for next: once in an interval, a little earlier or later so that not
/// all gateways come at once; and after a failure soon, then after twice as long each time, up to
/// the interval. Pure: the time and chance are arguments.
struct PolicySchedule: Sendable, Equatable {
    /// The first delay after a failure, in milliseconds.
    static let firstMilliseconds: Int64 = 1000
    /// By how many hundredths of the interval a request may come earlier or later.
    static let jitterPercent: Int64 = 10

    private var failures: Int64 = 0
    /// In milliseconds of the caller's clock; `nil` for at once.
    private(set) var next: Int64?

    init() {}

    /// The server answered.
    /// - Parameter random: from 0 to 1.
    mutating func answered(at now: Int64, interval: Int64, random: Double) {
        failures = 0
        let jitter = Double(interval * Self.jitterPercent / 100) * (2 * random - 1)
        next = now + max(1, interval + Int64(jitter))
    }

    /// It did not.
    /// - Parameters:
    ///   - asked: the delay that it requested (Retry-After), in milliseconds, of which no more than
    ///     the interval is granted: whoever answers in its place could silence it otherwise; `nil`
    ///     for none.
    ///   - random: from 0 to 1: how much of the second half of the delay is waited.
    mutating func failed(at now: Int64, interval: Int64, asked: Int64?, random: Double) {
        let whole = min(Self.firstMilliseconds << min(failures, 20), interval)
        failures += 1
        let wait = whole / 2 + Int64(Double(whole / 2) * random)
        next = now + max(wait, min(asked ?? 0, interval))
    }
}
