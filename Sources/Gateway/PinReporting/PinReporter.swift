import Clocks
import EventLoop
import Locking
import PinfoldConfiguration
import PinfoldResolver
import PinfoldTLS
import Synchronization
import Threads

/// Sends reports of pin failures to the configured destinations (`pinsets.*.reportTo`), on a
/// dedicated thread named `pin-reports`.
///
/// Whoever has judged a server calls ``admits(_:time:now:)``, and only if that returns `true`
/// assembles a report for ``submit(_:for:)``: in a storm of failures each costs a dictionary
/// operation. Reports wait in a folder until they are delivered, and so survive the process. Each
/// accepted report is delivered, is in the folder, or is counted by the reason why it is neither.
package final class PinReporter: Sendable {
    /// The destinations of reports, according to the configuration in force.
    package struct Settings: Sendable {
        /// By the names of the pinsets that report: their policies.
        package let policies: [String: ReportPolicy]
        /// Their destinations, by the names of the pinsets.
        package let destinations: [String: ReportDestination]
        /// The destinations' URLs, likewise.
        let routes: [String: String]
        /// The pins of each pinset that has any, by index, as written in reports; only those that
        /// can be distinguished.
        package var pins: [String: [String]]
        /// How servers that receive reports by TLS are judged; it must have no pinsets.
        package var context: TLSClientContext

        /// Creates the settings.
        package init(
            policies: [String: ReportPolicy], pins: [String: [String]],
            context: TLSClientContext
        ) {
            self.policies = policies
            destinations = policies.mapValues(\.destination)
            routes = destinations.mapValues { "\($0)" }
            self.pins = pins
            self.context = context
        }
    }

    /// Where to record when each pin matched, and the source of that information.
    package struct UseWatch: Sendable {
        /// The absolute path of the file.
        package var path: String
        /// The counts since the start, by the names of the pinsets.
        package var counts: @Sendable () -> [String: PinUseTable.Count]

        /// Creates the watch.
        package init(
            path: String, counts: @escaping @Sendable () -> [String: PinUseTable.Count]
        ) {
            self.path = path
            self.counts = counts
        }
    }

    /// Why the reporter could not be started.
    package enum StartError: Error, Sendable, CustomStringConvertible {
        case descriptor(Errno)
        case thread(Thread.StartError)

        package var description: String {
            switch self {
            case .descriptor(let error): "\(error)"
            case .thread(let error): "\(error)"
            }
        }
    }

    private let core: ReporterCore
    private let thread: Thread
    private let use: UseWatch?

    /// Starts the thread.
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the folder in which reports wait; created if missing.
    ///   - use: where to record when each pin matched; `nil` for nowhere.
    ///   - onEvent: receives events for the operator; called on the thread.
    package init(
        folder: String, resolver: Resolver, settings: Settings, use: UseWatch? = nil,
        onEvent: @escaping @Sendable (ReportEvent) -> Void
    ) throws(StartError) {
        self.use = use
        let loop: ReporterLoop
        do throws(Errno) {
            core = ReporterCore(settings: settings, wakes: try Mailbox(), onEvent: onEvent)
            loop = try ReporterLoop(wokenBy: core.wakes)
        } catch {
            throw .descriptor(error)
        }
        do throws(Thread.StartError) {
            // Handed over to the thread, and used by nothing else after that.
            nonisolated(unsafe) let loop = loop
            thread = try Thread(name: "pin-reports", niceness: 5) { [core] in
                ReportDelivery(
                    core: core, loop: loop, folder: folder, resolver: resolver, use: use
                ).run()
            }
        } catch {
            throw .thread(error)
        }
    }

    /// Applies another configuration. Reports of pinsets that no longer report are dropped, and
    /// those of the others go to the new destinations. Failures that were only counted, of pinsets
    /// that have changed, are reported.
    ///
    /// Must be called before anybody judges servers by it: what is counted from now on belongs to
    /// its pins.
    package func configure(_ settings: Settings) {
        let counts = use?.counts() ?? [:]
        core.state.withLock { state in
            for report in state.gate.adopt(settings.policies) {
                _ = state.accept(report, isBounded: false)
            }
            if state.settings.pins != settings.pins {
                state.changes.append(
                    ReporterCore.PinChange(
                        counts: counts, pins: settings.pins, wall: Clock.wallSeconds()))
            }
            state.settings = settings
        }
        core.wakes.post(())
    }

    /// What is reported under a name; `nil` if nothing is.
    func policy(of name: String) -> ReportPolicy? {
        core.state.withLock { $0.settings.policies[name] }
    }

    /// Counts a failure, and returns whether to submit a report of it.
    ///
    /// - Parameters:
    ///   - time: seconds since 1970.
    ///   - now: seconds of a monotonic clock.
    package func admits(_ subject: ReportSubject, time: Int64, now: Int64) -> Bool {
        let decision = core.state.withLock { $0.gate.decide(subject, now: now, time: time) }
        switch decision {
        case .report: return true
        case .count: core.add(.repeated)
        case .refuse: core.add(.limited)
        }
        return false
    }

    /// Submits a report for delivery.
    package func submit(_ report: PinFailureReport, for subject: ReportSubject) {
        let hasRoom = core.state.withLock { state in
            state.gate.keep(report, for: subject)
            return state.accept(report)
        }
        if !hasRoom { core.add(.full) }
        core.wakes.post(())
    }

    /// The counts so far.
    package var statistics: ReportStatistics {
        var statistics = ReportStatistics()
        for result in ReportResult.allCases {
            statistics.counts[result] = core.count(of: result)
        }
        statistics.waiting = UInt64(max(0, core.waiting.load(ordering: .relaxed)))
        statistics.waitingBytes = UInt64(max(0, core.waitingBytes.load(ordering: .relaxed)))
        (statistics.accepted, statistics.lost) = core.state.withLock { ($0.accepted, $0.lost) }
        return statistics
    }

    /// Writes what was not delivered to the folder and ends the thread; deliveries under way are
    /// abandoned, and repeated by the next process. Waits no longer than the given time: reports
    /// that are not in a file by then are lost.
    package func close(withinMilliseconds milliseconds: Int64) {
        core.state.withLock { $0.isEnding = true }
        core.wakes.post(())
        let end = ReporterCore.nanoseconds(after: milliseconds)
        let hasEnded: Bool = core.ended.wait { ended in
            if ended { return .done(true) }
            return ReporterCore.nanoseconds(after: 0) >= end ? .done(false) : .until(end)
        }
        if hasEnded { return thread.join() }
        thread.detach()
        core.lose { $0.unkept + $0.inMemory }
    }
}

/// The fate of failures and their reports.
package enum ReportResult: Int, Sendable, CaseIterable {
    /// A server took the report.
    case delivered
    /// Only counted: the same failure was reported recently.
    case repeated
    /// An attempt to deliver failed, and will be repeated.
    case retried
    /// Not reported: too many different failures of a pinset.
    case limited
    /// Dropped: there was no space for all waiting reports, and its destination had the most.
    case full
    /// Dropped: the server rejected it permanently.
    case rejected
    /// Dropped: it could not be delivered for too long.
    case expired
    /// Dropped: its pinset no longer reports.
    case withdrawn
    /// Dropped: its file was damaged.
    case damaged
}

/// Statistics of a reporter.
package struct ReportStatistics: Sendable, Equatable {
    /// How often each result occurred since the start.
    package var counts: [ReportResult: UInt64] = [:]
    /// The number of reports: submitted, made from counts, and left by an earlier process. Each is
    /// delivered, waiting, dropped for one of the reasons in `counts`, or lost.
    package var accepted: UInt64 = 0
    /// Reports that were neither delivered nor written to the disk when the process ended.
    package var lost: UInt64 = 0
    /// Reports waiting for delivery, and their bytes.
    package var waiting: UInt64 = 0
    package var waitingBytes: UInt64 = 0
    /// How many there may be.
    package static var waitingLimit: Int { ReportSpool.maximumReports }
    package static var waitingLimitBytes: Int { ReportSpool.maximumBytes }

    /// All zero.
    package init() {}
}

/// Events for the operator.
package enum ReportEvent: Sendable, Equatable {
    /// The folder cannot be used: reports wait in memory.
    case folderUnusable(String)
    /// This many reports of an earlier process are waiting.
    case foundWaiting(Int)
    /// This many reports are lost: they could not be written before the end.
    case notKept(Int)
    /// A report's file cannot be read at the moment; it is left for later.
    case unreadable(String)
    /// A report's file was damaged or incomplete, and was removed.
    case damaged(file: String)
    /// This many files in the folder are not reports, and are left alone.
    case foreign(folder: String, files: Int)
    /// A destination is not accepting reports; they wait.
    case failing(destination: String, problem: String)
    /// It is accepting them again.
    case recovered(destination: String)
    /// It permanently rejected this report, which was dropped.
    case rejected(destination: String, pinset: String, status: UInt16)
    /// This many reports were dropped because they waited too long.
    case expired(Int)
    /// This many reports were dropped: there was no space for all, and this destination had the
    /// most. `nil` for reports that cannot be read, or that arrived faster than they were
    /// processed.
    case full(Int, destination: String?)
    /// This many reports were dropped because their pinsets no longer report.
    case withdrawn(Int)
    /// The record of which pins match cannot be written.
    case useNotWritten(String)
    /// A report was delivered.
    case delivered(destination: String, pinset: String)
}
