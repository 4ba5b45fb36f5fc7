import HTTPTypes
import Locking

/// How far a request's content and its response's have come, as an observable value.
///
/// Give one to ``RequestOptions/progress``, and read ``value`` whenever you like, or follow
/// ``updates()``. With a redirect, or a retry, both begin again. The task can be paused and
/// cancelled through it, too, as through an `NSProgress` of AFNetworking.
public final class TransferProgress: Sendable {
    /// Bytes of content moved, and how many there will be.
    public struct Value: Sendable, Hashable {
        /// Bytes of the request's content that were sent.
        public var sent: Int64 = 0
        /// Nil: not known.
        public var expectedToSend: Int64?
        /// Bytes of the response's content that have arrived.
        public var received: Int64 = 0
        /// Nil: not known, or not yet.
        public var expectedToReceive: Int64?
        /// Nothing follows any more.
        public var isFinished = false

        /// The share of what is received, 0 to 1; nil where its length is not known.
        public var fractionReceived: Double? { Self.fraction(received, of: expectedToReceive) }
        /// The share of what is sent, 0 to 1; nil where its length is not known.
        public var fractionSent: Double? { Self.fraction(sent, of: expectedToSend) }

        private static func fraction(_ count: Int64, of total: Int64?) -> Double? {
            total.map { $0 > 0 ? min(1, Double(count) / Double($0)) : 1 }
        }
    }

    private struct State {
        var value = Value()
        var observers: [Int: AsyncStream<Value>.Continuation] = [:]
        var next = 0
        /// Of the request that counts now.
        var part = 0
        /// Bytes that were there before, if the server goes on behind them.
        var offset: Int64 = 0
        /// Told that the value has changed.
        var callback: (@Sendable () -> Void)?
        var isPaused = false
        var isCancelled = false
        /// Whose progress it is now.
        weak var task: TaskHandle?

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

    /// A change, and those who are told of it.
    private struct Told: Sendable {
        let value: Value
        let observers: [AsyncStream<Value>.Continuation]
        let callback: (@Sendable () -> Void)?
    }

    private let state = Locked(State())

    /// Progress that nothing has been made of yet.
    public init() {}

    /// How far it is now.
    public var value: Value { state.withLock { $0.value } }

    /// The values as they change, the latest only where they change faster than they are read; the
    /// sequence ends with the transfer, its last value being the finished one. Each call makes
    /// another one, which begins with the present value.
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

    // MARK: The task

    /// Its task is suspended, or will be when it begins.
    public var isPaused: Bool { state.withLock { $0.isPaused } }
    /// Its task is cancelled, as is each that it is given to.
    public var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Suspends the task, apart from calls of ``TaskHandle/suspend()``: both have to be taken back.
    /// Not counted.
    public func pause() { control { $0.isPaused = true } }

    /// Takes ``pause()`` back.
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

    func attach(_ task: TaskHandle) {
        let isFollowed = state.withLock { state in
            state.task = task
            return state.isPaused || state.isCancelled
        }
        if isFollowed { task.follow(self) }
    }

    /// Calls a function with the values as they change, the latest only where they change faster
    /// than it is called.
    func tell(on callbacks: CallbackLine, _ function: @escaping @Sendable (Value) -> Void) {
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

    /// One request's share: what it says counts until the next request begins, or all is finished.
    ///
    /// Observers are told under no lock of a transfer's: whoever follows the progress may cancel
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

    /// - Parameter number: Whose change it is; nil: the task's.
    private func change(of number: Int? = nil, _ body: (inout State) -> Void) {
        let told = state.withLock { state -> Told? in
            if let number, number != state.part || state.value.isFinished { return nil }
            body(&state)
            return Told(
                value: state.value, observers: Array(state.observers.values),
                callback: state.callback)
        }
        guard let told else { return }
        told.callback?()
        for observer in told.observers {
            observer.yield(told.value)
            if told.value.isFinished { observer.finish() }
        }
    }

    /// A request begins, or the next one after a redirect.
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

    /// The next request asks for what lies behind so many bytes, which count as received.
    func resumes(at offset: Int64) { state.withLock { $0.offset = offset } }
}
