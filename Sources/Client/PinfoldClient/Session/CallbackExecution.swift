import Synchronization

/// Where a session's completion handlers run.
public enum CallbackExecution: Sendable {
    /// On the threads of Swift's concurrency library, one after another, as tasks end.
    case serial
    /// Wherever the given function runs them. It is called with one handler after another, must
    /// preserve their order if that matters, and returns when the handler can be regarded as run.
    case custom(@Sendable (_ handler: @escaping @Sendable () -> Void) async -> Void)
}

/// Runs handlers one after another.
///
/// Of completion handlers, no more wait than there are tasks. Events are dropped while too many
/// handlers wait, so that one that is slow or blocked does not use up the memory.
package final class CallbackQueue: Sendable {
    private let handlers: AsyncStream<@Sendable () -> Void>.Continuation
    private let counts = Counts()
    private let maximumWaiting: Int

    private final class Counts: Sendable {
        /// The number of handlers that have not run.
        let waiting = Atomic(0)
        /// The number of events that were dropped since one was not.
        let dropped = Atomic(0)
    }

    /// - Parameter maximumWaiting: The number of waiting handlers from which events are dropped.
    init(
        _ execution: CallbackExecution, maximumWaiting: Int = SessionManager.maximumWaitingCallbacks
    ) {
        self.maximumWaiting = maximumWaiting
        let (stream, continuation) = AsyncStream.makeStream(of: (@Sendable () -> Void).self)
        handlers = continuation
        Task {
            for await handler in stream {
                switch execution {
                case .serial: handler()
                case .custom(let run): await run(handler)
                }
            }
        }
    }

    /// The task above ends once it has run all queued handlers.
    deinit { handlers.finish() }

    /// Runs a handler, after all others.
    package func run(_ handler: @escaping @Sendable () -> Void) {
        counts.waiting.add(1, ordering: .relaxed)
        handlers.yield { [counts] in
            handler()
            counts.waiting.subtract(1, ordering: .relaxed)
        }
    }

    /// Runs the handler of an event, unless too many handlers wait.
    ///
    /// - Parameter handler: Gets the number of events before this one that were dropped.
    func offer(_ handler: @escaping @Sendable (_ dropped: Int) -> Void) {
        guard counts.waiting.load(ordering: .relaxed) < maximumWaiting else {
            counts.dropped.add(1, ordering: .relaxed)
            return
        }
        let before = counts.dropped.exchange(0, ordering: .relaxed)
        run { handler(before) }
    }
}

extension SessionManager {
    /// The number of waiting callbacks of a session from which its events are dropped. Completion
    /// handlers never are.
    public static let maximumWaitingCallbacks = 16_384

    /// Waits until everything that has been handed to the session's callbacks so far has run.
    package func finishCallbacks() async {
        await withCheckedContinuation { continuation in
            callbacks.run { continuation.resume() }
        }
    }
}
