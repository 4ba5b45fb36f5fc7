import Clocks
import EventLoop
import Locking
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS
import Threads

/// Asks for the policy (`policy.url`) again and again, from a thread of its own, which begins when
/// there is something to ask for the first time. It judges nothing: the main thread takes what has
/// arrived, one answer at a time, and no other request begins before it has.
final class PolicyFetcher: Sendable {
    struct Settings: Sendable {
        var url: ReportDestination
        var intervalMilliseconds: Int64
        /// How the server is verified; it must have no pinsets.
        var context: TLSClientContext
    }

    /// Why the thread could not be started.
    enum StartError: Error, Sendable, CustomStringConvertible {
        case descriptor(Errno)
        case thread(Thread.StartError)

        var description: String {
            let problem =
                switch self {
                case .descriptor(let error): "\(error)"
                case .thread(let error): "\(error)"
                }
            return "policy: its thread cannot be started: \(problem)"
        }
    }

    private struct Running {
        let core: PolicyFetcherCore
        let thread: Thread
    }

    private let resolver: Resolver
    /// `nil` until there is something to ask for.
    private let running = Locked<Running?>(nil)

    init(resolver: Resolver) { self.resolver = resolver }

    /// Starts the thread if a configuration is the first one with a policy.
    func prepare(for settings: Settings?) throws(StartError) {
        guard let settings, running.withLock({ $0 == nil }) else { return }
        let started = try start(settings)
        running.withLock { $0 = started }
    }

    private func start(_ settings: Settings) throws(StartError) -> Running {
        let core: PolicyFetcherCore
        let loop: ReporterLoop
        do throws(Errno) {
            core = PolicyFetcherCore(settings: settings, wakes: try Mailbox())
            loop = try ReporterLoop(wokenBy: core.wakes)
        } catch {
            throw .descriptor(error)
        }
        do throws(Thread.StartError) {
            // Handed over to the thread, and used by nothing else after that.
            nonisolated(unsafe) let loop = loop
            let thread = try Thread(name: "policy", niceness: 5) { [core, resolver] in
                PolicyFetching(core: core, loop: loop, resolver: resolver).run()
            }
            return Running(core: core, thread: thread)
        } catch {
            throw .thread(error)
        }
    }

    /// Applies a configuration that it is prepared for.
    func configure(_ settings: Settings?) {
        running.withLock { $0?.core }?.configure(settings)
    }

    /// The answer that has arrived; `nil` if none has. The next request may then begin.
    func take() -> PolicyFetchResult? { running.withLock { $0?.core }?.take() }

    /// What the server is told that is known, from now on; `nil` for nothing.
    func know(_ tag: [UInt8]?) { running.withLock { $0?.core }?.know(tag) }

    /// Ends the thread, in at most this time.
    func close(withinMilliseconds milliseconds: Int64) {
        guard let running = running.withLock({ $0.take() }) else { return }
        if running.core.close(withinMilliseconds: milliseconds) {
            running.thread.join()
        } else {
            running.thread.detach()
        }
    }
}

/// The state that the fetcher's thread shares with the main thread.
final class PolicyFetcherCore: Sendable {
    struct State {
        var settings: PolicyFetcher.Settings?
        /// What has arrived and has not been taken.
        var result: PolicyFetchResult?
        var tag: [UInt8]?
        var isEnding = false
    }

    /// Tells the thread that it has something to do.
    let wakes: Mailbox<Void>
    private let state: Locked<State>
    /// Whether the thread is done.
    private let ended = Monitor(false)

    init(settings: PolicyFetcher.Settings, wakes: Mailbox<Void>) {
        state = Locked(State(settings: settings))
        self.wakes = wakes
    }

    // MARK: For the main thread

    func configure(_ settings: PolicyFetcher.Settings?) {
        state.withLock { state in
            if state.settings?.url != settings?.url { (state.result, state.tag) = (nil, nil) }
            state.settings = settings
        }
        wakes.post(())
    }

    func take() -> PolicyFetchResult? {
        let result = state.withLock { $0.result.take() }
        if result != nil { wakes.post(()) }
        return result
    }

    func know(_ tag: [UInt8]?) { state.withLock { $0.tag = tag } }

    /// Makes the thread end. Returns whether it has.
    func close(withinMilliseconds milliseconds: Int64) -> Bool {
        state.withLock { $0.isEnding = true }
        wakes.post(())
        let end = Clock.monotonicNanoseconds() + milliseconds * 1_000_000
        return ended.wait { hasEnded in
            if hasEnded { return .done(true) }
            return Clock.monotonicNanoseconds() >= end ? .done(false) : .until(end)
        }
    }

    // MARK: For the thread

    var current: (settings: PolicyFetcher.Settings?, tag: [UInt8]?, isWaiting: Bool) {
        state.withLock { ($0.settings, $0.tag, $0.result != nil) }
    }

    var isEnding: Bool { state.withLock { $0.isEnding } }

    /// - Parameter url: what was asked, which may not be what is wanted any more.
    func put(_ result: PolicyFetchResult, from url: ReportDestination) {
        state.withLock { if $0.settings?.url == url { $0.result = result } }
    }

    func end() {
        ended.withLock { $0 = true }
        ended.broadcast()
    }
}

/// The work of the fetcher's thread. Belongs to that thread.
private final class PolicyFetching {
    private let core: PolicyFetcherCore
    private let loop: ReporterLoop
    private let resolver: Resolver
    private var schedule = PolicySchedule()
    private var url: ReportDestination?
    private var interval: Int64 = 0
    /// What carries the requests out; `nil` before the first one.
    private var environment: Environment?
    /// The server, with the connection to it, and how it is verified.
    private var server: (origin: Origin, context: TLSClientContext)?
    private var fetch: PolicyFetch?

    /// The longest sleep of the thread, in milliseconds.
    private static let idleMilliseconds: Int64 = 3_600_000

    init(core: PolicyFetcherCore, loop: ReporterLoop, resolver: Resolver) {
        (self.core, self.loop, self.resolver) = (core, loop, resolver)
    }

    /// Works until the process ends.
    func run() {
        while !core.isEnding {
            let now = Clock.monotonicMilliseconds()
            loop.run(until: proceed(at: now))
        }
        fetch?.cancel()
        environment?.closeConnections()
        environment?.close()
        loop.loop.forgetDeferred()
        core.end()
    }

    /// Begins a request if it is time; returns when to look again.
    private func proceed(at now: Int64) -> Int64 {
        let (settings, tag, isWaiting) = core.current
        if url != settings?.url || interval != settings?.intervalMilliseconds {
            // At once: another place, or sooner than before.
            (url, interval) = (settings?.url, settings?.intervalMilliseconds ?? 0)
            schedule = PolicySchedule()
            server = nil
        }
        guard let settings, fetch == nil, !isWaiting else { return now + Self.idleMilliseconds }
        if let next = schedule.next, next > now { return next }
        begin(settings, tag)
        return now + Self.idleMilliseconds
    }

    private func begin(_ settings: PolicyFetcher.Settings, _ tag: [UInt8]?) {
        do {
            let environment =
                try environment ?? Poster.makeEnvironment(on: loop.loop, resolver: resolver)
            self.environment = environment
            if server?.context !== settings.context { server = nil }
            let server =
                server
                ?? (
                    Origin(
                        named: settings.url.origin, context: settings.context,
                        policy: environment.policy), settings.context
                )
            self.server = server
            let fetch = PolicyFetch(
                settings.url, of: server.origin, tag: tag, in: environment
            ) { [unowned self] in ended($0, settings) }
            self.fetch = fetch
            fetch.start()
        } catch {
            ended(.failed("\(error)", retryAfter: nil), settings)
        }
    }

    private func ended(_ result: PolicyFetchResult, _ settings: PolicyFetcher.Settings) {
        fetch = nil
        loop.wake()
        let now = Clock.monotonicMilliseconds()
        switch result {
        case .interrupted: return
        case .received, .unchanged:
            schedule.answered(at: now, interval: interval, random: .random(in: 0..<1))
        case .failed(_, let asked):
            schedule.failed(
                at: now, interval: interval, asked: asked, random: .random(in: 0..<1))
        }
        core.put(result, from: settings.url)
    }
}
