import Clocks
import EventLoop
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver

/// The work of the reporter's thread: accepts reports, keeps them in the spool, and has the engine
/// deliver them. Belongs to that thread.
final class ReportDelivery {
    private let core: ReporterCore
    private let loop: ReporterLoop
    private let resolver: Resolver
    /// What carries the deliveries out; `nil` before the first one.
    private var environment: Environment?
    private var spool: ReportSpool
    private var schedule = ReportSchedule()
    /// Deliveries under way, by the names of the reports' files.
    private var posters: [String: Poster] = [:]
    private var settings: PinReporter.Settings
    /// `nil` if it is not recorded when each pin matched.
    private var recorder: PinUseRecorder?
    /// Whether an earlier process may have left reports in the folder, although none are sent now.
    private var seeksOld = true

    /// The longest sleep of the thread, in milliseconds, and so the interval at which the spool is
    /// checked.
    private static let idleMilliseconds: Int64 = 60_000

    init(
        core: ReporterCore, loop: ReporterLoop, folder: String, resolver: Resolver,
        use: PinReporter.UseWatch?
    ) {
        self.core = core
        self.loop = loop
        self.resolver = resolver
        settings = core.state.withLock { $0.settings }
        let onEvent = core.onEvent
        recorder = use.map { [settings] in
            PinUseRecorder(
                $0, pins: settings.pins, now: Clock.monotonicMilliseconds(), onEvent: onEvent)
        }
        spool = ReportSpool(path: folder) { event in
            switch event {
            case .unusable(let error): onEvent(.folderUnusable("\(error)"))
            case .opened(let reports): if reports > 0 { onEvent(.foundWaiting(reports)) }
            case .damaged(let file): onEvent(.damaged(file: file))
            case .foreign(let files): onEvent(.foreign(folder: folder, files: files))
            case .unreadable(let error): onEvent(.unreadable("\(error)"))
            }
        }
        spool.routes = settings.routes
    }

    /// Works until the process ends.
    func run() {
        while true {
            openSpool()
            if core.isEnding { break }
            takeIn()
            prune()
            look()
            let now = Clock.monotonicMilliseconds()
            deliver(at: now)
            rest(after: now)
        }
        finish()
    }

    private func openSpool() {
        let isInUse = !settings.destinations.isEmpty || spool.count > 0
        // Without reports there is no folder either, unless an earlier process had some.
        guard isInUse || seeksOld else { return spool.close() }
        let found = spool.open(
            now: Clock.monotonicMilliseconds(), wall: Clock.wallMilliseconds(), makes: isInUse)
        seeksOld = seeksOld && spool.isClosed
        core.state.withLock { $0.accepted += UInt64(found.files) }
        core.add(.damaged, found.damaged)
        publish()
    }

    /// Processes submitted reports, and the counted failures whose period is over.
    private func takeIn() {
        let now = Clock.monotonicMilliseconds() / 1000
        takeIn { $0.gate.takeDue(now: now) }
    }

    /// - Parameter counted: returns the reports made from counts.
    private func takeIn(
        areLast: Bool = false, _ counted: (inout ReporterCore.State) -> [PinFailureReport]
    ) {
        let (reports, settings, changes, refused) = core.state.withLock { state in
            defer { (state.inbox, state.changes, state.refused) = ([], [], 0) }
            let counted = counted(&state)
            state.accepted += UInt64(counted.count)
            state.unkept = state.inbox.count + counted.count
            return (state.inbox + counted, state.settings, state.changes, state.refused)
        }
        self.settings = settings
        spool.routes = settings.routes
        recorder?.note(changes)
        // They were counted on arrival.
        if refused > 0 { core.onEvent(.full(refused, destination: nil)) }
        keep(reports, areLast: areLast)
    }

    /// Records which pins have matched.
    private func look() {
        recorder?.look(wall: Clock.wallSeconds(), now: Clock.monotonicMilliseconds())
    }

    private func keep(_ reports: [PinFailureReport], areLast: Bool) {
        let (created, now) = (Clock.wallMilliseconds(), Clock.monotonicMilliseconds())
        var unwanted = 0
        for report in reports {
            if settings.destinations[report.pinset] == nil {
                unwanted += 1
            } else {
                spool.add(
                    pinset: report.pinset, body: report.json, created: created, now: now,
                    isLast: areLast)
            }
            let inMemory = spool.inMemory
            core.state.withLock { state in
                state.unkept -= 1
                state.inMemory = inMemory
            }
            // The disk may be slow, and each report waits for it.
            if !areLast { loop.turn() }
        }
        withdraw(unwanted)
        publish()
    }

    private func withdraw(_ count: Int) {
        guard count > 0 else { return }
        core.add(.withdrawn, count)
        core.onEvent(.withdrawn(count))
    }

    /// Publishes what is waiting, and what was dropped for it.
    private func publish() {
        for (destination, count) in spool.takeDropped() {
            core.add(.full, count)
            core.onEvent(.full(count, destination: destination))
        }
        core.waiting.store(spool.count, ordering: .relaxed)
        core.waitingBytes.store(spool.bytes, ordering: .relaxed)
        let inMemory = spool.inMemory
        core.state.withLock { $0.inMemory = inMemory }
    }

    private func prune() {
        let destinations = settings.destinations
        let gone = spool.prune(now: Clock.monotonicMilliseconds()) { destinations[$0] != nil }
        if gone.expired > 0 {
            core.add(.expired, gone.expired)
            core.onEvent(.expired(gone.expired))
        }
        withdraw(gone.unwanted)
        schedule.keep(only: Set(settings.routes.values))
        publish()
    }

    /// Lets the deliveries proceed until there is something else to do.
    ///
    /// - Parameter now: when deliveries were last checked for being due.
    private func rest(after now: Int64) {
        var until = now + Self.idleMilliseconds
        let next = schedule.nextAttempt(spool.items, settings.routes, now: now)
        if let next { until = min(until, next) }
        if let next = spool.nextLook { until = min(until, next) }
        let due = core.state.withLock { $0.gate.nextDue }
        if let due { until = min(until, due * 1000 + 1000) }
        loop.run(until: until)
    }

    // MARK: Delivering

    /// Starts the deliveries that are due.
    private func deliver(at now: Int64) {
        while let next = schedule.begin(spool.items, settings.routes, now: now) {
            begin(next.item, to: next.destination)
        }
    }

    private func begin(_ item: ReportSpool.Item, to destination: String) {
        guard let url = settings.destinations[item.pinset], let body = body(of: item) else {
            return schedule.end(destination)
        }
        spool.set(item.name, isUnderWay: true)
        do {
            let environment =
                try environment ?? Poster.makeEnvironment(on: loop.loop, resolver: resolver)
            self.environment = environment
            let poster = Poster(
                body, as: .report, to: url, context: settings.context, in: environment
            ) {
                [unowned self] in end(item, destination, $0)
            }
            posters[item.name] = poster
            poster.start()
        } catch {
            end(item, destination, .failed("\(error)", answered: false, retryAfter: nil))
        }
    }

    /// A report's JSON, or `nil` if there is none, or none at the moment.
    private func body(of item: ReportSpool.Item) -> [UInt8]? {
        switch spool.body(of: item) {
        case .text(let text): return text
        case .unreadable: break
        case .damaged:
            spool.remove(item.name)
            core.add(.damaged)
            core.onEvent(.damaged(file: item.name))
        }
        publish()
        return nil
    }

    /// Processes a delivery that has ended.
    private func end(_ item: ReportSpool.Item, _ destination: String, _ result: PostResult) {
        let (name, pinset) = (item.name, item.pinset)
        posters[name] = nil
        schedule.end(destination)
        spool.set(name, isUnderWay: false)
        loop.wake()
        switch result {
        case .interrupted: return
        case .delivered:
            if schedule.answered(destination) { core.onEvent(.recovered(destination: destination)) }
            spool.remove(name)
            core.add(.delivered)
            core.onEvent(.delivered(destination: destination, pinset: pinset))
        case .rejected(let status):
            _ = schedule.answered(destination)
            spool.remove(name)
            core.add(.rejected)
            core.onEvent(
                .rejected(destination: destination, pinset: pinset, status: status))
        case .failed(let problem, let answered, let retryAfter):
            core.add(.retried)
            if answered { spool.setBack(name) }
            let now = Clock.monotonicMilliseconds()
            if schedule.failed(destination, now: now, asked: retryAfter) {
                core.onEvent(.failing(destination: destination, problem: problem))
            }
        }
        publish()
    }

    // MARK: The end

    /// Called when the process ends: what is not delivered waits for the next one. The disk may be
    /// slow, and the process does not wait for long, so everything is first written to files, then
    /// synced.
    private func finish() {
        takeIn(areLast: true) { $0.gate.takeAll() }
        for poster in Array(posters.values) { poster.cancel() }
        environment?.closeConnections()
        environment?.close()
        loop.loop.forgetDeferred()
        // It may have to wait for another process; the reports are in files by now.
        recorder?.begin(wall: Clock.wallSeconds())
        spool.settle()
        recorder?.finish()
        let lost = spool.unsettled
        core.lose { _ in lost }
        spool.close()
        core.ended.withLock { $0 = true }
        core.ended.broadcast()
    }
}
