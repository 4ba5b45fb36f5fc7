/// Where a session's completion handlers run.
public enum CallbackExecution: Sendable {
    /// On the threads of Swift's concurrency library, one after another, as tasks end.
    case serial
    /// Wherever the given function runs them. It is called with one handler after another, must
    /// preserve their order if that matters, and returns when the handler can be regarded as run.
    case custom(@Sendable (_ handler: @escaping @Sendable () -> Void) async -> Void)
}

/// Runs handlers one after another.
package final class CallbackQueue: Sendable {
    private let handlers: AsyncStream<@Sendable () -> Void>.Continuation

    init(_ execution: CallbackExecution) {
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

    package func run(_ handler: @escaping @Sendable () -> Void) { handlers.yield(handler) }
}

extension SessionManager {
    /// Waits until everything that has been handed to the session's callbacks so far has run.
    package func finishCallbacks() async {
        await withCheckedContinuation { continuation in
            callbacks.run { continuation.resume() }
        }
    }
}
