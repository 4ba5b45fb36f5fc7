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
            switch http.phase {
            case .opening: guard continueOpening() else { return }
            case .idle, .starting: guard readHead() else { return }
            case .requesting, .awaiting, .answering, .responding:
                guard readBody() else { return }
            case .lingering: return linger()
            // Two of these are a client's.
            case .answered, .finishing, .detached, .closed: return
            }
        }
        if http.isOpen { loop.requeue(self) }
    }

    /// Takes one step towards the first request; returns `false` if that needs an event.
    private func continueOpening() -> Bool {
        switch opening {
        case .greeting: continueGreeting()
        case .handshaking: continueHandshake()
        case .done, .failed: false
        }
    }

    /// Takes one step towards the next request; returns `false` if that needs an event.
    @inline(__always)
    private func readHead() -> Bool {
        do throws(WireError) {
            switch try parseHead() {
            case .complete: return true
            case .needMore, .bareLines:
                headIsIncomplete()
                guard awaitsHead else { return true }
            case nil: break
            }
        } catch {
            guard speaksHTTP2() else {
                refuse(.request(error))
                return true
            }
            becomeHTTP2()
            return false
        }
        if readInput() { return true }
        if awaitsHead { becomeIdle() }
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
        // The deadline counts from the head's first byte.
        if http.phase == .idle {
            handle(.headBegan)
            loop.setDeadline(self, after: timeouts.headMilliseconds)
        }
        guard let input else { return }
        environment.hold(self, bytes: input.capacity)
    }

    private func becomeIdle() {
        guard input?.isEmpty ?? true, http.phase == .idle else { return }
        Buffer.release(&input)
        if let exchange = exchange.take() { environment.recycle(exchange) }
    }

    /// Reads once. Returns `false` if nothing was read: nothing there, or the connection has
    /// changed state.
    @inline(__always)
    func readInput() -> Bool {
        guard inputReadiness == .ready else { return false }
        let room = roomForReading()
        switch transport.read(
            into: room, trustsShortRead: !http.peerHasFinished, spending: &budget)
        {
        case .bytes(let count, let drained):
            if drained { inputReadiness = .empty }
            input?.end += count
            if ingress.isCounted { worker.metrics.add(.clientBytesReceived, UInt64(count)) }
            return true
        case .wouldBlock(let wantsWrite):
            inputReadiness.foundNothing(wantsWrite: wantsWrite)
            return false
        case .turnIsOver:
            budget.exhaust()
            return true
        case .endOfStream:
            if isUntried { endedBeforeRequest() }
            inputReadiness = .empty
            handle(.inputEnded(completing: false))
            return false
        case .truncated, .failed:
            if isUntried { endedBeforeRequest() }
            inputReadiness = .empty
            cutOff()
            return false
        }
    }

    /// The client has ended the connection, or has been silent for too long.
    func endedBeforeRequest() {
        if http.phase == .idle, input?.isEmpty ?? true { endedUntried() }
    }

    /// A buffer with free space. One that holds the exchange's head, or content that still waits to
    /// be written to a server, stays unchanged; what follows goes into another.
    @inline(__always)
    private func roomForReading() -> UnsafeMutableRawBufferPointer {
        http.isInExchange
            ? buffers.makeOwnRoom(in: &input, isLarge: true) : buffers.makeRoom(in: &input)
    }

    /// Begins the exchange whose head has been parsed.
    @inline(__always)
    private func begin(_ exchange: Exchange, headBytes: Int) {
        guard handOver(to: exchange, headBytes: headBytes) else { return }
        // Nothing on the stack refers to the input here: if the response is sent at once, its
        // buffer returns to the pool unchanged.
        // Not by `??`, which would count references.
        if let secureIngress {
            exchange.route(at: secureIngress)
        } else {
            exchange.route(at: ingress)
        }
    }

    @inline(__always)
    private func handOver(to exchange: Exchange, headBytes: Int) -> Bool {
        let head = input?.start ?? 0
        input?.start = head + headBytes
        budget.spend(ingress.isCounted ? .exchange : .report)
        assert(body == nil)
        switch exchange.request.framing {
        case .none, .length(0): break
        case .length, .chunked, .untilClose: body = RequestBody(exchange.request.framing)
        }
        handle(
            .requestHead(
                HTTP1Connection.Request(
                    version: exchange.request.version, hasContent: body != nil,
                    persists: exchange.request.keepAlive,
                    maySwitch: exchange.request.wantsUpgrade
                        || exchange.request.method == .connect)))
        environment.release(self)
        if isUntried { certificateAccepted() }
        forgetResponse()
        loop.setDeadline(self, after: nil)
        return exchange.begin(
            client: self, ingress: secureIngress ?? ingress, peer: peer, buffer: input,
            headStart: head, hasBody: body != nil, isServed: isServed)
    }

    @inline(__always)
    private func forgetResponse() {
        responseBytes = 0
        contentBytes = 0
    }

    /// Answers a request that cannot be read, and closes.
    func refuse(_ fault: ExchangeError) {
        let exchange = self.exchange ?? takeExchange()
        environment.release(self)
        handle(.refused)
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
            handle(.refused)
            self.body = nil
            exchange.contentFailed(error)
            return true
        }
    }

    private func bodyEnded(_ body: RequestBody, _ exchange: Exchange) {
        self.body = nil
        handle(.requestEnded)
        updateExchangeDeadline(progress: true)
        exchange.contentEnded(trailers: body.decoder.chunked.trailerSection)
    }
}
