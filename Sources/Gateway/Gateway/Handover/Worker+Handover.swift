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
        for handler in loop.handlers {
            guard let client = handler as? any AdmittedConnection, !client.mayLoseRequest else {
                continue
            }
            client.drain()
        }
        drainIdleClients(after: DrainTimer.idleMilliseconds)
        stopIfDrained()
    }

    /// Ends the connections that are idle then.
    func drainIdleClients(after milliseconds: Int64) {
        let timer = DrainTimer(worker: self)
        do {
            try loop.add(timer)
            drainTimer = timer
            loop.setDeadline(timer, after: milliseconds)
        } catch {
            drainIdleClients()
        }
    }

    func drainIdleClients() {
        for handler in loop.handlers {
            // The administration responds until the end, unless a successor does.
            guard let client = handler as? any AdmittedConnection,
                client.ingress.isCounted || hasNoListeners
            else { continue }
            client.drain()
        }
        stopIfDrained()
    }

    /// Accepts again. Clients whose connections are about to end make others.
    func resume(_ sockets: [ListenerSocket]) {
        if let drainTimer { loop.remove(drainTimer) }
        drainTimer = nil
        endDraining()
        listen(sockets)
        startProbes()
    }
}

/// Ends the client connections that have stayed idle since the worker began to drain.
final class DrainTimer: EventHandler {
    /// How long an idle client may still send a request, where a successor has taken over.
    static let idleMilliseconds: Int64 = 5000
    /// How long a client that has just connected may still send its first one.
    static let firstMilliseconds: Int64 = 1000

    private unowned let worker: Worker

    init(worker: Worker) { self.worker = worker }

    override func deadlineReached() { worker.drainIdleClients() }
}
