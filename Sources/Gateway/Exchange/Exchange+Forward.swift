import CachePolicy
import Clocks
import EventLoop
import HTTPCore

// Phases 4 and 5: a connection, and the request on it.
extension Exchange {
    /// Sends the request to its origin.
    func forward(fresh: Bool = false) {
        guard let origin = currentOrigin() else { return }
        guard fresh || mayConnect(to: origin) else { return }
        become(.connecting)
        worker.upstreams.acquire(origin, for: self, fresh: fresh)
        // Still waiting: the wait has a bound of its own where no connection is being made.
        if phase == .connecting, register() {
            let timeouts = origin.timeouts
            worker.loop.setDeadline(self, after: timeouts.connectMilliseconds * 2 + 1000)
        }
    }

    /// The origin under the configuration in force: a reload may have come while the request
    /// waited. nil: it has been answered.
    private func currentOrigin() -> Origin? {
        guard let origin, origin.policy !== worker.policy else { return origin }
        stored = nil
        validation = nil
        key = nil
        guard let renewed = findOriginAnew() else {
            reply(with: .superseded, closing: true)
            return nil
        }
        self.origin = renewed
        guard let refusal = renewed.refusal else { return renewed }
        reply(with: refusal, closing: false)
        return nil
    }

    /// The wait for a connection has lasted too long.
    func connectionWaitTimedOut() {
        guard let origin else { return }
        worker.upstreams.abandon(origin, self)
        worker.metrics.add(.poolWaitTimeouts)
        fail(.poolWaitTimeout)
    }

    /// A body that lies in the head's buffer entirely can be sent a second time. To be called
    /// before any of it is taken out of the buffer: what follows it is the next request.
    func rememberReplayableBody(_ buffer: Buffer) {
        guard case .length(let length) = request.framing, UInt64(buffer.count) >= length else {
            return
        }
        replayableBody = buffer.start..<(buffer.start + Int(length))
    }

    func upstreamReady(_ upstream: UpstreamConnection) {
        if token != .none { worker.loop.setDeadline(self, after: nil) }
        self.upstream = upstream
        upstreamWasReused = upstream.uses > 0
        upstreamEndpoint = upstream.endpoint
        debug(
            "connection",
            ["server": "\(upstream.endpoint)", "reused": "\(upstreamWasReused)"])
        if worker.shared.accessLog != nil { upstreamVersion = upstream.transport.version }
        become(.forwarding)
        requestTime = worker.wallSeconds
        sentAt = Clock.monotonicMicroseconds()
        if let store = worker.shared.store {
            storeGeneration = key?.withView { store.generation(of: $0) }
        }
        interimCount = 0
        guard let head = makeRequestHead() else {
            upstream.cancel()
            self.upstream = nil
            return reply(with: .request(.headTooLarge), closing: true)
        }
        upstream.send(
            head: consume head,
            context: ResponseContext(method: request.method, allowsSwitch: asksForUpgrade))
        resendBody(upstream)
        sendGathered(upstream)
        if requestBodyEnded { upstream.endRequest() }
        let drained = upstream.flush()
        if !requestBodyEnded, drained { client?.resumeRequestBody() }
    }

    /// Sends content that has been taken from the client before and is still in its buffer.
    private func resendBody(_ upstream: UpstreamConnection) {
        guard let replayableBody, let requestBuffer, requestBodyEnded else { return }
        upstream.send(
            bytes: UnsafeRawBufferPointer(rebasing: requestBuffer.memory[replayableBody]),
            owner: requestBuffer)
    }

    // MARK: The head

    /// Fields that are written anew or belong to the client's hop.
    private static let replacedFields = FieldIDSet([.host, .contentLength])

    private func makeRequestHead() -> Buffer? {
        guard let origin else { return nil }
        let forwarded = forwardedFields
        let forwardedBytes =
            forwarded == nil ? 0 : ForwardedFields.reservedBytes + 2 * Int(request.authority.count)
        let needed =
            request.length + origin.authority.count + 512 + storedValidatorBytes + forwardedBytes
        let buffers = worker.loop.buffers
        let head =
            needed <= BufferPool.smallBytes ? buffers.takeSmall() : buffers.take(bytes: needed)
        var writer = HeadWriter(head.writable)
        let authority = origin.authority
        withRequestHead { bytes in
            writer.appendMethod(of: request, in: bytes)
            writer.append(byte: 0x20)
            writer.appendOriginForm(of: request, in: bytes)
            writer.append(" HTTP/1.1\r\nHost: ")
            appendHost(authority, bytes, to: &writer)
            writer.appendForwardedFields(request.fields, of: bytes, omitting: omittedFields)
            forwarded?.append(for: request, in: bytes, to: &writer)
            appendConditions(bytes, to: &writer)
            appendUpgrade(bytes, to: &writer)
            if let left = request.maxForwards(in: bytes)?.forwarded {
                writer.append(field: .maxForwards, decimal: left)
            }
        }
        appendFraming(to: &writer)
        writer.append(
            request.version == .http11 ? "Via: 1.1 pinfold\r\n\r\n" : "Via: 1.0 pinfold\r\n\r\n")
        guard !writer.overflowed else { return nil }
        head.end = writer.count
        return head
    }

    /// Host's value: the origin's own, or where a reverse route keeps it, what the client sent.
    private func appendHost(_ authority: [UInt8], _ bytes: Span<UInt8>, to writer: inout HeadWriter)
    {
        if let forwarding = origin?.key.forwarding, forwarding.keepsHost {
            let host = ForwardedFields.host(of: request, in: bytes)
            if !host.isEmpty {
                writer.append(host, of: bytes)
                return writer.appendLineEnd()
            }
        }
        writer.append(authority.span)
        writer.appendLineEnd()
    }

    private var storedValidatorBytes: Int {
        guard let validation else { return 0 }
        return Int(validation.entityTag.count) + Int(validation.lastModified.count)
    }

    private var omittedFields: FieldIDSet {
        var omitted = Self.replacedFields
        if validation != nil { omitted.formUnion(Validation.replacedFields) }
        if origin?.key.isFixed ?? false { omitted.formUnion(.forwarding) }
        if request.version == .http10 { omitted.insert(.expect) }
        if MaxForwards.counts(request.method) { omitted.insert(.maxForwards) }
        return omitted
    }

    private func appendConditions(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        guard let validation, let stored else { return }
        validation.appendFields(
            for: request, in: bytes,
            storedHead: Span(_unsafeElements: stored.head.bindMemory(to: UInt8.self)),
            to: &writer)
    }

    /// An upgrade is passed on only without a body: otherwise it would depend on the moment of the
    /// server's answer where the new protocol begins.
    private var asksForUpgrade: Bool { request.wantsUpgrade && !hasRequestBody }

    private func appendUpgrade(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        if asksForUpgrade {
            writer.append("Connection: Upgrade\r\n")
            for field in request.fields where field.id == .upgrade {
                writer.append(field: .upgrade, bytes.extracting(field.value.indices))
            }
        } else if request.acceptsTrailers {
            writer.append("TE: trailers\r\nConnection: TE\r\n")
        }
    }

    private func appendFraming(to writer: inout HeadWriter) {
        switch request.framing {
        case .none, .untilClose:
            break
        case .length(let length):
            writer.append(field: .contentLength, decimal: length)
        case .chunked:
            upstreamIsChunked = true
            writer.append("Transfer-Encoding: chunked\r\n")
        }
    }

    // MARK: The body

    /// Content of the request's body. False: take no more until `resumeRequestBody`.
    func requestBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        receivedBodyBytes += UInt64(bytes.count)
        switch phase {
        case .forwarding: break
        case .ended, .serving, .replying, .tunnelling: return true  // nobody wants it any more
        case .gathering: return gather(bytes, isLast: isLast)
        case .routing, .loading, .waiting, .connecting: return false
        }
        guard let upstream else { return true }
        sendContent(bytes, owner: owner, upstream)
        if isLast, !upstreamIsChunked {
            requestBodyEnded = true
            uploadEnded()
            upstream.endRequest()
        }
        return upstream.flush()
    }

    /// Queues content in the form that the head has announced.
    func sendContent(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, _ upstream: UpstreamConnection
    ) {
        sentBodyBytes += UInt64(bytes.count)
        if upstreamIsChunked {
            let frame = worker.loop.buffers.take(bytes: 24)
            var writer = HeadWriter(frame.writable)
            writer.append(hex: UInt64(bytes.count))
            writer.appendLineEnd()
            frame.end = writer.count
            upstream.send(bytes: frame.readable, owner: frame)
            upstream.send(bytes: bytes, owner: owner)
            upstream.send("\r\n")
        } else {
            upstream.send(bytes: bytes, owner: owner)
        }
    }

    /// The request's body is complete.
    func requestBodyEnded(_ chunked: ChunkedDecoder) {
        let alreadyEnded = requestBodyEnded
        requestBodyEnded = true
        uploadEnded()
        if phase == .gathering {
            gathered?.end = chunked
            return forward()
        }
        guard phase == .forwarding, let upstream, !alreadyEnded else {
            return finishIfResponseIsOver()
        }
        if upstreamIsChunked { sendLastChunk(chunked, upstream) }
        upstream.endRequest()
        _ = upstream.flush()
    }

    func sendLastChunk(_ chunked: ChunkedDecoder, _ upstream: UpstreamConnection) {
        guard !chunked.trailerBytes.isEmpty else {
            return upstream.send("0\r\n\r\n")
        }
        let frame = worker.loop.buffers.take(bytes: chunked.trailerBytes.count + 8)
        var writer = HeadWriter(frame.writable)
        writer.append("0\r\n")
        writer.appendFields(
            chunked.trailers, of: chunked.trailerBytes.span, omitting: .forbiddenInTrailers,
            dropsNominated: false)
        writer.appendLineEnd()
        frame.end = writer.count
        upstream.send(bytes: frame.readable, owner: frame)
    }

    /// The request's body cannot be read further.
    func requestBodyFailed(_ error: WireError) {
        upstream?.cancel()
        upstream = nil
        requestBodyEnded = true
        fail(.request(error))
    }

    func upstreamDrained() {
        if !requestBodyEnded { client?.resumeRequestBody() }
    }

    // MARK: Failure

    func upstreamFailed(_ fault: ExchangeFault, responseStarted: Bool) {
        if token != .none { worker.loop.setDeadline(self, after: nil) }
        upstream = nil
        let ending = RetryPolicy.Ending(
            fault, wasReused: phase == .forwarding && upstreamWasReused,
            responseStarted: responseStarted)
        mayRetry(after: ending) ? sendAgain() : fail(fault)
    }

    /// Ends the exchange for a reason: with a reply if none has begun, else by cutting it off.
    func fail(_ fault: ExchangeFault) {
        abandonStore()
        if responseHeadSent, clientReference?.withdrawHead() ?? false { responseHeadSent = false }
        if responseHeadSent {
            self.fault = fault
            return finish(cut: true)
        }
        if answerStale(insteadOf: fault) { return }
        reply(with: fault, closing: !requestBodyEnded)
    }
}
