import CLinux

/// One thread's loop: readiness, deadlines and work put off to the end of a turn.
///
/// Not thread-safe: everything but `Mailbox.post` happens on the thread that runs it.
package final class EventLoop {
    private let selector: Selector
    private var slots = SlotTable()
    private var wheel: TimerWheel
    /// Entries of the wheel that are due, in the order in which they fell due.
    private var due = FIFO<TimerWheel.Entry>()
    private var deferred = FIFO<() -> Void>()
    /// Who has work left from an earlier turn, first come first served.
    private var runQueue = ContiguousArray<Token>()
    /// Kept for its storage.
    private var servedQueue = ContiguousArray<Token>()
    private var clock: LoopClock
    /// Where the time comes from.
    package let time: TimeSource
    /// Called at the end of each turn.
    package final var turnEnded: (() -> Void)?
    private var running = false
    /// Places of the run queue that are kept when it is empty.
    private static let keptQueue = 256
    /// Registered handlers that expect nothing.
    private var quietHandlers = 0
    /// Counts the turns: tells whether something happened in this one.
    package private(set) final var turnNumber: UInt64 = 0
    /// More may be ready than this turn was told of.
    package private(set) final var mayHaveMoreEvents = false

    /// How many deadlines, and how many pieces of deferred work, one turn takes at most. The next
    /// turns take the rest, with the events of descriptors between them, so that thousands that
    /// come due together do not stop everybody else.
    package static let portion = 64

    /// What one connection may do in this turn (`TurnBudget`), in bytes.
    package private(set) final var turnShare = TurnShare.share(among: 1)

    /// Milliseconds of the loop's clock (`LoopClock`), read twice a turn: for deadlines, and for
    /// how long something took. Time in which the process did not run is not in it.
    package private(set) final var now: Int64
    /// Milliseconds of the monotonic clock when `now` was read: for what grows old even while the
    /// process does not run.
    package final var monotonicNow: Int64 { clock.monotonic }
    package let buffers = BufferPool()

    /// - Parameter eventsPerTurn: how many descriptors one turn hears of at most.
    package init(eventsPerTurn: Int = 512, time: TimeSource = .system) throws(Errno) {
        selector = try Selector(eventsPerWait: eventsPerTurn)
        self.time = time
        clock = LoopClock(monotonic: time.monotonicMilliseconds())
        now = clock.now
        wheel = TimerWheel(now: clock.now)
    }

    deinit { buffers.close() }

    /// How many handlers are registered.
    package var handlerCount: Int { slots.count }

    /// Registers a handler; its events begin with the next turn. A handler without a descriptor
    /// has deadlines only.
    package func add(
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

    /// Ends a registration. The descriptor stays open and is the caller's to close, which also
    /// takes it out of epoll; `descriptor` takes it out when it is to stay open.
    package func remove(_ handler: EventHandler, keepingOpen descriptor: Int32? = nil) {
        if let descriptor { selector.remove(descriptor) }
        setQuiet(handler, false)
        slots.remove(handler.token)
        handler.token = .none
        handler.deadline = .max
        handler.wheelEntry = .max
        handler.isQueued = false
    }

    /// Says that nothing is expected of a handler's descriptor: whatever becomes ready there is
    /// told before all other events of its turn, so that none of those finds the handler still
    /// thought to be idle.
    @inline(__always)
    package func setQuiet(_ handler: EventHandler, _ isQuiet: Bool) {
        guard handler.isQuiet != isQuiet else { return }
        handler.isQuiet = isQuiet
        quietHandlers += isQuiet ? 1 : -1
    }

    /// Sets when `handler.deadlineReached` is called: `milliseconds` from now; nil: never.
    @inline(__always)
    package func setDeadline(_ handler: EventHandler, after milliseconds: Int64?) {
        guard let milliseconds else {
            handler.deadline = .max
            return
        }
        let time = now + milliseconds
        handler.deadline = time
        if time < handler.wheelEntry { schedule(handler, at: time) }
    }

    private func schedule(_ handler: EventHandler, at time: Int64) {
        handler.wheelEntry = wheel.add(handler.token, at: time)
    }

    /// The registered handler of a token, for answers that come back from another thread.
    package func handler(for token: Token) -> EventHandler? { slots.handler(for: token) }

    /// Every registered handler, for shutting down.
    package var handlers: [EventHandler] { slots.all }

    /// Runs `work` on a fresh stack at the end of this turn, or of one that follows at once when
    /// there is more than `portion`; in the order of the calls.
    package func afterTurn(_ work: @escaping () -> Void) { deferred.append(work) }

    /// Drops the work that was put off, which refers to whoever did: the loop turns no more.
    package func forgetDeferred() {
        // What goes with it may put off something in turn.
        var dropped = FIFO<() -> Void>()
        swap(&dropped, &deferred)
    }

    /// Calls `handler.continueWork` in the next turn, after what happened by then has been told:
    /// for a connection that has spent its share of this turn and has more to do.
    package func requeue(_ handler: EventHandler) {
        guard !handler.isQueued, handler.token != .none else { return }
        handler.isQueued = true
        runQueue.append(handler.token)
    }

    /// Runs turns until `stop`.
    package func run() {
        running = true
        while running { turn() }
    }

    /// Ends `run` after the current turn.
    package func stop() { running = false }

    /// One turn: waits at most `limit` milliseconds (nil: until something happens), then calls
    /// the handlers that are ready, those with work left from before, a portion of those whose
    /// deadline passed, and a portion of the work put off.
    package func turn(waitingAtMost limit: Int32? = nil) {
        let wait = milliseconds(toWaitAtMost: limit)
        let count = selector.wait(milliseconds: wait)
        turnNumber &+= 1
        mayHaveMoreEvents = count == selector.capacity
        turnShare = TurnShare.share(among: count &+ runQueue.count)
        if count > 0 || !runQueue.isEmpty {
            readClock(waited: wait)
            swap(&runQueue, &servedQueue)
            deliver(count)
            runQueued()
            readClock(waited: 0)
        } else {
            readClock(waited: wait)
        }
        expireDue()
        runDeferred()
        turnEnded?()
    }

    private func milliseconds(toWaitAtMost limit: Int32?) -> Int32 {
        guard deferred.isEmpty, due.isEmpty, runQueue.isEmpty else { return 0 }
        var wait = wheel.wait(from: now)
        if wait > LoopClock.longestWaitMilliseconds { wait = LoopClock.longestWaitMilliseconds }
        if let limit, wait < 0 || wait > limit { wait = limit }
        return wait
    }

    @inline(__always)
    private func readClock(waited: Int32) {
        clock.advance(to: time.monotonicMilliseconds(), waited: waited)
        now = clock.now
    }

    /// Lets those go on who asked for it in an earlier turn; who asks now has its next turn.
    private func runQueued() {
        guard !servedQueue.isEmpty else { return }
        for token in servedQueue {
            guard let handler = slots.handler(for: token) else { continue }
            handler.isQueued = false
            handler.continueWork()
        }
        servedQueue.removeAll(keepingCapacity: servedQueue.count <= Self.keptQueue)
    }

    /// Tells the handlers what became ready: those first that expected nothing.
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
        wheel.advance(to: now, into: &due)
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
        // What this work puts off itself is for the next turn.
        for _ in 0..<min(deferred.count, Self.portion) { deferred.popFirst()?() }
    }
}
