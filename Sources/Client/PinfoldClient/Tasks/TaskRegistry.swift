import Locking

/// The active tasks of a session, and the observers of its events.
final class TaskRegistry: Sendable {
    typealias Transaction = TaskMetrics.Transaction

    private struct Entry {
        let task: TaskHandle
        /// Whether the task is not suspended, so that the indicator counts it.
        var isRunning: Bool
    }

    private struct State {
        var entries: [TaskIdentifier: Entry] = [:]
        var observers: [Int: AsyncStream<SessionEvent>.Continuation] = [:]
        var lastObserver = 0
        /// Whether no further tasks can start.
        var isInvalidated = false
        /// Whether the session has ended on its loop.
        var hasEnded = false
        var error: ClientError?
        /// Whether the last event has been published.
        var isOver = false
    }

    private let state = Locked(State())
    /// Notifies observers without holding the lock: an observer may be cancelled at the same time,
    /// and may cancel a task.
    private let callbackQueue = CallbackQueue(.serial)
    private let callbacks: CallbackQueue
    private let callback: (@Sendable (SessionEvent) -> Void)?
    private let monitors: [any EventMonitor]
    /// Those of them that are told of connections.
    private let connectionMonitors: [any ConnectionMonitor]
    private let activity: ActivityIndicator?
    /// Ends the session on its loop. May be called more than once.
    private let end: @Sendable () -> Void

    init(
        _ callbacks: CallbackQueue, _ callback: (@Sendable (SessionEvent) -> Void)?,
        _ activity: ActivityIndicator?, monitors: [any EventMonitor] = [],
        end: @escaping @Sendable () -> Void
    ) {
        self.callbacks = callbacks
        self.callback = callback
        self.activity = activity
        self.monitors = monitors
        connectionMonitors = monitors.compactMap { $0 as? any ConnectionMonitor }
        self.end = end
    }

    // MARK: Tasks

    var handles: [TaskHandle] {
        state.withLock { $0.entries.values.map(\.task) }.sorted { $0.identifier < $1.identifier }
    }

    /// Adds a task that starts, suspended or not. Returns `false` if the session accepts no more
    /// tasks.
    func add(_ task: TaskHandle, isRunning: Bool) -> Bool {
        state.withLock { state in
            guard !state.isInvalidated, !state.hasEnded else { return false }
            state.entries[task.identifier] = Entry(task: task, isRunning: isRunning)
            if isRunning {
                activity?.increment()
                publish(.didResume(task.identifier, request: task.request), &state)
            }
            return true
        }
    }

    /// Records that a task continues or is suspended.
    func changed(_ task: TaskHandle, isRunning: Bool) {
        state.withLock { state in
            if let was = state.entries[task.identifier]?.isRunning, was != isRunning {
                state.entries[task.identifier]?.isRunning = isRunning
                if isRunning { activity?.increment() } else { activity?.decrement() }
            }
            publish(
                isRunning
                    ? .didResume(task.identifier, request: task.request)
                    : .didSuspend(task.identifier, request: task.request), &state)
        }
    }

    func complete(_ task: TaskIdentifier, _ completion: @autoclosure () -> TaskCompletion) {
        let (ends, isOver) = state.withLock { state in
            if state.entries.removeValue(forKey: task)?.isRunning ?? false {
                activity?.decrement()
            }
            publish(.didComplete(completion()), &state)
            let isEmpty = state.entries.isEmpty
            return (state.isInvalidated && isEmpty, state.hasEnded && isEmpty)
        }
        if ends { end() }
        if isOver { endIfOver() }
    }

    /// Prevents further tasks from starting. The session ends with the last one.
    func invalidate() {
        let ends = state.withLock { state in
            state.isInvalidated = true
            return state.entries.isEmpty
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
        // Those without an exchange; the others already know.
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
        // Each refers to the other until the events end, together with the session.
        continuation.onTermination = { [self] _ in
            _ = state.withLock { $0.observers.removeValue(forKey: number) }
        }
        return stream
    }

    func post(_ event: SessionEvent) { state.withLock { publish(event, &$0) } }

    /// Called under the lock, so that all observers get the events in the same order. The event is
    /// created only if there are observers.
    private func publish(_ event: @autoclosure () -> SessionEvent, _ state: inout State) {
        guard !state.isOver, callback != nil || !monitors.isEmpty || !state.observers.isEmpty
        else { return }
        let event = event()
        if !state.observers.isEmpty {
            let observers = Array(state.observers.values)
            callbackQueue.run { for observer in observers { observer.yield(event) } }
        }
        if callback == nil, monitors.isEmpty { return }
        let tell = { @Sendable [callback, monitors] (dropped: Int) in
            Self.tell(monitors, dropped)
            callback?(event)
            for monitor in monitors { monitor.session(event) }
        }
        // The last one is not dropped.
        if case .sessionInvalidated = event {
            callbacks.run { tell(0) }
        } else {
            callbacks.offer(tell)
        }
    }

    /// Tells the monitors of a step. It is made only if there are any.
    func report(_ task: TaskIdentifier, _ event: @autoclosure () -> RequestEvent) {
        guard !monitors.isEmpty else { return }
        let event = event()
        callbacks.offer { [monitors] dropped in
            Self.tell(monitors, dropped)
            for monitor in monitors { monitor.request(task, event) }
        }
    }

    var describesConnections: Bool { !connectionMonitors.isEmpty }

    /// Tells the monitors how a response came.
    func report(_ task: TaskIdentifier, arrivedBy transaction: @autoclosure () -> Transaction?) {
        guard describesConnections, let transaction = transaction() else { return }
        callbacks.offer { [monitors, connectionMonitors] dropped in
            Self.tell(monitors, dropped)
            for monitor in connectionMonitors { monitor.request(task, arrivedBy: transaction) }
        }
    }

    private static func tell(_ monitors: [any EventMonitor], _ dropped: Int) {
        if dropped > 0 { for monitor in monitors { monitor.missed(dropped) } }
    }

    private func endIfOver() {
        state.withLock { state in
            guard state.hasEnded, state.entries.isEmpty, !state.isOver else { return }
            let error = state.error
            publish(.sessionInvalidated(error), &state)
            state.isOver = true
            let observers = Array(state.observers.values)
            state.observers = [:]
            callbackQueue.run { for observer in observers { observer.finish() } }
        }
    }
}
