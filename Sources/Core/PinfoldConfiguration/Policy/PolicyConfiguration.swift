/// `policy`: where the gateway gets the part of its configuration from that is not in its own
/// files.
package struct PolicyConfiguration: Sendable, Equatable {
    /// What happens to requests while the policy is older than it says that it may be.
    package enum AfterExpiry: String, Sendable, CaseIterable {
        /// The last one that was verified stays in force.
        case keep
        /// None is served, nor before the first policy has been verified.
        case refuse
    }

    /// How many keys there may be.
    package static let maximumKeys = 16

    /// Where it is fetched from, by https; `nil` if it is not fetched.
    package var url: ReportDestination?
    /// Whether it comes by way of the engine that the gateways of a fleet share (`cache.shared`).
    /// Either this or ``url``: who publishes a policy has to know where the one is that applies.
    package var isFromEngine = false
    /// The keys that it may be signed by: one is enough. At least one.
    package var publicKeys: [PolicyPublicKey] = []
    /// The time between two requests for it.
    package var intervalMilliseconds: Int64 = 60_000
    package var afterExpiry = AfterExpiry.keep

    /// Creates the defaults.
    package init() {}
}

/// The policy that a configuration contains.
package struct PolicyInForce: Sendable, Equatable {
    package var serial: Int64
    /// The SHA-256 of what is signed of it, in hex: what gateways compare.
    package var hash: String
    /// In seconds since 1970.
    package var expires: Int64
    /// The keys by which its signatures were verified, in the order of its signatures.
    package var keys: [PolicyPublicKey]
    /// How many entries, pinsets and rules of access it has added.
    package var hosts: Int
    package var pinsets: Int
    package var rules: Int

    package init(
        serial: Int64, hash: String = "", expires: Int64, keys: [PolicyPublicKey], hosts: Int = 0,
        pinsets: Int = 0, rules: Int = 0
    ) {
        (self.serial, self.hash) = (serial, hash)
        (self.expires, self.keys) = (expires, keys)
        (self.hosts, self.pinsets, self.rules) = (hosts, pinsets, rules)
    }
}
