import CacheStore
import Clocks
import EventLoop
import RedisProtocol
import SharedCache

// Bytes to and from the engine, and the end of a connection.
extension LevelLoop {
    /// Whether the fleet's records can be read and written.
    var isConnected: Bool { home.isConnected }

    func perform(_ action: RedisConnection.Action, on link: ServerLink) {
        switch action {
        case .none: break
        case .connect: open(link)
        case .send(let command):
            link.output.add(command: command.bytes)
            flush(link)
        case .becomeReady(let server):
            link.server = server
            if link === home { prepare() } else { askForIdentity(link) }
            flush(link)
        case .close(let error): disconnect(link, error)
        }
    }

    func readAll(_ link: ServerLink) {
        for _ in 0..<Self.readsPerTurn {
            switch link.socket.read(into: memory) {
            case .bytes(let count):
                level.shared.withLock { $0.statistics.bytesRead += UInt64(count) }
                take(UnsafeRawBufferPointer(rebasing: memory[..<count]), from: link)
                guard link.isOpen else { return }
            case .wouldBlock:
                if cluster != nil { settle(now) }
                return pump()
            case .ended: return disconnect(link, .closedByServer)
            case .failed(let reason, let detail):
                return disconnect(link, .transport(detail), because: reason)
            }
        }
        pump()
        if link.isOpen { link.socket.readLater() }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, from link: ServerLink) {
        let bytes = bytes.bindMemory(to: UInt8.self)
        var position = 0
        do throws(RESPError) {
            while link.isOpen, let event = try link.reader.next(bytes.span, at: &position) {
                switch event {
                case .reply(let value): take(value, from: link)
                // Nothing is asked for that is told without being asked.
                case .push: disconnect(link, .unexpectedReply)
                case .bulkBegins, .bulkBytes, .bulkEnds: break
                }
            }
        } catch {
            disconnect(link, .malformed(error))
        }
    }

    private func take(_ value: RESPValue, from link: ServerLink) {
        switch link.connection.replied(value) {
        case .operation:
            let expected = link.takeExpected()
            // Whoever is told of the reply may ask the engine at once.
            endChanges()
            replied(value, to: expected, from: link)
        case .dropped: break
        case .own(let action): perform(action, on: link)
        }
    }

    /// Passes on what was written, as far as the system takes it.
    func flush() {
        flush(home)
        guard let cluster else { return }
        for link in cluster.links { flush(link) }
    }

    private func flush(_ link: ServerLink) {
        let end = link.flush { count in
            level.shared.withLock { $0.statistics.bytesWritten += UInt64(count) }
        }
        switch end {
        case nil, .bytes, .wouldBlock: break
        case .ended: disconnect(link, .closedByServer)
        case .failed(let reason, let detail):
            disconnect(link, .transport(detail), because: reason)
        }
    }

    /// Gives the connection up that has the fleet's streams.
    func disconnect(
        _ error: RedisConnectionError, because known: SharedLevelReason? = nil
    ) {
        disconnect(home, error, because: known)
    }

    /// Gives a connection up; nothing is asked on it from now on.
    func disconnect(
        _ link: ServerLink, _ error: RedisConnectionError,
        because known: SharedLevelReason? = nil
    ) {
        switch link.connection.state {
        case .idle, .waiting: return
        case .connecting, .handshaking, .ready: break
        }
        let reason = known ?? SharedLevelReason(error)
        if link === home { lostHome(error, reason) } else { lost(link, error, reason) }
    }

    private func lostHome(_ error: RedisConnectionError, _ reason: SharedLevelReason) {
        let now = now
        // What was being read may have been more than a reply may be.
        if case .malformed = error { fleet.entries = max(1, fleet.entries / 8) }
        isPrepared = false
        preparations = 0
        homeAwaitsTopology = false
        let hasProbe = home.probeDeadline != nil
        home.close()
        stopFollowing()
        hold(home, reason)
        noteNodes()
        if hasProbe { _ = home.breaker.failed(.probe, now: now, random: random.next()) }
        goOff(reason, "\(error)")
        for expected in home.ended(error, now: now, random: random.next()) { giveUp(expected) }
        giveUpCommands()
        forgetChanges()
        wantTopology()
        level.keepLost()
        endIfDone()
    }
}
