import Activity
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import Trust

/// Checks at an interval whether one configured host is reachable: any complete response head means
/// yes. Runs on one worker, with the same pool and trust as traffic.
final class Probe: EventHandler, OwnQuestion {
    private let worker: Worker
    private let origin: Origin
    private let reachability: ServerReachability
    private let path: String
    private let intervalMilliseconds: Int64
    private var upstream: (any UpstreamStream)?
    private var isWaiting = false
    /// Why the probe under way was sent again.
    private var retries = RetryReasons()
    var response = ResponseHead()

    private init(
        worker: Worker, origin: Origin, reachability: ServerReachability,
        configuration: ProbeConfiguration
    ) {
        self.worker = worker
        self.origin = origin
        self.reachability = reachability
        path = configuration.path
        intervalMilliseconds = configuration.intervalMilliseconds
    }

    /// The probes that a configuration requires: one for each exact pattern.
    static func all(of policy: PolicySnapshot, worker: Worker) -> [Probe] {
        policy.configuration.hosts.entries.flatMap { entry -> [Probe] in
            guard let configuration = entry.probe else { return [] }
            return entry.match.compactMap { pattern in
                guard let host = pattern.exactName else { return nil }
                let (scheme, port) = target(pattern, entry)
                guard let reachability = policy.reachability(host: host, port: port),
                    let origin = worker.environment.origins.origin(
                        host: host.utf8.span, port: port, scheme: scheme, policy: policy)
                else { return nil }
                return Probe(
                    worker: worker, origin: origin, reachability: reachability,
                    configuration: configuration)
            }
        }
    }

    /// The target, as for a client's request: a pinned host by TLS, unless the entry only allows
    /// clear text.
    private static func target(_ pattern: HostPattern, _ entry: HostEntry) -> (Scheme, UInt16) {
        if entry.upgradesToHTTPS { return (.http, pattern.port ?? 80) }
        let isPinned = !entry.pinsets.isEmpty && entry.clearText != .allow
        let isSecure = isPinned || entry.clearText == .refuse || pattern.port == 443
        return isSecure ? (.https, pattern.port ?? 443) : (.http, pattern.port ?? 80)
    }

    func start() {
        do {
            try worker.loop.add(self)
        } catch {
            return
        }
        worker.loop.setDeadline(self, after: 0)
    }

    func stop() {
        worker.environment.upstreams.abandon(origin, self)
        upstream?.cancel()
        upstream = nil
        worker.loop.remove(self)
    }

    override func deadlineReached() {
        worker.loop.setDeadline(self, after: intervalMilliseconds)
        guard upstream == nil, !isWaiting else { return }
        guard origin.refusal == nil else {
            return worker.environment.note(reachability, .probeFailed, for: nil)
        }
        retries = []
        acquire()
    }

    private func acquire() {
        isWaiting = true
        worker.environment.upstreams.acquire(
            origin, for: self, fresh: RetryDecision.needsFreshConnection(retries))
    }

    func upstreamReady(_ upstream: any UpstreamStream) {
        isWaiting = false
        self.upstream = upstream
        guard ask(path, of: origin, for: "probe", on: upstream) else {
            upstream.cancel()
            self.upstream = nil
            return worker.environment.note(reachability, .probeFailed, for: nil)
        }
    }

    func upstreamFailed(_ failure: StreamError) {
        isWaiting = false
        let wasReused = upstream?.wasReused ?? false
        upstream = nil
        // A failure that the gateway itself caused is no evidence about the host: wait for the next
        // probe.
        guard !failure.error.isOwn else { return }
        if let reason = reasonToRepeat(after: failure, wasReused: wasReused) {
            retries.insert(reason)
            return acquire()
        }
        let hasAnswered = failure.error.reachabilityEvidence == .responseReceived
        worker.environment.note(
            reachability, hasAnswered ? .probeSucceeded : .probeFailed, for: nil)
    }

    /// A probe is sent again for the reasons for which a client's request is: then it shows no more
    /// than that one connection, or stream, was of no use.
    private func reasonToRepeat(after failure: StreamError, wasReused: Bool) -> RetryReason? {
        guard
            let ending = RetryDecision.Ending(
                failure.error, responseStarted: failure.responseStarted)
        else { return nil }
        return RetryDecision(
            isIdempotent: true, wasReused: wasReused, content: .none, reasons: retries
        ).reason(after: ending)
    }

    func upstreamHead(_ head: UnsafeRawBufferPointer) {
        guard !response.isInterim else { return }
        worker.environment.note(reachability, .probeSucceeded, for: nil)
        // A body of any length would only be read to be discarded.
        guard response.framing != .none else { return }
        upstream?.cancel()
        upstream = nil
    }

    func upstreamEnded(trailers: TrailerSection?) { upstream = nil }
}
