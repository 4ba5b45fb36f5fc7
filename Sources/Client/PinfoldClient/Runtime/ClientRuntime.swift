import EventLoop
import Locking
import PinfoldResolver
import PinfoldTLS
import Synchronization
import Threads

/// The threads that carry out the requests of sessions: an event loop with name resolution, and a
/// few threads for blocking file access.
///
/// All sessions use ``shared()`` by default; there is no thread per request or per session. Create
/// another runtime for work that must not be delayed by other requests, or whose threads must be
/// joined at the end.
public final class ClientRuntime: Sendable {
    private let executor: LoopExecutor
    let resolver: Resolver
    /// Threads that read files and forms, and decode images.
    package let readers: ThreadPool
    /// Threads that read sources provided by the caller. These may block for long, and so can delay
    /// only each other.
    let sources: ThreadPool
    /// Threads that write files.
    let writers: ThreadPool
    /// The tasks to be resumed at the end of a turn of the loop. Each one resumes the next.
    let woken = WakeQueue()
    private let thread: Thread
    private let isClosed = Atomic(false)
    private let numbers = Atomic<UInt64>(0)

    /// The number of threads that read files.
    private static let readerThreads = 4
    /// The maximum number of waiting reads; each transfer has at most one.
    private static let readerLimit = 1 << 16
    /// The number of threads that read sources provided by the caller. Each is blocked for as long
    /// as its source is.
    private static let sourceThreads = 32
    /// The number of threads that write files.
    private static let writerThreads = 4
    /// The maximum number of waiting writes; each download has at most one.
    private static let writerLimit = 1 << 16

    private static let made = Locked<ClientRuntime?>(nil)

    /// Returns the default runtime of sessions. It is created on first use and never closed.
    ///
    /// - Throws: The errors of ``init(name:)``. The next call tries again.
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

    /// Creates a runtime and starts its threads.
    ///
    /// - Parameter name: The name of the loop's thread in ps(1), truncated to 15 bytes.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/outOfResources`` if the system cannot
    ///   provide a thread or a descriptor.
    public init(name: String = "pinfold-client") throws(ClientError) {
        LibraryLifetime.keepUntilExit()
        do {
            let mailbox = try Mailbox<RuntimeMessage>()
            let executor = LoopExecutor(mailbox)
            let resolver = try Resolver()
            self.executor = executor
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
            let (start, woken) = (Monitor<Result<Void, Errno>?>(nil), woken)
            thread = try Thread(name: name) {
                RuntimeLoop.run(mailbox, executor, woken, telling: start)
            }
            try start.wait { $0.map { .done($0) } ?? .signal }.get()
        } catch {
            throw ClientError(
                .outOfResources, "the client's threads did not start: \(error)", underlying: error)
        }
    }

    deinit { close() }

    /// Runs tasks on the thread of the runtime's loop: a request then takes less CPU time, because
    /// no other thread has to be woken to begin it and to get its response.
    ///
    ///     try await withTaskExecutorPreference(runtime.taskExecutor) {
    ///         // Many requests, here or in child tasks
    ///     }
    ///
    /// It is for tasks that do little between their requests. Whatever they compute delays all
    /// sessions of the runtime, and whatever blocks, such as reading a file or waiting for a lock,
    /// stops them: nothing that waits for one of those sessions without `await` may run there. Work
    /// of actors, such as the main actor, is done where it always is. When the runtime is closed,
    /// its tasks continue on the threads of the concurrency library.
    public var taskExecutor: any TaskExecutor { executor }

    /// Closes the runtime and waits until its threads have ended, including those that are blocked
    /// by a source of content. Tasks in its sessions fail with
    /// ``ClientError/Reason/sessionInvalidated``. Only the creator of the runtime may call this,
    /// and never from a callback of one of its sessions.
    public func close() {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        _ = post(.stop)
        thread.join()
        readers.close()
        sources.close()
        writers.close()
        resolver.close()
    }

    /// Sends a message to the loop. Returns `false` if the loop has ended.
    @discardableResult
    func post(_ message: RuntimeMessage) -> Bool { executor.post(message) }

    /// Runs a closure on the loop's thread. Returns `false` if the loop has ended.
    @discardableResult
    package func perform(_ work: @escaping @Sendable (RuntimeLoop) -> Void) -> Bool {
        post(.work(work))
    }

    /// Sends messages without keeping the runtime alive.
    var poster: @Sendable (RuntimeMessage) -> Void { { [executor] in _ = executor.post($0) } }

    /// The number of transfers that have not ended, counted on the loop after all earlier messages.
    var transferCount: Int {
        get async {
            await withCheckedContinuation { continuation in
                let reply = { @Sendable in continuation.resume(returning: $0) }
                if !post(.count(reply)) { reply(0) }
            }
        }
    }

    /// Returns a number that is unique within this runtime.
    package func nextNumber() -> UInt64 { numbers.add(1, ordering: .relaxed).newValue }
}
