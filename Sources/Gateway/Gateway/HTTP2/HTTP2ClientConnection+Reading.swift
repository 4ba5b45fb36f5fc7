import EventLoop
import HTTP2
import HTTPCore
import PinfoldEngine

// What a client sends: frames, which begin, continue and end the exchanges of its streams.
extension HTTP2ClientConnection {
    func drive() {
        guard !isDriving, isOpen else { return }
        isDriving = true
        budget.renew(loop)
        while isOpen, !budget.isSpent, hasRoom() {
            guard takeFrame() || readInput() else { break }
        }
        isDriving = false
        guard isOpen else { return }
        noteUnfinished()
        input.rest()
        scratch = nil
        send()
        if isOpen, budget.isSpent { loop.requeue(self) }
    }

    /// Whether there is room for the answer to another request. A client that does not read is not
    /// read from.
    private func hasRoom() -> Bool {
        if output.hasBacklog { send() }
        return isOpen && !output.hasBacklog
    }

    /// Handles what is at the front of the input, or follows from what was; returns false if more
    /// input is needed.
    private func takeFrame() -> Bool {
        let input = self.input.buffer
        let bytes = input?.readable ?? UnsafeRawBufferPointer(start: nil, count: 0)
        let received = http.receive(bytes.octets, now: loop.now)
        input?.start += received.consumed
        if unfinishedSince != nil, received.event != .needMore, !http.isWithinFieldBlock {
            unfinishedSince = nil
        }
        switch received.event {
        case .needMore: return received.consumed > 0
        case .controlIsFull:
            send()
            return isOpen && http.control.isEmpty
        case .nothing: break
        case .headers(let ref, let block, let endsStream):
            begin(ref, http.bytes(of: block, in: bytes), endsStream: endsStream)
        case .trailers(let ref, let block): takeTrailers(of: ref, http.bytes(of: block, in: bytes))
        case .discarded(let block): discard(http.bytes(of: block, in: bytes))
        case .data(let ref, let range, let endsStream):
            budget.spend(.dataFrame)
            guard let input else { break }
            stream(ref)?.arrived(
                UnsafeRawBufferPointer(rebasing: bytes[range]), in: input,
                endsStream: endsStream)
        case .reset(let ref, _), .streamFailed(let ref, _):
            budget.spend(.part)
            if let stream = stream(ref) { abandon(stream) }
        case .settings: encoder.peerTableLimit(Int(http.peer.headerTableSize))
        case .windowGrew, .pingAnswered, .priority, .goaway: budget.spend(.part)
        case .warned: reportWarning()
        case .failed(let reason): failed(reason)
        }
        return isOpen
    }

    func stream(_ ref: StreamRef) -> HTTP2ClientStream? {
        let slot = Int(ref.slot)
        guard slot >= 0, slot < streams.count, let stream = streams[slot], stream.ref == ref else {
            return nil
        }
        return stream
    }

    // MARK: Bytes

    /// Reads once. Returns `false` if nothing was read.
    private func readInput() -> Bool {
        switch input.read(from: transport, by: buffers, isLarge: false, spending: &budget) {
        case .bytes(let count):
            if ingress.isCounted { worker.metrics.add(.clientBytesReceived, UInt64(count)) }
            return true
        case .nothing: break
        case .turnIsOver:
            budget.exhaust()
            return true
        case .ended(.closed): inputEnded()
        case .ended(.truncated), .ended(.failed):
            if isUntried { endedUntried() }
            close()
        }
        return false
    }

    /// The client sends nothing more. It may wait for the responses to complete requests (RFC 9112
    /// §9.6 has the same).
    private func inputEnded() {
        if isUntried { endedUntried() }
        hasEnded = true
        for index in streams.indices {
            guard isOpen, let stream = streams[index] else { continue }
            if case .underWay = stream.request { abandon(stream) }
        }
        if isOpen, openStreams == 0 { close() }
    }

    /// A part of a frame, or of a field block, is input that may never be finished.
    private func noteUnfinished() {
        guard http.isWithinFieldBlock || !input.isEmpty else {
            if unfinishedSince != nil { unfinishedSince = nil }
            if http.isEstablished { hasBegun() }
            return environment.release(self)
        }
        // Of a frame that has only begun, nothing is unfinished if the turn is over.
        guard !budget.isSpent else { return }
        if unfinishedSince == nil { environment.release(self) }
        environment.hold(self, bytes: input.buffer?.capacity ?? BufferPool.smallBytes)
        guard unfinishedSince == nil else { return }
        unfinishedSince = loop.now
        setDeadline(atMost: http.limits.answerMilliseconds)
    }

    // MARK: Requests

    /// Begins the exchange of a request.
    private func begin(_ ref: StreamRef, _ block: UnsafeRawBufferPointer, endsStream: Bool) {
        budget.spend(ingress.isCounted ? .exchange : .report)
        if isUntried { certificateAccepted() }
        let stream = takeStream(ref)
        stream.request = endsStream ? .complete : .underWay
        let memory = scratchMemory()
        var assembler = RequestAssembler(
            memory, style: targetStyle, isSecure: transport.isSecure, limits: parser.limits)
        do throws(HeaderCompressionError) {
            try decoder.decode(block.octets, into: &assembler)
        } catch {
            return cannotDecode()
        }
        var assembled: AssembledRequest
        do throws(MessageError) {
            assembled = try assembler.finish(endsStream: endsStream)
        } catch {
            return refuse(stream, error)
        }
        if assembled.kind == .upgrade { assembled.addKey(in: memory) }
        let head = UnsafeRawBufferPointer(rebasing: memory[..<assembled.count])
        if let priority = assembled.priority {
            http.setPriority(
                ref, StreamPriority(reading: head.octets.extracting(priority.indices)))
        }
        if !endsStream, let length = assembled.contentLength,
            !http.expectContent(ref, UInt64(length), now: loop.now)
        {
            return
        }
        begin(stream, head, assembled.kind, endsStream: endsStream)
    }

    private func begin(
        _ stream: HTTP2ClientStream, _ head: UnsafeRawBufferPointer,
        _ kind: AssembledRequest.Kind, endsStream: Bool
    ) {
        let exchange = environment.takeExchange()
        stream.exchange = exchange
        do throws(WireError) {
            guard case .complete = try parser.parse(head.octets, into: &exchange.request) else {
                throw .truncatedHead
            }
            switch kind {
            case .ordinary, .tunnel:
                try exchange.request.decideContent(follows: !endsStream)
            // What follows belongs to the protocol.
            case .upgrade:
                guard exchange.request.framing == .none else { throw .contentInConnect }
            }
        } catch {
            parser.reset()
            return refuse(stream, .request(error))
        }
        if kind == .upgrade, !exchange.request.wantsUpgrade {
            return refuse(stream, .fields(.unsupportedProtocol))
        }
        let kept = keep(head)
        // What announces no content is sent on as complete, so it must be.
        if !endsStream, exchange.request.framing == .length(0) {
            stream.held = kept
        } else {
            begin(exchange, of: stream, kept)
        }
    }

    /// Begins the exchange of a request that announced no content, and has ended without any.
    func beginHeld(_ stream: HTTP2ClientStream) {
        guard let head = stream.held.take(), let exchange = stream.exchange else { return }
        begin(exchange, of: stream, head)
    }

    private func begin(
        _ exchange: Exchange, of stream: HTTP2ClientStream, _ head: (buffer: Buffer, start: Int)
    ) {
        switch exchange.request.framing {
        case .none, .length(0): break
        case .length, .chunked, .untilClose: stream.hasContent = true
        }
        // A tunnel counts as a connection of its own.
        if exchange.request.method == .connect || exchange.request.wantsUpgrade {
            guard !worker.isFull(of: account) else {
                return exchange.refuse(
                    .gateway(.clientExchangeLimit), seen: nil, client: stream,
                    ingress: ingress, peer: peer)
            }
            worker.streamBecomesTunnel(of: account)
            stream.isCounted = true
        }
        guard
            exchange.begin(
                client: stream, ingress: ingress, peer: peer, buffer: head.buffer,
                headStart: head.start, hasBody: stream.hasContent, isServed: isServed)
        else { return }
        exchange.route(at: ingress)
    }

    /// In which form requests name what they are for.
    private var targetStyle: RequestAssembler.TargetStyle {
        switch ingress.role {
        case .forward, .proxied: .absolute
        case .reverse, .balanced, .bound, .admin, .proof, .transparent: .origin
        }
    }

    /// Where heads are assembled, which are mostly small, but may have any size within the limit.
    private func scratchMemory() -> UnsafeMutableRawBufferPointer {
        if let scratch { return scratch.memory }
        let taken = buffers.take(atLeast: parser.limits.headBytes + RequestAssembler.overhead)
        scratch = taken
        return taken.memory
    }

    /// Keeps a head in a buffer together with others.
    private func keep(_ head: UnsafeRawBufferPointer) -> (buffer: Buffer, start: Int) {
        let buffer: Buffer
        if let heads, heads.writable.count >= head.count {
            buffer = heads
        } else {
            buffer = buffers.take(atLeast: head.count)
            heads = buffer
        }
        let start = buffer.end
        buffer.writable.copyMemory(from: head)
        buffer.end = start + head.count
        // None of it is content.
        buffer.start = buffer.end
        return (buffer, start)
    }

    private func discard(_ block: UnsafeRawBufferPointer) {
        do throws(HeaderCompressionError) {
            try decoder.discard(block.octets)
        } catch {
            cannotDecode()
        }
    }

    private func cannotDecode() {
        http.fail(.headerCompression)
        failed(.headerCompression)
    }

    private func takeTrailers(of ref: StreamRef, _ block: UnsafeRawBufferPointer) {
        let memory = scratchMemory()
        var assembler = TrailerAssembler(memory)
        do throws(HeaderCompressionError) {
            try decoder.decode(block.octets, into: &assembler)
        } catch {
            return cannotDecode()
        }
        guard let stream = stream(ref) else { return }
        do throws(MessageError) {
            let count = try assembler.finish()
            let lines = UnsafeRawBufferPointer(rebasing: memory[..<count])
            let trailers = try? TrailerSection(parsing: lines.octets, limits: ChunkedLimits())
            stream.ended(trailers: trailers)
        } catch {
            http.count(
                error.isMalformed ? .malformedMessage : .fieldsRefused, now: loop.now)
            http.reset(ref, .protocolError)
            abandon(stream)
        }
    }

    /// Answers a request whose fields are refused. One that is malformed is an error of its stream,
    /// which is reset after the answer (RFC 9113 §8.1.1).
    private func refuse(_ stream: HTTP2ClientStream, _ error: MessageError) {
        stream.exchange = environment.takeExchange()
        refuse(stream, .fields(error))
    }

    private func refuse(_ stream: HTTP2ClientStream, _ fault: ExchangeError) {
        guard let exchange = stream.exchange else { return }
        stream.isMalformed = fault.status == 400
        http.count(
            stream.isMalformed ? .malformedMessage : .fieldsRefused, now: loop.now)
        exchange.refuse(fault, seen: nil, client: stream, ingress: ingress, peer: peer)
    }

    // MARK: Errors

    func failed(_ reason: ConnectionReason) {
        report(reason)
        end()
    }

    /// Reports what was not, because the client is gone before anything more was read.
    func reportTheRest() {
        switch http.takeUnreported() {
        case .warned: reportWarning()
        case .failed(let reason): report(reason)
        default: break
        }
    }

    private func report(_ reason: ConnectionReason) {
        countFailure()
        var detail = "\(reason.explanation)"
        if reason == .abuse { detail += ": \(http.budget.text)" }
        worker.shared.logger.info(
            "an HTTP/2 connection is ended because of what its client sent",
            metadata: [
                "listener": "\(ingress.name)", "client": "\(peer)", "reason": "\(reason.reason)",
                "detail": "\(detail)",
            ])
    }

    /// Counts the connection as ended with an error.
    func countFailure() {
        _ = http.takeUnreported()
        let reason = http.connectionReason
        environment.metrics.add(.http2Ended(reason.code))
        if reason == .abuse { environment.metrics.add(.http2Abuse(http.budget.chiefCause)) }
    }

    private func reportWarning() {
        environment.metrics.add(.http2Warned)
        worker.shared.logger.info(
            "an HTTP/2 connection takes no more streams: much that it sends brings nothing",
            metadata: [
                "listener": "\(ingress.name)", "client": "\(peer)",
                "detail": "\(http.budget.text)",
            ])
    }
}
