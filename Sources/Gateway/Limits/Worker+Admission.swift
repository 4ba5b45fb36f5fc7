import Addressing
import EventLoop

/// A connection that was accepted at the limit, while other workers are asked for a place.
struct Newcomer {
    let descriptor: Int32
    let peer: Endpoint
    let listener: Listener
    let account: ClientAccount
}

// Which connections are taken in: within the limit of their client, and within that of the process,
// for which idle ones make room.
extension Worker {
    /// Connections that may wait for a place at once; more are turned away.
    private static let waitingNewcomers = 64
    /// A client over its limit is logged once in so long.
    private static let refusalLogMilliseconds: Int64 = 10_000

    /// A connection was accepted.
    func accept(_ descriptor: Int32, from peer: Endpoint, on listener: Listener) {
        // The administration takes no client's place.
        guard listener.isCounted else { return admit(descriptor, peer, listener, account: nil) }
        let limit = policy.configuration.limits.perClient.connections
        guard let account = shared.clients.open(peer.address, limit: limit) else {
            metrics.add(.clientConnectionsRefusedByClientLimit)
            logRefusal(of: peer.address, limit: limit)
            return Descriptors.close(descriptor)
        }
        let newcomer = Newcomer(
            descriptor: descriptor, peer: peer, listener: listener, account: account)
        if takesRoom() || makesRoom() {
            admit(newcomer)
        } else if shared.workerCount > 1, newcomers.count < Self.waitingNewcomers {
            newcomers.append(newcomer)
            askForRoom()
        } else {
            turnAway(newcomer)
        }
    }

    private func admit(_ newcomer: Newcomer) {
        admit(
            newcomer.descriptor, newcomer.peer, newcomer.listener, account: newcomer.account)
    }

    private func turnAway(_ newcomer: Newcomer) {
        metrics.add(.clientConnectionsRefusedByLimit)
        shared.clients.close(newcomer.account)
        Descriptors.close(newcomer.descriptor)
    }

    private func logRefusal(of address: IPAddress, limit: Int) {
        guard let account = shared.clients.account(of: address),
            account.mayLog(now: loop.now, every: Self.refusalLogMilliseconds)
        else { return }
        shared.logger.warning(
            "a client's connections are refused: it has as many as limits.perClient allows",
            metadata: [
                "client": "\(account.network)", "limit": "\(limit)",
                "reason": "client-connection-limit",
            ])
    }

    // MARK: The limit of the process

    /// Counts one more connection under `limits.connections`; false: there are as many.
    private func takesRoom() -> Bool {
        let open = shared.clientConnections.add(1, ordering: .relaxed).newValue
        if open <= policy.configuration.limits.connections { return true }
        givesRoomBack()
        return false
    }

    func givesRoomBack() { shared.clientConnections.subtract(1, ordering: .relaxed) }

    /// Closes this worker's connection that is idle the longest and takes its place.
    private func makesRoom() -> Bool {
        guard let idle = idleClients.longestIdle() else { return false }
        metrics.add(.clientConnectionsClosedForRoom)
        idle.close(keepingRoom: true)
        return true
    }

    // MARK: Asking the other workers

    private func askForRoom() {
        guard !isAskingForRoom else { return }
        isAskingForRoom = true
        let request = RoomRequest(
            asker: index, wanted: newcomers.count, others: shared.workerCount - 1)
        for (other, mailbox) in shared.mailboxes.enumerated() where other != index {
            mailbox.post(.roomWanted(request))
        }
    }

    /// Another worker asks for the places of idle connections.
    func roomWanted(_ request: RoomRequest) {
        while request.claim() {
            guard makesRoom() else {
                request.giveUp()
                break
            }
            request.grant()
        }
        if request.answer() { shared.mailboxes[request.asker].post(.roomMade(request)) }
    }

    /// All workers have answered.
    func roomMade(_ request: RoomRequest) {
        isAskingForRoom = false
        var places = request.grantedCount
        let waiting = newcomers.count
        for position in 0..<waiting {
            guard let newcomer = newcomers.popFirst() else { break }
            if places > 0 {
                places -= 1
                admit(newcomer)
            } else if takesRoom() || makesRoom() {
                admit(newcomer)
            } else if position >= request.wantedCount {
                // It came after the question: another one is asked for it.
                newcomers.append(newcomer)
            } else {
                turnAway(newcomer)
            }
        }
        for _ in 0..<places { givesRoomBack() }
        if !newcomers.isEmpty { askForRoom() }
    }

    /// Nobody waits for a place any more.
    func turnNewcomersAway() {
        while let newcomer = newcomers.popFirst() { turnAway(newcomer) }
    }
}
