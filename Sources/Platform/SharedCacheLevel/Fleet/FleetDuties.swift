import CacheStore
import SharedCache

/// What the level has its gateway do for the fleet. The closures are called on the level's thread,
/// and do not wait: what takes longer is done elsewhere.
package struct FleetDuties: Sendable {
    /// Purges in the gateway's own tiers what another gateway has purged, and calls the completion
    /// when no request that begins from then on is answered with any of it. Each call is complete
    /// before the next one is made.
    package var purge: Purging
    /// Removes the key, whose responses another gateway has found to be invalid (RFC 9111 §4.4),
    /// from the gateway's own tiers.
    package var remove: @Sendable (_ key: [UInt8]) -> Void
    /// The same for all keys of a URI.
    package var removeURI: @Sendable (_ uri: [UInt8]) -> Void
    /// What other gateways and operators are told of this one, as JSON: at most
    /// ``FleetMember/maximumReportBytes``. Asked for every few seconds.
    package var report: @Sendable () -> [UInt8]
    /// A signed policy was published by way of the engine. It is not verified.
    package var policy: @Sendable (_ envelope: [UInt8], _ canaryPercent: Int) -> Void

    /// - Parameter completion: gets whether that holds after a restart as well.
    package typealias Purging =
        @Sendable (
            _ purges: [Purge], _ completion: @escaping @Sendable (_ isDurable: Bool) -> Void
        ) -> Void

    package init(
        purge: @escaping Purging,
        remove: @escaping @Sendable ([UInt8]) -> Void,
        removeURI: @escaping @Sendable ([UInt8]) -> Void = { _ in },
        report: @escaping @Sendable () -> [UInt8] = { [] },
        policy: @escaping @Sendable ([UInt8], Int) -> Void = { _, _ in }
    ) {
        self.purge = purge
        self.remove = remove
        self.removeURI = removeURI
        self.report = report
        self.policy = policy
    }
}

/// A gateway of the fleet, as it has made itself known in the engine.
package struct FleetMember: Sendable, Equatable {
    /// Its name: of the host, or as configured.
    package var name: [UInt8]
    /// What distinguishes it from another process of the same name, and from itself after a
    /// restart.
    package var instance: [UInt8]
    /// How long ago it last said that it is there, in milliseconds.
    package var age: Int64
    /// Whether it has carried out everything that this gateway knows to be purged.
    package var isCurrent: Bool
    /// Whether it is this gateway.
    package var isSelf: Bool
    /// What `FleetDuties.report` said.
    package var report: [UInt8]

    /// Bytes of a report at most.
    package static let maximumReportBytes = SharedMember.maximumReportBytes
}

/// Which gateways have carried out a purge.
package struct FleetReceipt: Sendable, Equatable {
    /// Whether the engine has it: if not, it is written there when the engine is back.
    package var isRecorded: Bool
    /// The names of those who have, this one included; sorted.
    package var confirmed: [String]
    /// The names of those who have not, within a second. One of them that does not reach the engine
    /// confirms with the origin whatever it has, once it has been away for the grace period.
    package var unconfirmed: [String]
    /// The names of those who have not, and have been away for longer than that: within the last
    /// day, without having said that they end.
    package var away: [String]

    package init(
        isRecorded: Bool, confirmed: [String] = [], unconfirmed: [String] = [],
        away: [String] = []
    ) {
        self.isRecorded = isRecorded
        self.confirmed = confirmed
        self.unconfirmed = unconfirmed
        self.away = away
    }
}
