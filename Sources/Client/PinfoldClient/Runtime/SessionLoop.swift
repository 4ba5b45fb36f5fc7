import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// What a session is made of, off the loop: nothing of it changes.
struct SessionParts: Sendable {
    let number: UInt64
    let policy: PolicySnapshot
    let shared: SharedEnvironment
    let metrics: WorkerMetrics
    let queue: RequestQueue
    /// WebSockets at a time.
    let webSockets: Int
    /// Streams of events at a time.
    let eventStreams: Int
    let cache: SessionCache?
    /// Told when the session has ended, with an error where nobody asked for it.
    let ended: @Sendable (ClientError?) -> Void
}

/// A session on the loop's thread: its environment, and the transfers that wait or are under way.
final class SessionLoop {
    let number: UInt64
    let environment: Environment
    let ingress: Ingress
    let peer: Endpoint
    private unowned let runtime: RuntimeLoop
    private var queue: RequestQueue
    /// Kept until the last request has ended.
    private let cache: SessionCache?
    /// How many transfers have not ended, waiting ones included: the runtime has them.
    private var transferCount = 0
    /// Those of them that are, or are to become, WebSockets, and how many there may be.
    private var webSockets = 0
    private let maximumWebSockets: Int
    /// Transfers that are, or are to become, streams of events, and how many there may be.
    private var eventStreams = 0
    private let maximumEventStreams: Int
    /// What was found last to hold the places that others wait for: many ask at the same moment.
    private var latestHolders: (at: Int64, holders: QueueHolders)?
    private(set) var isEnding = false
    private var hasEnded = false
    private var lastServer: (endpoint: Endpoint, text: String)?
    /// Why it ends, if nobody asked for it.
    private var error: ClientError?
    private let whenEnded: @Sendable (ClientError?) -> Void

    var loop: EventLoop { runtime.loop }
    /// Reads the fields of responses.
    var fieldLineCache: FieldLineCache { runtime.fieldLineCache }
    /// Wakes the tasks that read what transfers bring.
    var wakes: WakeBatch { runtime.wakes }
    /// Tells the loop something from another thread.
    var post: @Sendable (RuntimeMessage) -> Void { runtime.post }

    /// Nil where the system has no descriptor left for its mailbox.
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
        ingress = Ingress(
            name: "client", label: .other, endpoint: own,
            role: .forward, isIntermediary: false)
        environment = Environment(
            index: 0, loop: runtime.loop, policy: parts.policy, shared: parts.shared,
            metrics: parts.metrics)
        do throws(Errno) { try environment.start() } catch { return nil }
    }

    /// Where requests come in that take a way.
    ///
    /// - Parameter takesWhatIsStored: Whatever the cache has answers them.
    func ingress(through proxy: ProxyRoute?, takingWhatIsStored takesWhatIsStored: Bool) -> Ingress
    {
        guard proxy != nil || takesWhatIsStored else { return ingress }
        return Ingress(
            name: ingress.name, label: ingress.label, endpoint: ingress.endpoint,
            role: proxy.map { .proxied($0) } ?? .forward, isIntermediary: false,
            takesWhatIsStored: takesWhatIsStored)
    }

    /// A server's address as text: many requests in a row are for the same.
    func text(of server: Endpoint) -> String {
        if let last = lastServer, last.endpoint == server { return last.text }
        let text = "\(server)"
        lastServer = (server, text)
        return text
    }

    /// Takes a transfer in; it begins now, or when another one has made room.
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
        if case .content = transfer.order.stream {
            guard takeEventStream(transfer) else {
                return transfer.cancel(
                    ClientError(
                        .outOfResources, "\(maximumEventStreams) event streams are open already"))
            }
        }
        joinQueue(transfer)
    }

    /// False: there are as many as there may be.
    private func takeEventStream(_ transfer: Transfer) -> Bool {
        guard !transfer.isEventStream else { return true }
        guard eventStreams < maximumEventStreams else { return false }
        eventStreams += 1
        transfer.isEventStream = true
        return true
    }

    /// A response turns out to be a stream of events: no request under way, if there may be one
    /// more.
    func becomesEventStream(_ transfer: Transfer) {
        if takeEventStream(transfer) { leavesQueue(transfer) }
    }

    private func joinQueue(_ transfer: Transfer) {
        guard !transfer.isEventStream else { return transfer.begin() }
        transfer.isInQueue = true
        let started = queue.add(
            transfer.number, to: transfer.order.origin, priority: transfer.order.priority)
        if started { transfer.begin() } else { transfer.wait() }
    }

    /// Whether a transfer was given its turn already, and begins as soon as this turn of the loop
    /// is over.
    func hasTurn(_ transfer: Transfer) -> Bool { queue.isActive(transfer.number) }

    /// The requests under way whose end a transfer waits for.
    func holders(ahead transfer: Transfer) -> QueueHolders {
        let origin = transfer.order.origin
        let limit = queue.limit(at: origin)
        let patience = transfer.order.queueMilliseconds
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

    /// A transfer is suspended: one that has not begun no longer waits for its turn.
    func suspended(_ transfer: Transfer) {
        if transfer.state == .waiting { leavesQueue(transfer) }
    }

    /// A transfer goes on, or waits for its turn again.
    func resumed(_ transfer: Transfer) {
        if transfer.state == .waiting { joinQueue(transfer) }
    }

    /// A transfer is over, whether it had begun or not.
    func ended(_ transfer: Transfer) {
        guard runtime.transferEnded(transfer.number) else { return }
        transferCount -= 1
        if transfer.takesProtocols { webSockets -= 1 }
        if transfer.isEventStream { eventStreams -= 1 }
        leavesQueue(transfer)
        if isEnding, transferCount == 0 { loop.afterTurn { [self] in close() } }
    }

    /// A transfer neither waits for its turn any more nor counts as a request under way; others
    /// may begin.
    func leavesQueue(_ transfer: Transfer) {
        guard transfer.isInQueue else { return }
        transfer.isInQueue = false
        begin(queue.remove(transfer.number, of: transfer.order.origin))
    }

    private func begin(_ next: [UInt64]) {
        guard !next.isEmpty else { return }
        // On a stack of their own: this one may be deep in an exchange that is ending.
        loop.afterTurn { [self] in
            // One that was suspended meanwhile has given its turn back.
            for number in next where queue.isActive(number) {
                runtime.transfer(number)?.begin()
            }
        }
    }

    /// No further transfer begins.
    /// - Parameters:
    ///   - cancelling: those under way fail; else they go on to their end.
    ///   - error: why, if nobody asked for it.
    func end(cancelling: Bool, _ error: ClientError? = nil) {
        isEnding = true
        self.error = self.error ?? error
        if cancelling {
            let reason = error ?? .sessionInvalidated()
            for transfer in runtime.transfers(of: self) { transfer.cancel(reason) }
        }
        if transferCount == 0 { loop.afterTurn { [self] in close() } }
    }

    private func close() {
        guard !hasEnded else { return }
        hasEnded = true
        environment.closeConnections()
        environment.close()
        runtime.sessionEnded(number)
        whenEnded(error)
    }
}
