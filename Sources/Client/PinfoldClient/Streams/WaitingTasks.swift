/// Tasks that each wait for a value, in the order of their arrival. It must be protected by a lock:
/// whoever removes a continuation resumes it, so that it is resumed exactly once.
struct WaitingTasks<Value: Sendable> {
    typealias Continuation = CheckedContinuation<Result<Value, ClientError>, Never>

    private var tasks: [(number: UInt64, continuation: Continuation)] = []

    var isEmpty: Bool { tasks.isEmpty }

    mutating func append(_ number: UInt64, _ continuation: Continuation) {
        tasks.append((number, continuation))
    }

    /// Removes a task that no longer waits. Returns `nil` if it has already been removed or not yet
    /// been added.
    mutating func remove(_ number: UInt64) -> Continuation? {
        guard let index = tasks.firstIndex(where: { $0.number == number }) else { return nil }
        return tasks.remove(at: index).continuation
    }

    mutating func popFirst() -> (number: UInt64, continuation: Continuation)? {
        tasks.isEmpty ? nil : tasks.removeFirst()
    }

    /// Removes a task and all tasks before it, or none if it does not wait.
    mutating func removeAll(through number: UInt64) -> [Continuation] {
        guard let index = tasks.firstIndex(where: { $0.number == number }) else { return [] }
        defer { tasks.removeFirst(index + 1) }
        return tasks[...index].map(\.continuation)
    }

    mutating func removeAll() -> [Continuation] {
        defer { tasks = [] }
        return tasks.map(\.continuation)
    }
}
