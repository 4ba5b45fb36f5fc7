/// What the levels still have to do for a change of a key once the lock of the key is free: queue
/// something, wake a thread, call a completion.
package struct LevelWork: Sendable {
    private var first: (@Sendable () -> Void)?
    private var others: [@Sendable () -> Void] = []

    package init() {}

    /// Called under the lock; `step` is called once, without it, by the same thread.
    package mutating func add(_ step: @escaping @Sendable () -> Void) {
        if first == nil {
            first = step
        } else {
            others.append(step)
        }
    }

    /// Does it, in the order in which it was added.
    func perform() {
        first?()
        for step in others { step() }
    }
}

/// The state of a level of the cache.
public enum LevelState: Sendable, Equatable {
    /// It is not ready yet: nothing is found there.
    case opening
    case ready
    /// Switched off, failed or closed.
    case off
}

/// Counts of one level below memory, in the same form for all.
public struct LevelStatistics: Sendable, Equatable {
    /// What it is called, in statistics and in tests.
    public var name: String
    public var state: LevelState
    /// Loads that found something, and loads that did not.
    public var hits: UInt64 = 0
    public var misses: UInt64 = 0
    /// Responses that it has carried out the storing of.
    public var stores: UInt64 = 0
    /// Responses that it passed over because it was behind.
    public var skipped: UInt64 = 0

    public init(name: String, state: LevelState) {
        self.name = name
        self.state = state
    }
}
