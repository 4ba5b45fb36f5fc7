import Clocks
import EventLoop
import Locking
import PinfoldConfiguration
import PinfoldResolver
import PinfoldTLS
import Synchronization
import Threads

/// Sends reports of pin failures to where the configuration wants them (`pinsets.*.reportTo`), on a
/// thread of its own named `pin-reports`, and one named `pin-delivery` for each that is under way.
///
/// Whoever has judged a server asks ``admits(_:time:now:)``, and only if that says so puts a report
/// together for ``submit(_:for:)``: a storm of failures costs a dictionary operation each. Reports
/// wait in a folder until they are delivered, and so outlive the process. Each that was accepted is
/// delivered, in the folder, or counted by the reason for which it is neither.
package final class PinReporter: Sendable {
    /// Where reports are sent to, by the configuration in force.
    package struct Settings: Sendable {
        /// By the names of the pinsets that report: what each is, and where to it reports.
        package let policies: [String: ReportPolicy]
        /// Where they report to, by the names of the pinsets.
        package let destinations: [String: ReportDestination]
        /// Their URLs, likewise.
        let routes: [String: String]
        /// The pins of each pinset that has some, by their index, as they are written in reports;
        /// those that are told apart.
        package var pins: [String: [String]]
        /// What servers that take reports by TLS are judged by; it must have no pinsets.
        package var context: TLSClientContext

        /// The given settings.
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

    /// Where it is kept when which pin matched, and how that is known.
    package struct UseWatch: Sendable {
        /// The absolute path of the file.
        package var path: String
        /// What has been counted since the start, by the pinsets' names.
        package var counts: @Sendable () -> [String: PinUseTable.Count]

        /// The given watch.
        package init(
            path: String, counts: @escaping @Sendable () -> [String: PinUseTable.Count]
        ) {
            self.path = path
            self.counts = counts
        }
    }

    /// Why there is no reporter.
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
    ///   - folder: the absolute path of the folder in which reports wait; made if it is missing.
    ///   - use: where it is kept when which pin matched; nil: nowhere.
    ///   - tell: what an operator is told; called on the thread.
    package init(
        folder: String, resolver: Resolver, settings: Settings, use: UseWatch? = nil,
        tell: @escaping @Sendable (ReportEvent) -> Void
    ) throws(StartError) {
        self.use = use
        do {
            core = ReporterCore(
                settings: settings, wake: try SharedEvent(), end: try SharedEvent(), tell: tell)
        } catch {
            throw .descriptor(error)
        }
        do {
            thread = try Thread(name: "pin-reports", niceness: 5) { [core] in
                ReportDelivery(core: core, folder: folder, resolver: resolver, use: use).run()
            }
        } catch {
            throw .thread(error)
        }
    }

    /// Another configuration is in force. Reports of pinsets that report nowhere any more are
    /// dropped, and those of the others go to where it says; what was only counted of pinsets that
    /// are others now is reported.
    ///
    /// To be called before anybody judges servers by it: what is counted from now on is its pins'.
    package func configure(_ settings: Settings) {
        let counts = use?.counts() ?? [:]
        core.state.withLock { state in
            for report in state.gate.adopt(settings.policies) {
                _ = state.accept(report, isBounded: false)
            }
            if state.settings.pins != settings.pins {
                state.changes.append(
                    ReporterCore.PinChange(
                        counts: counts, pins: settings.pins, wall: Clock.coarseWallSeconds()))
            }
            state.settings = settings
        }
        core.wake.signal()
    }

    /// Counts a failure, and says whether a report of it is to be submitted.
    ///
    /// - Parameters:
    ///   - time: seconds since 1970.
    ///   - now: seconds of a clock that never goes back.
    package func admits(_ subject: ReportSubject, time: Int64, now: Int64) -> Bool {
        let decision = core.state.withLock { $0.gate.decide(subject, now: now, time: time) }
        switch decision {
        case .report: return true
        case .count: core.add(.repeated)
        case .refuse: core.add(.limited)
        }
        return false
    }

    /// Hands a report over for delivery.
    package func submit(_ report: PinFailureReport, for subject: ReportSubject) {
        let hasRoom = core.state.withLock { state in
            state.gate.keep(report, for: subject)
            return state.accept(report)
        }
        if !hasRoom { core.add(.full) }
        core.wake.signal()
    }

    /// What has been done so far.
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

    /// Writes what was not delivered to the folder and ends the threads; deliveries under way are
    /// given up, and made again by the next process. Not waited for any longer than this: what is
    /// in no file by then is lost.
    package func close(withinMilliseconds milliseconds: Int64) {
        core.state.withLock { $0.isEnding = true }
        core.wake.signal()
        core.end.signal()
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

/// What became of failures and their reports.
package enum ReportResult: Int, Sendable, CaseIterable {
    /// A server took the report.
    case delivered
    /// Nothing but counted: the same was reported a while ago.
    case repeated
    /// An attempt to deliver failed, and is made again.
    case retried
    /// Not reported: too many different failures of a pinset.
    case limited
    /// Dropped: there was no room for all that wait, and most were to go where it was.
    case full
    /// Dropped: the server will not take it.
    case rejected
    /// Dropped: it could not be delivered for too long.
    case expired
    /// Dropped: its pinset reports nowhere any more.
    case withdrawn
    /// Dropped: its file was damaged.
    case damaged
}

/// Figures of a reporter.
package struct ReportStatistics: Sendable, Equatable {
    /// How often each result came about, since the start.
    package var counts: [ReportResult: UInt64] = [:]
    /// Reports that there were: handed over, made of what was counted, and left by an earlier
    /// process. Each is delivered, waits, or is dropped for a reason of `counts`, or lost.
    package var accepted: UInt64 = 0
    /// Reports that were neither delivered nor written down when the process ended.
    package var lost: UInt64 = 0
    /// Reports that wait for their delivery, and their bytes.
    package var waiting: UInt64 = 0
    package var waitingBytes: UInt64 = 0

    /// Nothing so far.
    package init() {}
}

/// What an operator is told of.
package enum ReportEvent: Sendable, Equatable {
    /// The folder cannot be used: reports wait in memory.
    case folderUnusable(String)
    /// So many reports of an earlier process wait.
    case foundWaiting(Int)
    /// So many reports are lost: they could not be written down before the end.
    case notKept(Int)
    /// A file of a report cannot be read now, and waits.
    case unreadable(String)
    /// A file of a report was damaged or not written to its end, and is removed.
    case damaged(file: String)
    /// So many files of the folder are no reports, and are left alone.
    case foreign(folder: String, files: Int)
    /// A destination does not take reports now; they wait.
    case failing(destination: String, problem: String)
    /// It takes them again.
    case recovered(destination: String)
    /// It will not take this one, which is dropped.
    case rejected(destination: String, pinset: String, status: UInt16)
    /// So many reports are dropped: they waited too long.
    case expired(Int)
    /// So many reports are dropped: there is no room for all, and there were most of those that
    /// go there. Nil: of those that nobody can read, or that came faster than they were taken in.
    case full(Int, destination: String?)
    /// So many reports are dropped: their pinsets report nowhere any more.
    case withdrawn(Int)
    /// It cannot be written down which pins match.
    case useNotWritten(String)
    /// A report was delivered.
    case delivered(destination: String, pinset: String)
}
