import CacheStore
import EventLoop
import HTTP2
import HTTPCore
import PinfoldEngine

/// One stream of a client's HTTP/2 connection: the client's side of one exchange.
///
/// What the exchange sends waits here until its connection has room for it and the client's windows
/// allow it; what it does not accept yet of the request's content waits here as well, and only what
/// it has accepted is credited to the client. A head is encoded when it is sent, not when it is
/// queued: what the encoder has put into its table cannot be taken back.
///
/// Objects are reused for the connection's later streams.
final class HTTP2ClientStream: DownstreamStream, TunnelledStream {
    /// How far the request has arrived.
    enum Request {
        case underWay
        /// Its end is behind what waits in `inbox`.
        case ended(TrailerSection?)
        /// The exchange has been told.
        case complete
    }

    let connection: HTTP2ClientConnection
    private(set) var ref: StreamRef
    /// `nil` once it has ended, or the stream was reset.
    var exchange: Exchange?

    // The request.
    var request = Request.complete
    /// The head of a request that announces no content, until its end shows that there is none: the
    /// exchange has not begun.
    var held: (buffer: Buffer, start: Int)?
    /// Whether the exchange expects content.
    var hasContent = false
    /// Whether its fields are refused: its response does not end the stream, which is reset.
    var isMalformed = false
    /// The exchange accepts no content for now. Nothing is passed on until it asks: it may still be
    /// waiting for a connection.
    var isPaused = true
    /// Content that it has not accepted yet.
    var inbox = FIFO<Buffer>()

    // The response.
    var status: UInt16 = 0
    /// The final head, until it is sent.
    var head: Buffer?
    var content = OutputQueue()
    var trailers: TrailerSection?
    /// Whether nothing more will be queued.
    var isEnding = false
    var endIsSent = false
    var totalBytes: UInt64 = 0
    var contentBytes: UInt64 = 0
    /// When the client last sent or accepted something, in the loop's milliseconds.
    var progressed: Int64 = 0
    /// Whether it counts as a connection of its client, until its tunnel does.
    var isCounted = false
    /// After CONNECT: the bytes of the tunnel.
    var tunnel: HTTP2StreamTunnel?
    /// The exchange that the tunnel is of, and its number.
    private var carried: (exchange: Exchange, id: UInt64)?
    /// The client is gone, and the exchange goes on for others.
    var isDetached = false

    init(_ connection: HTTP2ClientConnection, _ ref: StreamRef) {
        self.connection = connection
        self.ref = ref
    }

    /// Makes it new, for another stream.
    func reset(for ref: StreamRef) {
        assert(exchange == nil && tunnel == nil && head == nil && content.isEmpty)
        self.ref = ref
        request = .complete
        hasContent = false
        isPaused = true
        isMalformed = false
        isEnding = false
        endIsSent = false
        totalBytes = 0
        contentBytes = 0
        isDetached = false
        isCounted = false
    }

    /// Releases what it refers to.
    func clear() {
        head = nil
        held = nil
        trailers = nil
        carried = nil
        content.discard()
        if !inbox.isEmpty { inbox = FIFO() }
    }

    // MARK: What the exchange asks

    var account: ClientAccount? { connection.account }
    var refusal: ExchangeError { connection.refusal }
    var localEndpoint: Endpoint? { Sockets.localEndpoint(connection.descriptor) }
    var sentBytes: (total: UInt64, content: UInt64) { (totalBytes, contentBytes) }
    var isOneOfSeveral: Bool { connection.openStreams > 1 }
    var takesInterimResponses: Bool { true }
    /// Other requests arrive on streams of their own.
    var inputFollows: Bool { false }
    /// Whether the connection has taken everything that was queued.
    var isFlushed: Bool { head == nil && content.isEmpty && (!isEnding || endIsSent) }

    // MARK: The response

    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        self.status = status
        return HeadDraft(connection.buffers.take(atLeast: room + Self.reservedBytes))
    }

    /// Room for what `sendHead` adds.
    private static let reservedBytes = 64

    func sendInterim(_ head: consuming HeadDraft) {
        guard let head = head.finished() else { return }
        connection.sendHead(status: status, head.readable.octets, of: self, endsStream: false)
    }

    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        if case .length(let count) = framing {
            head.fields.append(field: .contentLength, decimal: count)
        }
        // There was space for all of it: without a head nothing may follow.
        guard let head = head.finished() else { return connection.failLater(self) }
        self.head = head
    }

    func withdrawHead() -> Bool {
        guard head != nil else { return false }
        head = nil
        content.discard()
        contentBytes = 0
        return true
    }

    func send(_ bytes: UnsafeRawBufferPointer, owner: AnyObject) {
        contentBytes += UInt64(bytes.count)
        if !content.appendCopy(bytes) { content.append(bytes, owner: owner) }
    }

    func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        contentBytes += UInt64(count)
        content.append(file: file.fileDescriptor, offset: offset, count: count, owner: file)
    }

    func finish(trailers: TrailerSection?) -> Bool {
        isEnding = true
        self.trailers = trailers
        return flush()
    }

    func flush() -> Bool { connection.send(of: self) }

    func expectPauses() { Sockets.probePeer(connection.descriptor) }

    func exchangeEnded(cut: Bool) {
        if let exchange = exchange.take() { connection.environment.recycle(consume exchange) }
        if cut {
            connection.fail(self, .internalError)
        } else {
            connection.exchangeEnded(on: self)
        }
    }

    func exchangeContinues() { isDetached = true }

    func exchangeReleased() { connection.released(self) }

    // MARK: The request's content

    /// Takes note of content, or of the end of the request, that has arrived.
    func arrived(_ bytes: UnsafeRawBufferPointer, in input: Buffer, endsStream: Bool) {
        progressed = connection.loop.now
        if let tunnel { return tunnel.arrived(bytes, endsStream: endsStream) }
        if held != nil { return heldEnds(endsStream) }
        guard let exchange else { return connection.consumed(bytes.count, of: self) }
        guard !isPaused, inbox.isEmpty else {
            keep(bytes)
            if endsStream { request = .ended(nil) }
            return
        }
        pass(bytes, owner: input, isLast: endsStream, to: exchange)
        if endsStream { requestEnded(trailers: nil) }
    }

    private func heldEnds(_ endsStream: Bool) {
        guard endsStream else { return }
        request = .complete
        connection.beginHeld(self)
    }

    /// Takes note of the end of a request that may have trailers.
    func ended(trailers: TrailerSection?) {
        if held != nil { return heldEnds(true) }
        if let tunnel { return tunnel.peerHasEnded() }
        if inbox.isEmpty, !isPaused || exchange == nil {
            requestEnded(trailers: trailers)
        } else {
            request = .ended(trailers)
        }
    }

    private func pass(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool, to exchange: Exchange
    ) {
        if !bytes.isEmpty {
            isPaused = !exchange.content(bytes, owner: owner, isLast: isLast)
        }
        connection.consumed(bytes.count, of: self)
    }

    private func requestEnded(trailers: TrailerSection?) {
        request = .complete
        exchange?.contentEnded(trailers: trailers)
    }

    /// Copies content that cannot be passed on yet. As much of it as the window allows may come in
    /// small pieces, and none of them must keep a whole buffer.
    private func keep(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            if inbox.last?.writable.isEmpty ?? true {
                inbox.append(connection.buffers.takeSmall())
            }
            guard let last = inbox.last else { return }
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(last.writable.count))
            last.writable.copyMemory(from: part)
            last.end += part.count
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
        }
    }

    func resumeContent() {
        guard isPaused, hasContent else { return }
        isPaused = false
        progressed = connection.loop.now
        deliver()
    }

    func pauseContent() { isPaused = true }

    private func deliver() {
        while !isPaused, let exchange, let kept = inbox.popFirst() {
            var isLast = false
            if case .ended(nil) = request { isLast = inbox.isEmpty }
            pass(kept.readable, owner: kept, isLast: isLast, to: exchange)
        }
        // The end follows content that was passed as the last; trailers wait like content.
        if inbox.isEmpty, case .ended(let trailers) = request, exchange != nil,
            trailers == nil || !isPaused
        {
            requestEnded(trailers: trailers)
        }
        connection.sendSoon()
    }

    // MARK: Time

    /// Whether the client has neither sent nor accepted anything for too long, although it should.
    func isOverdue(at now: Int64) -> Bool {
        var waits = !content.isEmpty || held != nil
        if let tunnel {
            // As long as there are two ends, the tunnel has a time of its own.
            waits = tunnel.isOver
        } else if exchange == nil {
            waits = false
        } else if case .underWay = request, !isPaused {
            waits = true
        }
        guard waits else { return false }
        let timeouts = exchange?.forwarding.origin?.timeouts ?? connection.timeouts
        return now - progressed > timeouts.bodyMilliseconds
    }

    // MARK: Tunnels

    /// The client has reset the stream of a tunnel: the server must notice (RFC 9113 §8.5).
    func cutTunnel() {
        guard let tunnel = tunnel.take() else { return }
        if let (exchange, id) = carried.take(), exchange.report.id == id { exchange.cutOff() }
        tunnel.cut()
    }

    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover? {
        guard let head = head.finished(), let (tunnel, transport) = HTTP2StreamTunnel.make(of: self)
        else {
            connection.failLater(self)
            return nil
        }
        self.tunnel = tunnel
        connection.http.becomesTunnel(ref)
        isCounted = false
        carried = exchange.take().map { ($0, $0.report.id) }
        if isUpgrade {
            // The answer to a key that the client did not send. Connection and Upgrade are not
            // encoded.
            let lines = UnsafeMutableRawBufferPointer(mutating: head.readable)
            head.end = head.start + FieldLines.remove(["sec-websocket-accept"], from: lines)
        }
        // In place of 101, which HTTP/2 does not have (RFC 8441 §5).
        connection.sendHead(
            status: isUpgrade ? 200 : status, head.readable.octets, of: self, endsStream: false)
        connection.sendSoon()
        while let kept = inbox.popFirst() { tunnel.arrived(kept.readable, endsStream: false) }
        if case .underWay = request {} else { tunnel.peerHasEnded() }
        return connection.handOver(tunnel, transport)
    }

    var loop: EventLoop { connection.loop }
    func queue(_ buffer: Buffer) { send(buffer.readable, owner: buffer) }
    func sendSoon() { connection.sendSoon() }
    func tunnelTook(_ count: Int) { connection.consumed(count, of: self) }
    /// All that a client sends counts as its own.
    func tunnelKeeps(_ count: Int) {}
    func tunnelHasOneEnd() { progressed = loop.now }

    func tunnelEnded() {
        tunnel = nil
        connection.exchangeEnded(on: self)
    }

    func tunnelBroke() {
        tunnel = nil
        connection.fail(self, .connectError)
    }
}

extension AssembledRequest {
    /// Adds the key that servers of WebSockets want and HTTP/2 does not have (RFC 8441 §5).
    /// - Parameter memory: where the head is, with ``RequestAssembler/overhead`` bytes after it.
    mutating func addKey(in memory: UnsafeMutableRawBufferPointer) {
        let head = UnsafeRawBufferPointer(rebasing: memory[..<count]).octets
        guard let protocolName, head.holds(lowercase: "websocket", at: protocolName) else { return }
        // In place of the empty line.
        var writer = HeadWriter(memory, after: count - 2)
        writer.append("sec-websocket-key: ")
        writer.append(WebSocketKey.make().span)
        writer.append("\r\n\r\n")
        count = writer.count
    }
}
