import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS

/// A tunnel that has been answered and is not relayed yet: something about its client or its server
/// has to be found out first. It owns the client's connection, and the server's once there is one.
///
/// The subclass decides what happens (``proceed()``) and how the tunnel continues, which ends it.
class AnsweredTunnel: EventHandler, UnfinishedInput {
    /// The server's connection.
    final class Server: EventHandler {
        let transport: Transport
        let endpoint: Endpoint
        let parent: UpstreamProxy?
        /// What it has sent already through a parent; `nil` if nothing.
        private(set) var leftover: Buffer?
        /// Output that must still be sent.
        var output = OutputQueue()
        var mayRead = true
        /// Unowned because the tunnel removes it from the loop before it ends.
        private unowned let tunnel: AnsweredTunnel

        init(_ made: EstablishedConnection, of tunnel: AnsweredTunnel) {
            transport = made.transport
            endpoint = made.endpoint
            parent = made.parent
            leftover = made.leftover
            self.tunnel = tunnel
        }

        /// Whether it has only sent what belongs to the session with a parent, and nothing in it.
        /// What it has sent otherwise becomes the `leftover`.
        func isSilent(spending budget: inout TurnBudget, in environment: Environment) -> Bool {
            guard transport.isSecure, leftover == nil else { return false }
            let buffer = environment.loop.buffers.takeLarge()
            switch transport.read(into: buffer.writable, spending: &budget) {
            case .wouldBlock: return true
            case .bytes(let count, _):
                buffer.end = count
                leftover = buffer
                return false
            case .turnIsOver, .endOfStream, .truncated, .failed: return false
            }
        }

        override func ready(_ readiness: Readiness) {
            if readiness.mayRead { mayRead = true }
            tunnel.serverReady(readiness)
        }
    }

    final let environment: Environment
    final let authority: BoundAuthority
    final let account: ClientAccount?
    /// What asked for the tunnel, for rules; `nil` if none apply.
    final let request: AccessRequest?
    /// What is sent along to a parent.
    final let passage: Passage
    final var clientNetwork: IPNetwork? { account?.network }
    final var unfinishedBytes = 0
    final var stalledSince: Int64 = 0
    /// The client's connection, and the function to call when it is closed.
    private final let transport: Transport
    private final let closed: (_ isBroken: Bool) -> Void
    /// What the client has sent, and what it must still be sent.
    final var input: Buffer?
    final var output: OutputQueue
    final var budget = TurnBudget()
    private final var mayRead = true
    private final var readWantsWrite = false
    /// What the tunnel waits for in addition to its two connections.
    final var opening: (any TunnelOpening)?
    /// What it has waited for there.
    private(set) final var phases = PhaseTimes()
    final var server: Server?
    /// Why it ends, if that has been decided before the client has gone.
    final var fault: ExchangeError?
    private final var isOver = false

    /// - Parameters:
    ///   - handover: the client's connection, with the response to CONNECT queued.
    ///   - request: what asked for the tunnel, for rules; `nil` if none apply.
    init(
        environment: Environment, authority: BoundAuthority, account: ClientAccount?,
        handover: DownstreamHandover, request: AccessRequest?, passage: Passage
    ) {
        self.environment = environment
        self.authority = authority
        self.account = account
        self.request = request
        self.passage = passage
        transport = handover.transport
        closed = handover.closed
        input = handover.leftover
        output = handover.pending
    }

    /// How the rule that allows the tunnel under a configuration has it handled.
    final func settings(under policy: PolicySnapshot) -> TunnelSettings {
        policy.tunnelSettings(for: request, to: authority)
    }

    /// Registers the client's connection; the loop keeps the tunnel alive until it has ended.
    final func begin(within milliseconds: Int64) {
        do throws(Errno) {
            try environment.loop.add(self, descriptor: transport.descriptor)
        } catch {
            return close(.connectFailed(error))
        }
        environment.loop.setDeadline(self, after: milliseconds)
        environment.hold(self, bytes: TLSServerConnection.handshakeBytes)
        environment.loop.afterTurn { [self] in proceed() }
    }

    /// Makes a server's connection the tunnel's own; returns false if that has ended it.
    final func adopt(_ made: EstablishedConnection) -> Bool {
        let server = Server(made, of: self)
        do throws(Errno) {
            try environment.loop.add(server, descriptor: server.transport.descriptor)
        } catch {
            server.transport.close()
            close(.connectFailed(error))
            return false
        }
        self.server = server
        return true
    }

    // MARK: What the subclass does

    /// Proceeds as far as both connections allow.
    func proceed() {}

    /// Something happened to the server's connection.
    func serverReady(_ readiness: Readiness) { proceed() }

    /// Both connections have been closed: tells whoever waits for the tunnel.
    func hasClosed(_ fault: ExchangeError?, _ attempts: FailedAttempts?) {}

    // MARK: Events

    final override func ready(_ readiness: Readiness) {
        if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayRead = true }
        if !readiness.isDisjoint(with: [.hungUp, .failed]) { return close(fault) }
        proceed()
    }

    final override func continueWork() { proceed() }

    // MARK: The client's connection

    /// Sends what is queued for the client; returns false if that is not all done.
    final func flush() -> Bool {
        switch transport.flush(&output, on: environment.loop, spending: &budget) {
        case .drained: return true
        case .blocked: break
        case .turnIsOver: environment.loop.requeue(self)
        case .failed: close(fault)
        }
        return false
    }

    /// Reads once from the client; returns `nil` if nothing was read.
    final func readClient() -> UnsafeRawBufferPointer? {
        guard mayRead else { return nil }
        let room = environment.loop.buffers.makeRoom(in: &input)
        switch transport.read(into: room, spending: &budget) {
        case .bytes(let count, _):
            let fresh = UnsafeRawBufferPointer(rebasing: room.prefix(count))
            input?.end += count
            environment.metrics.add(.clientBytesReceived, UInt64(count))
            return fresh
        case .wouldBlock(let wantsWrite):
            mayRead = false
            readWantsWrite = wantsWrite
        case .turnIsOver: environment.loop.requeue(self)
        case .endOfStream, .truncated, .failed: close(fault)
        }
        return nil
    }

    /// Ends the sending direction to the client; returns false if the socket is full.
    final func finishSending() -> Bool { transport.finishSending() }

    /// Gives the client's connection to another owner, which ends the tunnel.
    final func handOver() -> DownstreamHandover {
        environment.loop.remove(self, keepingOpen: transport.descriptor)
        let handover = DownstreamHandover(
            transport: transport, leftover: input, pending: output, closed: closed)
        conclude()
        return handover
    }

    // MARK: The server's connection

    /// Gives the server's connection to another owner.
    final func releaseServer() -> Server? {
        guard let server else { return nil }
        self.server = nil
        environment.loop.remove(server, keepingOpen: server.transport.descriptor)
        return server
    }

    /// Closes the server's connection, or gives up connecting.
    final func dropServer() {
        endOpening()
        guard let server else { return }
        self.server = nil
        server.output.discard()
        environment.loop.remove(server)
        server.transport.close()
    }

    /// What it waited for has come, or is given up.
    final func endOpening() {
        guard let opening else { return }
        self.opening = nil
        phases.add(opening.phases(now: Clock.monotonicMicroseconds()))
        // One that has come has nothing to cancel; a cancelled one does not complete.
        opening.cancel()
    }

    // MARK: The end

    final func cut() { close(nil) }

    final func giveUp() { close(.gateway(.headBuffersFull)) }

    /// Closes both connections.
    final func close(_ fault: ExchangeError?, _ attempts: FailedAttempts? = nil) {
        guard !isOver else { return }
        dropServer()
        environment.loop.remove(self)
        transport.close()
        output.discard()
        closed(true)
        conclude()
        hasClosed(fault, attempts)
    }

    private func conclude() {
        isOver = true
        input = nil
        environment.release(self)
    }
}
