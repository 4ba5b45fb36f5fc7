import Clocks
import EventLoop
import Locking
import Logging
import Supervision
import Threads

/// Tells the service manager that the gateway works, as long as every worker's loop turns: twice in
/// the interval that the manager allows. On a thread of its own, so that a reload that takes long
/// is not taken for a fault.
///
///     ask all workers ──► all have answered ──► WATCHDOG=1 ──► half an interval later, again
///                              │ half an interval
///                              ▼
///                         a line in the log for each that has not ──► wait on
final class Watchdog: Sendable {
    private let manager: ServiceManager
    private let turns: LoopTurns
    private let mailboxes: [Mailbox<WorkerMessage>]
    private let logger: Logger
    /// Half of what the manager allows, in nanoseconds.
    private let half: Int64
    private let isClosed = Monitor(false)
    private let thread = Locked<Thread?>(nil)

    /// Starts the thread; `nil` if the manager expects nothing.
    init?(
        _ manager: ServiceManager, turns: LoopTurns, mailboxes: [Mailbox<WorkerMessage>],
        logger: Logger
    ) throws(Thread.StartError) {
        guard let interval = manager.watchdogMicroseconds else { return nil }
        self.manager = manager
        self.turns = turns
        self.mailboxes = mailboxes
        self.logger = logger
        half = max(1_000_000, min(interval, 86_400_000_000) * 500)
        let started = try Thread(name: "watchdog") { [self] in run() }
        thread.withLock { $0 = started }
    }

    private func run() {
        while true {
            let start = Clock.monotonicNanoseconds()
            turns.ask { [mailboxes] round in
                for mailbox in mailboxes { mailbox.post(.answer(round: round)) }
            }
            waitForAnswers()
            manager.send([.watchdog])
            let next = start + half
            let isOver = isClosed.wait { isClosed in
                if isClosed { return .done(true) }
                return Clock.monotonicNanoseconds() >= next ? .done(false) : .until(next)
            }
            if isOver { return }
        }
    }

    /// Until all have answered, or need not because they are ending: that takes a limited time, for
    /// which the watchdog is fed in any case.
    private func waitForAnswers() {
        while !turns.waitForAll(until: Clock.monotonicNanoseconds() + half) {
            for silence in turns.silent() {
                logger.error(
                    "a worker's loop does not turn: the service manager's watchdog is not fed",
                    metadata: [
                        "worker": "\(silence.worker)", "duration": "\(silence.milliseconds)ms",
                    ])
            }
        }
    }

    /// Ends the thread. The workers must have ended, or been told to.
    func close() {
        isClosed.withLock { $0 = true }
        isClosed.broadcast()
        thread.withLock { $0.take() }?.join()
    }
}
