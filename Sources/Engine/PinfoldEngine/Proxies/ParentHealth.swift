/// Whether a gateway's parent is used, as a state machine: without connections, clocks or side
/// effects.
///
///     up ──── failed, or asked in vain ───► down (for 1 s, then 2 s, up to 60 s)
///      ▲                                      │
///      └──── answered ◄── asked again ◄───────┘
///
/// Only what does not depend on the destination puts a parent down at once: that it cannot be
/// connected to. That it did not answer a CONNECT may be the fault of the server that somebody has
/// asked for, so it is asked something that it must answer itself (``ParentProbe``), and that
/// decides. Otherwise any client could have a parent put down for all others.
struct ParentHealth: Equatable {
    /// How long it is down after its first failure, and at most, in milliseconds.
    static let shortestPause: Int64 = 1_000
    static let longestPause: Int64 = 60_000
    /// After how long a question counts as unanswered although nobody has said so: whoever asked
    /// has gone.
    static let forgottenAfter: Int64 = 60_000

    private enum Phase: Equatable {
        case up
        /// It is asked again at that time; it has failed so often in a row.
        case down(until: Int64, failures: Int)
    }

    private var phase = Phase.up
    /// When it last answered anything, or came into use.
    private var answeredAt: Int64
    /// Whether there is a reason to ask it at once.
    private var isSuspected = false
    /// When it was last asked, if the answer is outstanding.
    private var askedAt: Int64?
    /// How long it may be silent until it is asked; 0 for ever.
    private let interval: Int64

    /// - Parameters:
    ///   - interval: how long it may be without requests before it is asked, in milliseconds; 0 to
    ///     ask only after failures.
    ///   - now: of the monotonic clock, in milliseconds; likewise below.
    init(interval: Int64, at now: Int64) {
        self.interval = interval
        answeredAt = now
    }

    var isDown: Bool { phase != .up }

    /// It has answered something, whatever it was. Returns whether it had been down.
    mutating func answered(at now: Int64) -> Bool {
        answeredAt = now
        isSuspected = false
        defer { phase = .up }
        return isDown
    }

    /// It cannot be connected to. Returns whether it had been up.
    mutating func failed(at now: Int64) -> Bool {
        isSuspected = false
        switch phase {
        case .up:
            phase = .down(until: now + Self.shortestPause, failures: 1)
            return true
        case .down(let until, let failures):
            // Others that failed at the same time say nothing new.
            guard now >= until else { return false }
            phase = .down(until: now + Self.pause(after: failures + 1), failures: failures + 1)
            return false
        }
    }

    /// A request failed in a way that it or a server may be the cause of.
    mutating func suspect() { if !isDown { isSuspected = true } }

    /// Whether it is to be asked now, which is then outstanding.
    mutating func takeProbe(at now: Int64) -> Bool {
        if let askedAt, now - askedAt < Self.forgottenAfter { return false }
        let isDue =
            switch phase {
            case .up: isSuspected || interval > 0 && now - answeredAt >= interval
            case .down(let until, _): now >= until
            }
        guard isDue else { return false }
        askedAt = now
        return true
    }

    /// The question has been answered, or not. Returns whether that has changed something.
    mutating func probed(_ hasAnswered: Bool, at now: Int64) -> Bool {
        askedAt = nil
        return hasAnswered ? answered(at: now) : failed(at: now)
    }

    /// How long it is down after so many failures in a row.
    static func pause(after failures: Int) -> Int64 {
        min(longestPause, shortestPause << Int64(min(max(failures, 1) - 1, 16)))
    }
}
