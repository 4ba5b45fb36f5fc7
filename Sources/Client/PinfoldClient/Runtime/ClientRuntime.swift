import EventLoop
import Locking
import PinfoldResolver
import PinfoldTLS
import Synchronization
import Threads

/// The thread that carries out the requests of sessions: one event loop, its name lookups, and a
/// few threads that read files for it.
///
/// All sessions use
/// ``shared()`` unless they are given another one: not a thread per request, nor one
/// per session. A runtime of one's own is for work that must not be held up by others, or that
/// ends with its threads joined.
public final class ClientRuntime: Sendable {
    private let mailbox: Mailbox<RuntimeMessage>
    /// Whether the loop still takes messages.
    private let isOpen = Locked(true)
    let resolver: Resolver
    /// Read files and forms, and decode images.
    let readers: ThreadPool
    /// Read the caller's own sources, which may block for long: they hold up one another only.
    let sources: ThreadPool
    /// Write files.
    let writers: ThreadPool
    /// The tasks to be woken at the end of a turn of the loop; each one wakes the next.
    let woken = WakeLine()
    private let thread: Thread
    private let isClosed = Atomic(false)
    private let numbers = Atomic<UInt64>(0)

    /// Threads that read files at a time.
    private static let readerThreads = 4
    /// Reads that wait at most: each transfer has one at a time.
    private static let readerLimit = 1 << 16
    /// Threads that read the caller's own sources at a time, each blocked for as long as its source
    /// gives nothing.
    private static let sourceThreads = 32
    /// Threads that write files at a time.
    private static let writerThreads = 4
    /// Writes that wait at most: each download has one at a time.
    private static let writerLimit = 1 << 16

    private static let made = Locked<ClientRuntime?>(nil)

    /// The runtime of every session that names none: made when it is first asked for, and never
    /// closed.
    ///
    /// - Throws: as ``init(name:)``; the next call tries again.
    public static func shared() throws(ClientError) -> ClientRuntime {
        let result = made.withLock { made -> Result<ClientRuntime, ClientError> in
            if let made { return .success(made) }
            return Result { () throws(ClientError) in
                let runtime = try ClientRuntime()
                made = runtime
                return runtime
            }
        }
        return try result.get()
    }

    /// Starts the threads.
    ///
    /// - Parameter name: what ps(1) shows of the loop's thread, cut to 15 bytes.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/outOfResources`` where the system gives
    ///   no thread or no descriptor.
    public init(name: String = "pinfold-client") throws(ClientError) {
        LibraryLifetime.lastUntilExit()
        do {
            let mailbox = try Mailbox<RuntimeMessage>()
            let resolver = try Resolver()
            self.mailbox = mailbox
            self.resolver = resolver
            readers = ThreadPool(
                name: "pinfold-files", threads: Self.readerThreads, niceness: 0,
                limit: Self.readerLimit)
            sources = ThreadPool(
                name: "pinfold-source", threads: Self.sourceThreads, niceness: 0,
                limit: Self.readerLimit)
            writers = ThreadPool(
                name: "pinfold-write", threads: Self.writerThreads, niceness: 0,
                limit: Self.writerLimit)
            let (start, isOpen, woken) = (Monitor<Result<Void, Errno>?>(nil), isOpen, woken)
            thread = try Thread(name: name) {
                RuntimeLoop.run(mailbox, isOpen, woken, telling: start)
            }
            try start.wait { $0.map { .done($0) } ?? .signal }.get()
        } catch {
            throw ClientError(
                .outOfResources, "the client's threads did not start: \(error)", underlying: error)
        }
    }

    deinit { close() }

    /// Ends the sessions, whose tasks fail with ``ClientError/Reason/sessionInvalidated``, and
    /// waits until the threads have ended: for as long as a source of content blocks its reader. To
    /// be called by whoever made the runtime; it must not be called by a callback of its own
    /// sessions.
    public func close() {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        _ = post(.stop)
        thread.join()
        readers.close()
        sources.close()
        writers.close()
        resolver.close()
    }

    /// Tells the loop. False: it has ended.
    @discardableResult
    func post(_ message: RuntimeMessage) -> Bool { Self.post(message, mailbox, isOpen) }

    /// Does the same, without keeping the runtime alive.
    var poster: @Sendable (RuntimeMessage) -> Void {
        { [mailbox, isOpen] in _ = Self.post($0, mailbox, isOpen) }
    }

    private static func post(
        _ message: RuntimeMessage, _ mailbox: Mailbox<RuntimeMessage>, _ isOpen: Locked<Bool>
    ) -> Bool {
        isOpen.withLock { isOpen in
            if isOpen { mailbox.post(message) }
            return isOpen
        }
    }

    /// Transfers that have not ended; asked for on the loop, behind what it was told before.
    var transferCount: Int {
        get async {
            await withCheckedContinuation { continuation in
                let reply = { @Sendable in continuation.resume(returning: $0) }
                if !post(.count(reply)) { reply(0) }
            }
        }
    }

    /// A number that no session or transfer of this runtime has.
    func nextNumber() -> UInt64 { numbers.add(1, ordering: .relaxed).newValue }
}
