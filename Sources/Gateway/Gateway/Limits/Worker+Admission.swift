import EventLoop
import HTTPCore
import PinfoldEngine

/// A connection that was accepted at a limit, while other workers are asked for a permit.
struct PendingConnection {
    let descriptor: Int32
    let peer: Endpoint
    let ingress: Ingress
    var account: ClientAccount
    /// Whether it holds a permit among its client's connections.
    var isCounted: Bool
    /// Whether a PROXY header is to say first who the client is; the peer is its sender.
    var awaitsHeader = false
}

// Which connections are admitted: within the limit of their client, and that of the process.
//
//     client's limit reached ──► its longest idle connection here, then elsewhere ──► refused
//     limits.connections reached ──► the longest idle one here, then elsewhere
//                                ──► the one stalled the longest here, then elsewhere
//                                ──► turned away
//
// Which connections make room is decided in `Worker+Permits`.
extension Worker {
    /// The maximum number of connections waiting for a permit of the process; more are turned away.
    private static let maximumPending = 64
    /// The same for a permit of their client: a client at its limit gets no more of the others'
    /// time.
    private static let maximumPendingOfClient = 8
    /// The interval at which a client over its limit is logged.
    private static let refusalLogMilliseconds: Int64 = 10_000

    /// Called when a connection was accepted.
    func accept(_ descriptor: Int32, from peer: Endpoint, on ingress: Ingress) {
        // The administration takes no client's permit.
        guard ingress.isCounted else { return admit(descriptor, peer, ingress, account: nil) }
        guard let senders = ingress.proxySenders else {
            return seekPermits(descriptor, peer, ingress, awaitsHeader: false)
        }
        guard senders.contains(where: { $0.contains(client: peer.address) }) else {
            return refuse(descriptor, senderOfNoHeader: peer, on: ingress)
        }
        seekPermits(descriptor, peer, ingress, awaitsHeader: true)
    }

    /// Finds a connection's permits, and admits it.
    func seekPermits(
        _ descriptor: Int32, _ peer: Endpoint, _ ingress: Ingress, awaitsHeader: Bool
    ) {
        let limit = connectionLimit(awaitsHeader: awaitsHeader)
        if let account = shared.clients.open(
            peer.address, limit: limit, awaitsHeader: awaitsHeader)
        {
            return seekProcessPermit(
                PendingConnection(
                    descriptor: descriptor, peer: peer, ingress: ingress, account: account,
                    isCounted: true, awaitsHeader: awaitsHeader))
        }
        guard let account = shared.clients.account(of: peer.address, awaitsHeader: awaitsHeader)
        else {
            // All of the client's connections were closed just now, on other workers.
            metrics.add(.clientConnectionsRefusedByClientLimit)
            return Descriptors.close(descriptor)
        }
        seekBothPermits(
            PendingConnection(
                descriptor: descriptor, peer: peer, ingress: ingress, account: account,
                isCounted: false, awaitsHeader: awaitsHeader))
    }

    /// How many connections one client, or one sender of PROXY headers, may have. A sender's
    /// connections are many clients', who are not to wait for each other's headers.
    private func connectionLimit(awaitsHeader: Bool) -> Int {
        let limits = policy.configuration.limits
        return awaitsHeader ? limits.connections : limits.perClient.connections
    }

    func admit(_ pending: PendingConnection) {
        if pending.awaitsHeader { return awaitHeader(pending) }
        admit(
            pending.descriptor, pending.peer, pending.ingress, account: pending.account)
    }

    /// Finds a permit of the process for a connection that has its client's.
    private func seekProcessPermit(_ pending: PendingConnection) {
        if takePermit() || freePermit(.idle) { return admit(pending) }
        if waits(pending, for: nil, atMost: Self.maximumPending) { return }
        if freePermit(.stalled) { return admit(pending) }
        turnAway(pending)
    }

    /// Finds both permits for a connection whose client is at its limit.
    private func seekBothPermits(_ pending: PendingConnection) {
        let account = pending.account
        if freePermit(.idle, of: account) { return admit(pending) }
        if waits(pending, for: account, atMost: Self.maximumPendingOfClient) { return }
        refuse(pending)
    }

    /// Called when its client has no permit for it.
    private func refuse(_ pending: PendingConnection) {
        metrics.add(.clientConnectionsRefusedByClientLimit)
        if pending.account.mayLog(now: loop.now, every: Self.refusalLogMilliseconds) {
            shared.logger.warning(
                "a client's connections are refused: it has as many as limits.perClient allows",
                metadata: [
                    "client": "\(pending.account.network.clientDescription)",
                    "limit": "\(policy.configuration.limits.perClient.connections)",
                    "reason": "client-connection-limit",
                ])
        }
        Descriptors.close(pending.descriptor)
    }

    /// Called when the process has no permit for it.
    private func turnAway(_ pending: PendingConnection) {
        metrics.add(.clientConnectionsRefusedByLimit)
        if pending.isCounted { shared.clients.close(pending.account) }
        Descriptors.close(pending.descriptor)
    }

    /// Turns away everyone who is still waiting.
    func turnPendingAway() {
        let queues = pendingConnections.values
        pendingConnections = [:]
        for var queue in queues {
            while let pending = queue.popFirst() { turnAway(pending) }
        }
    }

    // MARK: Asking the other workers

    /// Lets a pending connection wait for the other workers' response; `false` if it may not.
    private func waits(_ pending: PendingConnection, for client: ClientAccount?, atMost most: Int)
        -> Bool
    {
        guard shared.workerCount > 1, !isDraining else { return false }
        let key = client.map { ObjectIdentifier($0) }
        guard var queue = pendingConnections[key] else {
            var queue = FIFO<PendingConnection>()
            queue.append(pending)
            pendingConnections[key] = queue
            requestPermits(.idle, of: client, wanted: 1)
            return true
        }
        guard queue.count < most else { return false }
        queue.append(pending)
        pendingConnections[key] = queue
        return true
    }

    private func requestPermits(_ stage: EvictionStage, of client: ClientAccount?, wanted: Int) {
        let request = PermitRequest(
            requester: index, client: client, stage: stage, wanted: wanted,
            others: shared.workerCount - 1)
        for (other, mailbox) in shared.mailboxes.enumerated() where other != index {
            mailbox.post(.permitsWanted(request))
        }
    }

    /// Handles another worker's request for permits.
    func permitsWanted(_ request: PermitRequest) {
        while request.claim() {
            guard freePermit(request.stage, of: request.client) else {
                request.giveUp()
                break
            }
            request.grant()
        }
        if request.answer() { shared.mailboxes[request.requester].post(.permitsGranted(request)) }
    }

    /// Called when all workers have responded.
    func permitsGranted(_ request: PermitRequest) {
        let key = request.client.map { ObjectIdentifier($0) }
        var queue = pendingConnections.removeValue(forKey: key) ?? FIFO()
        var permits = request.grantedCount
        var waiting = FIFO<PendingConnection>()
        // Those at the head of the queue were the reason for the request; more have arrived since.
        var unserved = 0
        for position in 0..<queue.count {
            guard let pending = queue.popFirst() else { break }
            if permits > 0 {
                permits -= 1
                admit(pending)
            } else if !findPermit(pending, request) {
                waiting.append(pending)
                if position < request.wantedCount { unserved += 1 }
            }
        }
        for _ in 0..<permits { releasePermits(request.client) }
        continueWaiting(waiting, unserved: unserved, after: request)
    }

    /// Tries this worker once more for a connection that no other worker had a permit for.
    private func findPermit(_ pending: PendingConnection, _ request: PermitRequest) -> Bool {
        guard let client = request.client else {
            let isLast = request.stage == .stalled
            guard takePermit() || freePermit(.idle) || isLast && freePermit(.stalled) else {
                return false
            }
            admit(pending)
            return true
        }
        let limit = connectionLimit(awaitsHeader: pending.awaitsHeader)
        // It may be another account by now, if all of its connections were closed in the meantime.
        if let account = shared.clients.open(
            pending.peer.address, limit: limit, awaitsHeader: pending.awaitsHeader)
        {
            var pending = pending
            pending.account = account
            pending.isCounted = true
            seekProcessPermit(pending)
            return true
        }
        guard freePermit(.idle, of: client) else { return false }
        admit(pending)
        return true
    }

    /// Continues with the connections that have no permit. For `unserved` of them, permits were
    /// requested and not granted.
    private func continueWaiting(
        _ waiting: FIFO<PendingConnection>, unserved: Int, after request: PermitRequest
    ) {
        var (queue, unserved) = (waiting, unserved)
        let isFirstStage = request.client == nil && request.stage == .idle
        while unserved > 0, isFirstStage ? freePermit(.stalled) : true,
            let pending = queue.popFirst()
        {
            unserved -= 1
            if isFirstStage {
                admit(pending)
            } else if request.client != nil {
                refuse(pending)
            } else {
                turnAway(pending)
            }
        }
        guard !queue.isEmpty else { return }
        pendingConnections[request.client.map { ObjectIdentifier($0) }] = queue
        if unserved > 0 {
            requestPermits(.stalled, of: nil, wanted: unserved)
        } else {
            requestPermits(.idle, of: request.client, wanted: queue.count)
        }
    }
}
