import Clocks
import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// An exchange of the client on the loop: it gives an `Exchange` its request, and passes
/// what the exchange sends to its channel.
///
///     waiting ──► running ──► ended      (`begin`, then the exchange's end)
///        └───────────┴──────────►        (`cancel`: the caller, a timeout, the session's end)
final class Transfer: EventHandler {
    enum State { case waiting, running, ended }

    let request: TransferRequest
    var number: UInt64 { request.number }
    let session: SessionLoop
    var environment: Environment { session.environment }
    var channel: TransferChannel { request.channel }
    private(set) var state = State.waiting
    /// Whether it is in the session's queue, waiting or active.
    var isInQueue = false
    var exchange: Exchange?
    /// The content that is still to be sent, or `nil` if there is none.
    var upload: Upload?
    /// What the exchange sends, until it is flushed.
    var response = PendingResponse()
    var times = TransferTimes()
    /// The error of the session's transport, for which the exchange has no word.
    var transportError: ClientError?
    /// The connection after it has switched protocols, or `nil` if it has not.
    var upgraded: UpgradedTransfer?
    private let startedAt = Clock.monotonicMicroseconds()
    /// When data was last transferred, in the loop's milliseconds.
    private var lastTransferAt: Int64 = 0
    /// When the total time expires, in the loop's milliseconds.
    private var totalDeadline: Int64
    /// The idle timeout in milliseconds, or `nil` for none.
    private var idleMilliseconds: Int64?
    /// When the time in the queue expires, in the loop's milliseconds, or `.max` if it is not
    /// queued.
    private var queueDeadline = Int64.max
    /// When the transfer last made progress.
    private(set) var advance = TransferAdvance()
    /// Whether the response's length is known.
    var responseHasEnd = false
    /// Whether it is one of the session's event streams, and no longer counts as an active request.
    var isEventStream = false
    /// When the next part of the content may be requested, or `.max` if there is no pause.
    private var pauseEnds = Int64.max
    /// When the content is sent although the server has not asked for it, or `.max` if it is not
    /// waited for.
    private var continueEnds = Int64.max
    /// Whether the reader is behind, so that the server's time does not run.
    var readerIsBehind = false
    /// When the transfer was suspended, in the loop's milliseconds, or `nil` if it is not.
    private var suspendedAt: Int64?

    var isSuspended: Bool { suspendedAt != nil }
    /// Whether the exchange must not send more for now.
    var holdsBack: Bool { readerIsBehind || isSuspended }

    init(_ request: TransferRequest, in session: SessionLoop) {
        self.request = request
        self.session = session
        totalDeadline = session.loop.now + request.remainingMilliseconds
        idleMilliseconds = request.idleMilliseconds
    }

    // MARK: Start

    /// Other transfers have to end first.
    func wait() {
        guard join() else { return }
        queueDeadline = environment.loop.now + request.queueMilliseconds
        updateDeadline()
    }

    /// Registers with the loop, for deadlines. Returns `false` if that failed and the transfer has
    /// ended.
    private func join() -> Bool {
        guard token == .none else { return true }
        do throws(Errno) { try environment.loop.add(self) } catch {
            end(ClientError(.outOfResources, "the loop is full: \(error)"))
            return false
        }
        return true
    }

    /// Sends the request. The session's limits allow it.
    func begin() {
        guard state == .waiting, !isSuspended else { return }
        state = .running
        times.queued = Clock.monotonicMicroseconds() - startedAt
        lastTransferAt = environment.loop.now
        (advance.advancedAt, queueDeadline) = (lastTransferAt, .max)
        guard join() else { return }
        updateDeadline()
        let exchange = environment.takeExchange()
        do throws(WireError) {
            let buffer = try makeHead(in: exchange)
            self.exchange = exchange
            let ingress = session.ingress(of: request)
            let isBegun = exchange.begin(
                client: self, ingress: ingress, peer: session.peer, buffer: buffer,
                headStart: 0, hasBody: upload != nil, isServed: true)
            guard isBegun else { return }
            if request.needsFreshConnection { exchange.needFreshConnection() }
            exchange.route(at: ingress)
        } catch {
            environment.recycle(exchange)
            end(ClientError(.request(error)))
        }
    }

    /// Content up to this size is placed directly after the head, so that it can be sent again on
    /// another connection if a reused one turns out to be closed.
    static let contentWithHead = 64 << 10

    /// Writes the head of the exchange's request, and returns the buffer that contains it, followed
    /// by the content if that is short.
    private func makeHead(in exchange: Exchange) throws(WireError) -> Buffer {
        var content: [UInt8] = []
        switch request.content {
        case .none: break
        case .bytes(let bytes) where bytes.count <= Self.contentWithHead:
            content = bytes
            if !bytes.isEmpty { upload = makeUpload(.withHead) }
        case .bytes(let bytes): upload = makeUpload(.bytes(bytes))
        case .feed(let feed): upload = makeUpload(.feed(feed))
        }
        let count = request.head.count + content.count
        let buffer = environment.loop.buffers.take(atLeast: count)
        buffer.writable.copyBytes(from: request.head)
        buffer.end = request.head.count
        if upload?.isWithHead ?? false { upload?.buffer = buffer }
        var parser = RequestHeadParser(limits: environment.policy.headLimits)
        guard
            case .complete(let length) = try parser.parse(
                buffer.readable.octets, into: &exchange.request),
            length == request.head.count
        else { throw .truncatedHead }
        buffer.writable.copyBytes(from: content)
        buffer.end += content.count
        buffer.start = length
        return buffer
    }

    private func makeUpload(_ source: Upload.Source) -> Upload {
        Upload(source, awaitsContinue: request.continueMilliseconds != nil)
    }

    // MARK: End

    /// Nobody waits for the transfer any more, or it took too long.
    func cancel(_ error: ClientError) {
        guard state != .ended else { return }
        let exchange = self.exchange.take()
        if let exchange { note(exchange) }
        end(error)
        exchange?.clientGone()
    }

    /// The exchange has ended, and belongs to the environment again.
    func exchangeIsOver(cut: Bool) {
        guard let exchange = exchange.take() else { return }
        let error = transportError ?? exchange.remarks.fault.map { ClientError($0, of: exchange) }
        note(exchange)
        environment.recycle(exchange)
        if let failure = response.failure {
            end(failure)
        } else if upgraded != nil {
            // The connection continues without an exchange.
        } else if cut {
            end(error ?? ClientError(.connectionLost, "the response was interrupted"))
        } else {
            end(nil)
        }
    }

    func end(_ error: ClientError?) {
        guard state != .ended else { return }
        state = .ended
        upload = nil
        request.content.close()
        if token != .none { environment.loop.remove(self) }
        times.total = Clock.monotonicMicroseconds() - startedAt
        let (head, parts) = takeResponse()
        if let error {
            channel.fail(error, times, head, parts, wakes: session.wakes)
        } else {
            channel.finish(times, head, parts, wakes: session.wakes)
        }
        endUpgrade()
        session.ended(self)
    }

    /// Records what the exchange knows.
    func note(_ exchange: Exchange) {
        if !session.hasTransport {
            times.server = exchange.report.server.map(session.text) ?? times.server
        }
        times.cache = CacheUse(exchange.report.cacheResult)
        times.phases = exchange.phasesUntilNow
    }

    /// Records how the exchange got its connection, while it has it.
    func noteConnection(of exchange: Exchange) {
        note(exchange)
        times.wasReused = exchange.reusesConnection
        times.carrier = exchange.upstreamCarrier
        guard let made = exchange.connectionTimes else { return }
        if request.describesConnection { times.tls = exchange.upstreamTLS }
        (times.lookup, times.connect, times.handshake) = (made.lookup, made.connect, made.handshake)
        times.tunnel = made.tunnel
    }

    /// The time since the request began, in microseconds.
    var microseconds: Int64 { Clock.monotonicMicroseconds() - startedAt - times.queued }

    // MARK: Time

    /// Records that data was transferred.
    func moved() { lastTransferAt = environment.loop.now }

    /// Records progress.
    func advanced() { advance.advancedAt = environment.loop.now }

    /// Records that content of unknown length was transferred.
    func streamed() { advance.streamedAt = environment.loop.now }

    /// Whether content of a response of unknown length has arrived and was read within a number of
    /// milliseconds.
    func hasStreamed(within milliseconds: Int64) -> Bool {
        !responseHasEnd && advance.streamedAt != 0
            && environment.loop.now - advance.streamedAt < milliseconds
    }

    /// What follows the head lasts as long as both ends wish.
    func continueAsStream(_ stream: StreamKind) {
        totalDeadline = .max
        idleMilliseconds = stream.idleMilliseconds
        updateDeadline()
    }

    private func updateDeadline() {
        guard state != .ended else { return }
        if isSuspended { return environment.loop.setDeadline(self, after: nil) }
        // A millisecond later than the transfers it waits for, whose time may expire at the same
        // moment.
        let turn = state == .waiting && queueDeadline != .max ? queueDeadline + 1 : .max
        var next = min(totalDeadline, pauseEnds, continueEnds, turn)
        if state == .running, !readerIsBehind, let idleMilliseconds {
            next = min(next, lastTransferAt + idleMilliseconds)
        }
        environment.loop.setDeadline(
            self, after: next == .max ? nil : max(0, next - environment.loop.now))
    }

    override func deadlineReached() {
        guard !isSuspended else { return }
        let now = environment.loop.now
        if now >= totalDeadline {
            return cancel(
                ClientError(.timedOut, "it took longer than \(request.totalMilliseconds) ms"))
        }
        if state == .running, !readerIsBehind, let idleMilliseconds,
            now - lastTransferAt >= idleMilliseconds
        {
            return cancel(
                ClientError(.timedOut, "no data was transferred for \(idleMilliseconds) ms"))
        }
        if state == .waiting, now > queueDeadline, !session.hasTurn(self) {
            let holders = session.holders(ahead: self)
            queueDeadline = max(queueDeadline, holders.advancedAt + request.queueMilliseconds)
            if now > queueDeadline { return cancel(ClientError(holders.timeout(of: request))) }
        }
        if now >= pauseEnds {
            pauseEnds = .max
            restEnded()
        }
        if now >= continueEnds { contentIsWanted() }
        updateDeadline()
    }

    /// Delays the request for the next part of the content.
    func pauseUpload(milliseconds: Int64) {
        pauseEnds = environment.loop.now + milliseconds
        updateDeadline()
    }

    /// Gives the server time to ask for the content, of which it now has the head.
    func waitForContinue() {
        continueEnds = environment.loop.now + (request.continueMilliseconds ?? 0)
        updateDeadline()
    }

    func stopWaitingForContinue() { continueEnds = .max }

    /// The reader can take more.
    func readerCaughtUp() {
        guard state == .running, readerIsBehind else { return }
        readerIsBehind = false
        moved()
        updateDeadline()
        proceed()
    }

    private func proceed() {
        guard !holdsBack else { return }
        exchange?.clientDrained()
        upgraded?.readerCaughtUp()
    }

    // MARK: Suspension

    /// Stops reading and sending. A queued transfer leaves the queue.
    func suspend() {
        guard state != .ended, !isSuspended else { return }
        suspendedAt = environment.loop.now
        queueDeadline = .max
        updateDeadline()
        session.suspended(self)
    }

    /// Continues. The time in between is not counted.
    func resume() {
        guard state != .ended, let since = suspendedAt.take() else { return }
        // `.max`: there is no limit.
        if totalDeadline != .max { totalDeadline += environment.loop.now - since }
        moved()
        updateDeadline()
        guard state == .running else { return session.resumed(self) }
        session.resumed(self)
        proceed()
        driveUpload()
    }

    override func continueWork() { driveUpload() }
}

extension CacheUse {
    init(_ result: CacheResult) {
        switch result {
        case .hit, .collapsed: self = .hit
        case .hitStale: self = .stale
        case .revalidated: self = .confirmed
        case .miss: self = .miss
        case .uncacheable: self = .miss
        case .bypass, .none: self = .none
        }
    }
}
