import CLinux

/// A value that can be accessed only under its lock.
///
/// The lock is a pthread mutex, which ThreadSanitizer understands: it sees the order of two
/// critical sections, and two locks taken in different orders. The standard library's `Mutex` takes
/// a contended lock in library code that is not instrumented, so that everything under it looks
/// like a race.
///
/// The lock and the value share one allocation, made once, so that an uncontended access touches
/// one memory location. Copies share it.
public struct Locked<Value: ~Copyable>: @unchecked Sendable {
    @usableFromInline let storage: LockStorage<Value>

    /// Protects a value to which no other reference is kept.
    @inlinable
    public init(_ initial: consuming sending Value) {
        storage = LockStorage.holding(initial)
    }

    /// Runs `body` with the lock held. It must not take the same lock again: that traps in a debug
    /// build, and deadlocks in a release build.
    @inlinable
    @inline(__always)
    public func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        storage.lock()
        defer { storage.unlock() }
        return try body(&storage.value.pointee)
    }
}

/// A mutex followed by the value: a buffer of one element.
@usableFromInline
final class LockStorage<Value: ~Copyable>: ManagedBuffer<pthread_mutex_t, Value> {
    @inlinable
    static func holding(_ initial: consuming sending Value) -> LockStorage<Value> {
        let made = LockStorage.create(minimumCapacity: 1) { _ in pthread_mutex_t() }
        let storage = unsafeDowncast(made, to: LockStorage<Value>.self)
        #if DEBUG
            var attributes = pthread_mutexattr_t()
            pthread_mutexattr_init(&attributes)
            defer { pthread_mutexattr_destroy(&attributes) }
            pthread_mutexattr_settype(&attributes, Int32(PTHREAD_MUTEX_ERRORCHECK))
            let code = pthread_mutex_init(storage.mutex, &attributes)
        #else
            let code = pthread_mutex_init(storage.mutex, nil)
        #endif
        precondition(code == 0, "pthread_mutex_init: \(code)")
        storage.value.initialize(to: initial)
        return storage
    }

    deinit {
        pthread_mutex_destroy(mutex)
        value.deinitialize(count: 1)
    }

    @inlinable var mutex: UnsafeMutablePointer<pthread_mutex_t> {
        withUnsafeMutablePointerToHeader { $0 }
    }

    @inlinable var value: UnsafeMutablePointer<Value> {
        withUnsafeMutablePointerToElements { $0 }
    }

    @inlinable
    @inline(__always)
    func lock() {
        let code = pthread_mutex_lock(mutex)
        precondition(code == 0, "pthread_mutex_lock: \(code)")
    }

    @inlinable
    @inline(__always)
    func unlock() {
        let code = pthread_mutex_unlock(mutex)
        precondition(code == 0, "pthread_mutex_unlock: \(code)")
    }
}
