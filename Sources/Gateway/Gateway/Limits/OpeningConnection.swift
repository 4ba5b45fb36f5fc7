import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldTLS

/// A client's connection at its beginning, as the limits see it: what those have in common that do
/// not begin with a request of HTTP.
///
/// It waits for what its client has to say as long as for a request's head. As long as nothing has
/// been begun, it is among the idle connections, and so makes room for others. It ends by itself,
/// or leaves the loop and goes on as something else, which then has its permits.
class OpeningConnection: EventHandler, AdmittedConnection {
    let worker: Worker
    let descriptor: Int32
    final var ingress: Ingress
    /// Who has connected.
    let peer: Endpoint
    /// What the one who has connected has open; `nil` on the administrative listener.
    let account: ClientAccount?
    private(set) var isClosed = false
    private var handedOver: ClientPermits = []

    final var outerIngress: Ingress { ingress }
    final var tunnel: InterceptedTunnel? { nil }
    final var mayLoseRequest: Bool { true }
    var isLingering: Bool { false }
    var awaitsFirstRequest: Bool { true }

    // MARK: Idleness

    /// Whether the client has begun nothing that it has not finished.
    var isIdle: Bool { true }
    final var idleSince: Int64 = 0
    final var queuedAt: Int64? {
        didSet { if queuedAt == nil { isInIdleOrder = false } }
    }
    final var isInIdleOrder = false
    final var share: ClientShareMember?
    final var unfinishedBytes = 0
    final var stalledSince: Int64 = 0

    init(
        worker: Worker, descriptor: Int32, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?
    ) {
        self.worker = worker
        self.descriptor = descriptor
        self.ingress = ingress
        self.peer = peer
        self.account = account
    }

    func start() {
        awaitClient()
        idleSince = worker.idleClients.nextMoment()
        if !isInIdleOrder { worker.idleClients.insert(self) }
    }

    /// Gives the client the time of a request's head.
    func awaitClient() {
        worker.loop.setDeadline(self, after: worker.policy.configuration.timeouts.headMilliseconds)
    }

    // MARK: The end

    final func certificateIssued(_ result: Result<TLSServerIdentity, IssuanceError>) {}
    func drain() { close() }
    final func giveUp() { close() }
    func cutOff() { close() }

    final func makeRoom(handingOver permits: ClientPermits) {
        handedOver = permits
        cutOff()
    }

    final func close() {
        guard !isClosed else { return }
        leave(closing: true)
        worker.clientLeft(account, handingOver: handedOver)
    }

    /// Leaves the loop and the orders of connections; its permits remain.
    /// - Parameter closing: whether the descriptor is closed, rather than kept for what goes on.
    func leave(closing: Bool) {
        isClosed = true
        worker.environment.release(self)
        worker.idleClients.removed(self)
        worker.loop.remove(self, keepingOpen: closing ? nil : descriptor)
        if closing { Descriptors.close(descriptor) }
    }
}
