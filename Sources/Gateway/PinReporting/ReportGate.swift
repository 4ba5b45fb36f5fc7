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

    /// What one pinset has: no other's failures take of it.
    private struct Share {
        var entries: [ReportSubject: Entry] = [:]
        /// Reports that it may still make at once.
        var remaining = ReportGate.burst
        /// When that was filled up last, in seconds.
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

    /// Between two reports of the same, in seconds.
    package static let periodSeconds: Int64 = 3600
    /// Different failures of one pinset that are told apart at a time.
    package static let capacity = 128
    /// Reports of different failures of one pinset at once, and the seconds for one more.
    package static let burst: Int64 = 30
    package static let refillSeconds: Int64 = 60
    /// Bytes of the chains that are kept for reports to come, of all pinsets together.
    package static let maximumBytes = 16 << 20

    /// By the pinsets' names.
    private var shares: [String: Share] = [:]
    private var bytes = 0

    package init() {}

    /// Decides about a failure.
    ///
    /// - Parameters:
    ///   - now: seconds of a clock that never goes back.
    ///   - time: seconds since 1970.
    package mutating func decide(
        _ subject: ReportSubject, now: Int64, time: Int64
    ) -> Decision {
        shares[subject.pinset, default: Share(since: now)].decide(subject, now: now, time: time)
    }

    /// Keeps what was reported, for the report of what is only counted from now on. Where there is
    /// no room for it, what was counted is not reported, and the next failure is again.
    package mutating func keep(_ report: PinFailureReport, for subject: ReportSubject) {
        guard let entry = shares[subject.pinset]?.entries[subject] else { return }
        let others = bytes - (entry.report?.chainBytes ?? 0)
        guard others + report.chainBytes <= Self.maximumBytes else { return }
        shares[subject.pinset]?.entries[subject]?.report = report
        bytes = others + report.chainBytes
    }

    /// Reports of what was counted, for the subjects whose period is over. Another one begins for
    /// them; those that did not happen again are forgotten.
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

    /// Other pinsets and destinations are in force. Failures of those that are others now are
    /// reported anew, and forgotten here.
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

    /// Reports of all that was counted, before the process ends.
    package mutating func takeAll() -> [PinFailureReport] {
        let all = entries.compactMap(\.counted).sorted { $0.time < $1.time }
        self = ReportGate()
        return all
    }

    /// Reports that ``takeAll()`` would give out.
    package var counted: Int { entries.count(where: { $0.counted != nil }) }

    /// When ``takeDue(now:)`` has something to do next; nil: not as it is now.
    package var nextDue: Int64? { entries.map { $0.since + Self.periodSeconds }.min() }

    private var entries: [Entry] { shares.values.flatMap(\.entries.values) }
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
