import Locking

/// Messages from any thread to one loop, signalled through an event descriptor.
///
/// Its size is limited by what its senders may have outstanding: every message answers a request
/// from the loop itself, or comes from the process's control.
public final class Mailbox<Message: Sendable>: Sendable {
    private let messages = Locked<[Message]>([])
    let event: Int32

    public init() throws(Errno) { event = try Descriptors.event() }

    deinit { Descriptors.close(event) }

    /// Queues a message and wakes the loop if it may be asleep. Can be called from any thread.
    public func post(_ message: consuming Message) {
        let message = message
        let first = messages.withLock { queue in
            queue.append(message)
            return queue.count == 1
        }
        if first { Descriptors.signal(event) }
    }

    /// Queues a message of the loop's own thread, which calls ``take()`` in the same turn and need
    /// not be woken.
    public func postWithoutWaking(_ message: consuming Message) {
        let message = message
        messages.withLock { $0.append(message) }
    }

    /// Removes and returns all queued messages, oldest first.
    public func take() -> [Message] {
        messages.withLock { queue in
            let taken = queue
            queue = []
            return taken
        }
    }
}

/// The receiving end of a mailbox, on the loop.
public final class MailboxReceiver<Message: Sendable>: EventHandler {
    private let mailbox: Mailbox<Message>
    private let receive: (Message) -> Void

    public init(_ mailbox: Mailbox<Message>, receive: @escaping (Message) -> Void) {
        self.mailbox = mailbox
        self.receive = receive
    }

    /// The descriptor to register, level-triggered.
    public var descriptor: Int32 { mailbox.event }

    public override func ready(_ readiness: Readiness) {
        Descriptors.drain(mailbox.event)
        for message in mailbox.take() { receive(message) }
    }
}
