import Addressing
import Configuration
import EventLoop
import HTTPCore

/// A client's HTTP/1 connection: reads request heads and bodies, writes responses, one exchange
/// at a time; pipelined requests wait in the input.
///
///              request head              response and request body complete
///     ┌──────┐ ────────────► ┌──────────┐ ─────────────────────────────────► (head)
///     │ head │               │ exchange │ ── CONNECT, 101 ──► detached
///     └──────┘               └──────────┘ ── must not go on ─► lingering ──► closed
///        │ bad head: error reply through an exchange ──────────────┘
///        │ end of stream, idle time-out ──► closed
///
/// An idle connection holds no buffer and no exchange.
final class ClientConnection: EventHandler {
    /// Room that `sendHead` needs behind the fields.
    static let reservedBytes = 128
    /// Bytes that a closing connection still reads, so that a reset does not destroy the reply
    /// that is on its way to the client.
    private static let lingerBytes = 1 << 20
    private static let lingerMilliseconds: Int64 = 2000

    private enum State { case head, exchange, lingering, closed }

    private unowned let worker: Worker
    private let descriptor: Int32
    let listener: Listener
    let peer: Endpoint

    private var state = State.head
    private var mayHaveInput = true
    private var peerFinished = false
    private var isDriving = false
    /// The response was ended by the connection's end.
    private var endsWithConnection = false
    private var isChunked = false
    private var keepsAlive = true
    private var responseEnded = false
    private var lingered = 0
    /// The deadline of an incomplete head runs: it counts from the head's first byte.
    private var headIsTimed = false

    private var input: Buffer?
    private var output = OutputQueue()
    private var parser: RequestHeadParser
    private var body: RequestBody?
    private var exchange: Exchange?
    /// Chunk heads that wait in `output`.
    private var chunkHeads: Buffer?
    private(set) var requestBytes: UInt64 = 0
    private(set) var responseBytes: UInt64 = 0

    /// What is known of a request's body while it is read.
    private final class RequestBody {
        var decoder: BodyDecoder
        /// Nothing is read until the exchange asks: it may still wait for a connection.
        var isPaused = true
        init(_ framing: BodyFraming) { decoder = BodyDecoder(framing) }
    }

    init(worker: Worker, descriptor: Int32, listener: Listener, peer: Endpoint) {
        self.worker = worker
        self.descriptor = descriptor
        self.listener = listener
        self.peer = peer
        parser = RequestHeadParser(limits: worker.policy.headLimits)
    }

    /// Begins to serve; the connection is registered.
    func start() {
        worker.loop.setDeadline(self, after: timeouts.headMilliseconds)
    }

    private var timeouts: TimeoutsConfiguration { worker.policy.timeouts }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        if readiness.mayRead { mayHaveInput = true }
        if !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed]) { peerFinished = true }
        if readiness.contains(.failed) || readiness.contains(.hungUp), state == .exchange {
            return abandonExchange()
        }
        if readiness.mayWrite, !output.isEmpty { writable() }
        drive()
    }

    private func writable() {
        guard flush() else { return }
        exchange?.clientDrained()
    }

    override func deadlineReached() {
        switch state {
        case .closed: return
        case .lingering: close()
        case .head:
            if parser.isWithinHead {
                refuse(.requestTimeout)
            } else {
                close()
            }
        case .exchange: exchange?.clientTimedOut()
        }
    }

    /// Asked to end: at once if idle, else after the current exchange.
    func drain() {
        keepsAlive = false
        if state == .head, !parser.isWithinHead, input?.isEmpty ?? true { close() }
    }

    // MARK: Reading

    private func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        while true {
            switch state {
            case .closed: return
            case .head: guard readHead() else { return }
            case .exchange: guard readBody() else { return }
            case .lingering: return linger()
            }
        }
    }

    /// Makes one step towards the next request; false when that needs an event.
    private func readHead() -> Bool {
        if let input, !input.isEmpty {
            let exchange = self.exchange ?? worker.takeExchange(for: self)
            self.exchange = exchange
            let bytes = input.readable.bindMemory(to: UInt8.self)
            do throws(WireError) {
                let progress = try parser.parse(
                    Span(_unsafeElements: bytes), into: &exchange.request)
                if case .complete(let count) = progress {
                    begin(exchange, input, headBytes: count)
                    return true
                }
                if !headIsTimed {
                    headIsTimed = true
                    worker.loop.setDeadline(self, after: timeouts.headMilliseconds)
                }
            } catch {
                refuse(.request(error))
                return true
            }
        }
        if readInput() { return true }
        if state == .head { becomeIdle() }
        return false
    }

    private func becomeIdle() {
        guard input?.isEmpty ?? true, !parser.isWithinHead else { return }
        input = nil
        if let exchange {
            worker.recycle(exchange)
            self.exchange = nil
        }
    }

    /// Reads once. False when nothing was read: nothing there, or the connection has changed state.
    private func readInput() -> Bool {
        guard mayHaveInput else { return false }
        let buffer = roomForReading()
        switch Transfers.read(descriptor, into: buffer.writable) {
        case .bytes(let count):
            mayHaveInput = count == buffer.writable.count || peerFinished
            buffer.end += count
            requestBytes += UInt64(count)
            return true
        case .wouldBlock:
            mayHaveInput = false
            return false
        case .endOfStream:
            inputEnded()
            return false
        case .failed:
            mayHaveInput = false
            state == .exchange ? abandonExchange() : close()
            return false
        }
    }

    /// A buffer with room. The one that holds the exchange's head stays as it is; a body's bytes
    /// go to another.
    private func roomForReading() -> Buffer {
        guard let current = input else { return replaceInput(worker.loop.buffers.takeSmall()) }
        if state == .exchange, exchange?.holds(current) ?? false {
            let next =
                body != nil ? worker.loop.buffers.takeLarge() : worker.loop.buffers.takeSmall()
            if !current.isEmpty {
                next.writable.copyMemory(from: current.readable)
                next.end = current.count
            }
            return replaceInput(next)
        }
        if current.isEmpty {
            current.clear()
            return current
        }
        current.compact()
        if current.end < current.capacity { return current }
        let larger = worker.loop.buffers.take(bytes: current.capacity * 2)
        larger.writable.copyMemory(from: current.readable)
        larger.end = current.count
        return replaceInput(larger)
    }

    private func replaceInput(_ buffer: Buffer) -> Buffer {
        input = buffer
        return buffer
    }

    private func inputEnded() {
        mayHaveInput = false
        peerFinished = true
        switch state {
        case .head:
            if parser.isWithinHead || !(input?.isEmpty ?? true) {
                refuse(.request(.truncatedHead))
            } else {
                close()
            }
        case .exchange:
            // The client may have finished sending and still wait for the response.
            if body != nil { abandonExchange() }
        case .lingering: close()
        case .closed: return
        }
    }

    private func begin(_ exchange: Exchange, _ input: Buffer, headBytes: Int) {
        let head = input.start
        input.start += headBytes
        state = .exchange
        headIsTimed = false
        requestBytes = UInt64(headBytes + input.count)
        responseBytes = 0
        responseEnded = false
        endsWithConnection = false
        isChunked = false
        worker.loop.setDeadline(self, after: nil)
        switch exchange.request.framing {
        case .none, .length(0): body = nil
        case .length, .chunked, .untilClose: body = RequestBody(exchange.request.framing)
        }
        exchange.begin(
            client: self, listener: listener, peer: peer, buffer: input, headStart: head,
            hasBody: body != nil)
    }

    /// Answers a request that cannot be read, and closes.
    private func refuse(_ fault: ExchangeFault) {
        let exchange = self.exchange ?? worker.takeExchange(for: self)
        self.exchange = exchange
        state = .exchange
        keepsAlive = false
        body = nil
        responseBytes = 0
        responseEnded = false
        endsWithConnection = false
        isChunked = false
        exchange.refuse(fault, client: self, listener: listener, peer: peer)
    }

    /// Makes one step in the request's body; false when that needs an event or the exchange.
    private func readBody() -> Bool {
        guard let body, let exchange, !body.isPaused else { return false }
        guard let input, !input.isEmpty else {
            guard readInput() else { return false }
            setExchangeDeadline(after: timeouts.bodyMilliseconds)
            return true
        }
        let bytes = input.readable
        do throws(WireError) {
            let step = try body.decoder.decode(
                Span(_unsafeElements: bytes.bindMemory(to: UInt8.self)))
            switch step {
            case .data(let offset, let count, let consumed):
                input.start += consumed
                let content = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)])
                let isLast = body.decoder.isComplete
                body.isPaused = !exchange.requestBody(content, owner: input, isLast: isLast)
                if isLast, self.body === body { bodyEnded(body, exchange) }
            case .needMore(let consumed):
                input.start += consumed
                return readInput()
            case .end(let consumed):
                input.start += consumed
                bodyEnded(body, exchange)
            }
            return true
        } catch {
            keepsAlive = false
            self.body = nil
            exchange.requestBodyFailed(error)
            return true
        }
    }

    private func bodyEnded(_ body: RequestBody, _ exchange: Exchange) {
        self.body = nil
        setExchangeDeadline(after: nil)
        exchange.requestBodyEnded(body.decoder.chunked)
    }

    // MARK: The end

    private func abandonExchange() {
        output.discard()
        keepsAlive = false
        let exchange = self.exchange
        self.exchange = nil
        body = nil
        close()
        exchange?.clientGone()
    }

    private func linger() {
        let scratch = worker.loop.buffers.takeSmall()
        while mayHaveInput, lingered < Self.lingerBytes {
            switch Transfers.read(descriptor, into: scratch.writable) {
            case .bytes(let count): lingered += count
            case .wouldBlock:
                mayHaveInput = false
                return
            case .endOfStream, .failed: return close()
            }
        }
        if lingered >= Self.lingerBytes { close() }
    }

    private func startLingering() {
        input = nil
        if peerFinished { return close() }
        state = .lingering
        Sockets.shutdownWrite(descriptor)
        worker.loop.setDeadline(self, after: Self.lingerMilliseconds)
        mayHaveInput = true
    }

    func close() {
        guard state != .closed else { return }
        state = .closed
        if let exchange {
            self.exchange = nil
            worker.recycle(exchange)
        }
        input = nil
        output.discard()
        worker.loop.remove(self)
        Descriptors.close(descriptor)
        worker.clientLeft()
    }
}

// MARK: - What the exchange sends

extension ClientConnection: ClientStream {
    var takesInterimResponses: Bool { exchange?.request.version == .http11 }

    func sendInterim(_ head: Buffer) {
        output.append(head.readable, owner: head)
    }

    func sendHead(_ head: Buffer, framing: ClientFraming, closing: Bool) {
        let isHTTP11 = takesInterimResponses
        if closing || !(exchange?.request.keepAlive ?? false) || worker.isDraining {
            keepsAlive = false
        }
        var writer = HeadWriter(head.writable)
        switch framing {
        case .none, .lengthInHead: break
        case .length(let count): writer.append(field: .contentLength, decimal: count)
        case .streamed where isHTTP11:
            isChunked = true
            writer.append("Transfer-Encoding: chunked\r\n")
        case .streamed:
            endsWithConnection = true
            keepsAlive = false
        }
        if body != nil { keepsAlive = false }
        if !keepsAlive {
            writer.append("Connection: close\r\n")
        } else if !isHTTP11 {
            writer.append("Connection: keep-alive\r\n")
        }
        writer.appendLineEnd()
        head.end += writer.count
        output.append(head.readable, owner: head)
    }

    func sendBody(_ bytes: UnsafeRawBufferPointer, owner: AnyObject) {
        guard bytes.count > 0 else { return }
        guard isChunked else { return output.append(bytes, owner: owner) }
        appendChunkHead(bytes.count)
        output.append(bytes, owner: owner)
        output.append("\r\n")
    }

    func sendFile(_ file: Int32, offset: Int, count: Int, owner: AnyObject) {
        guard isChunked else {
            return output.append(file: file, offset: offset, count: count, owner: owner)
        }
        appendChunkHead(count)
        output.append(file: file, offset: offset, count: count, owner: owner)
        output.append("\r\n")
    }

    private func appendChunkHead(_ count: Int) {
        let heads = chunkHeads ?? worker.loop.buffers.takeSmall()
        chunkHeads = heads
        if output.isEmpty { heads.clear() }
        if heads.writable.count < 20 { return replaceChunkHeads(count) }
        var writer = HeadWriter(heads.writable)
        writer.append(hex: UInt64(count))
        writer.appendLineEnd()
        output.append(
            UnsafeRawBufferPointer(start: heads.memory.baseAddress.map { $0 + heads.end },
                count: writer.count), owner: heads)
        heads.end += writer.count
    }

    private func replaceChunkHeads(_ count: Int) {
        chunkHeads = worker.loop.buffers.takeSmall()
        appendChunkHead(count)
    }

    func sendEnd(trailers: UnsafeRawBufferPointer) {
        responseEnded = true
        guard isChunked else { return }
        guard trailers.count > 0 else { return output.append("0\r\n\r\n") }
        let copy = worker.loop.buffers.take(bytes: trailers.count)
        copy.writable.copyMemory(from: trailers)
        copy.end = trailers.count
        output.append("0\r\n")
        output.append(copy.readable, owner: copy)
        output.append("\r\n")
    }

    func flush() -> Bool {
        let before = output.pendingBytes
        let result = output.flush(to: descriptor)
        let written = UInt64(before - output.pendingBytes)
        responseBytes += written
        switch result {
        case .drained:
            setExchangeDeadline(after: nil)
            return true
        case .blocked:
            if written > 0 || deadline == .max {
                setExchangeDeadline(after: timeouts.bodyMilliseconds)
            }
            return false
        case .failed:
            output.discard()
            peerFinished = true
            worker.loop.afterTurn { [self] in
                if state == .exchange { abandonExchange() } else { close() }
            }
            return false
        }
    }

    func resumeRequestBody() {
        guard let body, body.isPaused else { return }
        body.isPaused = false
        drive()
    }

    func pauseRequestBody() { body?.isPaused = true }

    var isFlushed: Bool { output.isEmpty }

    func exchangeEnded(cut: Bool) {
        guard state == .exchange, let exchange else { return }
        self.exchange = nil
        worker.recycle(exchange)
        chunkHeads = nil
        output.discard()
        if cut {
            // Without a length or chunks the client could take the end for the content's end.
            if endsWithConnection { Sockets.resetOnClose(descriptor) }
            return close()
        }
        guard keepsAlive, body == nil else {
            body = nil
            return endsWithConnection ? close() : startLingering()
        }
        state = .head
        worker.loop.setDeadline(self, after: timeouts.idleMilliseconds)
        if input?.isEmpty ?? true { input = nil }
        drive()
    }

    func detach() -> (descriptor: Int32, leftover: Buffer?, pending: OutputQueue)? {
        guard state == .exchange else { return nil }
        let (leftover, pending) = (input, output)
        input = nil
        output = OutputQueue()
        exchange = nil
        state = .closed
        worker.loop.remove(self, keepingOpen: descriptor)
        return (descriptor, leftover, pending)
    }

    func setExchangeDeadline(after milliseconds: Int64?) {
        worker.loop.setDeadline(self, after: milliseconds)
    }
}
