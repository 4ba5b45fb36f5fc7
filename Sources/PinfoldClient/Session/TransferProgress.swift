import HTTPTypes
import Locking

/// How far a request's content and its response's have come, as an observable value.
///
/// Give one to ``RequestOptions/progress``, and read ``value`` whenever you like, or follow
/// ``updates()``. With a redirect both begin again.
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
        /// Other requests follow: nothing is finished.
        var staysOpen = false
        /// Bytes that were there before, if the server goes on behind them.
        var offset: Int64 = 0
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

    private func forget(_ number: Int) {
        _ = state.withLock { $0.observers.removeValue(forKey: number) }
    }

    private func change(_ body: (inout Value) -> Void) {
        let (value, observers) = state.withLock { state in
            body(&state.value)
            return (state.value, Array(state.observers.values))
        }
        for observer in observers {
            observer.yield(value)
            if value.isFinished { observer.finish() }
        }
    }

    /// A request begins, or the next one after a redirect.
    func begins(sending length: Int64?) {
        change { $0 = Value(expectedToSend: length) }
    }

    func sent(_ count: Int) { change { $0.sent += Int64(count) } }

    func received(_ count: Int) { change { $0.received += Int64(count) } }

    func expectsReceived(_ response: HTTPResponse) {
        let length = response.contentLength
        let offset = state.withLock { $0.offset }
        change { value in
            guard offset > 0, response.status.code == 206,
                case .part(offset, let last, let total) = response.contentRange
            else {
                value.expectedToReceive = length
                return
            }
            value.received = offset
            value.expectedToReceive = total ?? last + 1
        }
    }

    func finished() {
        guard !state.withLock({ $0.staysOpen }) else { return }
        change { $0.isFinished = true }
    }

    /// Whether requests follow that are part of the same: their ends are not its end.
    func staysOpen(_ stays: Bool) { state.withLock { $0.staysOpen = stays } }

    /// The next request asks for what lies behind so many bytes, which count as received.
    func resumes(at offset: Int64) { state.withLock { $0.offset = offset } }
}
