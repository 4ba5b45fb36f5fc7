import Clocks
public import HTTPTypes
import Locking
import Tracing

/// The state of a task.
public enum TaskState: Sendable, Hashable, CaseIterable {
    /// The task has not started: it was not resumed.
    case ready
    /// The task is running.
    case running
    /// The task has started, and neither sends nor reads anything until it, or its progress, is
    /// resumed.
    case suspended
    /// The task has ended.
    case completed
}

/// A task of a session, with the means to suspend, resume and cancel it.
///
/// Suspensions are counted, as in `NSURLSessionTask`: a task continues once ``resume()`` has been
/// called as often as ``suspend()``. A suspended task does not start, does not read from its
/// server, sends no further content, delivers nothing, and has no timeouts; anything that its
/// server sends fills the connection's buffers and waits there. It keeps its connection and its
/// slot among the active requests; if it is still queued, other requests go first. Once its
/// connection is being established, a request's head, with up to 64 KiB of content, can no longer
/// be held back.
public final class TaskHandle: Sendable {
    /// The work of a task that is not carried out by a waiting caller.
    struct Work: Sendable {
        let run: @Sendable (TaskHandle) async -> Void
        /// Called instead if the task is cancelled before it starts.
        let refuse: @Sendable (ClientError) -> Void
    }

    private enum Stage {
        case ready(Work?)
        case begun(Task<Void, Never>?)
        case complete
    }

    private struct Inner {
        var stage: Stage
        var suspensions: Int
        /// Whether its progress is paused.
        var isPaused = false
        var clock = TaskClock()
        /// The current exchange.
        var channel: TransferChannel?
        /// The response, once the caller can read it.
        weak var response: ResponseGuard?
        /// Why the task ends prematurely.
        var ending: ClientError?
        /// The runner, between two exchanges.
        var waiter: Waiter?
        /// Cancels the hook that is running between two exchanges.
        var cancelHook: (@Sendable () -> Void)?
        /// The span, if the task is traced.
        var span: TaskSpan?
        /// Whether the delay before the next exchange is in progress.
        var isPausing = false

        var isRunning: Bool { suspensions == 0 && !isPaused }
        var canContinue: Bool { ending != nil || isRunning && !isPausing }
    }

    /// The unique identifier of the task.
    public let identifier = TaskIdentifier.next()
    /// The task's first request.
    public let request: HTTPRequest
    /// The progress, or `nil` if it is not observed.
    public let progress: TransferProgress?
    private let registry: TaskRegistry
    private let inner: Locked<Inner>

    /// - Parameter work: The task's work, with which it starts when it is resumed; the task is then
    ///   created suspended. `nil` if a caller carries it out and calls ``begin()``.
    init(
        _ request: HTTPRequest, _ registry: TaskRegistry, _ progress: TransferProgress?,
        work: Work? = nil
    ) {
        self.request = request
        self.registry = registry
        self.progress = progress
        inner = Locked(Inner(stage: .ready(work), suspensions: work == nil ? 0 : 1))
        progress?.attach(self)
    }

    /// The current state.
    public var state: TaskState {
        inner.withLock { inner in
            switch inner.stage {
            case .ready: .ready
            case .begun: inner.isRunning ? .running : .suspended
            case .complete: .completed
            }
        }
    }

    // MARK: Control

    /// Suspends the task once more.
    public func suspend() { change { $0.suspensions += 1 } }

    /// Undoes one suspension. With the last one, the task starts or continues. Has no effect if the
    /// task is not suspended.
    public func resume() { change { $0.suspensions = max(0, $0.suspensions - 1) } }

    /// Cancels the task with ``ClientError/Reason/cancelled``, whether or not it is suspended. Has
    /// no effect if it has completed.
    public func cancel() { cancel(.cancelled()) }

    func cancel(_ reason: ClientError) {
        let error = reason.about(request)
        let after = inner.withLock { inner -> (@Sendable () -> Void)? in
            switch inner.stage {
            case .ready(let work):
                inner.ending = inner.ending ?? error
                guard let work else { return nil }
                // Immediately, so that it cannot be started in between.
                inner.stage = .complete
                return { [self] in
                    over(TaskCompletion(of: self, error: error))
                    work.refuse(error)
                }
            case .begun(let task):
                guard inner.ending == nil else { return nil }
                inner.ending = error
                let reader = inner.channel?.end(with: error)
                let (waiter, response) = (inner.waiter.take(), inner.response)
                let cancelHook = inner.cancelHook
                // Without holding the lock: cancelling runs handlers, which may call this object.
                return {
                    reader?.resume()
                    waiter?.resume()
                    cancelHook?()
                    task?.cancel()
                    response?.isOver(error)
                }
            case .complete: return nil
            }
        }
        after?()
    }

    /// Handles a change of the progress: paused, resumed or cancelled.
    func follow(_ progress: TransferProgress) {
        if progress.isCancelled { cancel() }
        change { $0.isPaused = progress.isPaused }
    }

    private func change(_ body: (inout Inner) -> Void) {
        let waiters = inner.withLock { inner -> [Waiter?] in
            if case .complete = inner.stage { return [] }
            let wasRunning = inner.isRunning
            body(&inner)
            if case .ready(let work) = inner.stage {
                // Even if its progress is paused: until it begins, nobody but the caller holds it.
                if let work, inner.suspensions == 0 { begin(&inner, work) }
                return []
            }
            guard inner.isRunning != wasRunning else { return [] }
            switch inner.stage {
            case .begun:
                let now = Clock.monotonicMilliseconds()
                guard inner.isRunning else {
                    inner.clock.suspend(at: now)
                    inner.channel?.suspend()
                    registry.changed(self, isRunning: false)
                    return []
                }
                inner.clock.resume(at: now)
                registry.changed(self, isRunning: true)
                return [inner.channel?.resume(), inner.canContinue ? inner.waiter.take() : nil]
            case .ready, .complete: return []
            }
        }
        for waiter in waiters { waiter?.resume() }
    }

    private func begin(_ inner: inout Inner, _ work: Work?) {
        inner.clock.begin(at: Clock.monotonicMilliseconds())
        if !registry.add(self, isRunning: inner.isRunning) {
            inner.ending = inner.ending ?? ClientError.sessionInvalidated().about(request)
        } else if !inner.isRunning {
            inner.clock.suspend(at: Clock.monotonicMilliseconds())
        }
        inner.stage = .begun(work.map { work in Task { await work.run(self) } })
    }

    // MARK: Used by the runner

    /// Marks the task as started by a caller.
    func begin() {
        inner.withLock { inner in
            if case .ready = inner.stage { begin(&inner, nil) }
        }
    }

    /// Begins the task's span, unless it has one.
    func trace(by tracer: any Tracer) {
        if inner.withLock({ $0.span != nil }) { return }
        let span = TaskSpan(of: request, by: tracer)
        let isOver = inner.withLock { inner in
            if case .complete = inner.stage { return true }
            inner.span = span
            return false
        }
        if isOver { span.end(nil) }
    }

    /// The span, if the task is traced.
    var span: TaskSpan? { inner.withLock { $0.span } }

    /// How long the task has been running, without the time during which it was suspended.
    var elapsed: Duration {
        let now = Clock.monotonicMilliseconds()
        return .milliseconds(inner.withLock { $0.clock.elapsed(at: now) })
    }

    /// Waits for a delay, and until the task is not suspended.
    func turn(after wait: Duration = .zero) async throws(ClientError) {
        if Task.isCancelled { cancel() }
        var timer: Task<Void, Never>?
        if wait > .zero {
            inner.withLock { $0.isPausing = true }
            timer = Task { [self] in
                try? await Task.sleep(for: wait)
                pauseEnded()
            }
        }
        await changes()
        timer?.cancel()
        try check()
    }

    /// How long the task has been running if it is neither waiting nor cancelled, or `nil` if
    /// ``turn(after:)`` has to be called first.
    var elapsedIfRunning: Duration? {
        let now = Clock.monotonicMilliseconds()
        let elapsed = inner.withLock { inner in
            inner.ending == nil && inner.canContinue ? inner.clock.elapsed(at: now) : nil
        }
        return elapsed.map { .milliseconds($0) }
    }

    /// Throws if the task was cancelled.
    func check() throws(ClientError) {
        if let error = inner.withLock({ $0.ending }) { throw error }
    }

    /// Calls a hook, which is cancelled together with the task.
    func call<Answer: Sendable>(_ hook: @escaping @Sendable () async -> Answer) async -> Answer {
        let answer = Task { await hook() }
        let isOver = inner.withLock { inner in
            inner.cancelHook = { answer.cancel() }
            return inner.ending != nil
        }
        if isOver { answer.cancel() }
        defer { inner.withLock { $0.cancelHook = nil } }
        return await withTaskCancellationHandler {
            await answer.value
        } onCancel: {
            cancel()
        }
    }

    /// Whether the task waits before the next exchange.
    var isWaiting: Bool { inner.withLock { $0.waiter != nil } }

    private func pauseEnded() {
        let waiter = inner.withLock { inner in
            inner.isPausing = false
            return inner.canContinue ? inner.waiter.take() : nil
        }
        waiter?.resume()
    }

    private func changes() async {
        if inner.withLock({ $0.canContinue }) { return }
        await withTaskCancellationHandler {
            await Waiter.wait { waiter in
                let canContinue = inner.withLock { inner in
                    if !inner.canContinue { inner.waiter = waiter }
                    return inner.canContinue
                }
                if canContinue { waiter.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Marks the start of an exchange.
    func attach(_ channel: TransferChannel) {
        let ending = inner.withLock { inner in
            inner.channel = channel
            if inner.ending == nil, !inner.isRunning { channel.suspend() }
            return inner.ending
        }
        if let ending { channel.cancel(ending) }
    }

    /// Marks that the caller has the response, and reads or releases it.
    func hasResponse(_ response: ResponseGuard) {
        let ending = inner.withLock { inner in
            inner.response = response
            return inner.ending
        }
        if let ending { response.isOver(ending) }
    }

    /// Marks the end of the task. Must be called once.
    func complete(_ completion: @autoclosure () -> TaskCompletion) {
        let (isFirst, channel, span) = inner.withLock {
            inner -> (Bool, TransferChannel?, TaskSpan?) in
            if case .complete = inner.stage { return (false, nil, nil) }
            inner.stage = .complete
            return (true, inner.channel.take(), inner.span.take())
        }
        guard isFirst else { return }
        // If a step between two exchanges has failed, nobody reads this exchange any more.
        channel?.cancel()
        guard let span else { return over(completion()) }
        let completion = completion()
        span.end(completion)
        over(completion)
    }

    private func over(_ completion: @autoclosure () -> TaskCompletion) {
        progress?.finished()
        registry.complete(identifier, completion())
    }
}
