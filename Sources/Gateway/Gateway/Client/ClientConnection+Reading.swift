import EventLoop
import HTTPCore
import PinfoldEngine

// What a client sends: heads and bodies, one exchange after the other.
extension ClientConnection {
    func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        budget.renew(loop)
        while !budget.isSpent {
            switch state {
            case .closed: return
            case .greeting: guard continueGreeting() else { return }
            case .handshaking: guard continueHandshake() else { return }
            case .head: guard readHead() else { return }
            case .exchange: guard readBody() else { return }
            case .lingering: return linger()
            }
        }
        if state != .closed { loop.requeue(self) }
    }

    /// Takes one step towards the next request; returns `false` if that needs an event.
    private func readHead() -> Bool {
        do throws(WireError) {
            switch try parseHead() {
            case .complete: return true
            case .needMore, .bareLines:
                headIsIncomplete()
                guard state == .head else { return true }
            case nil: break
            }
        } catch {
            refuse(.request(error))
            return true
        }
        if readInput() { return true }
        if state == .head { becomeIdle() }
        return false
    }

    /// Parses what has been read, and begins the exchange when its head is complete; `nil` if there
    /// is nothing.
    private func parseHead() throws(WireError) -> ParseProgress? {
        guard let bytes = input?.readable, bytes.count > 0 else { return nil }
        let exchange = self.exchange ?? takeExchange()
        let progress = try parser.parse(bytes.octets, into: &exchange.request)
        if case .complete(let count) = progress { begin(exchange, headBytes: count) }
        return progress
    }

    private func takeExchange() -> Exchange {
        let taken = environment.takeExchange()
        exchange = taken
        return taken
    }

    private func headIsIncomplete() {
        if !headIsTimed {
            headIsTimed = true
            loop.setDeadline(self, after: timeouts.headMilliseconds)
        }
        guard let input else { return }
        environment.hold(self, bytes: input.capacity)
    }

    private func becomeIdle() {
        guard input?.isEmpty ?? true, !parser.isWithinHead else { return }
        Buffer.release(&input)
        if let exchange = exchange.take() { environment.recycle(exchange) }
    }

    /// Reads once. Returns `false` if nothing was read: nothing there, or the connection has
    /// changed state.
    func readInput() -> Bool {
        guard mayHaveInput else { return false }
        let room = roomForReading()
        switch transport.read(into: room, trustsShortRead: !peerFinished, spending: &budget) {
        case .bytes(let count, let drained):
            mayHaveInput = !drained
            input?.end += count
            if ingress.isCounted { worker.metrics.add(.clientBytesReceived, UInt64(count)) }
            return true
        case .wouldBlock(let wantsWrite):
            mayHaveInput = false
            readWantsWrite = wantsWrite
            return false
        case .turnIsOver:
            budget.exhaust()
            return true
        case .endOfStream:
            if isUntried { endedUntried() }
            inputEnded()
            return false
        case .truncated, .failed:
            if isUntried { endedUntried() }
            mayHaveInput = false
            state == .exchange ? abandonExchange() : close()
            return false
        }
    }

    /// A buffer with free space. The one that holds the exchange's head stays unchanged; a body's
    /// bytes go into another.
    private func roomForReading() -> UnsafeMutableRawBufferPointer {
        if state == .exchange, let current = input, exchange?.holds(current) ?? false {
            let next = buffers.takeLarge()
            next.copyUnread(of: current)
            input = next
        }
        return buffers.makeRoom(in: &input)
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
            // The client may have finished sending and still be waiting for the response.
            if body != nil { abandonExchange() }
        case .greeting, .lingering: close()
        case .handshaking, .closed: return
        }
    }

    /// Begins the exchange whose head has been parsed.
    @inline(__always)
    private func begin(_ exchange: Exchange, headBytes: Int) {
        handOver(to: exchange, headBytes: headBytes)
        // Nothing on the stack refers to the input here: if the response is sent at once, its
        // buffer returns to the pool unchanged.
        exchange.route(at: ingress)
    }

    @inline(__always)
    private func handOver(to exchange: Exchange, headBytes: Int) {
        let head = input?.start ?? 0
        input?.start = head + headBytes
        budget.spend(ingress.isCounted ? .exchange : .report)
        state = .exchange
        headIsTimed = false
        environment.release(self)
        if isUntried { certificateAccepted() }
        forgetResponse()
        loop.setDeadline(self, after: nil)
        assert(body == nil)
        switch exchange.request.framing {
        case .none, .length(0): break
        case .length, .chunked, .untilClose: body = RequestBody(exchange.request.framing)
        }
        exchange.begin(
            client: self, ingress: secureIngress ?? ingress, peer: peer, buffer: input,
            headStart: head, hasBody: body != nil, isServed: isServed)
    }

    @inline(__always)
    private func forgetResponse() {
        responseBytes = 0
        contentBytes = 0
        endsWithConnection = false
        isChunked = false
    }

    /// Answers a request that cannot be read, and closes.
    func refuse(_ fault: ExchangeError) {
        let exchange = self.exchange ?? takeExchange()
        environment.release(self)
        state = .exchange
        keepsAlive = false
        body = nil
        forgetResponse()
        exchange.refuse(
            fault, seen: input, client: self, ingress: secureIngress ?? ingress, peer: peer)
    }

    /// Takes one step in the request's body; returns `false` if that needs an event or the
    /// exchange.
    private func readBody() -> Bool {
        guard let body, let exchange, !body.isPaused else { return false }
        guard let input, !input.isEmpty else {
            guard readInput() else { return false }
            updateExchangeDeadline(progress: true)
            return true
        }
        let bytes = input.mutableReadable
        do throws(WireError) {
            let gathered = try body.decoder.gather(bytes, atMost: budget.allowance(of: .part))
            budget.spend(.part, times: gathered.parts)
            switch gathered.step {
            case .data(let offset, let count, let consumed):
                budget.spend(.systemCall)
                input.start += consumed
                let content = UnsafeRawBufferPointer(
                    rebasing: UnsafeRawBufferPointer(bytes)[offset..<(offset + count)])
                let isLast = body.decoder.isComplete
                body.isPaused = !exchange.content(content, owner: input, isLast: isLast)
                if isLast, self.body === body { bodyEnded(body, exchange) }
                updateExchangeDeadline(progress: true)
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
            exchange.contentFailed(error)
            return true
        }
    }

    private func bodyEnded(_ body: RequestBody, _ exchange: Exchange) {
        self.body = nil
        updateExchangeDeadline(progress: true)
        exchange.contentEnded(trailers: body.decoder.chunked.trailerSection)
    }
}
