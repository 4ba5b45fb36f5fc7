import CachePolicy
import CacheStore
import HTTPCore
import Locking

/// Purges stored responses on a thread that may wait for the disk.
package protocol CachePurging: Sendable {
    /// Has something purged, or counted.
    ///
    /// - Parameters:
    ///   - client: the network of the client that asks; `nil` for an operator.
    ///   - completion: called once, on another thread: when no request that begins from then on is
    ///     answered with any of it.
    /// - Returns: `false` if too many wait: nothing happens.
    func submit(
        _ order: PurgeOrder, for client: IPNetwork?,
        completion: @escaping @Sendable (PurgeOutcome) -> Void
    ) -> Bool
}

/// What is to be purged.
package struct PurgeOrder: Sendable, Equatable {
    /// At least one.
    package var scopes: [Purge.Scope]
    /// Whether it is made stale, and not removed.
    package var isSoft = false
    /// Whether it is only counted.
    package var isDryRun = false

    package init(scopes: [Purge.Scope], isSoft: Bool = false, isDryRun: Bool = false) {
        self.scopes = scopes
        self.isSoft = isSoft
        self.isDryRun = isDryRun
    }

    /// Whether it names URLs, and no patterns.
    package var isExact: Bool {
        scopes.allSatisfy { if case .keys = $0 { true } else { false } }
    }
}

/// What came of an order to purge.
package enum PurgeOutcome: Sendable {
    case purged(PurgeResult)
    /// Of a dry run: how many stored responses would go in memory, and on disk. Most are in both.
    case counted(memory: Int, disk: Int)
    /// Of a dry run: nobody can say, because what is stored cannot be read completely.
    case notCounted(CacheListingError)
    /// Another process has the cache on disk: it has to be asked.
    case handedOver
    /// Nothing was purged: the order says nothing that can be, for this reason.
    case invalid(String)
    /// It could not be recorded where it survives a restart, or not be carried out, for this
    /// reason.
    case failed(String)
}

/// A purge that is in effect.
package struct PurgeResult: Sendable, Equatable {
    /// The number under which its progress can be asked for; the last one, if it had several parts.
    package var id: UInt64
    /// Stored responses that had been removed from memory, or made stale there, when it was in
    /// effect.
    package var memoryEntries = 0
    /// The same on disk, where all but single URLs are removed afterwards.
    package var diskEntries = 0
    /// Whether nothing is left to be removed.
    package var isComplete = false
    /// What became of it in the other gateways of the fleet; `nil` if there is none.
    package var fleet: Fleet?

    /// Which gateways of a fleet have carried out a purge.
    package struct Fleet: Sendable, Equatable {
        /// Whether it is where gateways that were away will find it.
        package var isRecorded: Bool
        /// The names of those that have carried it out, this one included.
        package var confirmed: [String]
        /// The names of those that have not, in time.
        package var unconfirmed: [String]
        /// The names of those that have been away for so long that they have what they have stored
        /// confirmed before they use it.
        package var away: [String]

        package init(
            isRecorded: Bool, confirmed: [String], unconfirmed: [String], away: [String] = []
        ) {
            self.isRecorded = isRecorded
            self.confirmed = confirmed
            self.unconfirmed = unconfirmed
            self.away = away
        }
    }

    package init(id: UInt64, isComplete: Bool = false) {
        self.id = id
        self.isComplete = isComplete
    }
}

/// A purge is in effect in the store, and every environment is to see to it that requests which
/// begin from now on do not wait for responses that were asked for before.
package final class PurgeNotice: Sendable {
    /// The keys that are named, and those of QUERYs for the same URIs.
    private let keys: Set<CacheKey>
    private let patterns: [Purge.Scope]
    private let rest: Locked<Int>
    private let completion: @Sendable () -> Void

    /// - Parameters:
    ///   - environments: how many there are; at least one.
    ///   - completion: called on the thread of the last one.
    package init(
        scopes: [Purge.Scope], environments: Int, completion: @escaping @Sendable () -> Void
    ) {
        var keys: Set<CacheKey> = []
        var patterns: [Purge.Scope] = []
        for scope in scopes {
            guard case .keys(let named) = scope else {
                patterns.append(scope)
                continue
            }
            keys.formUnion(named)
            keys.formUnion(named.map(\.ofQuery))
        }
        self.keys = keys
        self.patterns = patterns
        rest = Locked(environments)
        self.completion = completion
    }

    /// An environment has done so.
    func done() {
        let isLast = rest.withLock { rest in
            rest -= 1
            return rest == 0
        }
        if isLast { completion() }
    }

    /// Whether a request for this key may have been for what was purged. Tags are those of
    /// responses, which are not known before they have come.
    func concerns(_ key: CacheKey?) -> Bool {
        guard let key else { return true }
        return keys.contains(key) || patterns.contains { $0.mayConcern(key) }
    }
}

extension Environment {
    /// Whoever leads from before the purge leads no more: those who wait already began before it as
    /// well, and later requests ask the server themselves.
    func forgetFlights(_ notice: PurgeNotice) {
        let forgotten = flights.forget { notice.concerns($0.caching.key) }
        if shared.workerCount > 1 {
            for hash in forgotten { shared.store?.stopLeading(hash, at: index) }
        }
        notice.done()
    }
}

extension Purge.Scope {
    /// Whether a response under this key may be in the scope, as far as the key tells.
    fileprivate func mayConcern(_ key: CacheKey) -> Bool {
        switch self {
        case .keys(let keys): keys.contains(key)
        case .prefix(let prefix): key.bytes.dropRoute.starts(with: prefix)
        case .uri(let uri): key.bytes.dropRoute.elementsEqual(uri)
        case .host, .tag, .everything: true
        }
    }
}

extension CacheKeyStart {
    /// `scheme://host[:port]`, without the kind of route before it.
    var withoutRoute: [UInt8] { Array(bytes.dropRoute) }
}

extension [UInt8] {
    /// A key, or its beginning, without the kind of route before the URI.
    var dropRoute: ArraySlice<UInt8> {
        guard let colon = firstIndex(of: UInt8(ascii: ":")) else { return self[...] }
        let rest = self[(colon + 1)...]
        return rest.starts(with: "//".utf8) ? self[...] : rest
    }
}
