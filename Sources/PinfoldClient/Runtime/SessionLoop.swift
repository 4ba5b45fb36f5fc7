import Addressing
import Engine
import EventLoop
import PinfoldMetrics

/// What a session is made of, off the loop: nothing of it changes.
struct SessionParts: Sendable {
    let number: UInt64
    let policy: PolicySnapshot
    let shared: SharedEnvironment
    let metrics: WorkerMetrics
    let queue: RequestQueue
    let activity: ActivityIndicator?
    /// WebSockets at a time.
    let webSockets: Int
    let cache: SessionCache?
}

/// A session on the loop's thread: its environment, and the transfers that wait or are under way.
final class SessionLoop {
    let number: UInt64
    let environment: Environment
    let ingress: Ingress
    let peer: Endpoint
    private unowned let runtime: RuntimeLoop
    private var queue: RequestQueue
    private let activity: ActivityIndicator?
    /// Kept until the last request has ended.
    private let cache: SessionCache?
    /// Transfers that have not ended, waiting ones included.
    private var transfers: [UInt64: Transfer] = [:]
    /// Those of them that are, or are to become, WebSockets, and how many there may be.
    private var webSockets = 0
    private let maximumWebSockets: Int
    private(set) var isEnding = false
    private var hasEnded = false

    var loop: EventLoop { runtime.loop }
    /// Tells the loop something from another thread.
    var post: @Sendable (RuntimeMessage) -> Void { runtime.post }

    /// Nil where the system has no descriptor left for its mailbox.
    init?(_ parts: SessionParts, on runtime: RuntimeLoop) {
        guard let own = Endpoint("127.0.0.1:0") else { return nil }
        self.runtime = runtime
        number = parts.number
        queue = parts.queue
        activity = parts.activity
        maximumWebSockets = parts.webSockets
        cache = parts.cache
        peer = own
        ingress = Ingress(
            name: "client", label: parts.shared.labels.listenerIndex("client"), endpoint: own,
            role: .forward, isIntermediary: false)
        environment = Environment(
            index: 0, loop: runtime.loop, policy: parts.policy, shared: parts.shared,
            metrics: parts.metrics)
        do throws(Errno) { try environment.start() } catch { return nil }
    }

    /// Where requests come in that take a way.
    func ingress(through proxy: ProxyRoute?) -> Ingress {
        guard let proxy else { return ingress }
        return Ingress(
            name: ingress.name, label: ingress.label, endpoint: ingress.endpoint,
            role: .proxied(proxy), isIntermediary: false)
    }

    /// Takes a transfer in; it begins now, or when another one has made room.
    func enqueue(_ transfer: Transfer) {
        transfers[transfer.number] = transfer
        activity?.increment()
        if transfer.takesProtocols {
            webSockets += 1
            guard webSockets <= maximumWebSockets else {
                return transfer.cancel(
                    ClientError(
                        .outOfResources, "\(maximumWebSockets) WebSockets are open already"))
            }
        }
        transfer.isInQueue = true
        let started = queue.add(
            transfer.number, to: transfer.order.origin, priority: transfer.order.priority)
        if started { transfer.begin() } else { transfer.wait() }
    }

    /// A transfer is over, whether it had begun or not.
    func ended(_ transfer: Transfer) {
        guard transfers.removeValue(forKey: transfer.number) != nil else { return }
        runtime.transferEnded(transfer.number)
        activity?.decrement()
        if transfer.takesProtocols { webSockets -= 1 }
        leavesQueue(transfer)
        if isEnding, transfers.isEmpty { loop.afterTurn { [self] in close() } }
    }

    /// A transfer counts no more as a request under way; others may begin.
    func leavesQueue(_ transfer: Transfer) {
        guard transfer.isInQueue else { return }
        transfer.isInQueue = false
        let next = queue.remove(transfer.number, of: transfer.order.origin)
        // On a stack of their own: this one may be deep in an exchange that is ending.
        if !next.isEmpty {
            loop.afterTurn { [self] in
                for number in next { transfers[number]?.begin() }
            }
        }
    }

    /// No further transfer begins.
    /// - Parameter cancelling: those under way fail; else they go on to their end.
    func end(cancelling: Bool) {
        isEnding = true
        if cancelling {
            for transfer in Array(transfers.values) { transfer.cancel(.sessionInvalidated()) }
        }
        if transfers.isEmpty { loop.afterTurn { [self] in close() } }
    }

    private func close() {
        guard !hasEnded else { return }
        hasEnded = true
        environment.closeConnections()
        environment.close()
        runtime.sessionEnded(number)
    }
}
