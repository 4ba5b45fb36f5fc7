import EventLoop
import PinfoldEngine

/// One worker's listening socket.
final class Listener: EventHandler {
    /// The maximum number of connections accepted before other events are handled.
    private static let batch = 64
    /// How long accepting pauses when descriptors have run out.
    private static let pauseMilliseconds: Int64 = 100
    /// How many connections the administrative address accepts nevertheless, at a time.
    private static let reserved = 2

    private let worker: Worker
    /// The ingress of its clients' requests.
    let ingress: Ingress
    let descriptor: Int32
    /// Whether the other workers accept from the same socket: each has its own descriptor of it.
    let isShared: Bool
    private var isPaused = false
    private var hasBegun = false
    /// Whether it is counted among those that accept connections.
    private var isAccepting = false
    private var reserve: DescriptorReserve

    init(worker: Worker, ingress: Ingress, descriptor: Int32, isShared: Bool = false) {
        self.worker = worker
        self.ingress = ingress
        self.descriptor = descriptor
        self.isShared = isShared
        reserve = DescriptorReserve(size: ingress.role == .admin ? Self.reserved : 0)
    }

    /// Begins to accept, unless it has begun.
    func begin() throws(Errno) {
        if !hasBegun { try start() }
        hasBegun = true
        reserve.fill()
    }

    /// Whether the administrative address accepts connections by what it keeps for need.
    var isReserveInUse: Bool { hasBegun && reserve.isInUse }

    /// Called when a connection of the administrative address has been closed.
    func fillReserve() {
        if hasBegun { reserve.fill() }
    }

    private func start() throws(Errno) {
        try worker.loop.add(
            self, descriptor: descriptor,
            trigger: isShared ? .levelReadableShared : .levelReadable)
        setAccepting(true)
    }

    private func setAccepting(_ isAccepting: Bool) {
        guard isAccepting != self.isAccepting else { return }
        self.isAccepting = isAccepting
        let key = AcceptingListeners.Key(name: ingress.name, isAdmin: ingress.role == .admin)
        let all = worker.shared.accepting
        isAccepting ? all.began(key) : all.stopped(key)
    }

    override func ready(_ readiness: Readiness) {
        for _ in 0..<Self.batch {
            switch Sockets.accept(descriptor) {
            case .connection(let client, let peer):
                if isShared {
                    worker.distribute(client, from: peer, on: self)
                } else {
                    worker.accept(client, from: peer, on: ingress)
                }
            case .wouldBlock: return
            case .gone: continue
            case .failed(let error):
                // If no descriptor is left, the system reports that even if nobody is waiting.
                guard Transfers.isReadable(descriptor) else { return }
                guard error.isOutOfDescriptors, worker.freeDescriptors() || reserve.giveUp()
                else { return pause(error) }
            }
        }
    }

    /// Called when descriptors have run out: clients wait in the kernel's queue while existing
    /// connections continue.
    private func pause(_ error: Errno) {
        guard !isPaused else { return }
        isPaused = true
        setAccepting(false)
        worker.acceptPaused(error, on: self)
        worker.loop.remove(self, keepingOpen: descriptor)
        do {
            try worker.loop.add(self)
        } catch {
            return  // nothing to register: out of memory too, and the process cannot continue
        }
        worker.loop.setDeadline(self, after: Self.pauseMilliseconds)
    }

    override func deadlineReached() {
        guard isPaused else { return }
        isPaused = false
        worker.loop.remove(self)
        worker.acceptResumed()
        reserve.fill()
        do {
            try start()
        } catch {
            pause(error)
        }
    }

    /// Stops accepting and hands over the socket.
    func release() -> Int32 {
        reserve.close()
        guard hasBegun else { return descriptor }
        setAccepting(false)
        if isPaused { worker.acceptResumed() }
        worker.loop.remove(self, keepingOpen: isPaused ? nil : descriptor)
        isPaused = false
        return descriptor
    }

    /// Stops accepting for good.
    func close() {
        reserve.close()
        guard hasBegun else { return Descriptors.close(descriptor) }
        setAccepting(false)
        if isPaused { worker.acceptResumed() }
        // A socket that somebody else has, too, would stay in epoll.
        worker.loop.remove(self, keepingOpen: isPaused ? nil : descriptor)
        isPaused = false
        Descriptors.close(descriptor)
    }
}
