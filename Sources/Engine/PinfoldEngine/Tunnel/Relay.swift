import AccessPolicy
import EventLoop

/// Two connections joined byte by byte, after CONNECT or 101: what one sends is passed to the
/// other, with backpressure, until both directions have ended.
///
/// Between two sockets the bytes stay in the kernel (splice(2) through a pipe that is used only
/// while it holds bytes); with TLS on a side they pass through one buffer.
final class Relay {
    /// One of the two connections.
    final class End: EventHandler {
        let transport: Transport
        /// Unowned because the relay owns its ends; unsafe because they leave the loop before it
        /// ends.
        fileprivate unowned(unsafe) let relay: Relay
        fileprivate let isClient: Bool
        fileprivate var mayRead = true
        /// Whether TLS must write before it can read more.
        fileprivate var readWantsWrite = false
        fileprivate var peerFinished = false

        fileprivate init(_ transport: Transport, relay: Relay, isClient: Bool) {
            self.transport = transport
            self.relay = relay
            self.isClient = isClient
        }

        override func ready(_ readiness: Readiness) {
            if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayRead = true }
            if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) {
                peerFinished = true
            }
            // Nothing more is read from an end that has finished sending: a reset would not be
            // noticed.
            if readiness.contains(.failed), relay.hasEnded(self) {
                return relay.close(broken: true)
            }
            relay.pump()
        }

        // That of the other end is the time until which bytes have to wait.
        override func deadlineReached() { isClient ? relay.looks() : relay.pump() }

        override func continueWork() { relay.pump() }
    }

    /// How a relay ends.
    enum Ending {
        /// Both directions have ended.
        case complete
        /// Neither side has accepted anything for too long.
        case idle
        /// One side was cut off, or both were.
        case broken
    }

    /// The bytes in transit from one end to the other.
    private struct Direction {
        var queue = OutputQueue()
        var pipe: Pipe?
        var pipeBytes = 0
        var sourceEnded = false
        var sinkFinished = false
        /// Bytes taken from the source, and bytes that the sink's socket has accepted.
        var total: UInt64 = 0
        var accepted: UInt64 = 0
        /// How much the sink's peer has read of what its socket has accepted.
        var progress = SendProgress()
        /// How fast bytes are taken from the source; `nil` for as fast as they come.
        var pace: BytePace?

        var isOver: Bool { sinkFinished }
    }

    private let environment: Environment
    private var idleMilliseconds: Int64
    /// The same where the process does not end.
    private let usualIdleMilliseconds: Int64
    private let ended: (_ toUpstream: UInt64, _ toClient: UInt64, _ ending: Ending) -> Void
    /// The exchange whose tunnel it is, which lasts as long; `nil` once it has ended.
    unowned var exchange: Exchange?
    /// The policy basis on which it was begun; `nil` if it lasts as long as both ends want.
    var basis: TunnelBasis?
    /// Called before it ends because it would not be begun any more.
    var forbidden: ((ExchangeError) -> Void)?
    /// Called before it ends because the bytes that it may pass on are used up.
    private var limited: ((RateReason) -> Void)?
    private var client: End?
    private var upstream: End?
    private var toUpstream = Direction()
    private var toClient = Direction()
    private var isPumping = false
    private var idleTime = IdleTime()
    /// What it may still do in this turn of the loop, in both directions together.
    private var budget = TurnBudget()

    /// - Parameters:
    ///   - idleMilliseconds: how long it may last that neither side accepts anything.
    ///   - ended: called once with the number of bytes in each direction, and how it ended.
    init(
        environment: Environment, idleMilliseconds: Int64,
        ended: @escaping (_ toUpstream: UInt64, _ toClient: UInt64, _ ending: Ending) -> Void
    ) {
        self.environment = environment
        self.idleMilliseconds = idleMilliseconds
        usualIdleMilliseconds = idleMilliseconds
        self.ended = ended
    }

    /// Joins the two connections. `early` has what each side has already sent, `pending` what must
    /// be sent to the client first.
    func start(
        client: Transport, upstream: Transport, earlyFromClient: Buffer?,
        earlyFromUpstream: Buffer?, pendingForClient: OutputQueue
    ) throws(Errno) {
        let clientEnd = End(client, relay: self, isClient: true)
        let upstreamEnd = End(upstream, relay: self, isClient: false)
        try environment.loop.add(clientEnd, descriptor: client.descriptor)
        do {
            try environment.loop.add(upstreamEnd, descriptor: upstream.descriptor)
        } catch {
            environment.loop.remove(clientEnd, keepingOpen: client.descriptor)
            throw error
        }
        self.client = clientEnd
        self.upstream = upstreamEnd
        Sockets.probePeer(client.descriptor)
        Sockets.probePeer(upstream.descriptor)
        toClient.queue = pendingForClient
        Self.add(earlyFromClient, to: &toUpstream)
        Self.add(earlyFromUpstream, to: &toClient)
        environment.register(self)
        if environment.isDraining {
            idleMilliseconds = min(
                idleMilliseconds,
                environment.policy.configuration.timeouts.tunnelGraceMilliseconds)
        }
        idleTime.note(at: environment.loop.now)
        environment.loop.setDeadline(
            clientEnd,
            after: max(1, min(IdleTime.firstLook(of: idleMilliseconds), millisecondsOfProof)))
        environment.loop.afterTurn { [self] in pump() }
    }

    /// Limits how fast bytes pass, before it is started.
    func pace(
        toClient: BytePace?, toUpstream: BytePace?, limited: @escaping (RateReason) -> Void
    ) {
        self.toClient.pace = toClient
        self.toUpstream.pace = toUpstream
        self.limited = limited
    }

    private static func add(_ early: Buffer?, to direction: inout Direction) {
        guard let early, !early.isEmpty else { return }
        direction.pace?.spend(early.count)
        direction.total += UInt64(early.count)
        direction.queue.append(early.readable, owner: early)
    }

    /// Moves all bytes that can be moved now.
    fileprivate func pump() {
        guard !isPumping, let client, let upstream else { return }
        isPumping = true
        budget.renew(environment.loop)
        let before = toUpstream.accepted &+ toClient.accepted
        let one = move(&toUpstream, from: client, to: upstream)
        let other = one != .broken ? move(&toClient, from: upstream, to: client) : .broken
        isPumping = false
        if one == .broken || other == .broken { return close(broken: true) }
        wait(for: one, other)
        if toUpstream.isOver, toClient.isOver { return close(broken: false) }
        // Bytes that were read but cannot be passed on are not progress: otherwise an end that
        // sends would keep open one that does not read.
        if toUpstream.accepted &+ toClient.accepted != before {
            idleTime.note(at: environment.loop.now)
        }
        if one == .turnIsOver || other == .turnIsOver { environment.loop.requeue(client) }
    }

    /// How many bytes are asked for before it is known how many there are.
    private static let wantedBytes = 16 << 10

    private enum Outcome: Equatable {
        case waiting, turnIsOver, broken
        /// Bytes may pass only after this time.
        case paced(milliseconds: Int64)
    }

    private func wait(for one: Outcome, _ other: Outcome) {
        guard let upstream else { return }
        var time = Int64.max
        for case .paced(let milliseconds) in [one, other] { time = min(time, milliseconds) }
        if time < .max { environment.loop.setDeadline(upstream, after: time) }
    }

    private func move(_ direction: inout Direction, from source: End, to sink: End) -> Outcome {
        while true {
            switch drain(&direction, to: sink) {
            case .drained: break
            case .blocked: return .waiting
            case .turnIsOver: return .turnIsOver
            case .failed: return .broken
            }
            if direction.sourceEnded {
                if !direction.sinkFinished {
                    direction.sinkFinished = sink.transport.finishSending()
                }
                return .waiting
            }
            guard source.mayRead else { return .waiting }
            guard !budget.isSpent else { return .turnIsOver }
            var room = Int.max
            switch direction.pace?.allowance(wanted: Self.wantedBytes) {
            case nil: break
            case .bytes(let count)?: room = count
            case .wait(let milliseconds)?: return .paced(milliseconds: milliseconds)
            case .exhausted(let refusal)?:
                limited?(refusal)
                return .broken
            }
            switch fill(&direction, from: source, to: sink, atMost: room) {
            case .bytes(let count, _):
                direction.total += UInt64(count)
                direction.pace?.spend(count)
            case .wouldBlock(let wantsWrite):
                source.mayRead = false
                source.readWantsWrite = wantsWrite
                giveBackPipe(&direction)
                return .waiting
            case .turnIsOver: return .turnIsOver
            case .endOfStream:
                direction.sourceEnded = true
                giveBackPipe(&direction)
            case .truncated, .failed: return .broken
            }
        }
    }

    private func drain(_ direction: inout Direction, to sink: End) -> OutputQueue.Flush {
        if !direction.queue.isEmpty {
            let before = direction.queue.pendingBytes
            let result = sink.transport.flush(
                &direction.queue, on: environment.loop, spending: &budget)
            budget.spend(.systemCall)
            direction.accepted += UInt64(before - direction.queue.pendingBytes)
            guard result == .drained else { return result }
        }
        while direction.pipeBytes > 0, let pipe = direction.pipe {
            budget.spend(.systemCall)
            switch Transfers.splice(
                from: pipe.readEnd, to: sink.transport.descriptor, count: direction.pipeBytes)
            {
            case .bytes(let count):
                direction.pipeBytes -= count
                direction.accepted += UInt64(count)
            case .wouldBlock: return .blocked
            case .endOfStream: return .failed(.brokenPipe)
            case .failed(let error): return .failed(error)
            }
        }
        return .drained
    }

    /// Reads from the source, when nothing is left to drain.
    private func fill(
        _ direction: inout Direction, from source: End, to sink: End, atMost room: Int
    ) -> Transport.ReadResult {
        if !source.transport.isSecure, !sink.transport.isSecure {
            if direction.pipe == nil { direction.pipe = environment.pipes.take() }
            if let pipe = direction.pipe {
                let result = Transfers.splice(
                    from: source.transport.descriptor, to: pipe.writeEnd,
                    count: min(Pipe.capacity, room))
                budget.spend(.systemCall)
                switch result {
                case .bytes(let count):
                    budget.spend(bytes: count)
                    direction.pipeBytes += count
                    return .bytes(count, drained: false)
                case .wouldBlock: return .wouldBlock(wantsWrite: false)
                case .endOfStream: return .endOfStream
                case .failed(let error): return .failed(.reset(error))
                }
            }
        }
        let buffer = environment.loop.buffers.takeLarge()
        let free = buffer.writable
        let memory = UnsafeMutableRawBufferPointer(rebasing: free[..<min(free.count, room)])
        let result = source.transport.read(
            into: memory, trustsShortRead: !source.peerFinished, spending: &budget)
        if case .bytes(let count, let drained) = result {
            buffer.end = count
            direction.queue.append(buffer.readable, owner: buffer)
            if drained { source.mayRead = false }
        }
        return result
    }

    private func giveBackPipe(_ direction: inout Direction) {
        guard direction.pipeBytes == 0, let pipe = direction.pipe else { return }
        direction.pipe = nil
        environment.pipes.give(pipe)
    }

    fileprivate func hasEnded(_ end: End) -> Bool {
        end.isClient ? toUpstream.sourceEnded : toClient.sourceEnded
    }

    /// How long the proof of who asked for it is still worth something.
    private var millisecondsOfProof: Int64 {
        basis?.millisecondsOfProof(at: environment.wallMilliseconds, under: environment.policy)
            ?? .max
    }

    /// Checks four times within the idle time whether either peer reads something: a socket may
    /// have accepted more than its peer reads in that time. And once whether the proof of who asked
    /// has expired.
    fileprivate func looks() {
        guard let client, let upstream else { return }
        let milliseconds = millisecondsOfProof
        guard milliseconds > 0 else { return forbid(.authentication(.ended, .proxy)) }
        look(&toUpstream.progress, upstream)
        look(&toClient.progress, client)
        guard let next = idleTime.nextCheck(of: idleMilliseconds, at: environment.loop.now) else {
            return close(broken: false, wasIdle: true)
        }
        environment.loop.setDeadline(client, after: min(next, milliseconds))
    }

    private func look(_ progress: inout SendProgress, _ sink: End) {
        let delivery = Sockets.delivery(sink.transport.descriptor)
        if let time = progress.look(delivery, at: environment.loop.now) { idleTime.note(at: time) }
    }

    /// The process does not end after all. What is looked at too early is looked at again.
    func endDraining() { idleMilliseconds = usualIdleMilliseconds }

    /// The process is to end: being idle from now on ends the relay sooner.
    func drain(idleMilliseconds: Int64) {
        guard let client, idleMilliseconds < self.idleMilliseconds else { return }
        self.idleMilliseconds = idleMilliseconds
        idleTime.note(at: environment.loop.now)
        environment.loop.setDeadline(
            client,
            after: min(IdleTime.firstLook(of: idleMilliseconds), max(1, millisecondsOfProof)))
    }

    /// Ends the relay if it would not be begun under a policy.
    func endIfSuperseded(by policy: PolicySnapshot) {
        guard client != nil, let basis, basis.isSuperseded(by: policy) else { return }
        forbid(.gateway(.tunnelPolicyChanged))
    }

    private func forbid(_ fault: ExchangeError) {
        forbidden?(fault)
        // What is cut short must not look complete.
        close(broken: true)
    }

    func cut() { close(broken: true) }

    /// The bytes that it has taken from either side.
    var relayedBytes: (fromClient: UInt64, toClient: UInt64) { (toUpstream.total, toClient.total) }

    /// Ends both connections.
    func close(broken: Bool, wasIdle: Bool = false) {
        guard let client, let upstream else { return }
        self.client = nil
        self.upstream = nil
        for end in [client, upstream] {
            if broken { Sockets.resetOnClose(end.transport.descriptor) }
            environment.loop.remove(end)
            end.transport.close()
        }
        giveBackPipe(&toUpstream)
        giveBackPipe(&toClient)
        toUpstream.queue.discard()
        toClient.queue.discard()
        toUpstream.pace?.end()
        toClient.pace?.end()
        limited = nil
        exchange = nil
        environment.unregister(self)
        ended(
            toUpstream.total, toClient.total, wasIdle ? .idle : broken ? .broken : .complete)
    }
}

/// A pipe for splicing; closed with its last reference.
final class Pipe {
    static let capacity = 1 << 20

    let readEnd: Int32
    let writeEnd: Int32

    init() throws(Errno) {
        (readEnd, writeEnd) = try Descriptors.pipe(capacity: Int32(Self.capacity))
    }

    deinit {
        Descriptors.close(readEnd)
        Descriptors.close(writeEnd)
    }
}

/// Empty pipes of one worker, kept for the next burst.
final class PipePool {
    private static let kept = 16
    private var free: [Pipe] = []

    /// An empty pipe; `nil` if descriptors have run out, in which case bytes are copied instead.
    func take() -> Pipe? { free.popLast() ?? (try? Pipe()) }

    /// Returns an empty pipe.
    func give(_ pipe: Pipe) {
        if free.count < Self.kept { free.append(pipe) }
    }
}
