import Clocks
import EventLoop
import HTTPCore
import Locking
import Synchronization

/// The connections that this process has begun lately, so that it recognizes one that a rule of the
/// firewall leads back to a listener of its own: it would go round until descriptors run out.
package final class OwnConnections: Sendable {
    /// How long a connection may take from here to a listener. As long as it is open, and mostly
    /// for a minute after that, nobody else gets its addresses (RFC 9293 §3.4.2).
    static let milliseconds: Int64 = 10_000
    /// How many are remembered before those that are too old are looked for.
    private static let smallestLimit = 4096

    private struct State {
        var begun: [Endpoint: Begun] = [:]
        var limit = OwnConnections.smallestLimit
    }

    private struct Begun {
        var destination: Endpoint
        /// In milliseconds.
        var at: Int64

        func isRecent(at now: Int64) -> Bool { now - at < OwnConnections.milliseconds }
    }

    private let isWatched = Atomic<Bool>(false)
    private let state = Locked(State())

    package init() {}

    /// Says whether there is a listener to which a connection may be led.
    package func watch(_ isNeeded: Bool) {
        isWatched.store(isNeeded, ordering: .relaxed)
        if !isNeeded { state.withLock { $0 = State() } }
    }

    /// How many are remembered.
    var count: Int { state.withLock { $0.begun.count } }

    /// Remembers a connection that begins; costs nothing unless somebody watches.
    @inline(__always)
    func began(_ descriptor: Int32, to destination: Endpoint) {
        guard isWatched.load(ordering: .relaxed) else { return }
        guard let local = Sockets.localEndpoint(descriptor) else { return }
        note(local, to: destination, at: Clock.monotonicMilliseconds())
    }

    @inline(never)
    func note(_ source: Endpoint, to destination: Endpoint, at now: Int64) {
        state.withLock { state in
            if state.begun.count >= state.limit {
                state.begun = state.begun.filter { $0.value.isRecent(at: now) }
                state.limit = max(Self.smallestLimit, state.begun.count * 2)
            }
            state.begun[source] = Begun(destination: destination, at: now)
        }
    }

    /// Whether this process has begun the connection between two addresses.
    package func contain(from source: Endpoint, to destination: Endpoint) -> Bool {
        contain(from: source, to: destination, at: Clock.monotonicMilliseconds())
    }

    func contain(from source: Endpoint, to destination: Endpoint, at now: Int64) -> Bool {
        guard let begun = state.withLock({ $0.begun[source] }) else { return false }
        return begun.destination == destination && begun.isRecent(at: now)
    }
}
