import EventLoop
import HTTPCore
import PinfoldMetrics

// The exchange's side of the state machine: events go in, and what it asks for is done.
extension Exchange {
    /// What the state machine's events and reactions are of, here.
    typealias State = ExchangeState<any UpstreamStream>

    /// Takes an event to the state machine and lets go of what it says; what goes on is returned,
    /// for the caller to do last.
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

    /// A fault of the program: it traps while it is being developed; else it is logged and counted,
    /// and the exchange ends at the end of the turn, cut off, with no harm to others.
    @inline(never)
    private func reportIllegal(_ event: State.Event) {
        environment.metrics.add(.illegalTransitions)
        environment.shared.logger.critical(
            "an exchange's event is not possible in its state; please report this",
            metadata: ["id": "\(idText)", "state": "\(state.name)", "event": "\(event.name)"])
        assertionFailure("\(event.name) in \(state.name)")
        let id = id
        environment.loop.afterTurn { [self] in
            if self.id == id { cutOff() }
        }
    }

    /// Ends it wherever it is, without another word to the client. A tunnel's connections are
    /// another's: with them it ends.
    func cutOff() {
        if let carrier { return carrier.cut() }
        if case .end = handle(.clientGone) { end(cut: true) }
    }

    /// Ends the exchange for a reason: tries again if that may help, else with a reply if none has
    /// begun, else by cutting it off.
    ///
    /// - Parameter attempts: the addresses that no connection came of, where that is the reason.
    func fail(
        _ fault: ExchangeError, _ cause: State.FailureInfo.Cause = .other,
        _ attempts: FailedAttempts? = nil
    ) {
        abandonStore()
        translating = nil
        // The client has seen nothing of a response then.
        let withdrawn = state.headIsSent && client?.withdrawHead() ?? false
        switch handle(.failed(State.FailureInfo(cause: cause, headWithdrawn: withdrawn))) {
        case .forwardAgain(let reason): sendAgain(reason)
        case .reply: tell(fault, attempts)
        case .end(let cut):
            self.fault = fault
            failedAttempts = attempts
            // Nobody else is told of what fails in the background.
            if client == nil { environment.log(fault, of: self) }
            end(cut: cut)
        default: break
        }
    }

    /// Replies with a fault, or with what is stored in its place.
    func tell(_ fault: ExchangeError, _ attempts: FailedAttempts? = nil) {
        if let (stored, hit) = staleAnswer(insteadOf: fault) { return serveStale(stored, hit) }
        failedAttempts = attempts
        reply(with: fault, closing: !contentHasEnded)
    }

    /// Nothing more comes of the exchange, and nobody has to be told.
    func endQuietly() {
        if case .end(let cut) = handle(.over) { end(cut: cut) }
    }

    // MARK: The client

    /// Everything queued for the client has been written.
    package func clientDrained() {
        switch handle(.drained) {
        case .read: serving?.proceed()
        case .resume:
            followers?.goOn(now: environment.loop.now)
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

    /// Content of the request. False: take no more until `resumeContent`.
    package func content(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        receivedBodyBytes += UInt64(bytes.count)
        switch handle(.content) {
        case .sendContent:
            guard let upstream else { return true }
            upstream.send(bytes, owner: owner)
            // The end follows at once, and goes out with it.
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

    /// The request's content cannot be read further.
    package func contentFailed(_ error: WireError) {
        contentHasEnded = true
        fail(.request(error))
    }
}

extension ExchangeState {
    /// The state's name, for the log.
    var name: String { Self.name(of: step) }

    /// The first word of an enumeration's case.
    fileprivate static func name(of value: some Any) -> String {
        String("\(value)".prefix { $0 != "(" })
    }
}

extension ExchangeState.Event {
    /// The event's name, for the log.
    var name: String { ExchangeState<Upstream>.name(of: self) }
}
