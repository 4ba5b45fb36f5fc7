import Activity
import Clocks
import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS
import Synchronization
import Trust

/// One thread of the gateway with everything it owns: listeners, clients, probes, and the
/// environment that its exchanges run on. No other thread touches any of it; they send messages to
/// `mailbox`.
///
/// What it owns refers to it with strong references; ``close()`` breaks the cycles.
final class Worker {
    let environment: Environment
    let index: Int
    let loop: EventLoop
    let mailbox: Mailbox<WorkerMessage>
    let metrics: WorkerMetrics
    let shared: SharedServices
    var policy: PolicySnapshot { environment.policy }
    private var listeners: [Listener] = []
    private var activityTimer: ActivityTimer?
    /// Where sampled exchanges are recorded; `nil` if no spans are sent.
    private(set) var spans: SpanProducer?
    /// What the access log says of an exchange, and of which.
    var logging = LoggingChoice()
    /// Whether somebody looks at exchanges.
    var watchesFlows = false
    /// Which exchanges are held while somebody looks.
    var heldWatched: HeldExchanges
    /// Which failures are held besides.
    var heldFailures = HeldExchanges.failures
    var drainTimer: DrainTimer?
    private var probes: [Probe] = []
    private var checks: [ServerCheck] = []
    /// What connections come from that other workers still hand over while this one is draining.
    private var formerIngresses: [Ingress] = []
    var isDraining: Bool { environment.isDraining }
    private var hasDrained = false
    /// Connections that the end of this worker waits for.
    var clients = 0
    /// When a connection that is no request at all was last logged.
    private var refusalLogged: Int64 = -1 << 40
    var idleClients = IdleClients()
    /// Connections that are answered and not yet closed, oldest first.
    let lingeringClients = LinkedQueue<LingeringConnection>()
    /// Accepted at a limit, while other workers are asked for permits: of a client or, under `nil`,
    /// of the process. Whenever there is a queue, a request is under way.
    var pendingConnections: [ObjectIdentifier?: FIFO<PendingConnection>] = [:]

    init(
        index: Int, policy: PolicySnapshot, shared: SharedServices, metrics: WorkerMetrics,
        mailbox: Mailbox<WorkerMessage>
    ) throws(Errno) {
        self.index = index
        self.shared = shared
        self.metrics = metrics
        self.mailbox = mailbox
        heldWatched = HeldExchanges.watched(workers: shared.turnTimes.count)
        loop = try EventLoop(turnTimes: shared.turnTimes[index])
        environment = Environment(
            index: index, loop: loop, policy: policy, shared: shared.engine, metrics: metrics)
        environment.host = self
        followTracing()
        followLogging()
        environment.site = Administration(worker: self)
    }

    /// Spans are sent, or not any more.
    private func followTracing() {
        spans = environment.tracing.exportsSpans ? shared.spans?.producer(index) : nil
        environment.reportsExchanges = needsRecords || watchesFlows
    }

    /// Serves until a message stops it.
    ///
    /// - Parameter isAccepting: `false` if it accepts only when a message says so.
    func run(_ sockets: [ListenerSocket], isAccepting: Bool = true) throws(Errno) {
        let receiver = MailboxReceiver(mailbox) { [unowned self] in handle($0) }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        try environment.start()
        if index == 0 {
            let timer = ActivityTimer(worker: self)
            try loop.add(timer)
            activityTimer = timer
        }
        listen(sockets, isAccepting: isAccepting)
        startProbes()
        loop.turnEnded = { [unowned self] in reportActivity() }
        loop.run()
        close()
    }

    func handle(_ message: WorkerMessage) {
        switch message {
        case .configure(let policy, let sockets): configure(policy, sockets)
        case .activityChanged: activityTimer?.observe()
        case .permitsWanted(let request): permitsWanted(request)
        case .permitsGranted(let request): permitsGranted(request)
        case .accepted(let descriptor, let peer, let name, let endpoint):
            serve(descriptor, from: peer, ofListener: name, at: endpoint)
        case .watchFlows: watchFlows()
        case .followRecordings(let round): followRecordings(round)
        case .reportTransfers(let round): reportTransfers(to: round)
        case .answer(let round): shared.turns.answered(index, round: round)
        case .descriptorsWanted: closeIdleForDescriptors()
        case .certificateIssued(let token, let result):
            (loop.handler(for: token) as? any AdmittedConnection)?.certificateIssued(result)
        case .drain: drain()
        case .endAdministration:
            for listener in listeners { listener.ready(.readable) }
            closeListeners()
        case .handOver: handOver()
        case .accept: acceptConnections()
        case .resume(let sockets): resume(sockets)
        case .stop: loop.stop()
        }
    }

    // MARK: Listeners

    /// The first listener of a role for HTTP, preferably one that speaks clear text to its clients,
    /// or `nil` if there is none.
    func ingress(of role: Ingress.Role) -> Ingress? {
        let all = listeners.lazy.map(\.ingress).filter { $0.role == role && $0.speaks == .http }
        return all.first { $0.tls == nil && $0.path == nil } ?? all.first { $0.path == nil }
            ?? all.first
    }

    func listen(_ sockets: [ListenerSocket], isAccepting: Bool = true) {
        for socket in sockets {
            let ingress = Ingress(
                name: socket.name, label: socket.label, endpoint: socket.endpoint,
                role: socket.role,
                takesHTTP2: !socket.isAdmin && policy.takesHTTP2(ofListener: socket.name),
                tls: policy.clientTLS(of: socket),
                methods: socket.isAdmin ? [] : policy.methods(ofListener: socket.name),
                path: socket.path,
                proxySenders: socket.isAdmin ? nil : policy.proxySenders(ofListener: socket.name),
                speaks: socket.speaks)
            let listener = Listener(
                worker: self, ingress: ingress, descriptor: socket.descriptor,
                isShared: socket.isShared)
            listeners.append(listener)
        }
        if isAccepting { acceptConnections() }
    }

    /// Begins to accept on all listeners that do not yet.
    private func acceptConnections() {
        listeners.removeAll { listener in
            do throws(Errno) {
                try listener.begin()
                return false
            } catch {
                Descriptors.close(listener.descriptor)
                shared.logger.error(
                    "cannot serve a listener",
                    metadata: ["listener": "\(listener.ingress.name)", "error": "\(error)"])
                return true
            }
        }
    }

    /// Called when a connection was accepted from a socket that all workers accept from: they serve
    /// them in turn.
    func distribute(_ descriptor: Int32, from peer: Endpoint, on listener: Listener) {
        let next = shared.nextToServe()
        guard next != index else { return accept(descriptor, from: peer, on: listener.ingress) }
        shared.handedOver.add(1, ordering: .relaxed)
        shared.mailboxes[next].post(
            .accepted(
                descriptor, peer, name: listener.ingress.name, at: listener.ingress.endpoint))
    }

    /// Serves a connection that another worker accepted.
    private func serve(
        _ descriptor: Int32, from peer: Endpoint, ofListener name: String, at endpoint: Endpoint
    ) {
        let ingresses = listeners.lazy.map(\.ingress).filter(\.isCounted)
        let ingress =
            ingresses.first { $0.name == name && $0.endpoint == endpoint }
            ?? formerIngresses.first { $0.name == name && $0.endpoint == endpoint }
        if hasDrained {
            hasDrained = false
            shared.drainedWorkers.subtract(1, ordering: .relaxed)
        }
        if let ingress {
            accept(descriptor, from: peer, on: ingress)
        } else {
            // A reload has removed the listener meanwhile.
            Descriptors.close(descriptor)
        }
        shared.handedOver.subtract(1, ordering: .releasing)
        stopIfDrained()
    }

    /// Called when a stream of a client's connection becomes a tunnel: from now on it counts as a
    /// connection of its own.
    func streamBecomesTunnel(of account: ClientAccount?) {
        if let account {
            clients += 1
            shared.clients.add(account)
            addPermit()
        }
        metrics.adjust(.clientConnectionsOpen, by: 1)
    }

    /// Called when a client's connection, or the relay it became, is gone.
    /// - Parameters:
    ///   - account: its client; `nil` for the administration's, which takes no client's permit.
    ///   - places: which of its permits are handed over to another connection.
    func clientLeft(_ account: ClientAccount?, handingOver permits: ClientPermits = []) {
        if let account {
            clients -= 1
            leaves(account, handingOver: permits)
        } else {
            for listener in listeners { listener.fillReserve() }
        }
        metrics.adjust(.clientConnectionsOpen, by: -1)
        stopIfDrained()
    }

    func leaves(_ account: ClientAccount, handingOver permits: ClientPermits = []) {
        if !permits.contains(.client) { shared.clients.close(account) }
        if !permits.contains(.process) { releasePermit() }
    }

    func acceptPaused(_ error: Errno, on listener: Listener) {
        metrics.add(.acceptPauses)
        metrics.adjust(.acceptPaused, by: 1)
        shared.logger.warning(
            "accepting connections is paused",
            metadata: ["listener": "\(listener.ingress.name)", "error": "\(error)"])
    }

    func acceptResumed() { metrics.adjust(.acceptPaused, by: -1) }

    /// Once per turn, not per exchange: notifies the activity indicator if it is listening.
    private func reportActivity() {
        guard environment.takeActivity(), shared.activity.needsUpdate else { return }
        if let activityTimer {
            activityTimer.observe()
        } else {
            shared.notifyActivity()
        }
    }

    // MARK: Configuration and the end

    private func configure(_ policy: PolicySnapshot, _ sockets: [ListenerSocket]) {
        environment.adopt(policy)
        followTracing()
        followLogging()
        clientLimitsChanged()
        listen(adopt(sockets))
        drainClientsOfFormerListeners()
        startProbes()
        shared.workerFollows(index, generation: policy.generation)
    }

    /// A client that came through a listener that is gone, or now has another role or asks
    /// otherwise who is asking, ends with its exchange, and so does the inside of a tunnel that
    /// would no longer be intercepted, or whose user could no longer ask for it.
    private func drainClientsOfFormerListeners() {
        let now = environment.wallSeconds
        for handler in loop.handlers {
            guard let client = handler as? any AdmittedConnection else { continue }
            let former = client.outerIngress
            let isIntercepted =
                client.tunnel.map { tunnel in
                    policy.interception(for: tunnel.authority, by: policy.settings(of: tunnel))?
                        .admits(tunnelsOf: tunnel.interception) ?? false
                } ?? true
            let isKnown = client.tunnel?.identity.map { policy.confirms($0, at: now) } ?? true
            if !isIntercepted || !isKnown
                || !listeners.contains(where: { $0.ingress.succeeds(former) })
            {
                client.drain()
            }
        }
    }

    /// Takes over the sockets of listeners that continue, so that no connection in their queues is
    /// lost, and closes the others.
    private func adopt(_ sockets: [ListenerSocket]) -> [ListenerSocket] {
        let adopted = sockets.compactMap { socket -> ListenerSocket? in
            guard socket.descriptor < 0 else { return socket }
            guard
                let index = listeners.firstIndex(where: {
                    $0.ingress.endpoint == socket.endpoint && $0.ingress.path == socket.path
                })
            else { return nil }
            var socket = socket
            socket.descriptor = listeners.remove(at: index).release()
            return socket
        }
        for listener in listeners { listener.close() }
        listeners = []
        return adopted
    }

    func startProbes() {
        stopProbes()
        guard index == 0, !isDraining else { return }
        probes = Probe.all(of: policy, worker: self)
        for probe in probes { probe.start() }
        // Not before the former checks have ended: they would note what they find after this.
        for set in policy.allServerSets where set.configuration.health.path == nil {
            for server in set.servers { server.endChecks() }
        }
        checks = ServerCheck.all(of: policy, in: environment)
        for check in checks { check.start() }
    }

    private func stopProbes() {
        for probe in probes { probe.stop() }
        probes = []
        for check in checks { check.stop() }
        checks = []
    }

    private func drain() {
        guard beginDraining() else { return }
        // The administration still responds, so that it can report that it is draining.
        for listener in listeners where listener.ingress.isCounted { listener.close() }
        formerIngresses = listeners.filter(\.isShared).map(\.ingress)
        listeners.removeAll { $0.ingress.isCounted }
        var areFirstAwaited = false
        for handler in loop.handlers {
            guard let client = handler as? any AdmittedConnection, client.ingress.isCounted else {
                continue
            }
            // A client that has just connected is about to send its first request.
            if client.awaitsFirstRequest { areFirstAwaited = true } else { client.drain() }
        }
        if areFirstAwaited { drainIdleClients(after: DrainTimer.firstMilliseconds) }
        stopIfDrained()
    }

    /// Whether it had not begun.
    func beginDraining() -> Bool {
        guard !isDraining else { return false }
        environment.isDraining = true
        environment.drainTunnels()
        turnPendingAway()
        stopProbes()
        return true
    }

    /// Whether to log a connection that is closed before a request: at most one in a second.
    func mayLogRefusal() -> Bool {
        guard loop.now - refusalLogged >= 1000 else { return false }
        refusalLogged = loop.now
        return true
    }

    var hasNoListeners: Bool { listeners.isEmpty }
    /// Whether the administrative address has given up descriptors that it keeps for need.
    var isReserveInUse: Bool { listeners.contains(where: \.isReserveInUse) }

    /// Closes all listeners, the administration's as well.
    func closeListeners() {
        for listener in listeners { listener.close() }
        formerIngresses = listeners.filter(\.isShared).map(\.ingress)
        listeners = []
    }

    /// It is as if it had never drained.
    func endDraining() {
        environment.endDraining()
        if hasDrained { shared.drainedWorkers.subtract(1, ordering: .releasing) }
        hasDrained = false
    }

    /// Notifies the process that nothing is in progress here; it stops all workers together, so
    /// that the administration responds until the last exchange has ended.
    func stopIfDrained() {
        guard isDraining, clients == 0, !hasDrained else { return }
        hasDrained = true
        shared.drainedWorkers.add(1, ordering: .releasing)
    }

    /// Closes everything, and releases what refers to the worker.
    func close() {
        for listener in listeners { listener.close() }
        turnPendingAway()
        for handler in loop.handlers { (handler as? any AdmittedConnection)?.cutOff() }
        environment.closeConnections()
        for handler in loop.handlers { loop.remove(handler) }
        listeners = []
        formerIngresses = []
        probes = []
        checks = []
        activityTimer = nil
        drainTimer = nil
        // They keep some connections that are closed.
        idleClients = IdleClients()
        environment.close()
        loop.forgetDeferred()
    }
}
