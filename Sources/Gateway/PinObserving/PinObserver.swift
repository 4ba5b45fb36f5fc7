import Clocks
import Locking
import PinObservation
import PinfoldEngine
import Threads

/// Remembers the keys that servers show (`pins: observe`), on a thread named `pin-observer`.
///
/// A worker that has verified a server hashes what it presented and looks that up in a cache of its
/// own; what is new, and once a minute a count of what is not, goes to the thread. That builds the
/// valid chains, applies the rules of `ObservationTable`, and writes the file.
package final class PinObserver: ServerObserving {
    /// The most sightings on their way to the thread.
    static let inboxLimit = 256

    struct State: Sendable {
        var inbox: [Item] = []
        /// Counts of what was displaced from a cache.
        var counts: [SightingCache.Count] = []
        var isEnding = false
    }

    /// Something new, or a count of it with what it is.
    struct Item: Sendable {
        var key: UInt64
        var count: UInt64
        var server: ObservedServer
    }

    /// What others may read.
    struct Published: Sendable {
        var statistics = ObservationStatistics()
        var summaries: [ObservedSummary] = []
    }

    let state = Monitor(State())
    let published = Locked(Published())
    private let caches: [Locked<SightingCache>]
    private let thread = Locked<Thread?>(nil)
    private let path: String
    private let onEvent: @Sendable (ObservationEvent) -> Void
    private let ended = Monitor(false)

    /// Starts nothing yet.
    ///
    /// - Parameters:
    ///   - path: the absolute path of the file.
    ///   - workers: how many environments call ``observed(_:)``.
    ///   - onEvent: receives events for the operator; called on the thread.
    package init(
        path: String, workers: Int, onEvent: @escaping @Sendable (ObservationEvent) -> Void
    ) {
        self.path = path
        self.onEvent = onEvent
        caches = (0..<max(1, workers)).map { _ in Locked(SightingCache()) }
    }

    /// Starts the thread, unless it runs. To be called before a configuration is in force that
    /// observes any host.
    package func start() throws(Thread.StartError) {
        try thread.withLock { (thread) throws(Thread.StartError) in
            guard thread == nil else { return }
            thread = try Thread(name: "pin-observer", niceness: 5) { [self] in
                ObservationRecorder(self, path: path, onEvent: onEvent).run()
                ended.withLock { $0 = true }
                ended.broadcast()
            }
        }
    }

    package func observed(_ server: ObservedServer) {
        let key = Self.key(of: server)
        let cache = caches[server.environment % caches.count]
        let answer = cache.withLock { $0.note(key, now: server.now) }
        guard answer.count != nil || answer.displaced != nil else { return }
        let hasRoom = state.withLock { state in
            if let displaced = answer.displaced, state.counts.count < Self.inboxLimit {
                state.counts.append(displaced)
            }
            guard let count = answer.count else { return true }
            guard state.inbox.count < Self.inboxLimit else { return false }
            state.inbox.append(Item(key: key, count: count, server: server))
            return true
        }
        if hasRoom { return state.signal() }
        cache.withLock { $0.forget(key) }
        published.withLock { $0.statistics.delayed &+= 1 }
    }

    /// A hash of everything that a sighting shows, with a key of this process; never 0.
    private static func key(of server: ObservedServer) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(server.host)
        hasher.combine(server.port)
        hasher.combine(server.endpoint?.address)
        hasher.combine(server.isReported)
        hasher.combine(server.shown.context.identity)
        for certificate in server.shown.certificates {
            hasher.combine(certificate.count)
            certificate.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        let hash = UInt64(bitPattern: Int64(hasher.finalize()))
        return hash == 0 ? 1 : hash
    }

    /// The counts that wait in the workers' caches.
    ///
    /// - Parameter now: milliseconds of the monotonic clock; `nil` for all, however recent.
    func takeCounts(now: Int64?) -> [SightingCache.Count] {
        caches.flatMap { cache in cache.withLock { $0.takeCounts(now: now) } }
    }

    /// The figures so far.
    package var statistics: ObservationStatistics { published.withLock { $0.statistics } }

    /// What is known of hosts: those whose key was new come first, the latest first.
    package var summaries: [ObservedSummary] { published.withLock { $0.summaries } }

    /// Writes what is not written yet and ends the thread. Waits no longer than the given time.
    package func close(withinMilliseconds milliseconds: Int64) {
        guard let running = thread.withLock({ $0.take() }) else { return }
        state.withLock { $0.isEnding = true }
        state.broadcast()
        let end = Clock.monotonicNanoseconds() + milliseconds * 1_000_000
        let hasEnded: Bool = ended.wait { ended in
            if ended { return .done(true) }
            return Clock.monotonicNanoseconds() >= end ? .done(false) : .until(end)
        }
        if hasEnded { running.join() } else { running.detach() }
    }
}
