import EventLoop
import Locking
import Synchronization

/// Runs Swift tasks on the thread of a runtime's loop: the parts of a task that belong to no actor,
/// between its suspensions.
///
/// A task that runs there calls the loop and is resumed by it without another thread.
final class LoopExecutor: TaskExecutor {
    /// How many parts of tasks, and messages, a turn of the loop runs, so that they do not delay
    /// connections' events for long.
    private static let portion = 256

    private let mailbox: Mailbox<RuntimeMessage>
    /// Whether the loop still accepts messages.
    private let isOpen = Locked(true)
    /// The address of the loop while it runs, otherwise 0.
    private let loop = Atomic<UInt>(0)
    /// What is to be run; used only on the loop's thread.
    nonisolated(unsafe) private var jobs = FIFO<UnownedJob>()
    /// Whether that thread has sent messages that it has not taken; used only there.
    nonisolated(unsafe) private var hasMessages = false

    init(_ mailbox: Mailbox<RuntimeMessage>) { self.mailbox = mailbox }

    /// Whether the calling thread is that of the running loop.
    private var isOnLoop: Bool {
        guard let current = EventLoop.current else { return false }
        return UInt(bitPattern: ObjectIdentifier(current)) == loop.load(ordering: .relaxed)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if isOnLoop {
            jobs.append(job)
        } else if !postToMailbox(.job(job)) {
            // It must run somewhere, or its task would never end.
            globalConcurrentExecutor.enqueue(job)
        }
    }

    /// Sends a message to the loop. Returns `false` if the loop has ended.
    ///
    /// Messages of all threads are in one queue: what cancels a transfer must not get ahead of what
    /// begins it.
    func post(_ message: RuntimeMessage) -> Bool {
        guard isOnLoop else { return postToMailbox(message) }
        mailbox.postWithoutWaking(message)
        hasMessages = true
        return true
    }

    private func postToMailbox(_ message: RuntimeMessage) -> Bool {
        isOpen.withLock { isOpen in
            if isOpen { mailbox.post(message) }
            return isOpen
        }
    }

    // MARK: Used on the loop's thread

    /// The loop begins to run.
    func begin(on loop: EventLoop) {
        self.loop.store(UInt(bitPattern: ObjectIdentifier(loop)), ordering: .relaxed)
    }

    /// Runs what there is, up to a portion, in rounds: messages have their turn however many tasks
    /// there are. Returns whether there is more.
    func run(_ handle: (RuntimeMessage) -> Void) -> Bool {
        var left = Self.portion
        while left > 0, !jobs.isEmpty || hasMessages {
            let count = jobs.count
            for _ in 0..<count {
                jobs.popFirst()?.runSynchronously(on: asUnownedTaskExecutor())
            }
            if hasMessages {
                hasMessages = false
                for message in mailbox.take() { handle(message) }
            }
            left -= max(1, count)
        }
        return !jobs.isEmpty || hasMessages
    }

    /// Runs a part of a task that another thread has enqueued.
    func run(_ job: UnownedJob) { jobs.append(job) }

    /// The loop has ended, or has not begun. Tasks continue on the threads of the concurrency
    /// library.
    ///
    /// - Parameter refuse: Refuses a message.
    func end(_ refuse: (RuntimeMessage) -> Void) {
        loop.store(0, ordering: .relaxed)
        isOpen.withLock { $0 = false }
        for message in mailbox.take() { refuse(message) }
        while let job = jobs.popFirst() { globalConcurrentExecutor.enqueue(job) }
    }
}
