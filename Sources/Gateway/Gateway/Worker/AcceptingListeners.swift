import Locking

/// On how many workers each listener accepts connections; changed when one begins or stops to.
final class AcceptingListeners: Sendable {
    /// A listener. The administration may share its name with one.
    struct Key: Hashable {
        var name: String
        var isAdmin: Bool
    }

    private let table = Locked<[Key: Int]>([:])

    /// Whether none accepts on any worker.
    var isNone: Bool { counts.isEmpty }

    var counts: [Key: Int] { table.withLock { $0 } }

    func began(_ key: Key) { table.withLock { $0[key, default: 0] += 1 } }

    func stopped(_ key: Key) {
        table.withLock { table in
            let count = table[key, default: 1] - 1
            table[key] = count > 0 ? count : nil
        }
    }
}
