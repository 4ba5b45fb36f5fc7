import EventLoop
import HTTPCore

// Reading an origin's responses: heads and bodies, as fast as the consumer accepts them.
extension UpstreamConnection {
    func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        budget.renew(environment.loop)
        if http.phase == .finishing, output.isEmpty { return settle() }
        while http.isInExchange, delivery != .paused {
            guard !budget.isSpent else { return environment.loop.requeue(self) }
            if !(input?.isEmpty ?? true) {
                guard advance() else { continue }
                if !http.isInExchange || delivery == .paused { return }
            }
            guard http.isInExchange, inputReadiness == .ready else { return }
            guard read() else { return }
        }
    }

    /// Makes one step with the available bytes; returns true if more are needed. If they end the
    /// response and the client has taken them, their buffer is returned to the pool as it is.
    private func advance() -> Bool {
        var held = input
        defer { Buffer.release(&held) }
        switch held {
        case nil: return true
        case let input?: return advance(input)
        }
    }

    private func advance(_ input: Buffer) -> Bool {
        switch http.responsePart {
        case .head: return advanceHead(input)
        case .content: return advanceBody(input)
        case .ended:
            // Nothing may follow the response before the next request.
            settle()
            return false
        }
    }

    private func advanceHead(_ input: Buffer) -> Bool {
        guard let consumer else { return true }
        guard http.phase != .starting else {
            fail(.server(.upstreamSpokeUnasked))
            return false
        }
        if http.emptyLineMayFollow, !passEmptyLine(input) { return true }
        let bytes = input.mutableReadable
        let parsed: ParsedHead?
        var rewritten: Buffer?
        do throws(WireError) {
            parsed = try parse(bytes, into: &consumer.response, rewriting: &rewritten)
        } catch {
            fail(
                isNewInClearText && UnsafeRawBufferPointer(bytes).beginsWithTLS
                    ? .server(.upstreamSpeaksTLS) : .response(error))
            return false
        }
        guard let parsed else { return true }
        origin.portIsProven = true
        input.start += parsed.bytes
        let head =
            rewritten?.readable
            ?? UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[0..<parsed.bytes])
        if parsed.isInterim {
            handle(.interimHead(persists: parsed.keepAlive))
            budget.spend(.systemCall)
            consumer.upstreamHead(head)
            return false
        }
        let answer = HTTP1Connection.Response(
            persists: parsed.keepAlive, isSuccess: parsed.isSuccess)
        perform(http.responseHead(answer), after: .responseHead(answer))
        decoder = BodyDecoder(parsed.framing, isUserAgent: context.isUserAgent)
        if parsed.isEventStream {
            waits.insert(.eventStream)
            Sockets.probePeer(transport.descriptor)
        }
        armBodyDeadline()
        consumer.upstreamHead(head)
        guard http.isInExchange else { return false }
        delivery = .headIsUnflushed
        if decoder.isComplete {
            end()
        } else if input.isEmpty {
            flushHead()
        }
        return false
    }

    /// The parts of a head that the connection itself needs.
    private struct ParsedHead {
        var bytes: Int
        var isInterim: Bool
        var isSuccess: Bool
        var framing: BodyFraming
        /// As far as the head says: a server that ends its lines in bare line feeds is not trusted
        /// with another request.
        var keepAlive: Bool
        var isEventStream: Bool
    }

    /// Parses in place, because accessing the consumer's head through the protocol would copy it
    /// each time.
    /// - Parameter rewritten: the head as parsed, if that differs from what was received.
    private func parse(
        _ bytes: UnsafeMutableRawBufferPointer, into head: inout ResponseHead,
        rewriting rewritten: inout Buffer?
    ) throws(WireError) -> ParsedHead? {
        let received: Int
        var hasBareLines = false
        let octets = UnsafeRawBufferPointer(bytes).octets
        switch try parser.parse(octets, answering: context, into: &head) {
        case .needMore: return nil
        case .complete(let count):
            received = count
            head.repair(in: bytes)
        case .bareLines(let count):
            received = count
            hasBareLines = true
            rewritten = try parser.parseRewritten(
                UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[0..<count]),
                answering: context,
                into: &head, buffers: environment.loop.buffers)
        }
        return ParsedHead(
            bytes: received, isInterim: head.isInterim, isSuccess: 200..<300 ~= head.status,
            framing: head.framing,
            // Connection has no meaning in an interim response.
            keepAlive: (head.keepAlive || head.isInterim) && !hasBareLines,
            isEventStream: head.isEventStream(
                in: (rewritten?.readable ?? UnsafeRawBufferPointer(bytes)).octets))
    }

    /// Skips one empty line, which some servers send between an interim response and the final one.
    /// Returns false if its line feed has not arrived yet.
    @inline(never)
    private func passEmptyLine(_ input: Buffer) -> Bool {
        let bytes = input.readable
        if bytes[0] == UInt8(ascii: "\n") {
            input.start += 1
        } else if bytes[0] == UInt8(ascii: "\r") {
            guard bytes.count > 1 else { return false }
            if bytes[1] == UInt8(ascii: "\n") { input.start += 2 }
        }
        handle(.emptyLinePassed)
        return true
    }

    /// Sends a head with which no content arrived.
    private func flushHead() {
        guard delivery == .headIsUnflushed else { return }
        delivery = .flowing
        consumer?.upstreamHeadWithoutBody()
    }

    private func advanceBody(_ input: Buffer) -> Bool {
        let bytes = input.mutableReadable
        let gathered: GatheredStep
        do throws(WireError) {
            gathered = try decoder.gather(bytes, atMost: budget.allowance(of: .part))
        } catch {
            fail(.response(error))
            return false
        }
        budget.spend(.part, times: gathered.parts)
        switch gathered.step {
        case .data(let offset, let count, let consumed):
            budget.spend(.systemCall)
            input.start += consumed
            let content = UnsafeRawBufferPointer(
                rebasing: UnsafeRawBufferPointer(bytes)[offset..<(offset + count)])
            delivery = .flowing
            let isLast = decoder.isComplete && !http.finishesRequest(rest)
            let goesOn =
                consumer?.upstreamBody(content, owner: input, isLast: isLast) ?? false
            guard http.isInExchange else { return false }
            if decoder.isComplete {
                end()
            } else if !goesOn {
                // The client is the slow side; its own deadline applies.
                delivery = .paused
                environment.loop.setDeadline(self, after: nil)
            }
            return false
        case .needMore(let consumed):
            input.start += consumed
            flushHead()
            return true
        case .end(let consumed):
            input.start += consumed
            end()
            return false
        }
    }

    /// Reads once; returns false if nothing more can be read now.
    private func read() -> Bool {
        let room = roomForReading()
        let peerHasFinished = http.peerHasFinished
        switch transport.read(
            into: room, trustsShortRead: !peerHasFinished, spending: &budget)
        {
        case .bytes(let count, let drained):
            input?.end += count
            inputReadiness = drained && !peerHasFinished ? .empty : .ready
            wantsLargeBuffer = count == room.count && (consumer?.takesLargeParts ?? true)
            handle(.responseBegan)
            environment.metrics.add(.upstreamBytesReceived, UInt64(count))
            if http.responsePart == .content {
                armBodyDeadline()
            }
            return true
        case .wouldBlock(let wantsWrite):
            inputReadiness.foundNothing(wantsWrite: wantsWrite)
            return false
        case .turnIsOver:
            budget.exhaust()
            return true
        case .endOfStream:
            inputEnded(cleanly: true)
            return false
        case .truncated:
            inputEnded(cleanly: false)
            return false
        case .failed where http.responsePart == .ended:
            inputEnded(cleanly: false)
            return false
        case .failed(let error):
            fail(ExchangeError(upstream: error))
            return false
        }
    }

    private func roomForReading() -> UnsafeMutableRawBufferPointer {
        let buffers = environment.loop.buffers
        if let current = input, current.capacity > BufferPool.smallBytes,
            current.count < BufferPool.smallBytes, !(consumer?.takesLargeParts ?? true)
        {
            let next = buffers.takeSmall()
            next.copyUnread(of: current)
            input = next
        }
        // What was delivered last may still wait to be sent with what other streams of the client's
        // connection send: then it must stay as it is.
        if input != nil, !isKnownUniquelyReferenced(&input), let current = input {
            let next = buffers.take(atLeast: current.capacity)
            next.copyUnread(of: current)
            input = next
        }
        if wantsLargeBuffer, let current = input, current.isEmpty,
            current.capacity < BufferPool.largeBytes
        {
            input = buffers.takeLarge()
        }
        return buffers.makeRoom(in: &input)
    }

    private func inputEnded(cleanly: Bool) {
        switch http.responsePart {
        case .ended:
            handle(.inputEnded(completing: false))
            consumer == nil ? close() : settle()
        case .head:
            handle(
                .inputEnded(completing: false),
                orFail: parser.isWithinHead ? .response(.truncatedHead) : .server(.upstreamClosed))
        case .content:
            let isComplete = cleanly && (try? decoder.endOfInput()) != nil
            handle(
                .inputEnded(completing: isComplete), orFail: .response(.truncatedBody))
            if isComplete { end() }
        }
    }

    /// The response is complete. Its end is reported once the request is complete, too.
    private func end() {
        let event = HTTP1Connection.Event.responseEnded(rest)
        let reaction = http.handle(event)
        guard reaction == .finishRequest else { return conclude(reaction, after: event) }
        flushHead()
        // Output that waits for the server has its timeout; while there is none, the client's own
        // deadline applies.
        if output.isEmpty { environment.loop.setDeadline(self, after: nil) }
    }

    /// The response is complete, and the rest of the request has been written or will not be.
    private func settle() {
        guard consumer != nil else { return }
        let event = HTTP1Connection.Event.settled(rest)
        conclude(http.handle(event), after: event)
    }

    /// The exchange is over: returns the connection before the consumer is notified.
    @inline(__always)
    private func conclude(
        _ reaction: HTTP1Connection.Reaction, after event: HTTP1Connection.Event
    ) {
        guard let consumer else { return close() }
        uses += 1
        let trailers = decoder.chunked.trailerSection
        self.consumer = nil
        Buffer.release(&input)
        perform(reaction, after: event)
        consumer.upstreamEnded(trailers: trailers)
    }

    func fail(_ fault: ExchangeError) {
        let (consumer, started) = (consumer, http.responseHasBegun)
        let mayBeWrongPort = isNewInClearText && !origin.portIsProven && !started
        let fault = mayBeWrongPort ? fault.ofUnanswered : fault
        if uses == 0, !started { origin.http1Failed(fault) }
        self.consumer = nil
        close()
        consumer?.upstreamFailed(StreamError(fault, responseStarted: started))
    }

    /// Whether this connection has not yet shown that the server speaks HTTP in clear text.
    private var isNewInClearText: Bool {
        uses == 0 && !transport.isSecure && origin.forwards == nil
    }

    var isQuiet: Bool { transport.isQuiet }

    func recheck() {
        guard isIdle, inputReadiness == .ready else { return }
        inputReadiness = .empty
        checkIdleBytes()
    }

    private func checkIdleBytes() {
        let scratch = environment.loop.buffers.takeSmall()
        budget.renew(environment.loop)
        if case .wouldBlock = transport.read(into: scratch.writable, spending: &budget) { return }
        pool.discardIdle(self)
    }
}

extension ExchangeError {
    /// The same error for a server that was contacted in clear text and has not responded yet.
    fileprivate var ofUnanswered: ExchangeError {
        switch self {
        case .server(.upstreamClosed): .upstreamUnanswered(nil)
        case .upstreamReset(let error): .upstreamUnanswered(error)
        default: self
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Whether it begins with a TLS record as servers send it in answer to something that is not
    /// TLS: an alert, or a part of the handshake (RFC 8446 §5.1).
    fileprivate var beginsWithTLS: Bool {
        count >= 3 && (self[0] == 21 || self[0] == 22) && self[1] == 3 && self[2] <= 4
    }
}
