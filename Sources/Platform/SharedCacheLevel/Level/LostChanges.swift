/// What was changed while it could not be told to the engine: it must not be found there when the
/// engine is back. Beyond a limit everything is taken for changed.
struct LostChanges: Sendable, Equatable {
    private let limit: Int
    /// Bytes of keys at most.
    private let byteLimit: Int
    private var bytes = 0
    /// The keys, with their hashes.
    private(set) var keys: [[UInt8]: UInt64] = [:]
    /// What was purged, in its order.
    private(set) var purges: [FleetPurge] = []
    private var known: Set<FleetPurge> = []
    private(set) var isEverything = false

    /// Purges at most.
    private static let purgeLimit = 1024

    init(limit: Int, bytes: Int = 4 << 20) {
        self.limit = limit
        byteLimit = bytes
    }

    var isEmpty: Bool { keys.isEmpty && purges.isEmpty && !isEverything }

    /// A key was changed.
    mutating func note(_ key: SharedKey) {
        guard !isEverything, keys[key.bytes] == nil else { return }
        guard keys.count < limit, bytes + key.bytes.count <= byteLimit else {
            return noteEverything()
        }
        bytes += key.bytes.count
        keys[key.bytes] = key.hash
    }

    /// Something was purged.
    mutating func note(_ purges: [FleetPurge]) {
        guard !isEverything else { return }
        for purge in purges where known.insert(purge).inserted {
            guard self.purges.count < Self.purgeLimit else { return noteEverything() }
            self.purges.append(purge)
        }
    }

    /// There is too much of it: everything is purged.
    mutating func noteEverything() {
        purges = []
        known = []
        keys = [:]
        bytes = 0
        isEverything = true
    }

    /// All keys, which are forgotten here.
    mutating func takeKeys() -> [[UInt8]: UInt64] {
        defer { (keys, bytes) = ([:], 0) }
        return keys
    }

    /// All of it, which is forgotten here.
    mutating func take() -> LostChanges {
        let taken = self
        self = LostChanges(limit: limit, bytes: byteLimit)
        return taken
    }
}

/// A cache key, with this process's hash of it.
struct SharedKey: Sendable, Equatable {
    let bytes: [UInt8]
    let hash: UInt64
}
