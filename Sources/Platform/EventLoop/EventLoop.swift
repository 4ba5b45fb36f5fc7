import CLinux
/// One thread's loop: readiness, deadlines, and work deferred to the end of a turn.
///
/// Not thread-safe: everything except `Mailbox.post` must be called on the thread that runs it.
public final class EventLoop {
    private let selector: Selector
    private var slots = SlotTable()
    private var wheel: TimerWheel
    /// Entries of the wheel that are due, in the order in which they became due.
    private var due = FIFO<TimerWheel.Entry>()
    private var deferred = FIFO<() -> Void>()
    /// Handlers with work left from an earlier turn, served first come, first served.
    private var runQueue = ContiguousArray<Token>()
    /// Kept for its storage.
    private var servedQueue = ContiguousArray<Token>()
    @usableFromInline var clock: LoopClock
    /// The source of the time.
    public let time: TimeSource
    /// How much time the turns take.
    public let turnTimes: TurnTimes
    /// Called at the end of each turn.
    public final var turnEnded: (() -> Void)?
    private var running = false
    /// What others keep for this loop alone, by whom it belongs to; until it runs no more turns.
    public final var attachments: [ObjectIdentifier: AnyObject] = [:]
    private var gathering = Gathering()
    private var wantsMore = false
    /// Capacity of the run queue that is kept while it is empty.
    private static let keptQueue = 256
    /// Registered handlers that expect no events.
    @usableFromInline var quietHandlers = 0
    /// The number of turns so far: tells whether something happened in the current one.
    public private(set) final var turnNumber: UInt64 = 0
    /// Whether more descriptors may be ready than this turn was given.
    public private(set) final var mayHaveMoreEvents = false

    /// The maximum number of deadlines, and of pieces of deferred work, in one turn. Later turns
    /// handle the rest, with descriptors' events in between, so that thousands that become due
    /// together do not stall everything else.
    public static let portion = 64

    /// What one connection may do in this turn (`TurnBudget`), in bytes.
    public private(set) final var turnShare = TurnShare.share(among: 1)

    /// Milliseconds of the loop's clock (`LoopClock`), read twice per turn: for deadlines, and for
    /// measuring how long something took. It does not include time in which the process did not
    /// run.
    public private(set) final var now: Int64
    /// Milliseconds of the monotonic clock when `now` was read: for whatever ages even while the
    /// process does not run.
    @inlinable public final var monotonicNow: Int64 { clock.monotonic }
    public let buffers = BufferPool()

    /// - Parameters:
    ///   - eventsPerTurn: the maximum number of descriptors whose events one turn handles.
    ///   - turnTimes: where the loop records how busy it is, for other threads to read.
    public init(
        eventsPerTurn: Int = 512, time: TimeSource = .system, turnTimes: TurnTimes = TurnTimes()
    ) throws(Errno) {
        selector = try Selector(eventsPerWait: eventsPerTurn)
        self.time = time
        self.turnTimes = turnTimes
        clock = LoopClock(monotonic: time.monotonicMilliseconds())
        now = clock.now
        wheel = TimerWheel(now: clock.now)
    }

    deinit { buffers.close() }

    /// The number of registered handlers.
    public var handlerCount: Int { slots.count }

    /// Registers a handler; its events begin with the next turn. A handler without a descriptor has
    /// only deadlines.
    public func add(
        _ handler: EventHandler, descriptor: Int32? = nil, trigger: Trigger = .edge
    ) throws(Errno) {
        let token = slots.insert(handler)
        handler.token = token
        guard let descriptor else { return }
        do {
            try selector.add(descriptor, token: token, trigger: trigger)
        } catch {
            slots.remove(token)
            handler.token = .none
            throw error
        }
    }

    /// Ends a registration. The descriptor stays open for the caller to close, which also removes
    /// it from epoll; pass it as `descriptor` to remove it from epoll if it is to stay open.
    public func remove(_ handler: EventHandler, keepingOpen descriptor: Int32? = nil) {
        if let descriptor { selector.remove(descriptor) }
        setQuiet(handler, false)
        slots.remove(handler.token)
        handler.token = .none
        handler.deadline = .max
        handler.wheelEntry = .max
        handler.isQueued = false
    }

    /// Declares that nothing is expected of a handler's descriptor. Anything that becomes ready
    /// there is delivered before all other events of its turn, so that none of those finds a
    /// handler that still looks idle.
    @inline(__always)
    @inlinable public func setQuiet(_ handler: EventHandler, _ isQuiet: Bool) {
        guard handler.isQuiet != isQuiet else { return }
        handler.isQuiet = isQuiet
        quietHandlers += isQuiet ? 1 : -1
    }

    /// Sets when `handler.deadlineReached` is called: `milliseconds` from now, or never if `nil`.
    @inline(__always)
    @inlinable public func setDeadline(_ handler: EventHandler, after milliseconds: Int64?) {
        guard let milliseconds else {
            handler.deadline = .max
            return
        }
        let time = now + milliseconds
        handler.deadline = time
        if time < handler.wheelEntry { schedule(handler, at: time) }
    }

    @usableFromInline func schedule(_ handler: EventHandler, at time: Int64) {
        handler.wheelEntry = wheel.add(handler.token, at: time)
    }

    /// The registered handler of a token, for replies that arrive from another thread.
    public func handler(for token: Token) -> EventHandler? { slots.handler(for: token) }

    /// All registered handlers, for shutdown.
    public var handlers: [EventHandler] { slots.all }

    /// Runs `work` on a fresh stack at the end of this turn or, if there is more than `portion`, of
    /// one that follows immediately; in the order of the calls.
    public func afterTurn(_ work: @escaping () -> Void) { deferred.append(work) }

    /// Declares that what is done at the end of this turn is cheaper if more has arrived by then: a
    /// connection that writes once for many exchanges.
    public func expectMore() { wantsMore = true }

    /// Drops the deferred work, which keeps alive whoever deferred it, and the attachments; for a
    /// loop that runs no more turns.
    public func forgetDeferred() {
        attachments = [:]
        // Freeing it may defer more work.
        var dropped = FIFO<() -> Void>()
        swap(&dropped, &deferred)
    }

    /// Calls `handler.continueWork` in the next turn, after delivery of the events up to then: for
    /// a connection that has used up its share of this turn and has more to do.
    public func requeue(_ handler: EventHandler) {
        guard !handler.isQueued, handler.token != .none else { return }
        handler.isQueued = true
        runQueue.append(handler.token)
    }

    /// Runs turns until `stop`.
    public func run() {
        running = true
        pthread_setspecific(Self.currentKey, Unmanaged.passUnretained(self).toOpaque())
        while running { turn() }
        pthread_setspecific(Self.currentKey, nil)
    }

    /// The loop that the calling thread runs; `nil` on any other thread.
    public static var current: EventLoop? {
        guard let loop = pthread_getspecific(currentKey) else { return nil }
        return Unmanaged<EventLoop>.fromOpaque(loop).takeUnretainedValue()
    }

    private static let currentKey: pthread_key_t = {
        var key = pthread_key_t()
        let error = pthread_key_create(&key, nil)
        precondition(error == 0, "no key for the loops of threads: \(Errno(code: error))")
        return key
    }()

    /// Ends `run` after the current turn.
    public func stop() { running = false }

    /// Runs one turn: waits at most `limit` milliseconds (without limit if `nil`), then calls the
    /// handlers that are ready, those with work left from earlier turns, a portion of those whose
    /// deadline has passed, and a portion of the deferred work.
    public func turn(waitingAtMost limit: Int32? = nil) {
        let wait = milliseconds(toWaitAtMost: limit)
        let count = selector.wait(milliseconds: wait)
        turnNumber &+= 1
        mayHaveMoreEvents = count == selector.capacity
        turnShare = TurnShare.share(among: count &+ runQueue.count)
        var reading = readClock(waited: wait)
        turnTimes.begin(at: reading)
        if count > 0 || !runQueue.isEmpty {
            swap(&runQueue, &servedQueue)
            deliver(count)
            runQueued()
            if wantsMore { gather() }
            reading = readClock(waited: 0)
        }
        wheel.advance(to: now, into: &due)
        let isLonger = !due.isEmpty || !deferred.isEmpty
        expireDue()
        runDeferred()
        turnEnded?()
        turnTimes.end(at: isLonger ? time.monotonicNanoseconds() : reading)
    }

    /// Lets others have the processor, and delivers what has become ready meanwhile.
    private func gather() {
        wantsMore = false
        guard gathering.mayLook() else { return }
        let start = time.monotonicNanoseconds()
        sched_yield()
        let count = selector.wait(milliseconds: 0)
        gathering.looked(finding: count, taking: time.monotonicNanoseconds() - start)
        deliver(count)
        wantsMore = false
    }

    private func milliseconds(toWaitAtMost limit: Int32?) -> Int32 {
        guard deferred.isEmpty, due.isEmpty, runQueue.isEmpty else { return 0 }
        var wait = wheel.wait(from: now)
        if wait > LoopClock.longestWaitMilliseconds { wait = LoopClock.longestWaitMilliseconds }
        if let limit, wait < 0 || wait > limit { wait = limit }
        return wait
    }

    /// Returns nanoseconds of the monotonic clock.
    @inline(__always)
    private func readClock(waited: Int32) -> Int64 {
        let reading = time.monotonicNanoseconds()
        clock.advance(to: reading / 1_000_000, waited: waited)
        now = clock.now
        return reading
    }

    /// Resumes the handlers that were requeued in an earlier turn; those requeued now are resumed
    /// in the next.
    private func runQueued() {
        guard !servedQueue.isEmpty else { return }
        for token in servedQueue {
            guard let handler = slots.handler(for: token) else { continue }
            handler.isQueued = false
            handler.continueWork()
        }
        servedQueue.removeAll(keepingCapacity: servedQueue.count <= Self.keptQueue)
    }

    /// Delivers readiness to the handlers, first to those that expected no events.
    private func deliver(_ count: Int) {
        if count > 1, quietHandlers > 0 {
            for index in 0..<count {
                let (token, readiness) = selector[index]
                guard let handler = slots.handler(for: token), handler.isQuiet else { continue }
                selector.forget(index)
                handler.ready(readiness)
            }
        }
        for index in 0..<count {
            let (token, readiness) = selector[index]
            slots.handler(for: token)?.ready(readiness)
        }
    }

    private func expireDue() {
        for _ in 0..<min(due.count, Self.portion) {
            if let entry = due.popFirst() { expire(entry) }
        }
    }

    private func expire(_ entry: TimerWheel.Entry) {
        guard let handler = slots.handler(for: entry.token), handler.wheelEntry == entry.time
        else { return }
        handler.wheelEntry = .max
        if handler.deadline <= now {
            handler.deadline = .max
            handler.deadlineReached()
        } else if handler.deadline != .max {
            schedule(handler, at: handler.deadline)
        }
    }

    private func runDeferred() {
        // Work that this work defers runs in the next turn.
        for _ in 0..<min(deferred.count, Self.portion) { deferred.popFirst()?() }
    }
}
