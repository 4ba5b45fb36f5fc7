import CachePolicy
import Clocks
import Locking

/// What the levels below memory may hold for a request.
public enum LevelVariants: Sendable, Equatable {
    /// None has the key.
    case none
    /// They have the key, for other requests.
    case others
    /// One of these variants of the key may be there.
    case candidates([VaryKey])
}

/// The result of a load.
public enum LoadResult: Sendable {
    /// Every variant found, at least one. Small bodies are in memory (and in the memory tier, if
    /// they fit); large ones are `.disk`.
    /// - Parameter isShared: whether they come from a level that is shared with other stores.
    case found([CachedResponse], isShared: Bool = false)
    /// No level below memory has the key, or has it any longer.
    case nothing
    /// The same; and whoever asked is to fetch it for all gateways, and to end the lease then.
    case lead(FetchLease)
}

/// A chunk, or why there is none.
public enum ChunkResult: Sendable {
    case chunk(ChunkBytes)
    /// It is no longer there: the level was turned off or emptied.
    case gone
    /// It is not what was written. The entry has been dropped.
    case damaged
    /// It could not be read, for this reason.
    case failed(CacheListingError)
}

/// A key to load from a level.
package struct LevelLoad: Sendable {
    package let key: [UInt8]
    package let hash: UInt64
    /// Which variants; `nil` for all.
    package let variants: [VaryKey]?
    /// The policy for the metadata of the stored heads.
    package let policy: PolicyOptions
    /// Makes the responses, and keeps those that fit.
    package let memory: MemoryTier
    /// Of somebody who only looks; `nil` for a request. See `LevelLook`.
    package var look: LevelLook?
    /// The fingerprint of the policy under which the request asks: of responses that differ only in
    /// theirs, the one with this is wanted. `nil` if that is not known.
    package var trust: UInt64?
    /// The last purge that had been settled when it began: what it finds is compared with later
    /// ones before it is kept.
    let born: UInt64
    /// Whether the response will be fetched, and perhaps stored, if nothing is found: then a level
    /// that gateways share sees to it that one of them does (`LoadResult.lead`), for which the
    /// others wait.
    package var fetches = false
    /// What the asker has, and has to have confirmed unless there is a fresh response in place of
    /// it (``wants(_:)``): only that is of interest, and takes its place in memory and on disk.
    package var stale: CachedResponse?
    package var completion: @Sendable (LoadResult) -> Void

    /// Runs `body` with a view of the key.
    package func withKey<Result>(_ body: (CacheKeyView) -> Result) -> Result {
        key.withUnsafeBytes { body(CacheKeyView(bytes: $0, hash: hash)) }
    }

    /// Whether what a level has is of interest. It may be asked before the body is read; `publish`
    /// decides about it in any case.
    package func wants(_ loaded: LoadedHead) -> Bool {
        guard let stale else { return true }
        let metadata =
            loaded.staleSince > 0
            ? loaded.metadata.stale(since: loaded.staleSince) : loaded.metadata
        return stale.mayBeReplaced(
            by: metadata, loaded.vary, loaded.policy, at: Clock.wallSeconds())
    }

    /// Makes available what a level has read (`MemoryTier.promote`). For a look, nothing is kept.
    package func publish(
        _ response: CachedResponse, isNear: Bool = false,
        _ isCurrent: (_ isInMemory: Bool) -> Bool
    ) -> CachedResponse? {
        guard let look else {
            if let stale { return memory.replace(stale, by: response, isCurrent) }
            return memory.promote(response, isNear: isNear, under: trust, isCurrent)
        }
        let current = memory.isCurrent(response, isCurrent)
        if !current { look.noteChange() }
        return current ? response : nil
    }
}

/// A load by which nothing changes: what is found is not kept in memory, does not count as used,
/// and moves nowhere in any order of eviction. All variants are looked for, and whoever looks is
/// told if some may be missing.
package final class LevelLook: Sendable {
    private struct State {
        var failure: CacheListingError?
        var hasChanged = false
    }

    private let state = Locked(State())

    init() {}

    /// A level could not read all that it has.
    package func fail(_ error: CacheListingError) {
        state.withLock { $0.failure = $0.failure ?? error }
    }

    /// What was read was replaced or removed meanwhile.
    func noteChange() { state.withLock { $0.hasChanged = true } }

    var failure: CacheListingError? { state.withLock { $0.failure } }
    var hasChanged: Bool { state.withLock { $0.hasChanged } }
}

extension LevelLoad {
    /// Asks one level after the other, until one has found something; without any thread between
    /// them. Returns `false` if none accepts it.
    func begin(at levels: ArraySlice<any CacheLevel>, wakes: Bool) -> Bool {
        guard let level = levels.first else { return false }
        let rest = levels.dropFirst()
        guard !rest.isEmpty else { return level.load(self, wakes: wakes) }
        guard mayBeFound(in: level) else { return begin(at: rest, wakes: wakes) }
        var first = self
        first.completion = { result in
            if case .nothing = result, begin(at: rest, wakes: true) { return }
            completion(result)
        }
        if level.load(first, wakes: wakes) { return true }
        // One that is off has nothing to say.
        if let look, level.state != .off { look.fail(.busy) }
        return begin(at: rest, wakes: wakes)
    }

    private func mayBeFound(in level: any CacheLevel) -> Bool {
        guard let variants else { return true }
        return withKey { level.mayHold($0, variants) }
    }
}
