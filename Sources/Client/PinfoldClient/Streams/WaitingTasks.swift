/// Tasks that wait for a value each, in the order in which they came. To be kept under a lock:
/// whoever takes a continuation out resumes it, so that it is resumed once.
struct WaitingTasks<Value: Sendable> {
    typealias Continuation = CheckedContinuation<Result<Value, ClientError>, Never>

    private var tasks: [(number: UInt64, continuation: Continuation)] = []

    var isEmpty: Bool { tasks.isEmpty }

    mutating func append(_ number: UInt64, _ continuation: Continuation) {
        tasks.append((number, continuation))
    }

    /// Takes one out that waits no longer; nil: it was taken out before, or not yet put in.
    mutating func remove(_ number: UInt64) -> Continuation? {
        guard let index = tasks.firstIndex(where: { $0.number == number }) else { return nil }
        return tasks.remove(at: index).continuation
    }

    mutating func popFirst() -> (number: UInt64, continuation: Continuation)? {
        tasks.isEmpty ? nil : tasks.removeFirst()
    }

    /// Takes out a task and all that came before it; none where it does not wait.
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
