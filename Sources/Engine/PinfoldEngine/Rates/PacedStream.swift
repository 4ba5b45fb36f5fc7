import AccessPolicy
import CacheStore
import EventLoop
import HTTPCore

/// A client's stream within the rate of a rule: what the exchange sends is passed on as fast as
/// the rate allows, and what the client sends likewise. To the exchange it looks like a client that
/// reads slowly, and to the client's connection like an exchange that accepts content slowly; so
/// what stops the server, the reader of a stored body or the client is what always does.
///
///     exchange ── send, flush ──► queue ── in its time ──► the client's stream
///     exchange ◄── in its time ── content held ◄── content ── the client's stream
///
/// Nothing is copied: the queue refers to the bytes, whose owners keep them.
final class PacedStream: EventHandler, DownstreamStream {
    /// What waits to be passed on to the client.
    private enum Run {
        case memory(UnsafeRawBufferPointer, owner: AnyObject)
        case file(MemoryFile, offset: Int, count: Int)

        var count: Int {
            switch self {
            case .memory(let bytes, _): bytes.count
            case .file(_, _, let count): count
            }
        }
    }

    /// Content that waits to be passed on to the exchange.
    private struct Held {
        var bytes: UnsafeRawBufferPointer
        let owner: Buffer
        let isLast: Bool
    }

    /// How far the end of the response has come.
    private enum Ending {
        case none
        case awaited(TrailerSection?)
        case passed
    }

    let inner: any DownstreamStream
    private let environment: Environment
    /// Unowned because the exchange closes this when it ends.
    private unowned let exchange: Exchange
    private let rule: String

    // To the client.
    private var down: BytePace?
    private var queue = FIFO<Run>()
    /// What of the first run has been passed on.
    private var passed = 0
    private var ending = Ending.none
    /// The client's stream has not written what it has.
    private var isBlocked = false

    // From the client.
    private var up: BytePace?
    private var held: Held?
    private var contentEnd: Ending = .none
    /// The exchange accepts no more for now.
    private var isHeldUp = false
    /// The bytes of the day are used up.
    private var isExhausted = false
    /// The final head has been sent.
    private var hasHead = false
    private var isClosed = false

    /// - Returns: `nil` if no bytes are limited, or there is no room for another timer.
    init?(_ inner: any DownstreamStream, of exchange: Exchange, by use: RateUse) {
        self.inner = inner
        self.exchange = exchange
        environment = exchange.environment
        rule = use.rule
        down = BytePace(use, .down)
        up = BytePace(use, .up)
        super.init()
        guard down != nil || up != nil, (try? environment.loop.add(self)) != nil else {
            return nil
        }
    }

    /// Whether content of requests goes through it.
    var pacesContent: Bool { up != nil }

    /// Nothing more is passed on.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        environment.loop.remove(self)
        down?.end()
        up?.end()
        queue = FIFO()
        held = nil
    }

    override func deadlineReached() {
        if held != nil, !isHeldUp { passContent() }
        if !isClosed, !queue.isEmpty, !isBlocked { goOn() }
    }

    private func wait(_ milliseconds: Int64) {
        let time = environment.loop.now + milliseconds
        if time < deadline { environment.loop.setDeadline(self, after: milliseconds) }
    }

    /// The bytes of the day are used up: the exchange fails, but not before the end of the turn,
    /// because it may be about to do more.
    private func exhausted(_ refusal: RateReason) {
        isExhausted = true
        let (id, rule) = (exchange.report.id, rule)
        environment.loop.afterTurn { [self, exchange] in
            guard exchange.report.id == id, exchange.isUnderWay else { return }
            // Then what follows is the gateway's own reply.
            if !hasHead { stopLimitingReply() }
            exchange.fail(.rateLimited(RateExcess(rule: rule, refusal)))
        }
    }

    private func stopLimitingReply() {
        down?.end()
        down = nil
    }

    // MARK: To the client

    func send(_ content: UnsafeRawBufferPointer, owner: AnyObject) {
        guard down != nil else { return inner.send(content, owner: owner) }
        if content.count > 0 { queue.append(.memory(content, owner: owner)) }
    }

    func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        guard down != nil else { return inner.sendFile(file, offset: offset, count: count) }
        if count > 0 { queue.append(.file(file, offset: offset, count: count)) }
    }

    func flush() -> Bool { pass() && passEnd() }

    func finish(trailers: TrailerSection?) -> Bool {
        ending = .awaited(trailers)
        return pass() && passEnd()
    }

    /// Passes on the end of the response, if that has come. Returns whether everything is written.
    private func passEnd() -> Bool {
        if case .awaited(let trailers) = ending {
            ending = .passed
            isBlocked = !inner.finish(trailers: trailers)
        } else {
            isBlocked = !inner.flush()
        }
        return !isBlocked
    }

    /// Passes on what may be now. Returns whether nothing is left in the queue.
    private func pass() -> Bool {
        while let run = queue.first {
            guard !isBlocked, !(isExhausted && down != nil), !isClosed else { return false }
            let left = run.count - passed
            let count: Int
            switch down?.allowance(wanted: left) {
            case .bytes(let allowed)?: count = min(allowed, left)
            case nil: count = left
            case .wait(let milliseconds)?:
                wait(milliseconds)
                isBlocked = !inner.flush()
                return false
            case .exhausted(let refusal)?:
                exhausted(refusal)
                return false
            }
            pass(run, count)
            down?.spend(count)
            passed += count
            if count == left {
                _ = queue.popFirst()
                passed = 0
            }
            // The end is written together with the last part.
            if queue.isEmpty, case .awaited = ending { return true }
            isBlocked = !inner.flush()
        }
        return !isBlocked
    }

    private func pass(_ run: Run, _ count: Int) {
        switch run {
        case .memory(let bytes, let owner):
            inner.send(
                UnsafeRawBufferPointer(rebasing: bytes[passed..<passed + count]), owner: owner)
        case .file(let file, let offset, _):
            inner.sendFile(file, offset: offset + passed, count: count)
        }
    }

    /// Passes on more, and tells the exchange when everything has been written.
    private func goOn() {
        if pass(), passEnd() { exchange.everythingIsWritten() }
    }

    /// The client's stream has written everything that it had.
    func innerDrained() {
        isBlocked = false
        goOn()
    }

    func withdrawHead() -> Bool {
        guard inner.withdrawHead() else { return false }
        queue = FIFO()
        passed = 0
        ending = .none
        isBlocked = false
        hasHead = false
        // What follows is the gateway's own reply.
        if isExhausted { stopLimitingReply() }
        isExhausted = false
        return true
    }

    // MARK: From the client

    /// Takes content. Returns whether more may follow now.
    func accept(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        held = Held(bytes: bytes, owner: owner, isLast: isLast)
        return passHeld()
    }

    /// The content is complete. Returns false if the exchange is to be told at once.
    func holdsEnd(trailers: TrailerSection?) -> Bool {
        guard held != nil else { return false }
        contentEnd = .awaited(trailers)
        return true
    }

    /// Passes content on. Returns whether more is accepted.
    private func passHeld() -> Bool {
        while let content = held {
            guard !isExhausted else { return false }
            let count: Int
            switch up?.allowance(wanted: content.bytes.count) {
            case .bytes(let allowed)?: count = min(allowed, content.bytes.count)
            case nil: count = content.bytes.count
            case .wait(let milliseconds)?:
                wait(milliseconds)
                return false
            case .exhausted(let refusal)?:
                exhausted(refusal)
                return false
            }
            up?.spend(count)
            let isWhole = count == content.bytes.count
            held?.bytes = UnsafeRawBufferPointer(rebasing: content.bytes[count...])
            if isWhole { held = nil }
            let goesOn = exchange.accept(
                UnsafeRawBufferPointer(rebasing: content.bytes[..<count]),
                owner: content.owner, isLast: isWhole && content.isLast)
            if isClosed { return false }
            guard goesOn else {
                isHeldUp = held != nil
                return false
            }
        }
        return true
    }

    /// Passes on more of the content, and its end when it has come.
    private func passContent() {
        let goesOn = passHeld()
        guard !isClosed, held == nil else { return }
        if case .awaited(let trailers) = contentEnd {
            contentEnd = .passed
            exchange.acceptContentEnd(trailers: trailers)
        } else if goesOn {
            inner.resumeContent()
        }
    }

    func resumeContent() {
        isHeldUp = false
        if held == nil { inner.resumeContent() } else { passContent() }
    }

    func pauseContent() {
        isHeldUp = true
        inner.pauseContent()
    }

    // MARK: What is the client's

    var account: ClientAccount? { inner.account }
    var refusal: ExchangeError { inner.refusal }
    var localEndpoint: Endpoint? { inner.localEndpoint }
    var sentBytes: (total: UInt64, content: UInt64) { inner.sentBytes }
    var isFlushed: Bool { queue.isEmpty && inner.isFlushed }
    var inputFollows: Bool { held != nil || inner.inputFollows }
    var isOneOfSeveral: Bool { inner.isOneOfSeveral }
    var takesInterimResponses: Bool { inner.takesInterimResponses }
    var takesProtocols: Bool { inner.takesProtocols }

    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        inner.makeHead(status: status, phrase: phrase, room: room)
    }

    func sendInterim(_ head: consuming HeadDraft) { inner.sendInterim(head) }

    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        hasHead = true
        inner.sendHead(head, framing: framing, closing: closing)
    }

    func expectPauses() { inner.expectPauses() }

    func exchangeEnded(cut: Bool) {
        close()
        inner.exchangeEnded(cut: cut)
    }

    func exchangeContinues() {
        close()
        inner.exchangeContinues()
    }

    func exchangeReleased() { inner.exchangeReleased() }

    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover? {
        close()
        return inner.handOver(after: head, isUpgrade: isUpgrade)
    }

    func switchProtocols(after head: consuming HeadDraft, to server: UpstreamHandover) {
        close()
        inner.switchProtocols(after: head, to: server)
    }
}
