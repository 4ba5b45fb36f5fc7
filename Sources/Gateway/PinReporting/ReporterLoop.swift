import Clocks
import EventLoop

/// The event loop of a thread that delivers: deliveries proceed in its turns.
package final class ReporterLoop {
    package let loop: EventLoop
    private var isWoken = false

    /// - Parameter wakes: where any thread says that there is something else to do.
    package init(wokenBy wakes: Mailbox<Void>) throws(Errno) {
        loop = try EventLoop()
        let receiver = MailboxReceiver(wakes) { [unowned self] in wake() }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
    }

    /// Runs turns until there is something else to do, which may have been said before.
    ///
    /// - Parameter end: the latest time, in milliseconds of the monotonic clock.
    package func run(until end: Int64) {
        repeat {
            let remaining = isWoken ? 0 : max(1, end - Clock.monotonicMilliseconds())
            loop.turn(waitingAtMost: Int32(clamping: remaining))
        } while !isWoken && Clock.monotonicMilliseconds() < end
        isWoken = false
    }

    /// Lets the deliveries proceed between two pieces of other work.
    package func turn() { loop.turn(waitingAtMost: 0) }

    /// Ends ``run(until:)`` after the current turn, or after the first one.
    package func wake() { isWoken = true }
}
