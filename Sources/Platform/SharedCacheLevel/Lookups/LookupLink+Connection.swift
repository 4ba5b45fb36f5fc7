import CacheStore
import EventLoop
import RedisProtocol
import SharedCache

// The connection of a worker to the engine: how it is made, and what passes on it.
extension LookupLink {
    func connect() {
        guard !isClosed, case .idle = link.connection.state, loop.monotonicNow >= mayConnectAt
        else { return }
        perform(link.connection.start(now: loop.monotonicNow))
        updateDeadline()
    }

    func perform(_ action: RedisConnection.Action) {
        switch action {
        case .none: break
        case .connect:
            // Nobody needs it while the level is off.
            guard let view = level.view else {
                _ = link.ended(.stopped, now: loop.monotonicNow, random: 0)
                return
            }
            link.socket.open(view.place)
        case .send(let command):
            link.output.add(command: command.bytes)
            flush()
        case .becomeReady:
            _ = link.add(.info, by: loop.monotonicNow + level.options.stallMilliseconds) {
                $0.begin(2)
                $0.add("INFO")
                $0.add("server")
            }
            flush()
        case .close(let error): disconnect(error)
        }
    }

    func happened(_ event: ServerSocket.Event) {
        switch event {
        case .opened:
            link.isOpen = true
            level.shared.withLock { $0.statistics.connections += 1 }
            perform(link.connection.connected(now: loop.monotonicNow))
            readAll()
        case .ready(let readiness):
            guard link.isOpen else { return }
            if readiness.mayRead { readAll() }
            // TLS may have waited for what was read.
            if !willFlush { flush() }
        case .failed(let reason, let detail): disconnect(.transport(detail), because: reason)
        }
        updateDeadline()
    }

    func readAll() {
        for _ in 0..<Self.readsPerTurn {
            switch link.socket.read(into: memory) {
            case .bytes(let count):
                level.shared.withLock { $0.statistics.bytesRead += UInt64(count) }
                take(UnsafeRawBufferPointer(rebasing: memory[..<count]))
                guard link.isOpen else { return }
                if count < memory.count, !link.isSecured { return }
            case .wouldBlock: return
            case .ended: return disconnect(.closedByServer)
            case .failed(let reason, let detail):
                return disconnect(.transport(detail), because: reason)
            }
        }
        link.socket.readLater()
    }

    func take(_ bytes: UnsafeRawBufferPointer) {
        let bytes = bytes.bindMemory(to: UInt8.self)
        var position = 0
        do throws(RESPError) {
            while link.isOpen, let event = try link.reader.next(bytes.span, at: &position) {
                switch event {
                case .reply(let value): take(value)
                // Nothing is asked for that is told without being asked.
                case .push: disconnect(.unexpectedReply)
                case .bulkBegins, .bulkBytes, .bulkEnds: break
                }
            }
        } catch {
            disconnect(.malformed(error))
        }
    }

    func take(_ value: RESPValue) {
        switch link.connection.replied(value) {
        case .operation:
            switch link.takeExpected() {
            case .value(let pending): read(pending, value)
            case .info: readRun(value)
            default: break
            }
        case .dropped: break
        case .own(let action): perform(action)
        }
    }

    /// Which run of the engine it is connected to.
    func readRun(_ reply: RESPValue) {
        run = reply.run
        guard !run.isEmpty else {
            mayConnectAt = loop.monotonicNow + Self.elsewhereMilliseconds
            return disconnect(.stopped)
        }
        if let view = level.view { _ = isOf(view) }
    }

    /// Sends what this turn asks at its end, in one write; but the first lookup at once if no other
    /// is under way: the engine wakes up meanwhile.
    func sendSoon() {
        guard !willFlush else { return }
        if loads.count - firstLoad == 1 {
            beginTime()
            if passOn() == nil { return updateDeadline() }
            // Why it cannot be sent shows again: whoever waits is not answered by this call.
        }
        willFlush = true
        loop.afterTurn { [self] in
            willFlush = false
            beginTime()
            flush()
            updateDeadline()
        }
    }

    /// The lookups that are sent now have their time from now on.
    func beginTime() {
        let deadline = level.now + level.options.timeoutMilliseconds
        for pending in loads[firstUnsent...] { pending.deadline = deadline }
        firstUnsent = loads.count
    }

    func passOn() -> ServerSocket.Transfer? {
        link.flush { count in
            level.shared.withLock { $0.statistics.bytesWritten += UInt64(count) }
        }
    }

    func flush() {
        switch passOn() {
        case nil, .bytes, .wouldBlock: break
        case .ended: disconnect(.closedByServer)
        case .failed(let reason, let detail): disconnect(.transport(detail), because: reason)
        }
    }

    /// Gives the connection up; what was asked on it is asked by the level's thread.
    func disconnect(
        _ error: RedisConnectionError, because known: SharedLevelReason? = nil
    ) {
        switch link.connection.state {
        case .idle, .waiting: return
        case .connecting, .handshaking, .ready: break
        }
        (run, viewNumber) = ([], 0)
        link.close()
        var random = SystemRandomNumberGenerator()
        let given = link.ended(error, now: loop.monotonicNow, random: random.next())
        (loads, firstLoad, firstLate, firstUnsent) = ([], 0, 0, 0)
        if error != .stopped { level.count(known ?? SharedLevelReason(error)) }
        for case .value(let pending) in given where !pending.isOver {
            pending.isOver = true
            level.lookAgain(pending)
        }
    }
}
