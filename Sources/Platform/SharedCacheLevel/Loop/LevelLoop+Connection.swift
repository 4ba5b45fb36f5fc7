import CacheStore
import Clocks
import EventLoop
import RedisProtocol
import SharedCache

// Bytes to and from the engine, and the end of a connection.
extension LevelLoop {
    /// Whether commands can be sent.
    var isConnected: Bool { hasOpened && connection.isReady }

    func perform(_ action: RedisConnection.Action) {
        switch action {
        case .none: break
        case .connect: socket.open()
        case .send(let command):
            output.add(command: command.bytes)
            flush()
        case .becomeReady(let server):
            self.server = server
            prepare()
        case .close(let error): disconnect(error)
        }
    }

    func readAll() {
        for _ in 0..<Self.readsPerTurn {
            switch socket.read(into: memory) {
            case .bytes(let count):
                level.shared.withLock { $0.statistics.bytesRead += UInt64(count) }
                take(UnsafeRawBufferPointer(rebasing: memory[..<count]))
                guard hasOpened else { return }
            case .wouldBlock: return pump()
            case .ended: return disconnect(.closedByServer)
            case .failed(let reason, let detail):
                return disconnect(.transport(detail), because: reason)
            }
        }
        pump()
        if hasOpened { socket.readLater() }
    }

    func take(_ bytes: UnsafeRawBufferPointer) {
        let bytes = bytes.bindMemory(to: UInt8.self)
        var position = 0
        do throws(RESPError) {
            while hasOpened, let event = try reader.next(bytes.span, at: &position) {
                switch event {
                case .reply(let value): take(value)
                // Nothing is asked for that is told without being asked.
                case .push, .bulkBegins, .bulkBytes, .bulkEnds: break
                }
            }
        } catch {
            disconnect(.malformed(error))
        }
    }

    func take(_ value: RESPValue) {
        switch connection.replied(value) {
        case .operation: replied(value, to: takeExpected())
        case .dropped: break
        case .own(let action): perform(action)
        }
    }

    func flush() {
        while hasOpened, output.unsentCount > 0 {
            let wanted = output.unsentCount
            switch output.withUnsent({ socket.write($0) }) {
            case .bytes(let count):
                output.took(count)
                if connection.isReady { connection.wrote(count) }
                level.shared.withLock { $0.statistics.bytesWritten += UInt64(count) }
                if count < wanted { return }
            case .wouldBlock: return
            case .ended: return disconnect(.closedByServer)
            case .failed(let reason, let detail):
                return disconnect(.transport(detail), because: reason)
            }
        }
    }

    /// Gives the connection up; nothing is asked from now on.
    func disconnect(
        _ error: RedisConnectionError, because known: SharedLevelReason? = nil
    ) {
        switch connection.state {
        case .idle, .waiting: return
        case .connecting, .handshaking, .ready: break
        }
        let now = now
        let reason = known ?? SharedLevelReason(error)
        // What was being read may have been more than a reply may be.
        if case .malformed = error { fleet.entries = max(1, fleet.entries / 8) }
        hasOpened = false
        isPrepared = false
        preparations = 0
        let hasProbe = probeDeadline != nil
        probeDeadline = nil
        stopFollowing()
        socket.close()
        output = CommandOutput()
        reader = RESPReader(limits: Self.limits)
        if reason.isLasting { holdOffUntil = now + options.holdOffMilliseconds }
        if hasProbe { _ = breaker.failed(.probe, now: now, random: random.next()) }
        goOff(reason, "\(error)")
        let end = connection.closed(error, now: now, random: random.next())
        giveUpExpected(end.operations.count)
        giveUpCommands()
        level.keepLost()
        endIfDone()
    }
}
