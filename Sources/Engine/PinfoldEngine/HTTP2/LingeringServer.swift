import EventLoop

/// A connection whose server has been told with GOAWAY what it did wrong, until that has had time
/// to read it (``UnwantedInput``). It has given back everything but its socket.
final class LingeringServer: EventHandler, EnvironmentPart, QueueMember {
    /// How many there are at a time on a worker. They hold no permits of the pool: beyond this the
    /// oldest is closed.
    private static let most = 16

    let environment: Environment
    private let pool: UpstreamPool
    private let transport: Transport
    private var input = UnwantedInput()
    private var inputReadiness = InputReadiness.ready
    private var budget = TurnBudget()
    var nextInQueue: LingeringServer?
    var previousInQueue: LingeringServer?

    private init(_ transport: Transport, _ pool: UpstreamPool) {
        self.transport = transport
        self.pool = pool
        environment = pool.environment
    }

    /// Takes over a transport that is registered with no loop any more, and on which everything has
    /// been sent.
    static func take(_ transport: Transport, of pool: UpstreamPool) {
        let server = LingeringServer(transport, pool)
        do throws(Errno) {
            // What has arrived by now is an event of the next turn.
            try pool.environment.loop.add(server, descriptor: transport.descriptor)
        } catch {
            return transport.close()
        }
        _ = transport.finishSending()
        if transport.isSecure { Sockets.shutdownWrite(transport.descriptor) }
        pool.environment.loop.setDeadline(server, after: UnwantedInput.milliseconds)
        pool.lingering.append(server)
        if pool.lingering.count > most { pool.lingering.first?.close() }
    }

    override func ready(_ readiness: Readiness) {
        inputReadiness.note(readiness)
        discard()
    }

    override func continueWork() { discard() }

    override func deadlineReached() { close() }

    func closeWithEnvironment() { close() }

    private func discard() {
        budget.renew(environment.loop)
        switch input.discard(
            from: transport, &inputReadiness, by: environment.loop.buffers, spending: &budget)
        {
        case .waits: break
        case .turnIsOver: environment.loop.requeue(self)
        case .isOver: close()
        }
    }

    private func close() {
        environment.loop.remove(self)
        transport.close()
        pool.lingering.remove(self)
    }
}
