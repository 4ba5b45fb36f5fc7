import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// The immutable parts of a session, usable on any thread.
struct SessionParts: Sendable {
    let number: UInt64
    let policy: PolicySnapshot
    let shared: SharedEnvironment
    let metrics: WorkerMetrics
    let queue: RequestQueue
    /// The maximum number of simultaneous WebSockets.
    let webSockets: Int
    /// The maximum number of simultaneous event streams.
    let eventStreams: Int
    let cache: SessionCache?
    /// What answers requests instead of the network, or `nil`.
    let transport: TransportParts?
    /// From where connections are made, and where hosts are instead of where their names say.
    let connections: ConnectionOptions
    let places: SessionPlaces?
    /// Called when the session has ended, with an error if it was not ended on request.
    let ended: @Sendable (ClientError?) -> Void
}

/// A session's transport, and the configuration with whose policies servers are evaluated.
struct TransportParts: Sendable {
    let transport: any SessionTransport
    let configuration: SessionConfiguration
}

/// A session on the loop's thread: its environment, and its waiting and active transfers.
final class SessionLoop {
    let number: UInt64
    let environment: Environment
    let ingress: Ingress
    let peer: Endpoint
    /// What a transport answers instead of the network, or `nil`.
    private let transports: TransportStreams?
    /// Whether a transport answers, so that servers have no address.
    var hasTransport: Bool { transports != nil }
    private let sockets: SessionSockets
    private unowned let runtime: RuntimeLoop
    var queue: RequestQueue
    /// Kept until the last request has ended.
    private let cache: SessionCache?
    /// The number of transfers that have not ended, including waiting ones. The runtime holds them.
    private var transferCount = 0
    /// The connections that are being made in advance, by their numbers.
    var preconnections: [UInt64: Preconnection] = [:]
    /// The number of them that are or will become WebSockets, and the maximum.
    private var webSockets = 0
    private let maximumWebSockets: Int
    /// The number of transfers that are or will become event streams, and the maximum.
    private var eventStreams = 0
    private let maximumEventStreams: Int
    /// The most recent result for the requests that occupy the slots: many ask at the same time.
    private var latestHolders: (at: Int64, holders: QueueHolders)?
    private(set) var isEnding = false
    private var hasEnded = false
    private var lastServer: (endpoint: Endpoint, text: String)?
    /// Why the session ends, if it was not on request.
    private var error: ClientError?
    private let whenEnded: @Sendable (ClientError?) -> Void

    var loop: EventLoop { runtime.loop }
    /// Reads the fields of responses.
    var fieldLineCache: FieldLineCache { runtime.fieldLineCache }
    /// Resumes the tasks that read from transfers.
    var wakes: WakeBatch { runtime.wakes }
    /// Sends a message to the loop from another thread.
    var post: @Sendable (RuntimeMessage) -> Void { runtime.post }

    /// Returns `nil` if the system has no descriptor left for the mailbox.
    init?(_ parts: SessionParts, on runtime: RuntimeLoop) {
        guard let own = Endpoint("127.0.0.1:0") else { return nil }
        self.runtime = runtime
        number = parts.number
        queue = parts.queue
        maximumWebSockets = parts.webSockets
        maximumEventStreams = parts.eventStreams
        cache = parts.cache
        whenEnded = parts.ended
        peer = own
        transports = parts.transport.map {
            TransportStreams($0.transport, $0.configuration, own, on: runtime)
        }
        sockets = SessionSockets(parts.connections, parts.places)
        ingress = Ingress(
            name: "client", label: .other, endpoint: own,
            role: .forward, isIntermediary: false)
        environment = Environment(
            index: 0, loop: runtime.loop, policy: parts.policy, shared: parts.shared,
            metrics: parts.metrics,
            upstreams: transports, sockets: sockets, keepsUnusedConnections: true)
        do throws(Errno) { try environment.start() } catch { return nil }
    }

    /// Returns the engine's entry point for a request.
    func ingress(of request: TransferRequest) -> Ingress {
        guard request.proxy != nil || request.acceptsAnyStored || request.speaksOnlyHTTP1 else {
            return ingress
        }
        return Ingress(
            name: ingress.name, label: ingress.label, endpoint: ingress.endpoint,
            role: request.proxy.map { .proxied($0) } ?? .forward, isIntermediary: false,
            acceptsAnyStored: request.acceptsAnyStored,
            speaksOnlyHTTP1: request.speaksOnlyHTTP1)
    }

    /// The text of a server's address: many consecutive requests go to the same one.
    func text(of server: Endpoint) -> String {
        if let last = lastServer, last.endpoint == server { return last.text }
        let text = sockets.text(of: server)
        lastServer = (server, text)
        return text
    }

    /// Accepts a transfer. It begins now, or when another one has ended.
    func enqueue(_ transfer: Transfer) {
        transferCount += 1
        if transfer.takesProtocols {
            webSockets += 1
            guard webSockets <= maximumWebSockets else {
                return transfer.cancel(
                    ClientError(
                        .outOfResources, "\(maximumWebSockets) WebSockets are open already"))
            }
        }
        if case .content = transfer.request.stream {
            guard takeEventStream(transfer) else {
                return transfer.cancel(
                    ClientError(
                        .outOfResources, "\(maximumEventStreams) event streams are open already"))
            }
        }
        joinQueue(transfer)
    }

    /// Returns `false` if the maximum number has been reached.
    private func takeEventStream(_ transfer: Transfer) -> Bool {
        guard !transfer.isEventStream else { return true }
        guard eventStreams < maximumEventStreams else { return false }
        eventStreams += 1
        transfer.isEventStream = true
        return true
    }

    /// Handles a response that turns out to be an event stream: it no longer counts as an active
    /// request, if there may be another event stream.
    func becomesEventStream(_ transfer: Transfer) {
        if takeEventStream(transfer) { leavesQueue(transfer) }
    }

    private func joinQueue(_ transfer: Transfer) {
        guard !transfer.isEventStream else { return transfer.begin() }
        transfer.isInQueue = true
        let started = queue.add(
            transfer.number, to: transfer.request.origin, priority: transfer.request.priority)
        if started { transfer.begin() } else { transfer.wait() }
    }

    /// Whether a transfer is already active, and begins as soon as this turn of the loop has ended.
    func hasTurn(_ transfer: Transfer) -> Bool { queue.isActive(transfer.number) }

    /// Returns the active requests for which a transfer waits.
    func holders(ahead transfer: Transfer) -> QueueHolders {
        let origin = transfer.request.origin
        let limit = queue.limit(at: origin)
        let patience = transfer.request.queueMilliseconds
        if let (at, known) = latestHolders, at == loop.now, known.limit == limit,
            known.origin == origin, known.patience == patience
        {
            return known
        }
        var holders = QueueHolders(limit: limit, origin: origin, patience: patience)
        for number in queue.activeNumbers {
            if let holder = runtime.transfer(number) { holders.add(holder) }
        }
        latestHolders = (loop.now, holders)
        return holders
    }

    /// Handles the suspension of a transfer. If it has not begun, it leaves the queue.
    func suspended(_ transfer: Transfer) {
        if transfer.state == .waiting { leavesQueue(transfer) }
    }

    /// Resumes a transfer, or puts it back into the queue.
    func resumed(_ transfer: Transfer) {
        if transfer.state == .waiting { joinQueue(transfer) }
    }

    /// Handles the end of a transfer, whether it had begun or not.
    func ended(_ transfer: Transfer) {
        guard runtime.transferEnded(transfer.number) else { return }
        transferCount -= 1
        if transfer.takesProtocols { webSockets -= 1 }
        if transfer.isEventStream { eventStreams -= 1 }
        leavesQueue(transfer)
        closeIfOver()
    }

    /// Closes a session that is ending, when its last transfer has ended.
    func closeIfOver() {
        guard isEnding, transferCount == 0, preconnections.isEmpty else { return }
        loop.afterTurn { [self] in close() }
    }

    /// Removes a transfer from the queue, so that others may begin.
    func leavesQueue(_ transfer: Transfer) {
        guard transfer.isInQueue else { return }
        transfer.isInQueue = false
        begin(queue.remove(transfer.number, of: transfer.request.origin))
    }

    /// Puts a transfer that is running back into the queue, whatever the limits: others begin once
    /// there is a place below them again.
    func returnsToQueue(_ transfer: Transfer) {
        guard transfer.state == .running, !transfer.isInQueue, !transfer.isEventStream else {
            return
        }
        transfer.isInQueue = true
        queue.addRunning(transfer.number, to: transfer.request.origin)
    }

    /// Begins transfers that waited.
    func begin(_ next: [UInt64]) {
        guard !next.isEmpty else { return }
        // On a separate stack, because this one may be deep within an exchange that is ending.
        loop.afterTurn { [self] in
            // A transfer suspended in the meantime is no longer active.
            for number in next where queue.isActive(number) {
                runtime.transfer(number)?.begin()
            }
        }
    }

    /// Ends the session. No further transfers begin.
    ///
    /// - Parameters:
    ///   - cancelling: Whether active transfers fail; otherwise they continue to their end.
    ///   - error: The reason, if it was not on request.
    func end(cancelling: Bool, _ error: ClientError? = nil) {
        isEnding = true
        self.error = self.error ?? error
        if cancelling {
            let reason = error ?? .sessionInvalidated()
            for transfer in runtime.transfers(of: self) { transfer.cancel(reason) }
            for preconnection in Array(preconnections.values) { preconnection.end(reason) }
        }
        closeIfOver()
    }

    private func close() {
        guard !hasEnded else { return }
        hasEnded = true
        transports?.close()
        environment.closeConnections()
        environment.close()
        runtime.sessionEnded(number)
        whenEnded(error)
    }
}
