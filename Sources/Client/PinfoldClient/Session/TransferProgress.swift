import HTTPTypes
import Locking

/// The progress of a request's content and of its response's content, as an observable value.
///
/// Set ``RequestOptions/progress`` to it, then read ``value`` at any time or follow ``updates()``.
/// Both restart with a redirect or a retry. It can also be used to pause and cancel the task, like
/// an `NSProgress` from AFNetworking.
public final class TransferProgress: Sendable {
    /// The number of bytes transferred and expected.
    public struct Value: Sendable, Hashable {
        /// The number of bytes of the request's content that were sent.
        public var sent: Int64 = 0
        /// The length of the request's content, or `nil` if it is unknown.
        public var expectedToSend: Int64?
        /// The number of bytes of the response's content that have arrived.
        public var received: Int64 = 0
        /// The length of the response's content, or `nil` if it is unknown, or not yet known.
        public var expectedToReceive: Int64?
        /// Whether the transfer has finished.
        public var isFinished = false

        /// The fraction received, from 0 to 1, or `nil` if the length is unknown.
        public var fractionReceived: Double? { Self.fraction(received, of: expectedToReceive) }
        /// The fraction sent, from 0 to 1, or `nil` if the length is unknown.
        public var fractionSent: Double? { Self.fraction(sent, of: expectedToSend) }

        private static func fraction(_ count: Int64, of total: Int64?) -> Double? {
            total.map { $0 > 0 ? min(1, Double(count) / Double($0)) : 1 }
        }
    }

    private struct State {
        var value = Value()
        var observers: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        /// The number of the current request.
        var part = 0
        /// The number of bytes that were there before, if the server continues after them.
        var offset: Int64 = 0
        /// Called when the value has changed.
        var callback: (@Sendable () -> Void)?
        var isPaused = false
        var isCancelled = false
        /// The current task.
        weak var task: TaskHandle?
        /// That of the last task.
        var identifier: TaskIdentifier?

        mutating func expectsReceived(_ response: HTTPResponse) {
            guard offset > 0, response.status.code == 206,
                case .part(offset, let last, let total) = response.contentRange
            else {
                value.expectedToReceive = response.contentLength
                return
            }
            value.received = offset
            value.expectedToReceive = total ?? last + 1
        }
    }

    /// A change, and the observers to notify of it.
    private struct Change: Sendable {
        let value: Value
        let observers: [AsyncStream<Value>.Continuation]
        let callback: (@Sendable () -> Void)?
    }

    private let state = Locked(State())

    /// Creates progress for a transfer that has not started.
    public init() {}

    /// The current value.
    public var value: Value { state.withLock { $0.value } }

    /// Returns the values as they change, or only the latest if they change faster than they are
    /// read. The sequence ends with the transfer; its last value is the finished one. Each call
    /// returns another sequence, which starts with the current value.
    public func updates() -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.observers[state.next] = continuation
            continuation.yield(state.value)
            if state.value.isFinished { continuation.finish() }
            return state.next
        }
        continuation.onTermination = { [weak self] _ in self?.forget(number) }
        return stream
    }

    // MARK: Task

    /// Whether the task is suspended, or will be when it starts.
    public var isPaused: Bool { state.withLock { $0.isPaused } }
    /// Whether the task, and each task that this is given to, is cancelled.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Suspends the task. This is independent of ``TaskHandle/suspend()``: both have to be undone.
    /// Calls are not counted.
    public func pause() { control { $0.isPaused = true } }

    /// Undoes ``pause()``.
    public func resume() { control { $0.isPaused = false } }

    /// Cancels the task.
    public func cancel() { control { $0.isCancelled = true } }

    private func control(_ body: (inout State) -> Void) {
        let task = state.withLock { state in
            body(&state)
            return state.task
        }
        task?.follow(self)
    }

    /// The last task that this was given to.
    package var task: TaskIdentifier? { state.withLock { $0.identifier } }

    func attach(_ task: TaskHandle) {
        let isFollowed = state.withLock { state in
            (state.task, state.identifier) = (task, task.identifier)
            return state.isPaused || state.isCancelled
        }
        if isFollowed { task.follow(self) }
    }

    /// Calls a function with the values as they change, or only with the latest if they change
    /// faster than it can be called.
    func report(on callbacks: CallbackQueue, _ function: @escaping @Sendable (Value) -> Void) {
        let isAsked = Locked(false)
        let observer = { @Sendable [weak self] in
            let isFirst = isAsked.withLock { isAsked in
                defer { isAsked = true }
                return !isAsked
            }
            guard isFirst, let self else { return }
            callbacks.run {
                isAsked.withLock { $0 = false }
                function(self.value)
            }
        }
        state.withLock { $0.callback = observer }
    }

    // MARK: Changes

    private func forget(_ number: Int) {
        _ = state.withLock { $0.observers.removeValue(forKey: number) }
    }

    /// The part of a single request. Its values count until the next request begins or everything
    /// has finished.
    ///
    /// Observers are notified without holding a lock of a transfer, because an observer may cancel
    /// the task at the same time.
    struct Part: Sendable {
        fileprivate let progress: TransferProgress
        fileprivate let number: Int

        func sent(_ count: Int) { progress.change(of: number) { $0.value.sent += Int64(count) } }

        func received(_ count: Int) {
            progress.change(of: number) { $0.value.received += Int64(count) }
        }

        func expectsReceived(_ response: HTTPResponse) {
            progress.change(of: number) { $0.expectsReceived(response) }
        }
    }

    /// - Parameter number: The request that has changed, or `nil` for the task.
    private func change(of number: Int? = nil, _ body: (inout State) -> Void) {
        let change = state.withLock { state -> Change? in
            if let number, number != state.part || state.value.isFinished { return nil }
            body(&state)
            return Change(
                value: state.value, observers: Array(state.observers.values),
                callback: state.callback)
        }
        guard let change else { return }
        change.callback?()
        for observer in change.observers {
            observer.yield(change.value)
            if change.value.isFinished { observer.finish() }
        }
    }

    /// Starts a request, or the next one after a redirect.
    func begins(sending length: Int64?) -> Part {
        var number = 0
        change { state in
            state.part += 1
            number = state.part
            state.value = Value(expectedToSend: length)
        }
        return Part(progress: self, number: number)
    }

    func finished() { change { $0.value.isFinished = true } }

    /// The next request asks for what follows this number of bytes, which count as received.
    func resumes(at offset: Int64) { state.withLock { $0.offset = offset } }
}
