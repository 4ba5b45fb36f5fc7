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
    let level: SharedLevel
    let loop: EventLoop
    let link: ServerLink
    private let mailbox: Mailbox<LevelMessage>
    private var receiver: MailboxReceiver<LevelMessage>?
    let memory: UnsafeMutableRawBufferPointer
    /// The run of the engine that it is connected to; empty before that is known.
    var run: [UInt8] = []
    /// The number of the last view that was compared with that; 0 for none.
    var viewNumber: UInt64 = 0
    /// Whether it is about to be given up because it is connected to another run.
    private var isLeaving = false
    /// Not before this moment is it made again.
    var mayConnectAt: Int64 = 0
    /// Lookups, by their deadlines: those in `firstLoad...` have no reply, those before `firstLate`
    /// have been answered with or without one, those in `firstUnsent...` have not been sent.
    var loads: [PendingLoad] = []
    var firstLoad = 0
    var firstLate = 0
    var firstUnsent = 0
    /// Replies in time since a moment, or the last one that was late.
    private var answered = 0
    private var answeredSince: Int64 = 0
    /// How many of the last lookups have found something, of ``everything``.
    private var found = LookupLink.everything
    /// Lookups that were left to the level's thread since the last one that was not.
    private var skipped = 0
    var willFlush = false
    var isClosed = false

    private static let readBytes = 128 << 10
    /// Reads in one turn, which others share.
    static let readsPerTurn = 4
    /// For how long replies in time say how the engine is doing.
    private static let answeredMilliseconds: Int64 = 10_000
    /// How long it is not made again after it has led to another server.
    static let elsewhereMilliseconds: Int64 = 1000
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
            digest: digest, removals: 0, mark: level.mark(of: load))
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
        sendSoon()
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
    func isOf(_ view: EngineView) -> Bool {
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

    func read(_ pending: PendingLoad, _ reply: RESPValue) {
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

    func updateDeadline() {
        guard !isClosed else { return }
        var next = link.connection.deadline
        if firstLate < loads.count {
            next = min(next ?? .max, loads[firstLate].deadline)
        }
        loop.setDeadline(self, after: next.map { max(1, $0 - loop.monotonicNow) })
    }
}
