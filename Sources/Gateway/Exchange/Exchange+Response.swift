import CachePolicy
import CacheStore
import Clocks
import EventLoop
import HTTPCore

// Phases 6 to 8: the upstream's answer, passed on and stored while it streams.
extension Exchange {
    /// Interim responses that one exchange may bring.
    private static let interimLimit = 32

    func upstreamHead(_ head: UnsafeRawBufferPointer) {
        let bytes = Span<UInt8>(_unsafeElements: head.bindMemory(to: UInt8.self))
        if firstByteMicroseconds == nil {
            firstByteMicroseconds = UInt64(max(0, Clock.monotonicMicroseconds() - sentAt))
        }
        if response.status == 101 { return switchProtocols(bytes) }
        if response.isInterim { return passInterim(bytes) }
        if stored != nil, conclude(bytes) { return }
        passHead(bytes)
    }

    private func passInterim(_ bytes: Span<UInt8>) {
        interimCount += 1
        guard interimCount <= Self.interimLimit else {
            upstream?.cancel()
            upstream = nil
            return fail(.upgradeOverInterimLimit)
        }
        guard let client, client.takesInterimResponses else { return }
        let interim = buffer(for: response.length)
        var writer = HeadWriter(interim.writable)
        appendStatusLine(bytes, to: &writer)
        writer.appendForwardedFields(
            response.fields, of: bytes, omitting: [.init(.contentLength)])
        appendResponseVia(to: &writer)
        writer.appendLineEnd()
        interim.end = writer.count
        client.sendInterim(interim)
        _ = client.flush()
    }

    func buffer(for headBytes: Int) -> Buffer {
        let needed = headBytes + 512 + ClientConnection.reservedBytes
        return needed <= BufferPool.smallBytes
            ? worker.loop.buffers.takeSmall() : worker.loop.buffers.take(bytes: needed)
    }

    private func appendStatusLine(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        writer.append("HTTP/1.1 ")
        writer.append(decimal: UInt64(response.status))
        writer.append(byte: 0x20)
        writer.append(response.reason, of: bytes)
        writer.appendLineEnd()
    }

    /// Passes a final head on, and begins to store if that is allowed.
    private func passHead(_ bytes: Span<UInt8>) {
        // What was asked in the background and failed replaces nothing.
        if clientReference == nil, response.status >= 500 { return finish() }
        updateStored(byHead: bytes)
        let isStored = beginStore(bytes)
        debugStore(isStored)
        if !isStored { endFlight(.notStored) }
        guard let client else {
            // Asked in the background: what is not stored is of use only if it tells, by arriving
            // in full, that the stored response is outdated.
            return isStored || outdated != nil ? () : finish()
        }
        invalidate(bytes)
        let head = buffer(for: response.length)
        var writer = HeadWriter(head.writable)
        appendStatusLine(bytes, to: &writer)
        writer.appendForwardedFields(
            response.fields, of: bytes, omitting: FieldIDSet([.contentLength]))
        if !response.fields.contains(.date) {
            writer.append(field: .date, date: worker.wallSeconds)
        }
        appendCacheStatus(isStored: isStored, to: &writer)
        appendResponseVia(to: &writer)
        let framing = clientFraming(bytes, &writer)
        head.end = writer.count
        status = response.status
        responseHeadSent = true
        become(.forwarding)
        isEventStream = upstream?.isEventStream ?? false
        if isEventStream { client.expectPauses() }
        // Not flushed: a body that is there already leaves in the same write as its head.
        client.sendHead(consume head, framing: framing, closing: false)
    }

    var mayBeRepeated: Bool { request.method.isIdempotent }

    func upstreamHeadWithoutBody() { _ = client?.flush() }

    private func clientFraming(
        _ bytes: Span<UInt8>, _ writer: inout HeadWriter
    ) -> ClientFraming {
        switch response.framing {
        case .none:
            // HEAD and 304 say how long the content would be.
            if response.status != 204, let length = response.fields.only(.contentLength) {
                writer.append(field: .contentLength, bytes.extracting(length.value.indices))
            } else if request.method != .head, response.status != 304, response.status != 204 {
                writer.append("Content-Length: 0\r\n")
            }
            return .none
        case .length(let count): return .length(count)
        case .chunked, .untilClose: return .streamed
        }
    }

    func appendResponseVia(to writer: inout HeadWriter) {
        writer.append(
            response.version == .http11 ? "Via: 1.1 pinfold\r\n" : "Via: 1.0 pinfold\r\n")
    }

    private func appendCacheStatus(isStored: Bool, to writer: inout HeadWriter) {
        let forwarded = CacheStatus.Forwarded(
            reason: forwardReason ?? .bypass, isStored: isStored, notStored: notStoredReason)
        CacheStatus.forwarded(forwarded).append(to: &writer)
    }

    func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        store(bytes)
        guard let client else {
            if ticket == nil, !tellsOfOutdated(bytes.count) { finish() }
            return isLast || !waitsForStore()
        }
        client.sendBody(bytes, owner: owner)
        // The end goes out with the last part, and only when the store is complete: who has seen
        // the end of a response may ask for it again at once.
        if isLast { return true }
        return client.flush() && !waitsForStore()
    }

    /// Bytes of a response that is not stored, read in the background to see whether it arrives in
    /// full. One that is longer is taken to do so.
    private static let backgroundBodyBytes: UInt64 = 1 << 20

    /// Whether content of a response that nobody keeps is still worth reading.
    private func tellsOfOutdated(_ count: Int) -> Bool {
        guard outdated != nil else { return false }
        receivedBodyBytes += UInt64(count)
        if receivedBodyBytes > Self.backgroundBodyBytes { removeOutdated() }
        return outdated != nil
    }

    func upstreamEnded(trailers: borrowing ChunkedDecoder?) {
        upstream = nil
        finishStore()
        if case .forwardAgain = afterValidation {} else { removeOutdated() }
        switch afterValidation {
        case .nothing: break
        case .serve(let response, let fresh, let hit, let cacheStatus):
            afterValidation = .nothing
            return serve(response, hit, as: fresh, cacheStatus: cacheStatus)
        case .forwardAgain:
            afterValidation = .nothing
            return mayRetry(after: .validationFailed) ? sendAgain() : fail(.upstreamClosed)
        }
        guard let client else { return finish() }
        sendTrailers(trailers, to: client)
        responseIsComplete = true
        if client.flush() { finishIfResponseIsOver() }
    }

    private func sendTrailers(_ trailers: borrowing ChunkedDecoder?, to client: any ClientStream) {
        guard let trailers = copy trailers, request.acceptsTrailers else {
            return client.sendEnd(trailers: UnsafeRawBufferPointer(start: nil, count: 0))
        }
        let size = trailers.trailerBytes.count
        withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { memory in
            var writer = HeadWriter(memory)
            writer.appendFields(
                trailers.trailers, of: trailers.trailerBytes.span,
                omitting: .forbiddenInTrailers, dropsNominated: false)
            client.sendEnd(trailers: UnsafeRawBufferPointer(rebasing: memory[..<writer.count]))
        }
    }

    /// Everything queued for the client has been written.
    func clientDrained() {
        switch phase {
        case .serving: serving?.proceed()
        case .forwarding where upstream != nil: upstream?.resume()
        default: break
        }
        finishIfResponseIsOver()
    }
}
