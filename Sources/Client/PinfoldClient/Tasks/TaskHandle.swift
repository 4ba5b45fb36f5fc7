import Clocks
public import HTTPTypes
import Locking

/// What a task is doing.
public enum TaskState: Sendable, Hashable, CaseIterable {
    /// It has not begun.
    case ready
    /// It is under way.
    case running
    /// It has begun, and neither sends nor reads anything until it is resumed.
    case suspended
    /// It has ended.
    case completed
}

/// A task of a session, as it is suspended, resumed and cancelled from outside.
///
/// Suspensions are counted, as `NSURLSessionTask` does: a task goes on when ``resume()`` was called
/// as often as ``suspend()``. One that is suspended does not begin, reads nothing further from
/// its server, sends no further content, hands nothing on, and is subject to no time-out; what its
/// server sends meanwhile fills the connection's buffers and waits there. It keeps its connection,
/// and its place among the requests under way; where it still waited for its turn, others are
/// served meanwhile. A request's head, with content of up to 64 KiB behind it, is not held back any
/// more once its connection is being made.
public final class TaskHandle: Sendable {
    /// What a task does when it begins, if that is not up to a caller who waits.
    struct Work: Sendable {
        let run: @Sendable (TaskHandle) async -> Void
        /// It is cancelled, and does not begin.
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
        /// Its progress is paused.
        var isPaused = false
        var clock = TaskClock()
        /// The exchange under way.
        var channel: TransferChannel?
        /// The response, once it is the caller's to read.
        weak var response: ResponseGuard?
        /// Why it ends before its time.
        var ending: ClientError?
        /// The runner, between two exchanges.
        var waiter: Waiter?
        /// Cancels the hook that is being asked, between two exchanges.
        var cancelHook: (@Sendable () -> Void)?
        /// The wait before the next exchange is not over.
        var isPausing = false

        var isRunning: Bool { suspensions == 0 && !isPaused }
        var mayGoOn: Bool { ending != nil || isRunning && !isPausing }
    }

    /// No other task of the process has it.
    public let identifier = TaskIdentifier.next()
    /// What was asked for first.
    public let request: HTTPRequest
    /// How far it is; nil where nobody looks.
    public let progress: TransferProgress?
    private let registry: TaskRegistry
    private let inner: Locked<Inner>

    /// - Parameter work: Nil: a caller carries it out, and says so by ``begin()``. Else the task is
    ///   suspended once, and begins when it is resumed.
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

    /// What it is doing now.
    public var state: TaskState {
        inner.withLock { inner in
            switch inner.stage {
            case .ready: .ready
            case .begun: inner.isRunning ? .running : .suspended
            case .complete: .completed
            }
        }
    }

    // MARK: From outside

    /// Suspends it once more.
    public func suspend() { change { $0.suspensions += 1 } }

    /// Takes one suspension back; with the last one it begins, or goes on. Nothing happens to one
    /// that is not suspended.
    public func resume() { change { $0.suspensions = max(0, $0.suspensions - 1) } }

    /// Ends it with ``ClientError/Reason/cancelled``, suspended or not. Nothing happens to one that
    /// is completed.
    public func cancel() { cancel(.cancelled()) }

    func cancel(_ reason: ClientError) {
        let error = reason.about(request)
        let after = inner.withLock { inner -> (@Sendable () -> Void)? in
            switch inner.stage {
            case .ready(let work):
                inner.ending = inner.ending ?? error
                guard let work else { return nil }
                // At once, so that it is not begun in between.
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
                // Under no lock: cancelling runs handlers, which may come here again.
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

    /// Its progress was paused, or resumed, or cancelled.
    func follow(_ progress: TransferProgress) {
        if progress.isCancelled { cancel() }
        change { $0.isPaused = progress.isPaused }
    }

    private func change(_ body: (inout Inner) -> Void) {
        let waiters = inner.withLock { inner -> [Waiter?] in
            if case .complete = inner.stage { return [] }
            let wasRunning = inner.isRunning
            body(&inner)
            guard inner.isRunning != wasRunning else { return [] }
            switch inner.stage {
            case .ready(let work):
                if let work, inner.isRunning { begin(&inner, work) }
                return []
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
                return [inner.channel?.resume(), inner.mayGoOn ? inner.waiter.take() : nil]
            case .complete: return []
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

    // MARK: From the runner

    /// A caller has begun to carry it out.
    func begin() {
        inner.withLock { inner in
            if case .ready = inner.stage { begin(&inner, nil) }
        }
    }

    /// How long it has been under way, the time in which it was suspended left out.
    var elapsed: Duration {
        let now = Clock.monotonicMilliseconds()
        return .milliseconds(inner.withLock { $0.clock.elapsed(at: now) })
    }

    /// Waits for so long, and until it is not suspended.
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

    /// How long it has been under way, where it neither waits nor was cancelled; nil:
    /// ``turn(after:)`` has to be called first.
    var elapsedIfItGoesOn: Duration? {
        let now = Clock.monotonicMilliseconds()
        let elapsed = inner.withLock { inner in
            inner.ending == nil && inner.mayGoOn ? inner.clock.elapsed(at: now) : nil
        }
        return elapsed.map { .milliseconds($0) }
    }

    /// Throws where it was cancelled.
    func check() throws(ClientError) {
        if let error = inner.withLock({ $0.ending }) { throw error }
    }

    /// What a hook says, which is cancelled with the task, whoever cancels that.
    func asking<Answer: Sendable>(_ hook: @escaping @Sendable () async -> Answer) async -> Answer {
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

    /// It waits before the next exchange.
    var isWaiting: Bool { inner.withLock { $0.waiter != nil } }

    private func pauseEnded() {
        let waiter = inner.withLock { inner in
            inner.isPausing = false
            return inner.mayGoOn ? inner.waiter.take() : nil
        }
        waiter?.resume()
    }

    private func changes() async {
        if inner.withLock({ $0.mayGoOn }) { return }
        await withTaskCancellationHandler {
            await Waiter.wait { waiter in
                let goesOn = inner.withLock { inner in
                    if !inner.mayGoOn { inner.waiter = waiter }
                    return inner.mayGoOn
                }
                if goesOn { waiter.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// An exchange of it has begun.
    func attach(_ channel: TransferChannel) {
        let ending = inner.withLock { inner in
            inner.channel = channel
            if inner.ending == nil, !inner.isRunning { channel.suspend() }
            return inner.ending
        }
        if let ending { channel.cancel(ending) }
    }

    /// The caller has its response, and reads it or lets go of it.
    func hasResponse(_ response: ResponseGuard) {
        let ending = inner.withLock { inner in
            inner.response = response
            return inner.ending
        }
        if let ending { response.isOver(ending) }
    }

    /// It has ended; once.
    func complete(_ completion: @autoclosure () -> TaskCompletion) {
        let (isFirst, channel) = inner.withLock { inner -> (Bool, TransferChannel?) in
            if case .complete = inner.stage { return (false, nil) }
            inner.stage = .complete
            return (true, inner.channel.take())
        }
        guard isFirst else { return }
        // Where a step between two exchanges has failed, nobody reads this one any more.
        channel?.cancel()
        over(completion())
    }

    private func over(_ completion: @autoclosure () -> TaskCompletion) {
        progress?.finished()
        registry.complete(identifier, completion())
    }
}
