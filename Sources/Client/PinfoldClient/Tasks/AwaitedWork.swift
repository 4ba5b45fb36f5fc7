import Locking

/// Work on another thread that a task waits for: its result, or `nil` if it is never done.
package final class AwaitedWork<Value: Sendable>: Sendable {
    private let continuation: Locked<CheckedContinuation<Value?, Never>?>

    package init(_ continuation: CheckedContinuation<Value?, Never>) {
        self.continuation = Locked(continuation)
    }

    deinit { end(nil) }

    package func end(_ value: Value?) {
        continuation.withLock { $0.take() }?.resume(returning: value)
    }
}
