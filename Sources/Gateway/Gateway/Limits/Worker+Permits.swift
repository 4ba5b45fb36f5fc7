import EventLoop
import PinfoldEngine

// Decides which connections make room for others: at a limit, and when descriptors run out.
extension Worker {
    /// How long a head may be incomplete before its connection may be closed for another one.
    private static let slowHeadMilliseconds: Int64 = 1000
    /// How many idle connections are closed at once when descriptors run out: a new connection
    /// needs one itself, and soon more for its requests.
    private static let closedForDescriptors = 4
    /// How many connections are checked to find one that is really idle.
    private static let looksForIdle = 4

    // MARK: Permits

    /// Counts one more connection under `limits.connections`; `false` if the limit is reached.
    func takePermit() -> Bool {
        let open = shared.clientConnections.add(1, ordering: .relaxed).newValue
        if open <= policy.configuration.limits.connections { return true }
        releasePermit()
        return false
    }

    /// Whether a client, or the process, has as many connections as are allowed.
    func isFull(of account: ClientAccount?) -> Bool {
        let limits = policy.configuration.limits
        guard let account else { return false }
        return account.openConnections >= limits.perClient.connections
            || shared.clientConnections.load(ordering: .relaxed) >= limits.connections
    }

    /// Counts one more connection, whatever the limit.
    func addPermit() { shared.clientConnections.add(1, ordering: .relaxed) }

    func releasePermit() { shared.clientConnections.subtract(1, ordering: .relaxed) }

    /// Releases a permit that was handed over but is not needed.
    /// - Parameter client: the client under whose limit it counted as well.
    func releasePermits(_ client: ClientAccount?) {
        if let client { shared.clients.close(client) }
        releasePermit()
    }

    // MARK: Making room

    /// Closes the connection of this worker that has been in this state the longest, of the client
    /// that has the most, for another one that takes over its permits.
    /// - Parameter client: the client whose connection to close, including its permit under the
    ///   limit of the client; `nil` for any client's.
    func freePermit(_ stage: EvictionStage, of client: ClientAccount? = nil) -> Bool {
        switch stage {
        case .idle:
            // Two for one, until a lowered limit is met.
            if isOverLimit(client) { closeIdle(of: client) }
            return closeIdle(
                of: client, handingOver: client == nil ? .process : [.process, .client])
        case .stalled:
            guard let stalled = stalled() else { return false }
            guard let client = stalled as? any AdmittedConnection else {
                metrics.add(.slowHeadsEvicted)
                environment.release(stalled)
                stalled.giveUp()
                // A tunnel's connection is closed thereby. One whose content was gathered has been
                // answered, and lingers.
                if takePermit() { return true }
                guard let lingering = lingeringClients.first else { return false }
                lingering.connection.makeRoom(handingOver: .process)
                return true
            }
            metrics.add(
                client.isLingering ? .lingeringClientsEvicted : .slowHeadsEvicted)
            client.makeRoom(handingOver: .process)
        }
        return true
    }

    /// Closes the connection that has been idle the longest; `false` if there is none.
    @discardableResult
    private func closeIdle(
        of client: ClientAccount?, handingOver permits: ClientPermits = []
    ) -> Bool {
        guard let idle = longestIdle(of: client) else { return false }
        metrics.add(client == nil ? .clientsEvictedByLimit : .clientsEvictedByClientLimit)
        idle.makeRoom(handingOver: permits)
        return true
    }

    /// Called when other limits are in force: closes idle connections beyond them.
    func clientLimitsChanged() {
        while isOverLimit(nil), closeIdle(of: nil) {}
        for account in idleClients.accounts {
            while isOverLimit(account), closeIdle(of: account) {}
        }
    }

    /// Whether there are more connections, of a client or of all, than allowed because the limit
    /// was lowered.
    private func isOverLimit(_ client: ClientAccount?) -> Bool {
        let limits = policy.configuration.limits
        guard let client else {
            return shared.clientConnections.load(ordering: .relaxed) > limits.connections
        }
        let most = client.isOfHeaders ? limits.connections : limits.perClient.connections
        return client.openConnections > most
    }

    /// The connection of a client that has been idle the longest; with `nil`, that of the client
    /// that has the most connections here or, if none of those is idle, of all.
    private func longestIdle(of client: ClientAccount?) -> (any AdmittedConnection)? {
        if client == nil, let largest = idleClients.largest, let idle = looksIdle(of: largest) {
            return idle
        }
        return looksIdle(of: client)
    }

    /// The connection that has been idle the longest, of a client or of all. One for which a
    /// request has arrived in this turn that was not read yet is no longer idle.
    private func looksIdle(of client: ClientAccount?) -> (any AdmittedConnection)? {
        for _ in 0..<Self.looksForIdle {
            guard let idle = idleClients.longestIdle(of: client) else { return nil }
            guard Transfers.hasUnreadBytes(idle.descriptor) else { return idle }
            // After all others.
            idle.idleSince = idleClients.nextMoment()
        }
        return nil
    }

    /// The stalled connection to close: the oldest of the client that has the most whose request
    /// does not arrive, or the oldest of all whose last response has been given; of the two, the
    /// one stalled for longer.
    private func stalled() -> (any UnfinishedInput)? {
        let lingering = lingeringClients.first?.connection
        // The administration's take no client's permit.
        guard let head = environment.oldestUnfinished,
            loop.now - head.stalledSince > Self.slowHeadMilliseconds
        else { return lingering }
        guard let lingering, lingering.stalledSince < head.stalledSince else { return head }
        return lingering
    }

    // MARK: Descriptors

    /// Descriptors have run out: closes this worker's client connections that are idle the longest.
    /// Returns `false` if there are none; the other workers are then asked to close theirs.
    func freeDescriptors() -> Bool {
        if closeIdleForDescriptors() { return true }
        for (other, mailbox) in shared.mailboxes.enumerated() where other != index {
            mailbox.post(.descriptorsWanted)
        }
        return false
    }

    /// Closes a few of the connections that have been idle the longest; `false` if there are none.
    @discardableResult
    func closeIdleForDescriptors() -> Bool {
        var closed = 0
        while closed < Self.closedForDescriptors, let idle = longestIdle(of: nil) {
            idle.close()
            closed += 1
        }
        guard closed > 0 else { return false }
        metrics.add(.clientsEvictedForDescriptors, UInt64(closed))
        shared.logger.warning("descriptors have run out: idle client connections are closed")
        return true
    }
}
