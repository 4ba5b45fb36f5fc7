import Locking

/// Messages from any thread to one loop, announced through an event descriptor.
///
/// Bounded by what its senders may have outstanding: every message answers a request of the
/// loop's own, or comes from the process's control.
package final class Mailbox<Message: Sendable>: Sendable {
    private let messages = Locked<[Message]>([])
    let event: Int32

    package init() throws(Errno) { event = try Descriptors.event() }

    deinit { Descriptors.close(event) }

    /// Queues a message and wakes the loop if it may be asleep. Callable from any thread.
    package func post(_ message: consuming Message) {
        let message = message
        let first = messages.withLock { queue in
            queue.append(message)
            return queue.count == 1
        }
        if first { Descriptors.signal(event) }
    }

    /// Everything that is queued, oldest first.
    package func take() -> [Message] {
        messages.withLock { queue in
            let taken = queue
            queue = []
            return taken
        }
    }
}

/// The loop's end of a mailbox.
package final class MailboxReceiver<Message: Sendable>: EventHandler {
    private let mailbox: Mailbox<Message>
    private let receive: (Message) -> Void

    package init(_ mailbox: Mailbox<Message>, receive: @escaping (Message) -> Void) {
        self.mailbox = mailbox
        self.receive = receive
    }

    /// The descriptor to register, level-triggered.
    package var descriptor: Int32 { mailbox.event }

    public override func ready(_ readiness: Readiness) {
        Descriptors.drain(mailbox.event)
        for message in mailbox.take() { receive(message) }
    }
}
