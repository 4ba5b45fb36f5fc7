/// What was changed while it could not be told to the engine: it must not be found there when the
/// engine is back.
///
/// There are two kinds of it. What was *invalidated or purged* concerns all gateways, which are
/// told of it; beyond a limit everything is taken for purged. What was *replaced*, or is only
/// stored here, concerns the engine's own copy: an older one, which is as fresh as it says. Beyond
/// a limit this gateway uses nothing that the engine has from before.
struct LostChanges: Sendable, Equatable {
    /// How many keys of each kind, and bytes of them, at most.
    struct Limits: Sendable, Equatable {
        var replaced: Int
        var invalid: Int
        var bytes = 16 << 20
    }

    struct Key: Sendable, Equatable {
        let hash: UInt64
        /// Whether its responses were found to be invalid (RFC 9111 §4.4).
        var isInvalid: Bool
    }

    private let limits: Limits
    private var bytes = 0
    private(set) var keys: [[UInt8]: Key] = [:]
    private var invalid = 0
    /// What was purged, in its order.
    private(set) var purges: [FleetPurge] = []
    private var known: Set<FleetPurge> = []
    /// Whether all is taken for purged.
    private(set) var isEverything = false
    /// Whether more was replaced than is remembered.
    private(set) var hasForgotten = false

    /// Purges at most.
    private static let purgeLimit = 1024

    init(_ limits: Limits) { self.limits = limits }

    var isEmpty: Bool { keys.isEmpty && !hasForgotten && !concernsOthers }

    /// Whether other gateways have yet to be told of any of it.
    var concernsOthers: Bool { invalid > 0 || !purges.isEmpty || isEverything }

    /// A key was changed.
    /// - Parameter isInvalid: whether its responses were found to be invalid.
    mutating func note(_ key: SharedKey, isInvalid: Bool) {
        guard !isEverything, isInvalid || !hasForgotten else { return }
        if let known = keys[key.bytes] {
            guard isInvalid, !known.isInvalid else { return }
        } else {
            bytes += key.bytes.count
        }
        keys[key.bytes] = Key(hash: key.hash, isInvalid: isInvalid)
        if isInvalid { invalid += 1 }
        if keys.count - invalid > limits.replaced || bytes > limits.bytes { forgetReplaced() }
        if invalid > limits.invalid || bytes > limits.bytes { noteEverything() }
    }

    private mutating func forgetReplaced() {
        guard keys.count > invalid else { return }
        hasForgotten = true
        keys = keys.filter { $0.value.isInvalid }
        bytes = keys.reduce(0) { $0 + $1.key.count }
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
        self = LostChanges(limits)
        isEverything = true
    }

    /// Takes keys, as many as given at most, which are forgotten here.
    mutating func takeKeys(_ most: Int = .max) -> [[UInt8]: Key] {
        guard keys.count > most else {
            defer { (keys, bytes, invalid) = ([:], 0, 0) }
            return keys
        }
        var taken: [[UInt8]: Key] = [:]
        for (key, value) in keys.prefix(most) {
            taken[key] = value
            keys[key] = nil
            bytes -= key.count
            if value.isInvalid { invalid -= 1 }
        }
        return taken
    }

    /// Whether more was replaced than is remembered, which is forgotten here.
    mutating func takeForgotten() -> Bool {
        defer { hasForgotten = false }
        return hasForgotten
    }

    /// What was replaced concerns nobody: the engine has begun anew.
    mutating func dropReplaced() {
        forgetReplaced()
        hasForgotten = false
    }

    /// All of it, which is forgotten here.
    mutating func take() -> LostChanges {
        let taken = self
        self = LostChanges(limits)
        return taken
    }
}

/// A cache key, with this process's hash of it.
struct SharedKey: Sendable, Equatable {
    let bytes: [UInt8]
    let hash: UInt64
}
