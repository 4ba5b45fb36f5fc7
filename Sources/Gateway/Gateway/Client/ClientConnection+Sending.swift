import CacheStore
import EventLoop
import HTTPCore
import PinfoldEngine

// What the exchange sends.

extension ClientConnection: DownstreamStream {
    package var sentBytes: (total: UInt64, content: UInt64) { (responseBytes, contentBytes) }
    var takesInterimResponses: Bool { http.version.hasInterimResponses }
    private var isChunked: Bool { http.sentFraming == .chunked }

    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        let needed = room + (phrase?.count ?? 0) + Self.reservedBytes
        var head = HeadDraft(buffers.take(atLeast: needed))
        if phrase == nil, status == 200 {
            head.fields.append("HTTP/1.1 200 OK\r\n")
        } else {
            head.fields.appendStatusLine(status, phrase: phrase)
        }
        return head
    }

    func sendInterim(_ head: consuming HeadDraft) {
        handle(.interimHead(persists: true))
        queue(head)
    }

    private func queue(_ head: consuming HeadDraft) {
        head.fields.appendLineEnd()
        if let head = head.finished() { output.append(head.readable, owner: head) }
    }

    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        let isStreamed = if case .streamed = framing { true } else { false }
        handle(
            .responseHead(
                HTTP1Connection.Response(
                    persists: !closing && !worker.isDraining, isStreamed: isStreamed)))
        if case .length(let count) = framing {
            head.fields.append(field: .contentLength, decimal: count)
        }
        if isChunked { head.fields.append("Transfer-Encoding: chunked\r\n") }
        switch http.connectionOption {
        case .none: break
        case .close: head.fields.append("Connection: close\r\n")
        case .keepAlive: head.fields.append("Connection: keep-alive\r\n")
        }
        head.fields.appendLineEnd()
        bytesBeforeHead = output.isEmpty ? responseBytes : nil
        // There was space for all of it: without a head nothing may follow.
        guard let head = head.finished() else { return outputFailed() }
        output.append(head.readable, owner: head)
    }

    func withdrawHead() -> Bool {
        guard bytesBeforeHead == responseBytes, !output.isEmpty, !transport.isWithinRecord
        else { return false }
        output.discard()
        bytesBeforeHead = nil
        contentBytes = 0
        handle(.headWithdrawn)
        return true
    }

    func send(_ bytes: UnsafeRawBufferPointer, owner: AnyObject) {
        guard bytes.count > 0 else { return }
        contentBytes += UInt64(bytes.count)
        guard isChunked else {
            if output.appendCopy(bytes) { return }
            return output.append(bytes, owner: owner)
        }
        appendChunkHead(bytes.count)
        if !output.appendCopy(bytes) { output.append(bytes, owner: owner) }
        output.append("\r\n")
    }

    func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        let descriptor = file.fileDescriptor
        contentBytes += UInt64(count)
        guard isChunked else {
            return output.append(file: descriptor, offset: offset, count: count, owner: file)
        }
        appendChunkHead(count)
        output.append(file: descriptor, offset: offset, count: count, owner: file)
        output.append("\r\n")
    }

    private func appendChunkHead(_ count: Int) {
        let heads = chunkHeads ?? buffers.takeSmall()
        chunkHeads = heads
        if output.isEmpty { heads.clear() }
        if heads.writable.count < 20 { return replaceChunkHeads(count) }
        var writer = HeadWriter(heads.writable)
        writer.appendChunkSize(count)
        output.append(
            UnsafeRawBufferPointer(
                start: heads.memory.baseAddress.map { $0 + heads.end },
                count: writer.count), owner: heads)
        heads.end += writer.count
    }

    private func replaceChunkHeads(_ count: Int) {
        chunkHeads = buffers.takeSmall()
        appendChunkHead(count)
    }

    func finish(trailers: TrailerSection?) -> Bool {
        if isChunked { queueLastChunk(trailers) }
        return flush()
    }

    private func queueLastChunk(_ trailers: TrailerSection?) {
        guard let trailers else { return output.append("0\r\n\r\n") }
        let end = buffers.take(bytes: trailers.bytes.count + 8)
        var writer = HeadWriter(end.writable)
        writer.appendLastChunk(trailers)
        end.end = writer.count
        output.append(end.readable, owner: end)
    }

    func flush() -> Bool {
        let before = output.pendingBytes
        let result = transport.flush(&output, on: loop, spending: &budget)
        let written = UInt64(before - output.pendingBytes)
        responseBytes += written
        switch result {
        case .drained:
            updateExchangeDeadline(progress: written > 0)
            return true
        case .blocked:
            updateExchangeDeadline(progress: written > 0)
            return false
        case .turnIsOver:
            updateExchangeDeadline(progress: true)
            loop.requeue(self)
            return false
        case .failed:
            outputFailed()
            return false
        }
    }

    /// Nothing more can be sent: the connection ends at the end of the turn.
    private func outputFailed() {
        output.discard()
        guard http.isOpen else { return }
        handle(.peerFinished)
        // Not before the end of the turn, because the exchange may be about to send more.
        let reaction = http.handle(.sendingFailed)
        assert(reaction == .abandon || reaction == .close)
        loop.afterTurn { [self] in cutOff() }
    }

    func resumeContent() {
        guard let body, body.isPaused else { return }
        body.isPaused = false
        updateExchangeDeadline(progress: true)
        drive()
    }

    func pauseContent() {
        body?.isPaused = true
        updateExchangeDeadline(progress: false)
    }

    func expectPauses() { Sockets.probePeer(descriptor) }

    var isFlushed: Bool { output.isEmpty }
    var inputFollows: Bool {
        body != nil || !(input?.isEmpty ?? true) || Transfers.isReadable(descriptor)
    }

    func exchangeEnded(cut: Bool) {
        guard http.isInExchange, exchange != nil else { return }
        if let exchange = exchange.take() { environment.recycle(consume exchange) }
        Buffer.release(&chunkHeads)
        output.discard()
        if cut { return handle(.cut) }
        handle(.responseEnded(HTTP1Connection.Rest(isFlushed: true, hasInput: false)))
    }

    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover? {
        guard http.isInExchange else { return nil }
        let event = HTTP1Connection.Event.detached
        guard http.handle(event) == .nothing else {
            environment.reportIllegal(event, on: http)
            // The caller ends the exchange.
            exchange = nil
            close()
            return nil
        }
        // RFC 9110 §7.8.
        if isUpgrade { head.fields.append("Connection: Upgrade\r\n") }
        queue(head)
        let (leftover, pending) = (input, output)
        input = nil
        output = OutputQueue()
        exchange = nil
        worker.idleClients.removed(self)
        loop.remove(self, keepingOpen: descriptor)
        return DownstreamHandover(
            transport: transport, leftover: leftover, pending: pending,
            closed: { [worker, account, environment, peer] _ in
                environment.clientLeft(peer)
                worker.clientLeft(account)
            })
    }

    /// While an exchange is under way the deadline runs exactly while the gateway waits for the
    /// client: to accept what is queued, or to send more of its body.
    func updateExchangeDeadline(progress: Bool) {
        guard http.isInExchange else { return }
        let waits = !output.isEmpty || body.map { !$0.isPaused } ?? false
        if !waits {
            loop.setDeadline(self, after: nil)
        } else if progress || deadline == .max {
            let time = bodyMilliseconds
            idleTime.note(at: loop.now)
            loop.setDeadline(
                self, after: output.isEmpty ? time : IdleTime.firstLook(of: time))
        }
    }

    private var bodyMilliseconds: Int64 {
        (exchange?.forwarding.origin?.timeouts ?? timeouts).bodyMilliseconds
    }

    /// The time until the next check of whether the client accepts, or sends, anything; `nil` if it
    /// has done neither for too long.
    func nextCheck() -> Int64? {
        let now = loop.now
        if !output.isEmpty, let time = progress.look(Sockets.delivery(descriptor), at: now) {
            idleTime.note(at: time)
        }
        return idleTime.nextCheck(of: bodyMilliseconds, at: now)
    }
}
