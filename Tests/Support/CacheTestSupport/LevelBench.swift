import CachePolicy
import CacheStore

/// What `LevelRule` needs to check a level: stores that have it, perhaps between others.
package struct LevelBench {
    /// Whether there is memory for responses.
    package let hasMemory: Bool
    /// Whether anything is below memory, which the next store finds.
    package let isPermanent: Bool
    /// Whether the levels always know what they have. One without an index may refuse a 304 for a
    /// response that is not in memory.
    package let knowsItsEntries: Bool
    /// Counts what the levels have of bodies apart from entries, without asking the stores.
    package let bodiesApart: () -> Int
    private let makeStore: ((inout CacheStoreOptions) -> Void) -> CacheStore

    /// - Parameter open: opens a store, which finds what those before it have left. The options
    ///   are those that it is to use, apart from `diskBytes` and `folder`.
    package init(
        hasMemory: Bool, isPermanent: Bool = true, knowsItsEntries: Bool = true,
        bodiesApart: @escaping () -> Int = { 0 },
        open: @escaping (CacheStoreOptions) -> CacheStore
    ) {
        self.hasMemory = hasMemory
        self.isPermanent = isPermanent
        self.knowsItsEntries = knowsItsEntries
        self.bodiesApart = bodiesApart
        makeStore = { change in
            var options = CacheStoreOptions.small()
            if !hasMemory { options.memoryBytes = 0 }
            change(&options)
            return open(options).ready()
        }
    }

    /// Opens a store; the one before it must be closed.
    func open(_ change: (inout CacheStoreOptions) -> Void = { _ in }) -> CacheStore {
        makeStore(change)
    }
}

extension CacheStore {
    /// What a request finds, as an exchange looks it up: in memory, otherwise below it.
    package func found(_ text: String, vary value: String? = nil) -> [CachedResponse] {
        let near = inMemory(text).filter { $0.varyKey.isEmpty || $0.varyKey == vary(value) }
        guard near.isEmpty else { return near }
        let handover = Handover<LoadResult>()
        let isAsked = key(text) { key in
            let below = levelVariants(key) { $0.isEmpty ? .none : vary(value) }
            guard case .candidates(let variants) = below else { return false }
            return load(key, variants, policy: .init()) { handover.give($0) }
        }
        guard isAsked, case .found(let all, _)? = handover.take() else { return [] }
        return all.filter { $0.varyKey.isEmpty || $0.varyKey == vary(value) }
    }

    /// The bodies of what a request finds.
    package func foundBodies(_ text: String, vary value: String? = nil) -> [[UInt8]?] {
        found(text, vary: value).map { bytes($0) }
    }

    /// Updates a response after a 304.
    package func confirm(
        _ old: CachedResponse, vary: VaryKey = .none, policy: UInt64 = 0,
        flight: StoreFlight? = nil
    ) throws(StoreRefusalReason) -> CachedResponse {
        let fresh = head("fresh", extra: "X-New: 1\r\n")
        let result = fresh.withUnsafeBytes { bytes in
            Result { () throws(StoreRefusalReason) in
                try update(
                    old, vary: vary, head: bytes, metadata: metadata(fresh), policy: policy,
                    flight: flight)
            }
        }
        return try result.get()
    }
}
