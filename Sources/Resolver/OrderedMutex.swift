import Synchronization

/// A `Mutex` whose order ThreadSanitizer sees.
///
/// The standard library's `Mutex` takes a contended lock in library code that is not instrumented,
/// so that ThreadSanitizer reports races between critical sections that cannot overlap. An acquire
/// when a section begins and a release when it ends, on an atomic beside the lock, tell it the
/// order; on x86 and ARM they are one plain load and store each.
struct OrderedMutex<Value: Sendable>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>
    private let order = Atomic<UInt8>(0)

    /// A lock over a value.
    init(_ value: Value) {
        mutex = Mutex(value)
    }

    /// Calls the body with the value, alone.
    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        mutex.withLock { value in
            _ = order.load(ordering: .acquiring)
            defer { order.store(0, ordering: .releasing) }
            return body(&value)
        }
    }
}
