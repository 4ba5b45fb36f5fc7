import EventLoop
import HTTPCore
import PinfoldEngine

/// A connection that was accepted at a limit, while other workers are asked for a permit.
struct Newcomer {
    let descriptor: Int32
    let peer: Endpoint
    let ingress: Ingress
    var account: ClientAccount
    /// Whether it holds a permit among its client's connections.
    var isCounted: Bool
}

// Which connections are admitted: within the limit of their client, and that of the process.
//
//     client's limit reached ──► its longest idle connection here, then elsewhere ──► refused
//     limits.connections reached ──► the longest idle one here, then elsewhere
//                                ──► the one stalled the longest here, then elsewhere
//                                ──► turned away
//
// Which connections make room is decided in `Worker+Room`.
extension Worker {
    /// The maximum number of connections waiting for a permit of the process; more are turned away.
    private static let waitingNewcomers = 64
    /// The same for a permit of their client: a client at its limit gets no more of the others'
    /// time.
    private static let waitingOfClient = 8
    /// The interval at which a client over its limit is logged.
    private static let refusalLogMilliseconds: Int64 = 10_000

    /// Called when a connection was accepted.
    func accept(_ descriptor: Int32, from peer: Endpoint, on listener: Listener) {
        // The administration takes no client's permit.
        let ingress = listener.ingress
        guard ingress.isCounted else { return admit(descriptor, peer, ingress, account: nil) }
        let limit = policy.configuration.limits.perClient.connections
        if let account = shared.clients.open(peer.address, limit: limit) {
            return seekRoom(
                Newcomer(
                    descriptor: descriptor, peer: peer, ingress: ingress, account: account,
                    isCounted: true))
        }
        guard let account = shared.clients.account(of: peer.address) else {
            // All of the client's connections were closed just now, on other workers.
            metrics.add(.clientConnectionsRefusedByClientLimit)
            return Descriptors.close(descriptor)
        }
        seekShare(
            Newcomer(
                descriptor: descriptor, peer: peer, ingress: ingress, account: account,
                isCounted: false))
    }

    func admit(_ newcomer: Newcomer) {
        admit(
            newcomer.descriptor, newcomer.peer, newcomer.ingress, account: newcomer.account)
    }

    /// Finds a permit of the process for a connection that has its client's.
    private func seekRoom(_ newcomer: Newcomer) {
        if takesRoom() || makesRoom(.idle) { return admit(newcomer) }
        if waits(newcomer, for: nil, atMost: Self.waitingNewcomers) { return }
        if makesRoom(.stalled) { return admit(newcomer) }
        turnAway(newcomer)
    }

    /// Finds both permits for a connection whose client is at its limit.
    private func seekShare(_ newcomer: Newcomer) {
        let account = newcomer.account
        if makesRoom(.idle, of: account) { return admit(newcomer) }
        if waits(newcomer, for: account, atMost: Self.waitingOfClient) { return }
        refuse(newcomer)
    }

    /// Called when its client has no permit for it.
    private func refuse(_ newcomer: Newcomer) {
        metrics.add(.clientConnectionsRefusedByClientLimit)
        if newcomer.account.mayLog(now: loop.now, every: Self.refusalLogMilliseconds) {
            shared.logger.warning(
                "a client's connections are refused: it has as many as limits.perClient allows",
                metadata: [
                    "client": "\(newcomer.account.network)",
                    "limit": "\(policy.configuration.limits.perClient.connections)",
                    "reason": "client-connection-limit",
                ])
        }
        Descriptors.close(newcomer.descriptor)
    }

    /// Called when the process has no permit for it.
    private func turnAway(_ newcomer: Newcomer) {
        metrics.add(.clientConnectionsRefusedByLimit)
        if newcomer.isCounted { shared.clients.close(newcomer.account) }
        Descriptors.close(newcomer.descriptor)
    }

    /// Turns away everyone who is still waiting.
    func turnNewcomersAway() {
        let lines = newcomers.values
        newcomers = [:]
        for var line in lines {
            while let newcomer = line.popFirst() { turnAway(newcomer) }
        }
    }

    // MARK: Asking the other workers

    /// Lets a pending connection wait for the other workers' response; `false` if it may not.
    private func waits(_ newcomer: Newcomer, for client: ClientAccount?, atMost most: Int) -> Bool {
        guard shared.workerCount > 1 else { return false }
        let key = client.map { ObjectIdentifier($0) }
        guard var line = newcomers[key] else {
            var line = FIFO<Newcomer>()
            line.append(newcomer)
            newcomers[key] = line
            askForRoom(.idle, of: client, wanted: 1)
            return true
        }
        guard line.count < most else { return false }
        line.append(newcomer)
        newcomers[key] = line
        return true
    }

    private func askForRoom(_ stage: RoomStage, of client: ClientAccount?, wanted: Int) {
        let request = RoomRequest(
            asker: index, client: client, stage: stage, wanted: wanted,
            others: shared.workerCount - 1)
        for (other, mailbox) in shared.mailboxes.enumerated() where other != index {
            mailbox.post(.roomWanted(request))
        }
    }

    /// Handles another worker's request for permits.
    func roomWanted(_ request: RoomRequest) {
        while request.claim() {
            guard makesRoom(request.stage, of: request.client) else {
                request.giveUp()
                break
            }
            request.grant()
        }
        if request.answer() { shared.mailboxes[request.asker].post(.roomMade(request)) }
    }

    /// Called when all workers have responded.
    func roomMade(_ request: RoomRequest) {
        let key = request.client.map { ObjectIdentifier($0) }
        var line = newcomers.removeValue(forKey: key) ?? FIFO()
        var places = request.grantedCount
        var waiting = FIFO<Newcomer>()
        // Those at the head of the queue were the reason for the request; more have arrived since.
        var unserved = 0
        for position in 0..<line.count {
            guard let newcomer = line.popFirst() else { break }
            if places > 0 {
                places -= 1
                admit(newcomer)
            } else if !findsPlace(newcomer, request) {
                waiting.append(newcomer)
                if position < request.wantedCount { unserved += 1 }
            }
        }
        for _ in 0..<places { giveBackPlaces(request.client) }
        goOn(waiting, unserved: unserved, after: request)
    }

    /// Tries this worker once more for a connection that no other worker had a permit for.
    private func findsPlace(_ newcomer: Newcomer, _ request: RoomRequest) -> Bool {
        guard let client = request.client else {
            let isLast = request.stage == .stalled
            guard takesRoom() || makesRoom(.idle) || isLast && makesRoom(.stalled) else {
                return false
            }
            admit(newcomer)
            return true
        }
        let limit = policy.configuration.limits.perClient.connections
        // It may be another account by now, if all of its connections were closed in the meantime.
        if let account = shared.clients.open(newcomer.peer.address, limit: limit) {
            var newcomer = newcomer
            newcomer.account = account
            newcomer.isCounted = true
            seekRoom(newcomer)
            return true
        }
        guard makesRoom(.idle, of: client) else { return false }
        admit(newcomer)
        return true
    }

    /// Continues with those without a permit; `unserved` of them were requested for in vain.
    private func goOn(_ waiting: FIFO<Newcomer>, unserved: Int, after request: RoomRequest) {
        var (line, unserved) = (waiting, unserved)
        let isFirstStage = request.client == nil && request.stage == .idle
        while unserved > 0, isFirstStage ? makesRoom(.stalled) : true,
            let newcomer = line.popFirst()
        {
            unserved -= 1
            if isFirstStage {
                admit(newcomer)
            } else if request.client != nil {
                refuse(newcomer)
            } else {
                turnAway(newcomer)
            }
        }
        guard !line.isEmpty else { return }
        newcomers[request.client.map { ObjectIdentifier($0) }] = line
        if unserved > 0 {
            askForRoom(.stalled, of: nil, wanted: unserved)
        } else {
            askForRoom(.idle, of: request.client, wanted: line.count)
        }
    }
}
