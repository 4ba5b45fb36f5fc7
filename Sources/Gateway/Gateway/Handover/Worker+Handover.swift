import EventLoop
import PinfoldEngine

// A worker whose sockets a successor accepts on.
extension Worker {
    /// Accepts nothing more, and finishes what is in progress.
    ///
    /// An HTTP/1 client that is idle may be about to send a request, which would be lost if its
    /// connection were closed now. The response to it ends the connection (RFC 9112 §9.6); only one
    /// that sends nothing for a while is closed.
    func handOver() {
        guard beginDraining() else { return }
        closeListeners()
        for handler in loop.handlers where !(handler is ClientConnection) {
            (handler as? any AdmittedConnection)?.drain()
        }
        let timer = HandoverTimer(worker: self)
        do {
            try loop.add(timer)
            handoverTimer = timer
            loop.setDeadline(timer, after: HandoverTimer.idleMilliseconds)
        } catch {
            drainIdleClients()
        }
        stopIfDrained()
    }

    func drainIdleClients() {
        for handler in loop.handlers { (handler as? any AdmittedConnection)?.drain() }
        stopIfDrained()
    }

    /// Accepts again. Clients whose connections are about to end make others.
    func resume(_ sockets: [ListenerSocket]) {
        if let handoverTimer { loop.remove(handoverTimer) }
        handoverTimer = nil
        endDraining()
        listen(sockets)
        startProbes()
    }
}

/// Ends the client connections that stay idle after a successor has taken over.
final class HandoverTimer: EventHandler {
    /// How long an idle client may still send a request.
    static let idleMilliseconds: Int64 = 5000

    private unowned let worker: Worker

    init(worker: Worker) { self.worker = worker }

    override func deadlineReached() { worker.drainIdleClients() }
}
