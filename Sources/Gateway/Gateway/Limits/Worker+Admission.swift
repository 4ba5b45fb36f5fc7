import EventLoop
import HTTPCore
import PinfoldEngine

/// A connection that was accepted at a limit, while other workers are asked for a place.
struct Newcomer {
    let descriptor: Int32
    let peer: Endpoint
    let ingress: Ingress
    var account: ClientAccount
    /// It has a place among its client's connections.
    var isCounted: Bool
}

// Which connections are taken in: within the limit of their client, and within that of the process.
//
//     client's limit reached ──► its longest idle connection here, then elsewhere ──► refused
//     limits.connections reached ──► the longest idle one here, then elsewhere
//                                ──► the one that stands still the longest here, then elsewhere
//                                ──► turned away
//
// Who has to make room is in `Worker+Room`.
extension Worker {
    /// Connections that may wait for a place of the process at once; more are turned away.
    private static let waitingNewcomers = 64
    /// And for a place of their client: one that is at its limit gets no more of the others' time.
    private static let waitingOfClient = 8
    /// A client over its limit is logged once in so long.
    private static let refusalLogMilliseconds: Int64 = 10_000

    /// A connection was accepted.
    func accept(_ descriptor: Int32, from peer: Endpoint, on listener: Listener) {
        // The administration takes no client's place.
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
            // All of them were closed at this moment, on other workers.
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

    /// Finds a place in the process for one that has its client's.
    private func seekRoom(_ newcomer: Newcomer) {
        if takesRoom() || makesRoom(.idle) { return admit(newcomer) }
        if waits(newcomer, for: nil, atMost: Self.waitingNewcomers) { return }
        if makesRoom(.stalled) { return admit(newcomer) }
        turnAway(newcomer)
    }

    /// Finds both places for one whose client has as many connections as it may.
    private func seekShare(_ newcomer: Newcomer) {
        let account = newcomer.account
        if makesRoom(.idle, of: account) { return admit(newcomer) }
        if waits(newcomer, for: account, atMost: Self.waitingOfClient) { return }
        refuse(newcomer)
    }

    /// Its client has no place for it.
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

    /// The process has no place for it.
    private func turnAway(_ newcomer: Newcomer) {
        metrics.add(.clientConnectionsRefusedByLimit)
        if newcomer.isCounted { shared.clients.close(newcomer.account) }
        Descriptors.close(newcomer.descriptor)
    }

    /// Nobody waits for a place any more.
    func turnNewcomersAway() {
        let lines = newcomers.values
        newcomers = [:]
        for var line in lines {
            while let newcomer = line.popFirst() { turnAway(newcomer) }
        }
    }

    // MARK: Asking the other workers

    /// Has a newcomer wait for the other workers' answer; false: it may not.
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

    /// Another worker asks for places.
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

    /// All workers have answered.
    func roomMade(_ request: RoomRequest) {
        let key = request.client.map { ObjectIdentifier($0) }
        var line = newcomers.removeValue(forKey: key) ?? FIFO()
        var places = request.grantedCount
        var waiting = FIFO<Newcomer>()
        // Those at the head of the line whom the question was asked for; more came since.
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

    /// Looks once more on this worker for one that nobody had a place for.
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
        // Another account by now, if all of its connections were closed meanwhile.
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

    /// What becomes of those who have no place yet: `unserved` of them have been asked for in vain.
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
