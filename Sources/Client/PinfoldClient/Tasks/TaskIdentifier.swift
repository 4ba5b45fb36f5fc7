import Synchronization

/// A task's number, unique within the process.
public struct TaskIdentifier: Hashable, Sendable, Comparable, CustomStringConvertible {
    /// Counts up from 1, in the order in which tasks are created.
    public let number: UInt64

    private static let last = Atomic<UInt64>(0)

    /// Returns the next identifier. The tasks of sessions have theirs already.
    public static func next() -> TaskIdentifier {
        TaskIdentifier(number: last.add(1, ordering: .relaxed).newValue)
    }

    public static func < (one: TaskIdentifier, other: TaskIdentifier) -> Bool {
        one.number < other.number
    }

    public var description: String { "\(number)" }
}
