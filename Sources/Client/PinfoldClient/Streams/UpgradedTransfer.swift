import EventLoop
import PinfoldEngine

/// A connection to a server that has switched protocols with a 101 (RFC 9110 section 15.2.2). Bytes
/// from the server go to a transfer's channel, and a feed's parts go to the server.
///
/// Reading pauses while the channel is full, and no more parts are requested while the socket
/// accepts nothing. The descriptor is closed exactly once, by ``close()``.
final class UpgradedTransfer: EventHandler {
    /// The number of bytes waiting for the socket up to which more is requested.
    private static let waitingBytes = 64 << 10

    private let server: Transport
    /// What carries the bytes, if the server gets them in a stream of HTTP/2.
    private let tunnel: HTTP2StreamTunnel?
    /// The owner, which closes this object before it ends.
    private unowned let transfer: Transfer
    private let feed: any ContentFeed
    private var output = OutputQueue()
    /// The remaining work for this turn.
    private var budget = TurnBudget()
    private var mayRead = true
    /// Whether TLS has to write before it can continue to read.
    private var readWantsWrite = false
    private var peerHasFinished = false
    /// Whether the server cut the stream off, so that the end of what it sent is not one.
    private var isCutOff = false
    /// Whether a part was requested that has not arrived yet.
    private var isAsking = false
    private var feedHasEnded = false
    /// Whether the direction to the server has ended.
    private var hasFinished = false
    private var isPumping = false
    private var isClosed = false

    private var loop: EventLoop { transfer.environment.loop }

    /// - Parameter server: The connection. This object owns its descriptor from now on.
    init(_ server: UpstreamHandover, of transfer: Transfer, sending feed: any ContentFeed) {
        self.server = server.transport
        tunnel = server.tunnel
        self.transfer = transfer
        self.feed = feed
    }

    /// Starts in the next turn: TLS may hold bytes for which the socket reports no event.
    func start() throws(Errno) {
        try loop.add(self, descriptor: server.descriptor)
        tunnel?.cutOff = { [weak self] in self?.isCutOff = true }
        Sockets.probePeer(server.descriptor)
        loop.requeue(self)
    }

    override func ready(_ readiness: Readiness) {
        if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayRead = true }
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) {
            peerHasFinished = true
        }
        pump()
    }

    override func continueWork() { pump() }

    /// Continues because there is space in the channel again, or the transfer was resumed.
    func readerCaughtUp() { pump() }

    /// Handles the requested part.
    func arrived(_ part: ContentPart) {
        guard !isClosed else { return }
        isAsking = false
        switch part {
        case .bytes(let bytes):
            guard !bytes.isEmpty else { break }
            let buffer = loop.buffers.holding(bytes)
            output.append(buffer.readable, owner: buffer)
            transfer.times.sentBytes += Int64(bytes.count)
        case .end, .failed: feedHasEnded = true
        }
        pump()
    }

    // MARK: Transfer

    private enum Outcome { case waiting, turnIsOver, ended, broken }

    /// Moves as many bytes as possible.
    private func pump() {
        guard !isPumping, !isClosed else { return }
        isPumping = true
        budget.renew(loop)
        // Read first: the data may say why nothing more is accepted.
        let reading = read()
        let writing = reading == .ended || reading == .broken ? reading : write()
        isPumping = false
        switch writing {
        case .ended: transfer.upgradeIsOver(nil)
        case .broken:
            transfer.upgradeIsOver(ClientError(.connectionLost, "the connection was interrupted"))
        case .turnIsOver: loop.requeue(self)
        case .waiting: if reading == .turnIsOver { loop.requeue(self) }
        }
    }

    private func read() -> Outcome {
        while mayRead, !transfer.holdsBack {
            guard !budget.isSpent else { return .turnIsOver }
            let buffer = loop.buffers.takeLarge()
            switch server.read(
                into: buffer.writable, trustsShortRead: !peerHasFinished, spending: &budget)
            {
            case .bytes(let count, let drained):
                if drained { mayRead = false }
                buffer.end = count
                transfer.upgradeReceived(Array(buffer.readable))
            case .wouldBlock(let wantsWrite):
                mayRead = false
                readWantsWrite = wantsWrite
            case .turnIsOver: return .turnIsOver
            case .endOfStream: return isCutOff ? .broken : .ended
            case .truncated, .failed: return .broken
            }
        }
        return .waiting
    }

    private func write() -> Outcome {
        guard !transfer.isSuspended else { return .waiting }
        switch server.flush(&output, on: loop, spending: &budget) {
        case .drained: break
        case .blocked: return .waiting
        case .turnIsOver: return .turnIsOver
        case .failed: return .broken
        }
        if feedHasEnded, !hasFinished { hasFinished = server.finishSending() }
        ask()
        return .waiting
    }

    private func ask() {
        guard !isAsking, !feedHasEnded, output.pendingBytes < Self.waitingBytes else { return }
        isAsking = true
        let (post, number) = (transfer.session.post, transfer.number)
        feed.next { post(.content(transfer: number, $0)) }
    }

    /// Closes the connection. Unwritten bytes are discarded.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        let isWhole = output.isEmpty
        if isWhole, !hasFinished { _ = server.finishSending() }
        output.discard()
        if token != .none { loop.remove(self) }
        Descriptors.close(server.descriptor)
        tunnel?.ended(isBroken: !isWhole)
    }
}
