import EventLoop
import Locking

/// A runtime's event loop and its sessions. It is used only on the loop's thread.
package final class RuntimeLoop {
    package let loop: EventLoop
    let fieldLineCache = FieldLineCache()
    /// Resumes the tasks that read from transfers.
    let wakes: WakeBatch
    private var sessions: [UInt64: SessionLoop] = [:]
    /// The most recently used session: many consecutive requests belong to the same one.
    private var latestSession: SessionLoop?
    /// The transfers of all sessions that have not ended.
    private var transfers: [UInt64: Transfer] = [:]
    /// The streams that transports answer, and how many there were.
    private var transportStreams: [UInt64: TransportStream] = [:]
    private var transportStreamCount: UInt64 = 0
    /// The handlers of descriptors that belong to no session, such as the route socket.
    private var watches: [UInt64: (handler: EventHandler, descriptor: Int32)] = [:]
    /// Whether new messages are rejected.
    private var isClosing = false

    /// Runs tasks that prefer this thread.
    private let executor: LoopExecutor
    /// Sends a message to the loop from any thread. Once the loop has ended, it is dropped,
    /// with what waits for an answer to it.
    let post: @Sendable (RuntimeMessage) -> Void

    private init(_ executor: LoopExecutor, _ woken: WakeQueue) throws(Errno) {
        loop = try EventLoop()
        wakes = WakeBatch(of: loop, in: woken)
        self.executor = executor
        post = { _ = executor.post($0) }
    }

    /// The thread's main function.
    ///
    /// - Parameter woken: The tasks to resume at the end of a turn.
    static func run(
        _ mailbox: Mailbox<RuntimeMessage>, _ executor: LoopExecutor, _ woken: WakeQueue,
        telling start: Monitor<Result<Void, Errno>?>
    ) {
        do throws(Errno) {
            let runtime = try RuntimeLoop(executor, woken)
            let receiver = MailboxReceiver(mailbox) { [unowned runtime] in runtime.handle($0) }
            try runtime.loop.add(
                receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
            runtime.loop.turnEnded = { [unowned runtime] in runtime.runTasks() }
            executor.begin(on: runtime.loop)
            start.withLock { $0 = .success(()) }
            start.signal()
            runtime.loop.run()
            runtime.close()
        } catch {
            start.withLock { $0 = .failure(error) }
            start.signal()
        }
        executor.end { refuse($0) }
    }

    /// Runs the tasks that prefer this thread, and handles what they send.
    private func runTasks() {
        guard executor.run(handle) else { return }
        // The rest follows after the events that have arrived meanwhile.
        loop.afterTurn {}
    }

    private static func refuse(_ message: RuntimeMessage) {
        switch message {
        case .begin(let request):
            request.content.close()
            request.channel.fail(.sessionInvalidated())
        case .open(let parts): parts.ended(.runtimeClosed())
        case .preconnect(let request): request.answer(.sessionInvalidated())
        case .count(let reply): reply(0)
        case .job(let job): globalConcurrentExecutor.enqueue(job)
        case .cancel, .suspend, .resume, .leaveQueue, .returnToQueue, .taken, .content, .transport,
            .cancelPreconnection, .close, .work, .stop:
            break
        }
    }

    private func handle(_ message: RuntimeMessage) {
        switch message {
        case .open(let parts): open(parts)
        case .begin(let request): begin(request)
        case .cancel(let number): transfers[number]?.cancel(.cancelled())
        case .suspend(let number): transfers[number]?.suspend()
        case .resume(let number): transfers[number]?.resume()
        case .leaveQueue(let number): transfers[number].map { $0.session.leavesQueue($0) }
        case .returnToQueue(let number): transfers[number].map { $0.session.returnsToQueue($0) }
        case .count(let reply): reply(transfers.count)
        case .job(let job): executor.run(job)
        case .taken(let number): transfers[number]?.readerCaughtUp()
        case .content(let number, let part): transfers[number]?.contentArrived(part)
        case .transport(let number, let event): transportStreams[number]?.handle(event)
        case .preconnect(let request): preconnect(request)
        case .cancelPreconnection(let session, let number):
            sessions[session]?.cancelPreconnection(number)
        case .close(let number, let cancelling): sessions[number]?.end(cancelling: cancelling)
        case .work(let work): work(self)
        case .stop: loop.stop()
        }
    }

    // MARK: Transports

    /// Adds a stream, which gets a number of its own.
    func addTransportStream(_ make: (UInt64) -> TransportStream) -> TransportStream {
        transportStreamCount += 1
        let stream = make(transportStreamCount)
        transportStreams[transportStreamCount] = stream
        return stream
    }

    func cancelTransportStreams(of source: TransportStreams) {
        for stream in Array(transportStreams.values) where stream.source === source {
            stream.cancel()
        }
    }

    func transportStreamEnded(_ number: UInt64) { transportStreams[number] = nil }

    // MARK: Watches

    /// Keeps a handler that is registered with the loop until it is removed or the runtime closes.
    package func keep(_ watch: EventHandler, of descriptor: Int32, as number: UInt64) {
        watches[number] = (watch, descriptor)
        if isClosing { removeWatch(number) }
    }

    /// Returns the handler with a number, or `nil` if it has been removed.
    func watch(_ number: UInt64) -> EventHandler? { watches[number]?.handler }

    /// Unregisters and releases a handler.
    package func removeWatch(_ number: UInt64) {
        guard let watch = watches.removeValue(forKey: number) else { return }
        loop.remove(watch.handler, keepingOpen: watch.descriptor)
    }

    private func open(_ parts: SessionParts) {
        guard !isClosing else { return Self.refuse(.open(parts)) }
        guard let session = SessionLoop(parts, on: self) else {
            return parts.ended(ClientError(.outOfResources, "no file descriptor for the session"))
        }
        sessions[parts.number] = session
    }

    private func begin(_ request: TransferRequest) {
        guard !isClosing, let session = session(request.session), !session.isEnding else {
            return Self.refuse(.begin(request))
        }
        let transfer = Transfer(request, in: session)
        transfers[request.number] = transfer
        session.enqueue(transfer)
    }

    private func preconnect(_ request: PreconnectRequest) {
        guard !isClosing, let session = session(request.session), !session.isEnding else {
            return Self.refuse(.preconnect(request))
        }
        session.preconnect(request)
    }

    /// Returns a transfer that has not ended.
    func transfer(_ number: UInt64) -> Transfer? { transfers[number] }

    func transfers(of session: SessionLoop) -> [Transfer] {
        transfers.values.filter { $0.session === session }
    }

    /// Returns `false` if the transfer had already ended.
    func transferEnded(_ number: UInt64) -> Bool { transfers.removeValue(forKey: number) != nil }

    private func session(_ number: UInt64) -> SessionLoop? {
        if let latestSession, latestSession.number == number { return latestSession }
        latestSession = sessions[number]
        return latestSession
    }

    func sessionEnded(_ number: UInt64) {
        sessions[number] = nil
        if latestSession?.number == number { latestSession = nil }
    }

    private func close() {
        isClosing = true
        for session in Array(sessions.values) { session.end(cancelling: true, .runtimeClosed()) }
        // A turn closes some of them.
        while !sessions.isEmpty { loop.turn(waitingAtMost: 0) }
        // Runs what was deferred to after a turn: twice, because deferred work may itself defer
        // more.
        for _ in 0..<2 { loop.turn(waitingAtMost: 0) }
        wakes.wake()
        for handler in loop.handlers { loop.remove(handler) }
        watches = [:]
    }
}
