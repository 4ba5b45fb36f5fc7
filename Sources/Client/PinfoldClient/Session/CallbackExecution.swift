/// Where a session's completion handlers run.
public enum CallbackExecution: Sendable {
    /// On the concurrency library's threads, one after the other, as tasks end.
    case serial
    /// Wherever the function runs them: it must keep their order, if that matters. It is called
    /// with one handler after the other, and returns when the handler may be taken for run.
    case custom(@Sendable (_ handler: @escaping @Sendable () -> Void) async -> Void)
}

/// Runs handlers one after the other.
final class CallbackLine: Sendable {
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

    /// The task above ends when it has run what is queued.
    deinit { handlers.finish() }

    func run(_ handler: @escaping @Sendable () -> Void) { handlers.yield(handler) }
}
