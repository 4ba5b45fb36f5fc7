import CacheStore
import Clocks
import Locking
import Logging
import PinfoldEngine

/// What operators can do with the cache of a running gateway: purge, look in, export and import.
package final class CacheAdministration: Sendable {
    let store: CacheStore
    let purges: PurgeService
    let logger: Logger
    let transfers = CacheTransfers()
    private let policyInForce = Locked<PolicySnapshot?>(nil)

    package init(store: CacheStore, purges: PurgeService, logger: Logger) {
        self.store = store
        self.purges = purges
        self.logger = logger
    }

    /// The policy in force; `nil` before the gateway serves.
    package var policy: PolicySnapshot? { policyInForce.withLock { $0 } }

    /// Another policy is in force.
    package func adopt(_ policy: PolicySnapshot) { policyInForce.withLock { $0 = policy } }
}
