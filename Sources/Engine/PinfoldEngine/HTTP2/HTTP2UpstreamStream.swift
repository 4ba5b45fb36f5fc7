import EventLoop
import HTTP2
import HTTPCore
import PinfoldTLS

/// One stream of a connection to a server: one request and its response.
///
/// It gets its number when the head of its request is sent, because streams must be opened in the
/// order of their numbers. What the consumer sends waits here until the connection has room for it
/// and the server's windows allow it; what the consumer does not accept of the response waits here
/// as well, and only what it has accepted is credited to the server.
final class HTTP2UpstreamStream: UpstreamStream {
    /// How far the response has arrived.
    enum Response {
        case none
        /// The final head has been passed on.
        case underWay
        /// Its end is behind what waits in `inbox`, or waits for the request's.
        case ended(TrailerSection?)
    }

    let connection: HTTP2UpstreamConnection
    /// `nil` until the head of its request is sent.
    var ref: StreamRef?
    /// `nil` once the exchange is over.
    var consumer: (any UpstreamConsumer)?
    /// When its server has taken too long, in the loop's milliseconds.
    var due = Int64.max
    let wasReused: Bool

    // The request.
    /// Where the method, the path and the host end in the draft of its head.
    private var ends = (method: 0, path: 0, host: 0)
    var context = ResponseContext(method: .get, repairsLines: false)
    /// Another protocol that the server is asked for; `nil` once it has refused.
    var switching: Switching?
    var content = OutputQueue()
    var trailers: TrailerSection?
    /// Whether nothing more will be queued.
    var isEnding = false
    var endIsSent = false {
        didSet { if endIsSent { endPosition = connection.output.totalBytes } }
    }
    /// Its content waits for the server to ask for it (RFC 9110 §10.1.1).
    private var awaitsContinue = false
    /// Where in the connection's output its request ends.
    private var endPosition: UInt64 = 0

    // The response.
    private var response = Response.none
    /// Whether anything of it has arrived.
    private var hasBegun = false
    /// Whether its head was passed on, and nothing has been flushed since.
    private var headIsUnflushed = false
    /// The consumer accepts no more content for now.
    private var isPaused = false
    private var isDelivering = false
    /// Content that it has not accepted yet.
    private var inbox = FIFO<Buffer>()
    /// How much of what Content-Length announces has not arrived yet, in bytes; `nil` without one.
    var contentLeft: UInt64?
    /// The last byte that Content-Length announces, until the stream ends: the server may yet send
    /// more, and what is complete cannot be taken back (RFC 9113 §8.1.1).
    private var lastByte: UInt8?
    private(set) var isEventStream = false
    /// A request for another protocol, until the server has said whether it takes that.
    var unsent: (head: Buffer, request: OutgoingRequest)?
    /// After a switch, until the consumer takes it.
    var offered: UpstreamHandover?
    /// After a switch: the bytes of the other protocol.
    var tunnel: HTTP2StreamTunnel?

    init(_ connection: HTTP2UpstreamConnection, _ consumer: any UpstreamConsumer) {
        self.connection = connection
        self.consumer = consumer
        wasReused = connection.hasCarriedRequest || connection.wasGivenBack
    }

    var endpoint: Endpoint { connection.endpoint }
    var timeline: ConnectionTimeline { connection.timeline }
    var tlsVersion: TLSVersion? { connection.transport.version }
    var tlsSummary: TLSSummary? { connection.transport.summary }
    var carrier: HTTPCarrier { .http2 }
    var requestIsSent: Bool { switching != nil || endIsSent && connection.output.isEmpty }
    var serverCertificate: ServerCertificate? { connection.serverCertificate }
    /// Whether the connection has taken everything that was queued.
    var isFlushed: Bool { content.isEmpty && (!isEnding || endIsSent) }

    var loop: EventLoop { connection.environment.loop }

    // MARK: The request

    func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft {
        let room = room + request.length + host.count + UpstreamConnection.reservedBytes
        var head = HeadDraft(loop.buffers.take(atLeast: room))
        head.fields.appendMethod(of: request, in: bytes)
        ends.method = head.fields.count
        head.fields.appendOriginForm(of: request, in: bytes)
        ends.path = head.fields.count
        head.fields.append(host)
        ends.host = head.fields.count
        return head
    }

    func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool {
        if let switching = Switching(request, upgrade) {
            guard let head = head.finished() else { return false }
            ask(for: switching, head, of: request)
            return true
        }
        if request.acceptsTrailers { head.fields.append("TE: trailers\r\n") }
        if case .length(let length) = request.framing {
            head.fields.append(field: .contentLength, decimal: length)
        }
        guard let head = head.finished() else { return false }
        send(head, of: request)
        return true
    }

    /// HTTP/2 has no Upgrade: a server may ignore it (RFC 9110 §7.8), and here it never sees it.
    func send(_ head: Buffer, of request: OutgoingRequest) {
        context = ResponseContext(
            method: request.method, isUserAgent: request.isUserAgents, repairsLines: false)
        let hasNoContent: Bool
        switch request.framing {
        case .none, .length(0): hasNoContent = true
        case .length, .chunked, .untilClose: hasNoContent = false
        }
        guard encode(head, endsStream: hasNoContent) else {
            return failLater(.server(.upstreamNotProcessed))
        }
        endIsSent = hasNoContent
        awaitsContinue = request.expectsContinue && !hasNoContent
    }

    /// Queues the head, which is that of an extended CONNECT if another protocol is asked for.
    /// Returns false if the server accepts no more streams.
    func encode(_ head: Buffer, endsStream: Bool) -> Bool {
        let bytes = head.readable
        let scheme: Scheme = connection.origin.key.isSecure ? .https : .http
        let (method, path, host) = ends
        return connection.sendHead(
            of: self, room: HeaderEncoder.bound(bytes.count) + 256, endsStream: endsStream
        ) { encoder, writer in
            let octets = bytes.octets
            let authority = octets.extracting(path..<host)
            let target = octets.extracting(method..<path)
            let lines = octets.extracting(host..<octets.count)
            guard let switching else {
                return encoder.encodeRequest(
                    method: octets.extracting(0..<method), scheme: scheme, authority: authority,
                    path: target, lines: lines, into: &writer)
            }
            let (connect, name) = (Switching.method, switching.sentName)
            encoder.encodeRequest(
                method: connect.span, scheme: scheme, authority: authority, path: target,
                protocolName: name.span, lines: lines, into: &writer)
        }
    }

    /// Where the fields begin in the draft of its head.
    var fieldsStart: Int { ends.host }

    /// Later, because the consumer is about to send the rest.
    func failLater(_ fault: ExchangeError) {
        loop.afterTurn { [self] in failed(fault) }
    }

    func send(_ bytes: UnsafeRawBufferPointer, owner: Buffer) {
        // The server may have said that it does not want the rest.
        guard ref != nil, consumer != nil, !endIsSent else { return }
        awaitsContinue = false
        if !content.appendCopy(bytes) { content.append(bytes, owner: owner) }
    }

    func finish(trailers: TrailerSection?) -> Bool {
        // What follows a request for another protocol is of that.
        guard tunnel != nil || switching == nil else { return true }
        isEnding = true
        self.trailers = trailers
        return flush()
    }

    func flush() -> Bool {
        let isDone = connection.send(of: self)
        awaitServer()
        // Later, because the consumer has just sent the end of its request.
        if isComplete { loop.afterTurn { [self] in concludeIfComplete() } }
        return isDone
    }

    /// Some of its content has been taken by the connection.
    func contentMoved() { awaitServer() }

    /// Everything that was queued has been taken by the connection.
    func wasDrained() {
        awaitServer()
        if let tunnel { return tunnel.drained() }
        isComplete ? conclude() : consumer?.upstreamDrained()
    }

    // MARK: The response

    /// The head of an interim response, which is parsed into the consumer's.
    func interimHead(_ head: UnsafeRawBufferPointer) {
        guard let consumer else { return }
        hasBegun = true
        if consumer.response.status == 100 { awaitsContinue = false }
        awaitServer()
        consumer.upstreamHead(head)
    }

    /// The head of the final response, which is parsed into the consumer's.
    func finalHead(_ head: UnsafeRawBufferPointer, endsStream: Bool) {
        guard let consumer else { return }
        hasBegun = true
        response = .underWay
        isEventStream = consumer.response.isEventStream(in: head.octets)
        awaitServer()
        headIsUnflushed = true
        if switching != nil { switchIsRefused() }
        consumer.upstreamHead(head)
        if endsStream { return responseEnded(trailers: nil) }
        if headIsUnflushed { connection.unflushed.append(self) }
    }

    /// Sends on a head with which no content arrived.
    func flushHead() {
        guard headIsUnflushed else { return }
        headIsUnflushed = false
        consumer?.upstreamHeadWithoutBody()
    }

    /// Takes note of content, or of the end of the response, that has arrived.
    func arrived(_ bytes: UnsafeRawBufferPointer, in input: Buffer, endsStream: Bool) {
        if let tunnel { return tunnel.arrived(bytes, endsStream: endsStream) }
        guard consumer != nil, let ref else { return connection.consumed(bytes.count, ref) }
        awaitServer()
        var content = bytes
        if let left = contentLeft {
            contentLeft = left - UInt64(bytes.count)
            if left == bytes.count, !endsStream, let last = bytes.last {
                lastByte = last
                content = UnsafeRawBufferPointer(rebasing: bytes.dropLast())
            }
        }
        if isPaused || isDelivering || !inbox.isEmpty {
            keep(content)
            connection.http.setAside(ref, content.count)
        } else if !content.isEmpty {
            pass(content, owner: input, isLast: endsStream && endIsSent && lastByte == nil)
        }
        if endsStream { responseEnded(trailers: nil) }
    }

    /// Takes note of the end of a response that may have trailers.
    func responseEnded(trailers: TrailerSection?) {
        if let tunnel { return tunnel.peerHasEnded() }
        response = .ended(trailers)
        awaitServer()
        if var last = lastByte.take() { withUnsafeBytes(of: &last) { keep($0) } }
        // Its place is free, though its content still waits.
        guard consumer != nil, !isPaused, !isDelivering else { return connection.tellPool() }
        guard inbox.isEmpty else { return deliver() }
        isComplete ? conclude() : requestFollows()
    }

    /// The response has ended before the request: its end is reported when the request has ended,
    /// or the server does not want the rest.
    private func requestFollows() {
        flushHead()
    }

    private func pass(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) {
        guard let consumer else { return }
        headIsUnflushed = false
        if !consumer.upstreamBody(bytes, owner: owner, isLast: isLast), !isLast {
            // The client is the slow side; its own deadline applies.
            isPaused = true
            awaitServer()
        }
        connection.consumed(bytes.count, ref)
    }

    /// Copies content that cannot be passed on yet. As much of it as the window allows may come in
    /// small pieces, and none of them must keep a whole buffer.
    private func keep(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes
        while !rest.isEmpty {
            if inbox.last?.writable.isEmpty ?? true { inbox.append(loop.buffers.takeSmall()) }
            guard let last = inbox.last else { return }
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(last.writable.count))
            last.writable.copyMemory(from: part)
            last.end += part.count
            rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(part.count))
        }
    }

    func resume() {
        guard isPaused else { return }
        isPaused = false
        awaitServer()
        deliver()
    }

    private func deliver() {
        guard !isDelivering else { return }
        isDelivering = true
        while !isPaused, consumer != nil, let kept = inbox.popFirst() {
            var isLast = false
            if case .ended(nil) = response { isLast = inbox.isEmpty && endIsSent }
            pass(kept.readable, owner: kept, isLast: isLast)
        }
        isDelivering = false
        guard consumer != nil else { return }
        connection.sendSoon()
        if case .ended(let trailers) = response { responseEnded(trailers: trailers) }
    }

    func leaveBuffer() {}

    // MARK: The end

    /// The exchange is over: gives back the stream before the consumer is notified.
    private func conclude() {
        guard let consumer else { return }
        var trailers: TrailerSection?
        if case .ended(let section) = response { trailers = section }
        release(answered: true)
        consumer.upstreamEnded(trailers: trailers)
    }

    /// Whether nothing is left to be done: neither of the request, nor of the response. A server
    /// that has responded will not ask for the content any more, which then may never come.
    private var isComplete: Bool {
        guard case .ended = response, endIsSent || awaitsContinue, consumer != nil else {
            return false
        }
        return !isPaused && !isDelivering && inbox.isEmpty
    }

    private func concludeIfComplete() { if isComplete { conclude() } }

    /// The server takes nothing more. If it has sent the whole response, that is delivered.
    private func serverIsGone(_ fault: @autoclosure () -> ExchangeError) {
        if tunnel != nil { return tunnelLostServer() }
        guard case .ended = response else { return failed(fault()) }
        // It does not want the rest of the request (RFC 9113 §8.1).
        endIsSent = true
        content.discard()
        concludeIfComplete()
    }

    /// The connection has ended.
    func lostConnection(_ fault: ExchangeError) { serverIsGone(fault) }

    func release(answered: Bool = false) {
        consumer = nil
        due = .max
        content.discard()
        if !inbox.isEmpty { inbox = FIFO() }
        connection.released(self, answered: answered)
    }

    /// The server has reset the stream.
    func resetByServer(_ code: ErrorCode) {
        let isUntouched = code.leavesUnprocessed && !hasBegun
        serverIsGone(isUntouched ? .server(.upstreamNotProcessed) : .upstreamStreamReset(code))
    }

    func failed(_ fault: ExchangeError) {
        if tunnel != nil { return cutTunnel() }
        guard let consumer else { return }
        let hasBegun = hasBegun
        release()
        consumer.upstreamFailed(StreamError(fault, responseStarted: hasBegun))
    }

    func setConsumer(_ consumer: any UpstreamConsumer) { self.consumer = consumer }

    func cancel() {
        guard consumer != nil else { return }
        if let ref {
            connection.http.reset(ref, .cancel)
            connection.cancelled()
        }
        release()
    }

    func giveBack() {
        guard consumer != nil else { return }
        connection.wasGivenBack = true
        release()
    }

    // MARK: Time

    /// The server has done something, or is expected to do something else: gives it time.
    func awaitServer() {
        guard consumer != nil, ref != nil else { return }
        due = patience.map { loop.now + $0 } ?? .max
        connection.look(at: due)
    }

    /// How long the server may take for what comes next, in milliseconds; `nil` if it is the
    /// client's turn, whose own deadline applies.
    private var patience: Int64? {
        let timeouts = connection.origin.timeouts
        guard content.isEmpty else { return timeouts.bodyMilliseconds }
        switch response {
        case .none:
            let isAwaited = endIsSent || awaitsContinue || switching != nil
            return isAwaited ? timeouts.firstByteMilliseconds : nil
        case .underWay:
            guard !isPaused else { return nil }
            return isEventStream ? timeouts.eventStreamMilliseconds : timeouts.bodyMilliseconds
        case .ended: return nil
        }
    }

    /// Whether the server has not accepted all that was sent, though its windows allow it.
    /// - Parameter accepted: how much of the connection's output it has accepted.
    func isBeingSent(accepted: UInt64) -> Bool {
        guard let ref else { return false }
        if !content.isEmpty { return connection.http.sendable(ref) > 0 }
        guard case .none = response else { return false }
        return endIsSent && endPosition > accepted
    }

    /// Its time begins now.
    func postpone() { tunnel == nil ? awaitServer() : tunnelHasOneEnd() }

    /// The server has taken too long.
    func timedOut() {
        if let ref { connection.http.reset(ref, .cancel) }
        if tunnel != nil { return cutTunnel() }
        guard content.isEmpty else { return failed(.server(.upstreamSendTimeout)) }
        switch response {
        case .none: failed(.server(.firstByteTimeout))
        case .underWay:
            failed(.server(isEventStream ? .eventStreamTimeout : .upstreamBodyTimeout))
        case .ended: failed(.server(.upstreamSendTimeout))
        }
    }
}
