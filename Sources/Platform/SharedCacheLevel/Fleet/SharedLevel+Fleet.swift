import CacheStore

// What the gateways of a fleet tell each other.
extension SharedLevel {
    /// Begins to follow what other gateways purge. Until then the level finds and stores nothing.
    package func begin(_ duties: FleetDuties) {}

    /// Calls the completion when all gateways that are there have carried out what this one has
    /// purged until now, or after a second.
    package func confirmPurges(_ completion: @escaping @Sendable (FleetReceipt) -> Void) {
        completion(FleetReceipt(isRecorded: false))
    }

    /// Reads who is there, and calls the completion with that, sorted by name; with `nil` if the
    /// engine did not say within a second.
    package func readMembers(_ completion: @escaping @Sendable ([FleetMember]?) -> Void) {
        completion(nil)
    }

    /// Writes a signed policy where all gateways read it (`FleetDuties.policy`). The completion says
    /// whether the engine has it.
    /// - Parameter canaryPercent: which share of the gateways is to take it, 1 to 100.
    package func publishPolicy(
        _ envelope: [UInt8], canaryPercent: Int,
        _ completion: @escaping @Sendable (Bool) -> Void
    ) { completion(false) }
}
