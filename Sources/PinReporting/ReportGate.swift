/// Which failures are reported at once, which only counted, and which neither: a server that fails
/// at each of a thousand connections is one report with a count, and somebody who shows a new key
/// at each connection cannot fill the queue. Its memory is bounded.
package struct ReportGate: Sendable {
    /// What becomes of a failure.
    package enum Decision: Sendable, Equatable {
        /// It is to be reported: ``keep(_:for:)`` must follow.
        case report
        /// The same was reported a while ago: it is counted, and told of when the period is over.
        case count
        /// There are too many different ones.
        case refuse
    }

    fileprivate struct Entry {
        /// When the last report was made, in seconds.
        var since: Int64
        /// How often it happened since.
        var held: UInt64 = 0
        /// When it happened last, in seconds since 1970.
        var lastTime: Int64
        /// What was reported; nil until it is known.
        var report: PinFailureReport?
    }

    /// Reports that a pinset may still make at once.
    private struct Allowance {
        var left: Int64 = ReportGate.burst
        /// When it was filled up last, in seconds.
        var since: Int64
    }

    /// Between two reports of the same, in seconds.
    package static let periodSeconds: Int64 = 3600
    /// Different failures that are told apart at a time.
    package static let capacity = 128
    /// Reports of different failures of one pinset at once, and the seconds for one more.
    package static let burst: Int64 = 30
    package static let refillSeconds: Int64 = 60

    private var entries: [ReportSubject: Entry] = [:]
    private var allowances: [String: Allowance] = [:]

    package init() {}

    /// Decides about a failure.
    ///
    /// - Parameters:
    ///   - now: seconds of a clock that never goes back.
    ///   - time: seconds since 1970.
    package mutating func decide(
        _ subject: ReportSubject, now: Int64, time: Int64
    ) -> Decision {
        if entries[subject] != nil {
            entries[subject]?.held += 1
            entries[subject]?.lastTime = time
            return .count
        }
        guard entries.count < Self.capacity, takeAllowance(subject.pinset, now) else {
            return .refuse
        }
        entries[subject] = Entry(since: now, lastTime: time)
        return .report
    }

    private mutating func takeAllowance(_ pinset: String, _ now: Int64) -> Bool {
        var allowance = allowances[pinset] ?? Allowance(since: now)
        let more = (now - allowance.since) / Self.refillSeconds
        allowance.left = min(Self.burst, allowance.left + more)
        allowance.since += more * Self.refillSeconds
        defer { allowances[pinset] = allowance }
        guard allowance.left > 0 else { return false }
        allowance.left -= 1
        return true
    }

    /// Keeps what was reported, for the report of what is only counted from now on.
    package mutating func keep(_ report: PinFailureReport, for subject: ReportSubject) {
        entries[subject]?.report = report
    }

    /// Reports of what was counted, for the subjects whose period is over. Another one begins for
    /// them; those that did not happen again are forgotten.
    package mutating func takeDue(now: Int64) -> [PinFailureReport] {
        var due: [PinFailureReport] = []
        for (subject, entry) in entries where now - entry.since >= Self.periodSeconds {
            guard entry.held > 0, let report = entry.counted else {
                entries[subject] = nil
                continue
            }
            due.append(report)
            entries[subject]?.held = 0
            entries[subject]?.since = now
        }
        forgetPinsets()
        return due.sorted { $0.time < $1.time }
    }

    /// Reports of all that was counted, before the process ends.
    package mutating func takeAll() -> [PinFailureReport] {
        let all = entries.values.compactMap(\.counted).sorted { $0.time < $1.time }
        self = ReportGate()
        return all
    }

    /// When ``takeDue(now:)`` has something to do next; nil: not as it is now.
    package var nextDue: Int64? { entries.values.map { $0.since + Self.periodSeconds }.min() }

    /// Names of pinsets come from configurations, and a process may see many of those.
    private mutating func forgetPinsets() {
        guard allowances.count > Self.capacity else { return }
        let used = Set(entries.keys.map(\.pinset))
        allowances = allowances.filter { used.contains($0.key) }
    }
}

extension ReportGate.Entry {
    /// The report of what was counted; nil if nothing was.
    fileprivate var counted: PinFailureReport? {
        guard held > 0, var report else { return nil }
        report.count = held
        report.time = lastTime
        return report
    }
}
