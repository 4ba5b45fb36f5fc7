import EventLoop
import HTTPCore
import PinfoldMetrics

// The exchange's side of the state machine: passes events to it and carries out its reactions.
extension Exchange {
    /// The state machine of an exchange.
    typealias State = ExchangeState<any UpstreamStream>

    /// What comes with an event and matters to its reaction, but not to the decision.
    enum Particulars {
        case none
        /// Why something failed, and the addresses that could not be connected to, if that is why.
        case failure(ExchangeError, FailedAttempts?)
        case clientTimeout
        /// The client's stream no longer refers to the exchange.
        case clientGone
        case content(UnsafeRawBufferPointer, owner: Buffer, isLast: Bool)
        case contentEnd(TrailerSection?)
        case responseEnd(TrailerSection?)
    }

    /// Passes on an event after which the caller itself continues. Returns false if the caller must
    /// not: the event is impossible here, or its reaction was something else, which is done.
    @inline(__always)
    func goesOn(after event: State.Event) -> Bool {
        let next = next(after: event)
        if case .nothing = next { return true }
        return performApart(next, .none)
    }

    /// Passes on an event and performs what follows. The caller does nothing after it: the exchange
    /// may have ended.
    @inline(__always)
    func handle(_ event: State.Event, _ particulars: Particulars = .none) {
        _ = performApart(next(after: event), particulars)
    }

    /// `perform` for where it is not to be a part of the caller.
    @inline(never)
    private func performApart(_ next: State.Next, _ particulars: Particulars) -> Bool {
        perform(next, particulars)
    }

    /// Passes an event to the state machine and releases what the reaction names. Returns the
    /// continuing action, to be performed last.
    @inline(__always)
    private func next(after event: State.Event) -> State.Next {
        let reaction = state.handle(event)
        if case .decided(let decision) = event, decision.isWait { beginWait() }
        switch reaction.release {
        case .nothing: break
        case .upstream(let upstream): upstream.cancel()
        case .wait:
            if let origin = connectionOrigin {
                abandonWait(origin)
                environment.upstreams.abandon(origin, self)
            }
        case .opening: abandonOpening()
        case .check: abandonCheck()
        case .turn: abandonTurn()
        }
        if waits.since != 0 { goOnWaiting() }
        if case .illegal = reaction.next { reportIllegal(event) }
        return reaction.next
    }

    /// Performs a continuing action: the only place where that is done, so that a new one does not
    /// compile until it is decided what is done for it.
    ///
    /// - Returns: whether whoever passed the event on may continue; for content, whether more of it
    ///   is accepted. In all other cases nothing may follow: the exchange may have ended, and the
    ///   object may be in use for another.
    @inline(__always)
    private func perform(_ next: State.Next, _ particulars: Particulars) -> Bool {
        switch next {
        case .nothing, .dropContent: return true
        // It has been reported.
        case .illegal, .holdContent: break
        case .reply: reply(after: particulars)
        case .forwardAgain(let reason): sendAgain(reason)
        case .forward:
            if case .contentEnd(let trailers) = particulars {
                upload.gathered?.trailers = trailers
            }
            contentIsGathered()
        case .serveConfirmed: serveConfirmed()
        case .read:
            if let reader = serving.reader { reader.proceed() } else { askForPiece() }
        case .resume:
            // The client reads by itself what others read as well.
            if serving.reader != nil { return resumeReading() }
            collapsing.followers?.resume(now: environment.loop.now)
            upstream?.resume()
        case .detach: detachClient()
        case .complete:
            guard case .responseEnd(let trailers) = particulars else { return false }
            complete(trailers: trailers)
        case .sendContent:
            guard case .content(let bytes, let owner, let isLast) = particulars, let upstream
            else { return true }
            upstream.send(bytes, owner: owner)
            // The end follows immediately, and is sent together with it.
            return isLast || upstream.flush()
        case .endContent:
            guard case .contentEnd(let trailers) = particulars else { return false }
            _ = upstream?.finish(trailers: trailers)
        case .gatherContent:
            guard case .content(let bytes, _, let isLast) = particulars else { return true }
            return gather(bytes, isLast: isLast)
        case .end(let cut): end(cut: cut, after: particulars)
        }
        return false
    }

    private func resumeReading() -> Bool {
        serving.reader?.proceed()
        return false
    }

    /// Replies to a request for which the server has no response.
    private func reply(after particulars: Particulars) {
        switch particulars {
        case .failure(let fault, let attempts): replyOrServeStale(fault, attempts)
        case .clientTimeout:
            abandonStore()
            reply(with: .gateway(.requestTimeout), closing: true)
        // What has arrived cannot be used, and the request cannot be sent again.
        case .responseEnd: replyOrServeStale(.server(.upstreamClosed))
        // None of these events leads to a reply.
        case .none, .clientGone, .content, .contentEnd:
            assertionFailure("a reply after \(particulars)")
            replyOrServeStale(.server(.upstreamClosed))
        }
    }

    @inline(__always)
    private func end(cut: Bool, after particulars: Particulars) {
        switch particulars {
        case .failure(let fault, let attempts):
            remarks.failed(fault)
            remarks.tried(attempts)
            // Failures in the background are reported nowhere else.
            if client == nil { environment.log(fault, of: self) }
        case .clientTimeout: remarks.failed(.gateway(.clientTimeout))
        case .clientGone: return end(cut: cut, clientIsGone: true)
        case .responseEnd: removeOutdated()
        case .none, .content, .contentEnd: break
        }
        end(cut: cut)
    }

    /// A bug in the program. Debug builds trap; otherwise it is logged and counted, and the
    /// exchange is cut off at the end of the turn, without affecting others.
    @inline(never)
    private func reportIllegal(_ event: State.Event) {
        environment.metrics.add(.illegalTransitions)
        environment.shared.logger.critical(
            "an event is impossible in the exchange's state; please report this",
            metadata: ["id": "\(idText)", "state": "\(state.name)", "event": "\(event.name)"])
        assert(!environment.trapsOnIllegalEvents, "\(event.name) in \(state.name)")
        let id = report.id
        environment.loop.afterTurn { [self] in
            if report.id == id { cutOff() }
        }
    }

    /// Ends the exchange in any state, without sending anything more to the client. The connections
    /// of a tunnel belong to its carrier, which ends the exchange with them.
    package func cutOff() {
        if let carrier = tunnel?.carrier { return carrier.cut() }
        handle(.clientGone(isWanted: false))
    }

    /// Fails the exchange: tries again if that may help; otherwise replies if no response has
    /// begun, or cuts the response off.
    ///
    /// - Parameter attempts: the addresses that could not be connected to, if that is the reason.
    func fail(
        _ fault: ExchangeError, _ ending: RetryDecision.Ending? = nil,
        _ attempts: FailedAttempts? = nil
    ) {
        abandonStore()
        if serving.reader != nil { serving.endReading() }
        if serving.translation != nil { serving.endTranslation() }
        if serving.form != nil { _ = serving.takeForm() }
        // The client has then seen nothing of a response.
        let withdrawn = state.headIsSent && client?.withdrawHead() ?? false
        handle(
            .failed(State.FailureInfo(ending: ending, headWithdrawn: withdrawn)),
            .failure(fault, attempts))
    }

    /// Replies with an error, or with a stored response in its place.
    func replyOrServeStale(_ fault: ExchangeError, _ attempts: FailedAttempts? = nil) {
        if let (stored, hit) = staleAnswer(insteadOf: fault) { return serveStale(stored, hit) }
        remarks.tried(attempts)
        let reported = mustBeConfirmed(despite: fault) ? .unconfirmed(fault) : fault
        reply(with: reported, closing: !intake.contentHasEnded)
    }

    /// Ends the exchange, of which nobody expects anything more.
    func endSilently() { handle(.over) }

    // MARK: The client

    /// Everything queued for the client has been written.
    package func clientDrained() {
        if let paced = limiting?.paced { return paced.innerDrained() }
        everythingIsWritten()
    }

    func everythingIsWritten() { _ = perform(next(after: .drained), .none) }

    /// The client's connection is gone; it no longer refers to the exchange.
    package func clientGone() { handle(.clientGone(isWanted: isWanted || fills()), .clientGone) }

    /// Nothing moved between the client and the gateway for too long.
    package func clientTimedOut() { handle(.clientTimedOut, .clientTimeout) }

    // MARK: The response

    /// The server's response is complete.
    package func upstreamEnded(trailers: TrailerSection?) {
        finishStore(trailers)
        let isRead = serving.reader != nil
        if isRead, let trailers, request.takesTrailers { serving.end(with: trailers) }
        _ = perform(next(after: .responseEnded(isRead: isRead)), .responseEnd(trailers))
    }

    // MARK: The request's content

    /// Accepts content of the request. Returns false if no more is accepted until `resumeContent`.
    package func content(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        intake.received(bytes.count)
        if let contents = remarks.contents { contents.received(bytes) }
        if let paced = limiting?.paced, paced.pacesContent {
            return paced.accept(bytes, owner: owner, isLast: isLast)
        }
        return accept(bytes, owner: owner, isLast: isLast)
    }

    func accept(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool {
        perform(next(after: .content), .content(bytes, owner: owner, isLast: isLast))
    }

    /// The request's content is complete.
    package func contentEnded(trailers: TrailerSection?) {
        if let paced = limiting?.paced, paced.holdsEnd(trailers: trailers) { return }
        acceptContentEnd(trailers: trailers)
    }

    func acceptContentEnd(trailers: TrailerSection?) {
        intake.contentEnded()
        releaseGathered()
        uploadEnded()
        let isTranslated = upload.rewritten?.awaitsTranslation ?? false
        let isKept = intake.replayable != nil || upload.gathered != nil || isTranslated
        handle(.contentEnded(isKept: isKept), .contentEnd(trailers))
    }

    /// The rest of the request's content cannot be parsed.
    package func contentFailed(_ error: WireError) {
        intake.contentEnded()
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
