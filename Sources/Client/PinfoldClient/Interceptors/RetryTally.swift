import Locking
import Synchronization

/// Tells interceptors apart, also from those that no longer exist.
struct InterceptorIdentity: Hashable, Sendable {
    private let number: UInt64

    private static let last = Atomic<UInt64>(0)

    init() { number = Self.last.add(1, ordering: .relaxed).newValue }
}

/// How often each interceptor has had a task's request sent again, for those that count.
///
/// All of a task's attempts share it, so that it counts for nothing when they are compared.
final class RetryTally: Sendable, Hashable {
    private let counts = Locked<[InterceptorIdentity: Int]>([:])

    func count(of interceptor: InterceptorIdentity) -> Int {
        counts.withLock { $0[interceptor] ?? 0 }
    }

    func add(_ interceptor: InterceptorIdentity) {
        counts.withLock { $0[interceptor, default: 0] += 1 }
    }

    static func == (one: RetryTally, other: RetryTally) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}
