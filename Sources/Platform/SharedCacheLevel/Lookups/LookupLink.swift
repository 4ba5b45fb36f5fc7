import CacheStore
import EventLoop
import RedisProtocol
import SharedCache

/// A worker's own connection to the engine, on the worker's loop: a lookup whose answer is in one
/// reply needs no other thread. All that is asked in one turn is one write.
///
/// It answers only what is found, with its body. Everything else is passed on to the level's
/// thread, which looks again: a key of which there is nothing, bodies in chunks, what cannot be
/// read. So there is one place where leases and damage are dealt with.
///
/// What it finds is what the level's thread would find:
/// - It asks only if no change of the key by this gateway is on its way (``PendingChanges``); one
///   that comes later voids the lookup.
/// - It compares what was read with all purges that are known by then (``EngineView``); those that
///   become known later void the lookup.
/// - It is connected to the same run of the engine.
final class LookupLink: EventHandler {
    private let level: SharedLevel
    private let loop: EventLoop
    private let link: ServerLink
    private let mailbox: Mailbox<LevelMessage>
    private var receiver: MailboxReceiver<LevelMessage>?
    private let memory: UnsafeMutableRawBufferPointer
    /// The run of the engine that it is connected to; empty before that is known.
    private var run: [UInt8] = []
    /// The number of the last view that was compared with that; 0 for none.
    private var viewNumber: UInt64 = 0
    /// Whether it is about to be given up because it is connected to another run.
    private var isLeaving = false
    /// Not before this moment is it made again.
    private var mayConnectAt: Int64 = 0
    /// Lookups, by their deadlines: those in `firstLoad...` have no reply, those before `firstLate`
    /// have been answered with or without one, those in `firstUnsent...` have not been sent.
    private var loads: [PendingLoad] = []
    private var firstLoad = 0
    private var firstLate = 0
    private var firstUnsent = 0
    /// Replies in time since a moment, or the last one that was late.
    private var answered = 0
    private var answeredSince: Int64 = 0
    /// How many of the last lookups have found something, of ``everything``.
    private var found = LookupLink.everything
    /// Lookups that were left to the level's thread since the last one that was not.
    private var skipped = 0
    private var willFlush = false
    private var isClosed = false

    private static let readBytes = 128 << 10
    /// Reads in one turn, which others share.
    private static let readsPerTurn = 4
    /// For how long replies in time say how the engine is doing.
    private static let answeredMilliseconds: Int64 = 10_000
    /// How long it is not made again after it has led to another server.
    private static let elsewhereMilliseconds: Int64 = 1000
    /// Lookups that may wait for their replies.
    private static let limit = 4096
    private static let everything = 256
    /// While no more than this is found, most lookups would be made twice: of so many only one is.
    private static let littleFound = 64
    private static let skippedAtMost = 7

    /// A connection for the loop that the calling thread runs; it is made when it is needed.
    init(_ level: SharedLevel, on loop: EventLoop) throws(Errno) {
        self.level = level
        self.loop = loop
        mailbox = try Mailbox()
        memory = .allocate(byteCount: Self.readBytes, alignment: 16)
        let options = level.options
        link = ServerLink(
            options,
            socket: ServerSocket(resolver: options.resolver, on: loop, mailbox: mailbox),
            now: loop.monotonicNow)
        super.init()
        let receiver = MailboxReceiver(mailbox) { [weak self] in self?.receive($0) }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        self.receiver = receiver
        do throws(Errno) {
            try loop.add(self)
        } catch {
            loop.remove(receiver, keepingOpen: receiver.descriptor)
            throw error
        }
        link.socket.start { [unowned self] in happened($0) }
        let isClosing = level.links.withLock { links in
            links?[key] = mailbox
            return links == nil
        }
        if isClosing { mailbox.post(.close) }
    }

    private var key: ObjectIdentifier { ObjectIdentifier(mailbox) }

    /// Its loop has ended, or it was closed.
    deinit {
        _ = level.links.withLock { $0?.removeValue(forKey: key) }
        link.close()
        for pending in loads[firstLoad...] where !pending.isOver { level.end(pending) }
        memory.deallocate()
    }

    private func receive(_ message: LevelMessage) {
        switch message {
        case .resolved(let addresses, let attempt):
            link.socket.resolved(addresses, attempt: attempt)
        case .close: close()
        case .work, .begin, .carriedOut, .tagFields, .lookupWasLate: break
        }
        updateDeadline()
    }

    private func close() {
        guard !isClosed else { return }
        isClosed = true
        disconnect(.stopped)
        loop.remove(self)
        if let receiver { loop.remove(receiver, keepingOpen: receiver.descriptor) }
        receiver = nil
        loop.attachments[ObjectIdentifier(level)] = nil
    }

    // MARK: Lookups

    /// Asks for what there is of a key. The answer comes in another turn.
    /// - Returns: `false` if it cannot ask now.
    func load(_ load: LevelLoad) -> Bool {
        guard !run.isEmpty else {
            connect()
            return false
        }
        guard isWorthAsking(), link.hasRoom, loads.count - firstLoad < Self.limit,
            let digest = load.key.withUnsafeBytes({ SharedName.digest(of: $0) }),
            let (view, flight) = level.beginLookup(load.hash)
        else { return false }
        let now = loop.monotonicNow
        let pending = PendingLoad(
            load, flight, began: now, deadline: now + level.options.timeoutMilliseconds,
            digest: digest, removals: 0)
        let isAsked =
            isOf(view)
            && link.add(.value(pending), by: now + level.options.stallMilliseconds) {
                $0.begin(2)
                $0.add("HGETALL")
                $0.add(level.options.names.value(digest, variant: []))
            }
        guard isAsked else {
            level.endLookup(flight)
            return false
        }
        loads.append(pending)
        flushAfterTurn()
        return true
    }

    /// Whether it is likely that there is something, or time to see whether it is.
    private func isWorthAsking() -> Bool {
        guard found <= Self.littleFound, skipped < Self.skippedAtMost else {
            skipped = 0
            return true
        }
        skipped += 1
        return false
    }

    /// Whether it is connected to the engine that is in use.
    private func isOf(_ view: EngineView) -> Bool {
        if view.number == viewNumber { return true }
        guard view.run == run else {
            leave()
            return false
        }
        viewNumber = view.number
        return true
    }

    /// It is connected to a server that is not the engine any longer, or not yet. Others may wait,
    /// who are answered later.
    private func leave() {
        guard !isLeaving else { return }
        isLeaving = true
        loop.afterTurn { [self] in
            isLeaving = false
            guard let view = level.view, !run.isEmpty, view.run != run else { return }
            mayConnectAt = loop.monotonicNow + Self.elsewhereMilliseconds
            disconnect(.stopped)
            updateDeadline()
        }
    }

    private func read(_ pending: PendingLoad, _ reply: RESPValue) {
        forgetFirstLoad()
        guard !pending.isOver else { return }
        noteAnswered()
        pending.isOver = true
        found -= found >> 4
        guard let view = level.view, isOf(view), let values = values(for: pending, reply, view)
        else { return level.lookAgain(pending) }
        found += Self.everything >> 4
        var published: [CachedResponse] = []
        for found in values {
            guard let response = pending.inlineResponse(found, view.clock) else { continue }
            let current = pending.load.publish(response) { _ in
                level.isCurrent(pending.flight)
            }
            if let current { published.append(current) }
        }
        guard !published.isEmpty else { return level.lookAgain(pending) }
        level.end(pending, finding: published)
    }

    /// The values that the reply consists of; `nil` if it is not as simple as that.
    private func values(
        for pending: PendingLoad, _ reply: RESPValue, _ view: EngineView
    ) -> [FoundValue]? {
        guard let entries = reply.entries, !entries.isEmpty else { return nil }
        let options = level.options
        var instance = view.generation
        for entry in entries where entry.key.bytes == Engine.numberField {
            let name = options.names.index(pending.digest)
            guard let record = entry.value.bytes,
                let number = try? Engine.number(record, under: name, by: options.keyring)
            else { return nil }
            instance = Engine.instance(instance, number)
        }
        for entry in entries {
            guard let field = entry.key.bytes, let bytes = entry.value.bytes else { return nil }
            guard field.count == PendingLoad.fieldBytes else { continue }
            let read = pending.read(
                bytes, in: field, of: instance, options.names, options.keyring)
            guard case .success(let value) = read else { return nil }
            // What is of no use any longer is not looked at by anybody.
            guard let value, pending.judge(value, by: view.purges, view.clock) else { continue }
            pending.found.append(value)
        }
        pending.keepWanted()
        let areWhole = pending.found.allSatisfy { found in
            if case .inline = found.value.body { true } else { false }
        }
        defer { pending.found = [] }
        return areWhole && !pending.found.isEmpty ? pending.found : nil
    }

    /// The first one has its reply.
    private func forgetFirstLoad() {
        firstLoad += 1
        firstLate = max(firstLate, firstLoad)
        if firstLoad == loads.count {
            loads.removeAll(keepingCapacity: true)
            (firstLoad, firstLate, firstUnsent) = (0, 0, 0)
        } else if firstLoad >= 256, firstLoad >= loads.count / 2 {
            loads.removeSubrange(..<firstLoad)
            firstLate -= firstLoad
            firstUnsent -= firstLoad
            firstLoad = 0
        }
    }

    private func noteAnswered() {
        let now = loop.monotonicNow
        if now - answeredSince > Self.answeredMilliseconds {
            (answered, answeredSince) = (0, now)
        }
        answered += 1
    }

    // MARK: Time

    override func deadlineReached() {
        // What this turn has asked is sent at its end, and has its time from then on.
        guard !willFlush else { return }
        // What has come during a long turn is in time.
        if link.isOpen { readAll() }
        let now = level.now
        while firstLate < loads.count, loads[firstLate].deadline <= now {
            let pending = loads[firstLate]
            firstLate += 1
            pending.isOver = true
            level.mailbox.post(.lookupWasLate(after: answered))
            answered = 0
            level.endLate(pending)
        }
        perform(link.connection.timePassed(now: now))
        updateDeadline()
    }

    private func updateDeadline() {
        guard !isClosed else { return }
        var next = link.connection.deadline
        if firstLate < loads.count {
            next = min(next ?? .max, loads[firstLate].deadline)
        }
        loop.setDeadline(self, after: next.map { max(1, $0 - loop.monotonicNow) })
    }

    // MARK: The connection

    private func connect() {
        guard !isClosed, case .idle = link.connection.state, loop.monotonicNow >= mayConnectAt
        else { return }
        perform(link.connection.start(now: loop.monotonicNow))
        updateDeadline()
    }

    private func perform(_ action: RedisConnection.Action) {
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

    private func happened(_ event: ServerSocket.Event) {
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

    private func readAll() {
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

    private func take(_ bytes: UnsafeRawBufferPointer) {
        let bytes = bytes.bindMemory(to: UInt8.self)
        var position = 0
        do throws(RESPError) {
            while link.isOpen, let event = try link.reader.next(bytes.span, at: &position) {
                if case .reply(let value) = event { take(value) }
            }
        } catch {
            disconnect(.malformed(error))
        }
    }

    private func take(_ value: RESPValue) {
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
    private func readRun(_ reply: RESPValue) {
        run = reply.run
        guard !run.isEmpty else {
            mayConnectAt = loop.monotonicNow + Self.elsewhereMilliseconds
            return disconnect(.stopped)
        }
        if let view = level.view { _ = isOf(view) }
    }

    private func flushAfterTurn() {
        guard !willFlush else { return }
        willFlush = true
        loop.afterTurn { [self] in
            willFlush = false
            let deadline = level.now + level.options.timeoutMilliseconds
            for pending in loads[firstUnsent...] { pending.deadline = deadline }
            firstUnsent = loads.count
            flush()
            updateDeadline()
        }
    }

    private func flush() {
        let end = link.flush { count in
            level.shared.withLock { $0.statistics.bytesWritten += UInt64(count) }
        }
        switch end {
        case nil, .bytes, .wouldBlock: break
        case .ended: disconnect(.closedByServer)
        case .failed(let reason, let detail): disconnect(.transport(detail), because: reason)
        }
    }

    /// Gives the connection up; what was asked on it is asked by the level's thread.
    private func disconnect(
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
