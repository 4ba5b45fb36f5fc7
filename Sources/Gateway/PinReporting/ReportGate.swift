/// Decides which failures are reported at once, which are only counted, and which neither: a server
/// that fails at each of a thousand connections yields one report with a count, and an attacker who
/// presents a new key at each connection cannot fill the queue. Its memory is bounded.
package struct ReportGate: Sendable {
    /// What to do with a failure.
    package enum Decision: Sendable, Equatable {
        /// Report it; ``keep(_:for:)`` must follow.
        case report
        /// The same was reported recently: it is counted, and reported when the period is over.
        case count
        /// Ignore it: there are too many different ones.
        case refuse
    }

    fileprivate struct Entry {
        /// When the last report was made, in seconds.
        var since: Int64
        /// How often it has happened since.
        var held: UInt64 = 0
        /// When it last happened, in seconds since 1970.
        var lastTime: Int64
        /// What was reported; `nil` until it is known.
        var report: PinFailureReport?
    }

    /// One pinset's share, which other pinsets' failures cannot use up.
    private struct Share {
        var entries: [ReportSubject: Entry] = [:]
        /// The number of reports that it may still make at once.
        var remaining = ReportGate.burst
        /// When that was last replenished, in seconds.
        var since: Int64

        mutating func decide(_ subject: ReportSubject, now: Int64, time: Int64) -> Decision {
            if entries[subject] != nil {
                entries[subject]?.held += 1
                entries[subject]?.lastTime = time
                return .count
            }
            refill(now)
            guard entries.count < ReportGate.capacity, remaining > 0 else { return .refuse }
            remaining -= 1
            entries[subject] = Entry(since: now, lastTime: time)
            return .report
        }

        private mutating func refill(_ now: Int64) {
            let more = (now - since) / ReportGate.refillSeconds
            remaining = min(ReportGate.burst, remaining + more)
            since += more * ReportGate.refillSeconds
        }
    }

    /// The time between two reports of the same failure, in seconds.
    package static let periodSeconds: Int64 = 3600
    /// The maximum number of different failures of one pinset that are tracked.
    package static let capacity = 128
    /// The number of reports of different failures of one pinset at once, and the seconds for one
    /// more.
    package static let burst: Int64 = 30
    package static let refillSeconds: Int64 = 60
    /// The maximum bytes of chains that are kept for later reports, of all pinsets together.
    package static let maximumBytes = 16 << 20

    /// By the names of the pinsets.
    private var shares: [String: Share] = [:]
    private var bytes = 0

    package init() {}

    /// Decides about a failure.
    ///
    ///   - now: seconds of a monotonic clock.
    ///   - now: seconds of a clock that never goes back.
    ///   - time: seconds since 1970.
    package mutating func decide(
        _ subject: ReportSubject, now: Int64, time: Int64
    ) -> Decision {
        shares[subject.pinset, default: Share(since: now)].decide(subject, now: now, time: time)
    }

    /// Keeps what was reported, for the report of what is only counted from now on. If there is no
    /// space for it, what was counted is not reported, but the next failure is again.
    package mutating func keep(_ report: PinFailureReport, for subject: ReportSubject) {
        guard let entry = shares[subject.pinset]?.entries[subject] else { return }
        let others = bytes - (entry.report?.chainBytes ?? 0)
        guard others + report.chainBytes <= Self.maximumBytes else { return }
        shares[subject.pinset]?.entries[subject]?.report = report
        bytes = others + report.chainBytes
    }

    /// Reports of what was counted, for the subjects whose period is over. A new period begins for
    /// them; subjects that did not recur are forgotten.
    package mutating func takeDue(now: Int64) -> [PinFailureReport] {
        var due: [PinFailureReport] = []
        for (name, share) in shares {
            for (subject, entry) in share.entries where now - entry.since >= Self.periodSeconds {
                guard entry.held > 0, let report = entry.counted else {
                    forget(subject, of: name)
                    continue
                }
                due.append(report)
                shares[name]?.entries[subject]?.held = 0
                shares[name]?.entries[subject]?.since = now
            }
        }
        return due.sorted { $0.time < $1.time }
    }

    /// Applies other pinsets and destinations. Failures of those that have changed are forgotten
    /// here, and will be reported as new.
    ///
    /// - Returns: reports of what was counted of them.
    package mutating func adopt(_ policies: [String: ReportPolicy]) -> [PinFailureReport] {
        var reports: [PinFailureReport] = []
        for (name, share) in shares {
            var isAnother = policies[name] == nil
            for (subject, entry) in share.entries where subject.policy != policies[name] {
                isAnother = true
                if let report = entry.counted { reports.append(report) }
                forget(subject, of: name)
            }
            if isAnother { shares[name]?.remaining = Self.burst }
            if policies[name] == nil { shares[name] = nil }
        }
        return reports.sorted { $0.time < $1.time }
    }

    private mutating func forget(_ subject: ReportSubject, of pinset: String) {
        let entry = shares[pinset]?.entries.removeValue(forKey: subject)
        bytes -= entry?.report?.chainBytes ?? 0
    }

    /// Reports of everything that was counted, before the process ends.
    package mutating func takeAll() -> [PinFailureReport] {
        let all = entries.compactMap(\.counted).sorted { $0.time < $1.time }
        self = ReportGate()
        return all
    }

    /// The number of reports that ``takeAll()`` would return.
    package var counted: Int { entries.count(where: { $0.counted != nil }) }

    /// When ``takeDue(now:)`` next has something to do, or `nil` if nothing is due.
    package var nextDue: Int64? { entries.map { $0.since + Self.periodSeconds }.min() }

    private var entries: [Entry] { shares.values.flatMap(\.entries.values) }
}

extension ReportGate.Entry {
    /// The report of what was counted, or `nil` if nothing was.
    fileprivate var counted: PinFailureReport? {
        guard held > 0, var report else { return nil }
        report.count = held
        report.time = lastTime
        return report
    }
}
