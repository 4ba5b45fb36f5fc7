import EventLoop
import HTTP2
import HTTPCore

// Another protocol in a stream (RFC 8441). The consumer asks for it by Upgrade and is answered by
// 101, as over HTTP/1.1; the server gets an extended CONNECT, and answers with 2xx.
extension HTTP2UpstreamStream {
    /// A protocol that the server is asked for.
    struct Switching {
        /// As the client has written it.
        let name: [UInt8]
        let isWebSocket: Bool
        /// What the answer to a WebSocket's key must be, which HTTP/2 does not have (RFC 8441 §5).
        var answer: [UInt8]?

        static let method = Array("CONNECT".utf8)

        /// The name that the server is told: its case means nothing, but some servers compare it.
        var sentName: [UInt8] { isWebSocket ? Self.webSocket : name }
        private static let webSocket = Array("websocket".utf8)

        /// How much longer a head becomes by what is added to it.
        static let addedBytes = 192

        /// Fails if nothing is asked for that HTTP/2 has.
        init?(_ request: OutgoingRequest, _ upgrade: [UnsafeRawBufferPointer]) {
            guard request.asksForUpgrade,
                case .inStream = SwitchRequest(request.method, upgrade)
            else { return nil }
            let name = Array(upgrade[0])
            isWebSocket = name.span.equals(lowercase: "websocket")
            self.name = name
        }
    }

    /// Asks for another protocol, once the server has said whether it takes that.
    func ask(for switching: Switching, _ head: Buffer, of request: OutgoingRequest) {
        self.switching = switching
        unsent = (head, request)
        connection.tellWhenSettled(self)
    }

    /// The server has said what it takes.
    func connectionSettled() {
        guard consumer != nil, let (head, request) = unsent.take() else { return }
        guard connection.http.peer.enablesConnectProtocol else {
            return switchIsUnknown(head, of: request)
        }
        sendConnect(head, of: request)
    }

    private func sendConnect(_ head: Buffer, of request: OutgoingRequest) {
        context = ResponseContext(
            method: request.method, allowsSwitch: true, isUserAgent: request.isUserAgents,
            repairsLines: false)
        let memory = UnsafeMutableRawBufferPointer(mutating: head.readable)
        let lines = UnsafeMutableRawBufferPointer(rebasing: memory[fieldsStart...])
        if switching?.isWebSocket ?? false {
            let kept = FieldLines.remove(["sec-websocket-key"], from: lines) { key in
                switching?.answer = WebSocketKey.answer(to: key)
            }
            head.end -= lines.count - kept
        }
        guard encode(head, endsStream: false) else {
            return failLater(.server(.upstreamNotProcessed))
        }
        awaitServer()
    }

    /// The server does not take extended CONNECT. If nothing but HTTP/2 may be spoken with it, it
    /// does not see what it is asked for.
    private func switchIsUnknown(_ head: Buffer, of request: OutgoingRequest) {
        switching = nil
        guard !connection.origin.http2.isRequired else {
            send(head, of: request)
            return awaitServer()
        }
        connection.origin.http2.takesExtendedConnect = false
        failLater(.server(.upstreamNotProcessed))
    }

    // MARK: The answer

    /// Makes the head of a 101 from that of a 2xx.
    /// - Parameter memory: has room for ``Switching/addedBytes`` more.
    /// - Returns: its size, in bytes.
    func makeSwitchHead(_ count: Int, in memory: UnsafeMutableRawBufferPointer) -> Int {
        guard let switching else { return count }
        // `HTTP/2.0 SSS CRLF`, the field lines, and the empty line.
        memory[9] = UInt8(ascii: "1")
        memory[10] = UInt8(ascii: "0")
        memory[11] = UInt8(ascii: "1")
        let lines = UnsafeMutableRawBufferPointer(rebasing: memory[..<(count - 2)])
        // Content-Length means nothing after CONNECT (RFC 9110 §9.3.6).
        let kept = FieldLines.remove(["content-length", "sec-websocket-accept"], from: lines)
        var writer = HeadWriter(memory, after: kept)
        writer.append("connection: Upgrade\r\nupgrade: ")
        writer.append(switching.name.span)
        if let answer = switching.answer {
            writer.append("\r\nsec-websocket-accept: ")
            writer.append(answer.span)
        }
        writer.append("\r\n\r\n")
        return writer.count
    }

    /// The server has begun the other protocol: the consumer takes over its bytes, or gives up.
    func switched(_ head: UnsafeRawBufferPointer, endsStream: Bool) {
        guard let consumer else { return }
        guard let (tunnel, transport) = HTTP2StreamTunnel.make(of: self) else {
            if let ref { connection.http.reset(ref, .cancel) }
            return failed(.gateway(.descriptorsExhausted))
        }
        due = .max
        offered = UpstreamHandover(transport: transport, tunnel: tunnel)
        consumer.upstreamHead(head)
        guard let unused = offered.take() else {
            if endsStream { tunnel.peerHasEnded() }
            return
        }
        unused.transport.close()
        tunnel.discard()
        guard self.consumer != nil else { return }
        if let ref { connection.http.reset(ref, .cancel) }
        failed(.response(.unexpectedSwitch))
    }

    /// The final head is an ordinary response: the request has no content.
    func switchIsRefused() {
        switching = nil
        isEnding = true
        _ = connection.send(of: self)
    }

    func handOver() -> UpstreamHandover {
        guard let offered = offered.take() else {
            preconditionFailure("a stream of HTTP/2 is handed over that has not switched")
        }
        consumer = nil
        tunnel = offered.tunnel
        if let ref { connection.http.becomesTunnel(ref) }
        connection.hasCarriedRequest = true
        return offered
    }
}

// MARK: The bytes of the other protocol

extension HTTP2UpstreamStream: TunnelledStream {
    func queue(_ buffer: Buffer) {
        let bytes = buffer.readable
        if !content.appendCopy(bytes) { content.append(bytes, owner: buffer) }
    }

    func sendSoon() { connection.sendSoon() }
    func tunnelTook(_ count: Int) { connection.consumed(count, ref) }
    func tunnelKeeps(_ count: Int) { if let ref { connection.http.setAside(ref, count) } }

    func tunnelHasOneEnd() {
        due = loop.now + connection.origin.timeouts.bodyMilliseconds
        connection.look(at: due)
    }

    /// A server that has not ended its direction has nobody to send to.
    func tunnelEnded() {
        if let ref, tunnel?.isComplete == false { connection.http.reset(ref, .cancel) }
        tunnel = nil
        release(answered: true)
    }

    func tunnelBroke() {
        if let ref { connection.http.reset(ref, .cancel) }
        tunnel = nil
        release(answered: true)
    }

    /// The client must notice.
    func cutTunnel() {
        guard let tunnel = tunnel.take() else { return }
        release(answered: true)
        tunnel.cut()
    }

    /// The server is gone, or has reset the stream.
    func tunnelLostServer() {
        guard let tunnel = tunnel.take() else { return }
        release(answered: true)
        tunnel.peerIsGone()
    }
}
