import CacheStore
import SharedCache

// What the gateways of a fleet tell each other.
extension SharedLevel {
    /// Begins to follow what other gateways purge. Until then the level finds and stores nothing.
    package func begin(_ duties: FleetDuties) {
        self.duties.withLock { $0 = duties }
        mailbox.post(.begin)
    }

    /// Waits until the gateway has carried out what others have purged before it began, with a time
    /// limit: for its start.
    /// - Returns: whether it has.
    package func waitUntilFollowing(milliseconds: Int) -> Bool {
        caughtUp.wait(milliseconds: milliseconds)
        return shared.withLock { $0.statistics.isFollowing }
    }

    /// Calls the completion when all gateways that are there have carried out what this one has
    /// purged until now, or after a second.
    package func confirmPurges(_ completion: @escaping @Sendable (FleetReceipt) -> Void) {
        if !ask(.confirm(completion)) {
            let own = String(decoding: options.gateway, as: UTF8.self)
            let receipt = FleetReceipt(isRecorded: false, confirmed: [own])
            // It holds for the next process as well.
            guard let record else { return completion(receipt) }
            keepLost()
            record.whenWritten { completion(receipt) }
        }
    }

    /// Reads who is there, and calls the completion with that, sorted by name; with `nil` if the
    /// engine does not say.
    package func readMembers(_ completion: @escaping @Sendable ([FleetMember]?) -> Void) {
        if !ask(.readMembers(completion)) { completion(nil) }
    }

    /// Writes a signed policy where all gateways read it (`FleetDuties.policy`). The completion
    /// says whether the engine has it.
    /// - Parameter canaryPercent: which share of the gateways is to take it, 1 to 100.
    package func publishPolicy(
        _ envelope: [UInt8], canaryPercent: Int,
        _ completion: @escaping @Sendable (Bool) -> Void
    ) {
        guard let policy = SharedPolicy(envelope, percent: canaryPercent),
            ask(.publishPolicy(policy, completion))
        else { return completion(false) }
    }

    private func ask(_ command: SharedCommand) -> Bool {
        let isAccepted = shared.withLock { state in
            guard state.level == .ready, state.waiting < options.queueCommands else {
                return false
            }
            state.add(command)
            return true
        }
        if isAccepted { proceed() }
        return isAccepted
    }
}
