import EventLoop
import HTTPCore
import PinfoldTLS

// Sending for a consumer: HTTP/1.1's request line, its own fields, and chunks.
extension UpstreamConnection: UpstreamStream {
    package var wasReused: Bool { uses > 0 }
    package var tlsVersion: TLSVersion? { transport.version }
    package var tlsSummary: TLSSummary? { transport.summary }
    package var carrier: HTTPCarrier { .http1 }

    package func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int
    ) -> HeadDraft {
        if let proxy = origin.forwards {
            return makeHead(for: request, in: bytes, host: host, room: room, through: proxy)
        }
        var head = makeDraft(for: request, host: host, room: room)
        head.fields.appendMethod(of: request, in: bytes)
        head.fields.append(byte: 0x20)
        head.fields.appendOriginForm(of: request, in: bytes)
        head.fields.append(" HTTP/1.1\r\nHost: ")
        head.fields.append(host)
        head.fields.appendLineEnd()
        return head
    }

    @inline(__always)
    private func makeDraft(
        for request: borrowing RequestHead, host: Span<UInt8>, room: Int
    ) -> HeadDraft {
        let line = Int(request.methodRange.count) + Int(request.path.count) + host.count
        let needed = line + room + Self.reservedBytes
        return HeadDraft(environment.loop.buffers.take(atLeast: needed))
    }

    /// The head of a request for a proxy to forward: in absolute-form (RFC 9112 §3.2.2), with the
    /// credentials that the proxy requires.
    @inline(never)
    private func makeHead(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, host: Span<UInt8>, room: Int,
        through proxy: UpstreamProxy
    ) -> HeadDraft {
        let method = bytes.text(at: request.methodRange)
        var target = "http://" + host.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        // OPTIONS for the whole server has no path (RFC 9112 §3.2.4).
        if !request.path.isEmpty || request.method != .options {
            let path = bytes.text(at: request.path)
            target += path.hasPrefix("/") ? path : "/" + path
        }
        let authorization = proxy.authorizationLine(method, target)
        var head = makeDraft(
            for: request, host: host, room: room + target.utf8.count + authorization.count)
        head.fields.appendMethod(of: request, in: bytes)
        head.fields.append(byte: 0x20)
        head.fields.append(text: target)
        head.fields.append(" HTTP/1.1\r\nHost: ")
        head.fields.append(host)
        head.fields.appendLineEnd()
        head.fields.append(authorization.span)
        return head
    }

    package func sendHead(
        _ head: consuming HeadDraft, of request: OutgoingRequest, upgrade: [UnsafeRawBufferPointer]
    ) -> Bool {
        if request.asksForUpgrade {
            head.fields.append("Connection: Upgrade\r\n")
            head.fields.appendName(.upgrade)
            for (index, name) in upgrade.enumerated() {
                if index > 0 { head.fields.append(", ") }
                head.fields.append(bytes: name)
            }
            head.fields.appendLineEnd()
        } else if request.acceptsTrailers {
            head.fields.append("TE: trailers\r\nConnection: TE\r\n")
        }
        var isChunked = false
        switch request.framing {
        case .none, .untilClose: break
        case .length(let length): head.fields.append(field: .contentLength, decimal: length)
        case .chunked:
            isChunked = true
            head.fields.append("Transfer-Encoding: chunked\r\n")
        }
        head.fields.appendLineEnd()
        guard let head = head.finished() else { return false }
        context = ResponseContext(
            method: request.method, allowsSwitch: request.asksForUpgrade,
            isUserAgent: request.isUserAgents)
        let sent = HTTP1Connection.Request(
            hasContent: true, maySwitch: request.asksForUpgrade,
            expectsContinue: request.expectsContinue, isChunked: isChunked)
        guard case .nothing = http.requestHead(sent) else {
            environment.reportIllegal(.requestHead(sent), on: http)
            return false
        }
        environment.metrics.add(.upstreamBytesSent, UInt64(head.count))
        output.append(head.readable, owner: head)
        return true
    }

    package func send(_ content: UnsafeRawBufferPointer, owner: Buffer) {
        guard isChunked else { return queue(content, owner: owner) }
        let line = environment.loop.buffers.take(bytes: 24)
        var writer = HeadWriter(line.writable)
        writer.appendChunkSize(content.count)
        line.end = writer.count
        queue(line.readable, owner: line)
        queue(content, owner: owner)
        queue("\r\n")
    }

    package func finish(trailers: TrailerSection?) -> Bool {
        if isChunked { queueLastChunk(trailers) }
        handle(.requestEnded)
        return flush()
    }

    private var isChunked: Bool { http.sentFraming == .chunked }

    private func queueLastChunk(_ trailers: TrailerSection?) {
        guard let trailers else { return queue("0\r\n\r\n") }
        let end = environment.loop.buffers.take(bytes: trailers.bytes.count + 8)
        var writer = HeadWriter(end.writable)
        writer.appendLastChunk(trailers)
        end.end = writer.count
        queue(end.readable, owner: end)
    }

    private func queue(_ bytes: UnsafeRawBufferPointer, owner: Buffer) {
        waits.insert(.sending)
        handle(.contentQueued)
        environment.metrics.add(.upstreamBytesSent, UInt64(bytes.count))
        output.append(bytes, owner: owner)
    }

    private func queue(_ text: StaticString) {
        environment.metrics.add(.upstreamBytesSent, UInt64(text.utf8CodeUnitCount))
        output.append(text)
    }

    package func flush() -> Bool {
        let before = output.pendingBytes
        switch transport.flush(&output, on: environment.loop, spending: &budget) {
        case .drained:
            drained()
            return true
        case .blocked:
            if output.pendingBytes < before || deadline == .max { armSendDeadline() }
            return false
        case .turnIsOver:
            armSendDeadline()
            environment.loop.requeue(self)
            return false
        case .failed:
            handle(.sendingFailed)
            output.discard()
            inputReadiness = .ready
            environment.loop.requeue(self)
            return false
        }
    }

    /// Everything queued has been handed to the kernel.
    @inline(__always)
    private func drained() {
        switch http.phase {
        case .finishing: environment.loop.requeue(self)
        case .awaiting: armResponseDeadline()
        // The client's own deadline applies.
        case .starting, .requesting, .answered: environment.loop.setDeadline(self, after: nil)
        case .answering, .responding: break
        case .opening, .idle, .lingering, .detached, .closed: break
        }
    }

    package var requestIsSent: Bool { http.requestIsComplete && output.isEmpty }

    func armBodyDeadline() {
        environment.loop.setDeadline(
            self, after: waits.isEmpty ? origin.timeouts.bodyMilliseconds : unusualPause())
    }

    /// How long an event stream may be silent, or the time until the next check whether the server
    /// accepts the rest of the request.
    @inline(never)
    private func unusualPause() -> Int64 {
        guard !output.isEmpty else { return streamMilliseconds }
        idleTime.note(at: environment.loop.now)
        return IdleTime.firstLook(of: streamMilliseconds)
    }

    /// How long the server may pause within its response.
    var streamMilliseconds: Int64 {
        let timeouts = origin.timeouts
        return isEventStream ? timeouts.eventStreamMilliseconds : timeouts.bodyMilliseconds
    }

    /// The request has been handed to the kernel.
    private func armResponseDeadline() {
        if waits.contains(.sending) { return armSendDeadline() }
        environment.loop.setDeadline(self, after: origin.timeouts.firstByteMilliseconds)
    }

    /// The socket has accepted part of the request, which may stay in the kernel for a long time.
    private func armSendDeadline() {
        idleTime.note(at: environment.loop.now)
        waits.insert(.sending)
        let times = origin.timeouts
        environment.loop.setDeadline(
            self,
            after: min(IdleTime.firstLook(of: times.bodyMilliseconds), times.firstByteMilliseconds))
    }

    package func resume() {
        guard delivery == .paused else { return }
        delivery = .flowing
        if http.responsePart == .content { armBodyDeadline() }
        drive()
    }

    package func leaveBuffer() {
        guard let current = input else { return }
        guard !current.isEmpty else {
            input = nil
            return
        }
        let next = environment.loop.buffers.take(bytes: current.count)
        next.copyUnread(of: current)
        input = next
    }

    package func setConsumer(_ consumer: any UpstreamConsumer) { self.consumer = consumer }

    package func cancel() {
        consumer = nil
        // All of the request was sent: its server need not take the end for a truncation.
        if transport.isSecure, http.isInExchange, requestIsSent { _ = transport.finishSending() }
        close()
    }

    package func giveBack() {
        consumer = nil
        // Later, because the pool may be handing out this connection's streams right now.
        environment.loop.afterTurn { [self] in
            guard http.isInExchange, consumer == nil else { return }
            let event = HTTP1Connection.Event.givenBack(rest)
            let reaction = http.handle(event)
            guard reaction == .reuse else { return perform(reaction, after: event) }
            Buffer.release(&input)
            uses += 1
            pool.returned(self, mayHaveInput: true)
        }
    }

    package var serverCertificate: ServerCertificate? {
        if let knownCertificate { return knownCertificate }
        // A proxy's certificate says nothing about the server.
        guard origin.forwards == nil, origin.tls != nil else { return nil }
        let der = (transport.tls as? TLSClientConnection)?.certificateDER
        knownCertificate = der.flatMap { ServerCertificate(der: $0) }
        return knownCertificate
    }

    package func handOver() -> UpstreamHandover {
        let leftover = input
        input = nil
        consumer = nil
        output.discard()
        let event = HTTP1Connection.Event.detached
        if http.handle(event) != .nothing {
            environment.reportIllegal(event, on: http)
            handle(.closed)
        }
        environment.loop.remove(self, keepingOpen: transport.descriptor)
        pool.removed(self)
        return UpstreamHandover(transport: transport, leftover: leftover)
    }
}
