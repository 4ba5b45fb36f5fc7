import CLinux
import Locking

/// The reloads that were requested at the administrative address and have not begun. The main
/// thread, which alone reloads, is woken by SIGHUP: one at the keyboard and one from the API are
/// the same, and several that arrive together are one reload.
final class ReloadRequests: Sendable {
    typealias Reply = @Sendable (ReloadOutcome) -> Void

    private struct State {
        var waiting: [Reply] = []
        var isClosed = false
    }

    private let state = Locked(State())
    private let wake: @Sendable () -> Void
    /// How many may wait.
    static let maximum = 64

    /// - Parameter wake: wakes the main thread.
    init(wake: @escaping @Sendable () -> Void = { _ = kill(getpid(), SIGHUP) }) {
        self.wake = wake
    }

    /// Requests a reload; the reply comes when it has ended, or at once if there will be none.
    func submit(_ reply: @escaping Reply) {
        let refusal = state.withLock { state -> ReloadOutcome? in
            if state.isClosed { return .draining }
            if state.waiting.count >= Self.maximum { return .busy }
            state.waiting.append(reply)
            return nil
        }
        if let refusal { reply(refusal) } else { wake() }
    }

    /// Takes those that the reload which begins now is for: all that were requested before.
    func take() -> [Reply] {
        state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Takes requests again: the gateway is not shutting down after all.
    func open() { state.withLock { $0.isClosed = false } }

    /// Ends them: the gateway is shutting down.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for reply in waiting { reply(.draining) }
    }
}
