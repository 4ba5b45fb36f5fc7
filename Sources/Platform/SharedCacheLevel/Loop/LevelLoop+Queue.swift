import CacheStore
import Clocks
import EventLoop
import RedisProtocol
import SharedCache

// What is taken from the queue and sent, and the lookups that wait.
extension LevelLoop {
    func takeCommands(evenIfOff: Bool = false) {
        let isOverloaded = level.shared.withLock { state -> Bool in
            state.isWoken = false
            takenChanges = state.changes.count
            if commands.isEmpty {
                swap(&commands, &state.commands)
            } else {
                commands += state.commands
                state.commands.removeAll(keepingCapacity: true)
            }
            return state.isOverloaded
        }
        if evenIfOff { return }
        if isOverloaded {
            return disconnect(
                .transport("more changes came than may wait"), because: .overloaded)
        }
        guard home.connection.isReady else { return giveUpCommands() }
        pump()
    }

    /// Writes commands, as many as there is room for.
    func pump() {
        guard home.connection.isReady else { return flush() }
        repeat {
            while home.isOpen, first < commands.count, !mustWait(commands[first]), hasRoom {
                let command = commands[first]
                first += 1
                carriedOut(command)
                carryOut(command)
            }
            if first == commands.count {
                commands.removeAll(keepingCapacity: commands.capacity <= 4096)
                first = 0
            }
            markChanges()
            flush()
        } while home.isOpen && first < commands.count && !mustWait(commands[first])
            && isDrained && hasRoom
    }

    /// What is stored after an own purge waits until it is known where that is in the stream.
    private func mustWait(_ command: SharedCommand) -> Bool {
        guard case .store(let store) = command else { return false }
        return store.announcement > fleet.read && store.announcement <= fleet.sent
            && fleet.waiting < FleetState.waitingPurges
    }

    func carriedOut(_ command: SharedCommand) {
        level.shared.withLock { state in
            state.bytes -= command.bytes
            state.waiting -= 1
        }
    }

    func giveUpCommands() {
        let given = commands[first...]
        commands = []
        first = 0
        for command in given {
            carriedOut(command)
            giveUp(command)
        }
    }

    /// Adds a command for the fleet's records, and what its reply is to.
    func send(_ expected: Expected, _ write: (inout CommandOutput) -> Void) {
        send(expected, to: home, write)
    }

    /// Adds a command, and what its reply is to.
    func send(
        _ expected: Expected, to link: ServerLink, _ write: (inout CommandOutput) -> Void
    ) {
        guard !link.add(expected, by: now + options.stallMilliseconds, write) else { return }
        // The connection has ended, or there is no room, although that was seen to.
        giveUp(expected)
        guard link.isConnected else { return }
        loop.afterTurn { [self] in disconnect(link, .unexpectedReply) }
    }

    // MARK: Lookups

    func wait(for load: PendingLoad) {
        loads.append(load)
    }

    func expireLoads(_ now: Int64) {
        while firstLoad < loads.count {
            let load = loads[firstLoad]
            guard load.isOver || load.deadline <= now else { break }
            firstLoad += 1
            guard !load.isOver else { continue }
            level.shared.withLock { $0.statistics[.timeout] += 1 }
            load.load.look?.fail(.busy)
            answer(load, [])
            failed(link(of: load))
        }
        forgetLoads()
        endWaitingLoads { $0 <= now }
    }

    /// Answers lookups that have not been sent: with nothing.
    func endWaitingLoads(_ isDue: (Int64) -> Bool) {
        guard first < commands.count else { return }
        var kept: [SharedCommand] = []
        for command in commands[first...] {
            guard case .load(_, _, _, let deadline) = command, isDue(deadline) else {
                kept.append(command)
                continue
            }
            carriedOut(command)
            level.shared.withLock { $0.statistics[.timeout] += 1 }
            giveUp(command)
        }
        commands = kept
        first = 0
    }

    /// Answers all lookups: with nothing.
    func endLoads() {
        endWaits()
        endWaitingLoads { _ in true }
        for load in loads[firstLoad...] where !load.isOver {
            load.load.look?.fail(.busy)
            answer(load, [])
        }
        firstLoad = loads.count
        forgetLoads()
    }

    func forgetLoads() {
        guard firstLoad == loads.count || firstLoad >= 256 else { return }
        loads.removeSubrange(..<firstLoad)
        firstLoad = 0
    }
}
