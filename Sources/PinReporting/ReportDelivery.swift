import CLinux
import Clocks
import Configuration
import EventLoop
import Resolver

/// The work of the reporter's thread: takes reports in, keeps them in the spool, and delivers one
/// after the other. Belongs to that thread.
final class ReportDelivery {
    private let core: ReporterCore
    private let resolver: Resolver
    private var spool: ReportSpool
    private var backoff = ReportBackoff()
    private var settings: PinReporter.Settings
    /// Nil: it is not kept when which pin matched.
    private var recorder: PinUseRecorder?
    /// Reports of an earlier process may be in the folder, though none go anywhere now.
    private var seeksOld = true

    /// How long the thread waits at most, in milliseconds: so often the spool is looked through.
    private static let idleMilliseconds: Int64 = 60_000

    init(
        core: ReporterCore, folder: String, resolver: Resolver, use: PinReporter.UseWatch?
    ) {
        self.core = core
        self.resolver = resolver
        settings = core.state.withLock { $0.settings }
        let tell = core.tell
        recorder = use.map { [settings] in
            PinUseRecorder(
                $0, pins: settings.pins, now: Clock.monotonicMilliseconds(), tell: tell)
        }
        spool = ReportSpool(path: folder) { event in
            switch event {
            case .unusable(let error): tell(.folderUnusable("\(error)"))
            case .opened(let reports): if reports > 0 { tell(.foundWaiting(reports)) }
            case .damaged(let file): tell(.damaged(file: file))
            case .foreign(let files): tell(.foreign(folder: folder, files: files))
            case .unreadable(let error): tell(.unreadable("\(error)"))
            }
        }
    }

    /// Works until the process ends.
    func run() {
        while true {
            openSpool()
            if core.isEnding { break }
            takeIn()
            prune()
            look()
            if let item = next() {
                deliver(item)
            } else {
                rest()
            }
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
        core.add(.damaged, found.damaged)
        drop(found.dropped)
    }

    /// Takes in what was submitted, and the counted failures whose period is over.
    private func takeIn() {
        Descriptors.drain(core.wake.descriptor)
        let now = Clock.monotonicMilliseconds() / 1000
        let (reports, settings, changes) = core.state.withLock { state in
            defer { (state.inbox, state.changes) = ([], []) }
            let reports = state.inbox + state.gate.takeDue(now: now)
            state.unkept = reports.count
            return (reports, state.settings, state.changes)
        }
        self.settings = settings
        recorder?.note(changes)
        keep(reports)
    }

    /// Notes which pins have matched.
    private func look() {
        recorder?.look(wall: Clock.coarseWallSeconds(), now: Clock.monotonicMilliseconds())
    }

    private func keep(_ reports: [PinFailureReport], areLast: Bool = false) {
        let (created, now) = (Clock.wallMilliseconds(), Clock.monotonicMilliseconds())
        var dropped = 0
        for report in reports {
            if settings.destinations[report.pinset] != nil,
                !spool.add(
                    pinset: report.pinset, body: report.json, created: created, now: now,
                    isLast: areLast)
            {
                dropped += 1
            }
            core.state.withLock { $0.unkept -= 1 }
        }
        drop(dropped)
        publish()
    }

    private func drop(_ count: Int) {
        guard count > 0 else { return }
        core.add(.full, count)
        core.tell(.full(count))
    }

    private func publish() {
        core.waiting.store(spool.count, ordering: .relaxed)
        core.waitingBytes.store(spool.bytes, ordering: .relaxed)
    }

    private func prune() {
        let destinations = settings.destinations
        let gone = spool.prune(now: Clock.monotonicMilliseconds()) { destinations[$0] != nil }
        if gone.expired > 0 {
            core.add(.expired, gone.expired)
            core.tell(.expired(gone.expired))
        }
        if gone.unwanted > 0 {
            core.add(.withdrawn, gone.unwanted)
            core.tell(.withdrawn(gone.unwanted))
        }
        backoff.keep(only: Set(destinations.values.map(\.description)))
        publish()
    }

    private func next() -> ReportSpool.Item? {
        let now = Clock.monotonicMilliseconds()
        return spool.next { pinset in
            guard let destination = settings.destinations[pinset] else { return false }
            return backoff.retryAt("\(destination)").map { now >= $0 } ?? true
        }
    }

    /// Waits for the next thing to do.
    private func rest() {
        let now = Clock.monotonicMilliseconds()
        var until = now + Self.idleMilliseconds
        for item in spool.items {
            guard let destination = settings.destinations[item.pinset] else { continue }
            if let retryAt = backoff.retryAt("\(destination)") { until = min(until, retryAt) }
        }
        let due = core.state.withLock { $0.gate.nextDue }
        if let due { until = min(until, due * 1000 + 1000) }
        _ = core.wait(nil, 0, milliseconds: max(1, until - now))
    }

    // MARK: Delivering

    private func deliver(_ item: ReportSpool.Item) {
        guard let destination = settings.destinations[item.pinset] else { return }
        let body: [UInt8]
        switch spool.body(of: item) {
        case .text(let text): body = text
        case .unreadable: return
        case .damaged:
            spool.remove(item.name)
            core.add(.damaged)
            core.tell(.damaged(file: item.name))
            return publish()
        }
        let name = "\(destination)"
        switch post(body, to: destination) {
        case .interrupted: return
        case .delivered:
            if backoff.retryAt(name) != nil { core.tell(.recovered(destination: name)) }
            backoff.answered(name)
            spool.remove(item.name)
            core.add(.delivered)
            core.tell(.delivered(destination: name, pinset: item.pinset))
        case .rejected(let status):
            backoff.answered(name)
            spool.remove(item.name)
            core.add(.rejected)
            core.tell(.rejected(destination: name, pinset: item.pinset, status: status))
        case .failed(let problem, let answered, let retryAfter):
            core.add(.retried)
            if answered { spool.setBack(item.name) }
            let now = Clock.monotonicMilliseconds()
            if backoff.failed(name, now: now, asked: retryAfter) {
                core.tell(.failing(destination: name, problem: problem))
            }
        }
        publish()
    }

    private func post(_ body: [UInt8], to destination: ReportDestination) -> PostResult {
        ReportPoster(
            resolver: resolver, context: settings.context,
            wait: { [unowned self] in wait($0, $1, milliseconds: $2) },
            goesOn: { [unowned self] in goesOn() }
        ).post(body, to: destination)
    }

    /// Waits for a descriptor of a delivery; what is submitted meanwhile is taken in, so that it is
    /// on disk at once. False: it was not ready in time, or the process ends.
    private func wait(_ descriptor: Int32, _ events: Int16, milliseconds: Int64) -> Bool {
        let end = Clock.monotonicMilliseconds() + milliseconds
        while true {
            let left = end - Clock.monotonicMilliseconds()
            guard left > 0 else { return false }
            let found = core.wait(descriptor, events, milliseconds: left)
            if core.isEnding { return false }
            if found.isWoken { takeIn() }
            if found.isReady { return true }
        }
    }

    /// Takes in what was submitted during a delivery that waits for nothing; false: the process
    /// ends.
    private func goesOn() -> Bool {
        if core.isEnding { return false }
        if core.wait(nil, 0, milliseconds: 0).isWoken { takeIn() }
        return true
    }

    /// The process ends: what is not delivered waits for the next one. The disk may be slow, and
    /// the process does not wait for long: it is waited for when all is written.
    private func finish() {
        Descriptors.drain(core.wake.descriptor)
        let (reports, settings, changes) = core.state.withLock { state in
            defer { (state.inbox, state.changes) = ([], []) }
            let reports = state.inbox + state.gate.takeAll()
            state.unkept = reports.count
            return (reports, state.settings, state.changes)
        }
        self.settings = settings
        recorder?.note(changes)
        // First everything is in files, then on the disk.
        keep(reports, areLast: true)
        recorder?.begin(wall: Clock.coarseWallSeconds())
        let inMemory = spool.inMemory
        if inMemory > 0 { core.tell(.notKept(inMemory)) }
        spool.settle()
        recorder?.finish()
        if spool.unsettled > inMemory { core.tell(.notKept(spool.unsettled - inMemory)) }
        spool.close()
        core.ended.withLock { $0 = true }
        core.ended.broadcast()
    }
}
