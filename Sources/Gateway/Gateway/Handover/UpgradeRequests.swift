import CLinux
import Locking

/// What came of a request for an upgrade.
package enum UpgradeOutcome: Sendable, Equatable {
    /// Another process serves.
    case handedOver(pid: Int, version: String)
    /// This process goes on as before, for this reason.
    case failed(String)
    /// There was none: the gateway is shutting down.
    case draining
}

/// The upgrades that were requested at the administrative address and have not ended. The main
/// thread is woken by SIGUSR2. Requests that arrive while an upgrade is under way are for that one.
final class UpgradeRequests: Sendable {
    typealias Reply = @Sendable (UpgradeOutcome) -> Void

    private struct State {
        var waiting: [Reply] = []
        var isClosed = false
    }

    private let state = Locked(State())
    private let wake: @Sendable () -> Void

    /// - Parameter wake: wakes the main thread.
    init(wake: @escaping @Sendable () -> Void = { _ = kill(getpid(), SIGUSR2) }) {
        self.wake = wake
    }

    /// Requests an upgrade; the reply comes when it has ended, or at once if there will be none.
    func submit(_ reply: @escaping Reply) {
        let isRefused = state.withLock { state in
            if !state.isClosed { state.waiting.append(reply) }
            return state.isClosed
        }
        isRefused ? reply(.draining) : wake()
    }

    /// An upgrade has ended.
    func end(_ outcome: UpgradeOutcome) {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
        for reply in waiting { reply(outcome) }
    }

    /// The gateway is shutting down.
    func close() {
        state.withLock { $0.isClosed = true }
        end(.draining)
    }
}
