import CachePolicy
import CacheStore
import Clocks
import Locking
import Logging
import PinfoldEngine
import SharedCacheLevel

/// What operators can do with the cache of a running gateway: purge, look in, export and import.
package final class CacheAdministration: Sendable {
    let store: CacheStore
    let purges: PurgeService
    /// The level that is shared with other gateways; `nil` if there is none.
    let level: SharedLevel?
    let logger: Logger
    let transfers = CacheTransfers()
    private let policyInForce = Locked<PolicySnapshot?>(nil)

    package init(
        store: CacheStore, purges: PurgeService, level: SharedLevel? = nil, logger: Logger
    ) {
        self.store = store
        self.purges = purges
        self.level = level
        self.logger = logger
    }

    /// The policy in force; `nil` before the gateway serves.
    package var policy: PolicySnapshot? { policyInForce.withLock { $0 } }

    /// Removes a URI's responses, of all routes, from memory and disk: another gateway has found
    /// that they are not valid any longer.
    func invalidate(uri: [UInt8]) {
        guard let policy else { return }
        for key in CacheKey(bytes: uri).alongAllRoutes(under: policy) {
            for key in [key, key.ofQuery] { store.invalidate(keyBytes: key.bytes) }
        }
    }

    /// Another policy is in force.
    package func adopt(_ policy: PolicySnapshot) {
        policyInForce.withLock { $0 = policy }
        level?.trust(SystemTrust(policy.configuration))
    }
}
