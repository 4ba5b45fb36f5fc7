import EventLoop
import HTTPCore
import PinfoldMetrics

// The exchange's side of the state machine: passes events to it and carries out its reactions.
extension Exchange {
    /// The state machine of an exchange.
    typealias State = ExchangeState<any UpstreamStream>

    /// Passes an event to the state machine and releases what the reaction names. Returns the
    /// continuing action, which the caller performs last.
    @inline(__always)
    @discardableResult
    func handle(_ event: State.Event) -> State.Next {
        let reaction = state.handle(event)
        switch reaction.release {
        case .nothing: break
        case .upstream(let upstream): upstream.cancel()
        case .wait: if let origin { environment.upstreams.abandon(origin, self) }
        case .opening:
            opening?.cancel()
            opening = nil
        }
        if case .illegal = reaction.next { reportIllegal(event) }
        return reaction.next
    }

    /// A bug in the program. Debug builds trap; otherwise it is logged and counted, and the
    /// exchange is cut off at the end of the turn, without affecting others.
    @inline(never)
    private func reportIllegal(_ event: State.Event) {
        environment.metrics.add(.illegalTransitions)
        environment.shared.logger.critical(
            "an event is impossible in the exchange's state; please report this",
            metadata: ["id": "\(idText)", "state": "\(state.name)", "event": "\(event.name)"])
        assertionFailure("\(event.name) in \(state.name)")
        let id = id
        environment.loop.afterTurn { [self] in
            if self.id == id { cutOff() }
        }
    }

    /// Ends the exchange in any state, without sending anything more to the client. The connections
    /// of a tunnel belong to its carrier, which ends the exchange with them.
    func cutOff() {
        if let carrier { return carrier.cut() }
        if case .end = handle(.clientGone) { end(cut: true) }
    }

    /// Fails the exchange: tries again if that may help; otherwise replies if no response has
    /// begun, or cuts the response off.
    ///
    /// - Parameter attempts: the addresses that could not be connected to, if that is the reason.
    func fail(
        _ fault: ExchangeError, _ cause: State.FailureInfo.Cause = .other,
        _ attempts: FailedAttempts? = nil
    ) {
        abandonStore()
        translating = nil
        // The client has then seen nothing of a response.
        let withdrawn = state.headIsSent && client?.withdrawHead() ?? false
        switch handle(.failed(State.FailureInfo(cause: cause, headWithdrawn: withdrawn))) {
        case .forwardAgain(let reason): sendAgain(reason)
        case .reply: replyOrServeStale(fault, attempts)
        case .end(let cut):
            self.fault = fault
            failedAttempts = attempts
            // Failures in the background are reported nowhere else.
            if client == nil { environment.log(fault, of: self) }
            end(cut: cut)
        default: break
        }
    }

    /// Replies with an error, or with a stored response in its place.
    func replyOrServeStale(_ fault: ExchangeError, _ attempts: FailedAttempts? = nil) {
        if let (stored, hit) = staleAnswer(insteadOf: fault) { return serveStale(stored, hit) }
        failedAttempts = attempts
        reply(with: fault, closing: !contentHasEnded)
    }

    /// Ends the exchange, of which nobody expects anything more.
    func endSilently() {
        if case .end(let cut) = handle(.over) { end(cut: cut) }
    }

    // MARK: The client

    /// Everything queued for the client has been written.
    package func clientDrained() {
        switch handle(.drained) {
        case .read: serving?.proceed()
        case .resume:
            followers?.resume(now: environment.loop.now)
            upstream?.resume()
        case .end(let cut): end(cut: cut)
        default: break
        }
    }

    /// The client's connection is gone; it no longer refers to the exchange.
    package func clientGone() {
        if case .end = handle(.clientGone) { end(cut: true, clientIsGone: true) }
    }

    /// Nothing moved between the client and the gateway for too long.
    package func clientTimedOut() {
        switch handle(.clientTimedOut) {
        case .reply:
            abandonStore()
            reply(with: .requestTimeout, closing: true)
        case .end(let cut):
            fault = .clientTimeout
            end(cut: cut)
        default: break
        }
    }

    // MARK: The request's content

    /// Accepts content of the request. Returns false if no more is accepted until `resumeContent`.
    package func content(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        receivedBodyBytes += UInt64(bytes.count)
        switch handle(.content) {
        case .sendContent:
            guard let upstream else { return true }
            upstream.send(bytes, owner: owner)
            // The end follows immediately, and is sent together with it.
            return isLast || upstream.flush()
        case .gatherContent: return gather(bytes, isLast: isLast)
        case .holdContent: return false
        default: return true
        }
    }

    /// The request's content is complete.
    package func contentEnded(trailers: TrailerSection?) {
        contentHasEnded = true
        if let gathered { environment.release(gathered) }
        uploadEnded()
        let isTranslated = rewritten?.awaitsTranslation ?? false
        let isKept = replayableBody != nil || gathered != nil || isTranslated
        switch handle(.contentEnded(isKept: isKept)) {
        case .endContent:
            _ = upstream?.finish(trailers: trailers)
        case .forward:
            gathered?.trailers = trailers
            forward()
        default: break
        }
    }

    /// The rest of the request's content cannot be parsed.
    package func contentFailed(_ error: WireError) {
        contentHasEnded = true
        fail(.request(error))
    }
}

extension ExchangeState {
    /// The state's name, for the log.
    var name: String { Self.name(of: step) }

    /// The name of an enumeration's case.
    fileprivate static func name(of value: some Any) -> String {
        String("\(value)".prefix { $0 != "(" })
    }
}

extension ExchangeState.Event {
    /// The event's name, for the log.
    var name: String { ExchangeState<Upstream>.name(of: self) }
}
