import EventLoop
import PinfoldEngine

/// A server's connection that is HTTP no longer, since a 101 (RFC 9110 section 15.2.2): what it
/// sends goes to a transfer's channel, and what a feed gives goes to it.
///
/// It is read no further while the channel is full, and no more is asked for while the socket takes
/// nothing. The descriptor is closed once, by ``close()``.
final class UpgradedTransfer: EventHandler {
    /// Bytes that wait for the socket while more is asked for.
    private static let waitingBytes = 64 << 10

    private let server: Transport
    /// Its owner, which closes it before it ends.
    private unowned let transfer: Transfer
    private let feed: any ContentFeed
    private var output = OutputQueue()
    /// What it may still do in this turn.
    private var budget = TurnBudget()
    private var mayRead = true
    /// TLS has something to send before it can read on.
    private var readWantsWrite = false
    private var peerHasFinished = false
    /// The feed was asked, and has not answered.
    private var isAsking = false
    private var feedHasEnded = false
    /// The direction to the server has ended.
    private var hasFinished = false
    private var isPumping = false
    private var isClosed = false

    private var loop: EventLoop { transfer.environment.loop }

    /// - Parameter server: Its descriptor is this object's from now on.
    init(_ server: Transport, of transfer: Transfer, sending feed: any ContentFeed) {
        self.server = server
        self.transfer = transfer
        self.feed = feed
    }

    /// Begins, in the next turn: TLS over the socket may hold bytes that no event tells of.
    func start() throws(Errno) {
        try loop.add(self, descriptor: server.descriptor)
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

    /// There is room in the channel again, or it was suspended and goes on.
    func readerCaughtUp() { pump() }

    /// What the feed was asked for.
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

    // MARK: Moving

    private enum Outcome { case waiting, turnIsOver, ended, broken }

    /// Moves what can be moved.
    private func pump() {
        guard !isPumping, !isClosed else { return }
        isPumping = true
        budget.renew(loop)
        // First what has come: it may say why nothing more is taken.
        let reading = read()
        let writing = reading == .ended || reading == .broken ? reading : write()
        isPumping = false
        switch writing {
        case .ended: transfer.upgradeIsOver(nil)
        case .broken:
            transfer.upgradeIsOver(ClientError(.connectionLost, "the connection was cut off"))
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
            case .endOfStream: return .ended
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

    /// Ends the connection; what has not been written is not.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        if output.isEmpty, !hasFinished { _ = server.finishSending() }
        output.discard()
        if token != .none { loop.remove(self) }
        Descriptors.close(server.descriptor)
    }
}
