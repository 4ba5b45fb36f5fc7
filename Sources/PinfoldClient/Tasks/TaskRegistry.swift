import Locking

/// The tasks of a session that are under way, and those who are told of its events.
final class TaskRegistry: Sendable {
    private struct State {
        var tasks: [TaskIdentifier: TaskHandle] = [:]
        var observers: [Int: AsyncStream<SessionEvent>.Continuation] = [:]
        var lastObserver = 0
        /// Those of them that are not suspended, which the indicator counts.
        var running: Set<TaskIdentifier> = []
        /// No further task begins.
        var isInvalidated = false
        /// The session has ended on its loop.
        var hasEnded = false
        var error: ClientError?
        /// The last event was told.
        var isOver = false
    }

    private let state = Locked(State())
    /// Tells observers, under no lock: one that is told may be cancelled at the same time, and
    /// cancel a task in turn.
    private let line = CallbackLine(.serial)
    private let callbacks: CallbackLine
    private let callback: (@Sendable (SessionEvent) -> Void)?
    private let activity: ActivityIndicator?
    /// Ends the session on its loop. It does no harm to do so twice.
    private let end: @Sendable () -> Void

    init(
        _ callbacks: CallbackLine, _ callback: (@Sendable (SessionEvent) -> Void)?,
        _ activity: ActivityIndicator?,
        end: @escaping @Sendable () -> Void
    ) {
        self.callbacks = callbacks
        self.callback = callback
        self.activity = activity
        self.end = end
    }

    // MARK: Tasks

    var handles: [TaskHandle] {
        state.withLock { Array($0.tasks.values) }.sorted { $0.identifier < $1.identifier }
    }

    /// A task begins. False: the session takes no more.
    func add(_ task: TaskHandle) -> Bool {
        state.withLock { state in
            guard !state.isInvalidated, !state.hasEnded else { return false }
            state.tasks[task.identifier] = task
            return true
        }
    }

    func complete(_ completion: TaskCompletion) {
        let ends = state.withLock { state in
            state.tasks[completion.task] = nil
            tell(.didComplete(completion), &state)
            return state.isInvalidated && state.tasks.isEmpty
        }
        if ends { end() }
        endIfOver()
    }

    /// No further task begins; the session ends with the last one.
    func invalidate() {
        let ends = state.withLock { state in
            state.isInvalidated = true
            return state.tasks.isEmpty
        }
        if ends { end() }
    }

    /// The session has ended on its loop.
    func sessionEnded(_ error: ClientError?) {
        state.withLock { state in
            guard !state.hasEnded else { return }
            state.hasEnded = true
            state.error = error
        }
        // Those without an exchange: the others know already.
        for task in handles { task.cancel(error ?? .sessionInvalidated()) }
        endIfOver()
    }

    // MARK: Events

    func events() -> AsyncStream<SessionEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: SessionEvent.self,
            bufferingPolicy: .bufferingNewest(SessionManager.maximumWaitingEvents))
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.lastObserver += 1
            state.observers[state.lastObserver] = continuation
            return state.lastObserver
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
        }
        return stream
    }

    func post(_ event: SessionEvent) { state.withLock { tell(event, &$0) } }

    /// Under the lock, so that all are told in one order.
    private func tell(_ event: SessionEvent, _ state: inout State) {
        count(event, &state)
        guard !state.isOver else { return }
        if !state.observers.isEmpty {
            let observers = Array(state.observers.values)
            line.run { for observer in observers { observer.yield(event) } }
        }
        if let callback { callbacks.run { callback(event) } }
    }

    /// Tells the indicator, if there is one, which tasks are under way.
    private func count(_ event: SessionEvent, _ state: inout State) {
        guard let activity else { return }
        switch event {
        case .didResume(let task, _):
            if state.running.insert(task).inserted { line.run { activity.increment() } }
        case .didSuspend(let task, _):
            if state.running.remove(task) != nil { line.run { activity.decrement() } }
        case .didComplete(let completion):
            if state.running.remove(completion.task) != nil { line.run { activity.decrement() } }
        case .downloadMoved, .downloadFailedToMove, .sessionInvalidated: break
        }
    }

    private func endIfOver() {
        state.withLock { state in
            guard state.hasEnded, state.tasks.isEmpty, !state.isOver else { return }
            tell(.sessionInvalidated(state.error), &state)
            state.isOver = true
            let observers = Array(state.observers.values)
            state.observers = [:]
            line.run { for observer in observers { observer.finish() } }
        }
    }
}
