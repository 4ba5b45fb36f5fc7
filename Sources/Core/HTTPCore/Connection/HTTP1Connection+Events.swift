// The transitions: every event handles every phase, so that a new phase or event must be handled
// everywhere.
extension HTTP1Connection {
    /// Handles an event. The caller must carry out the reaction at once.
    @inlinable
    @inline(__always)
    public mutating func handle(_ event: Event) -> Reaction {
        switch event {
        case .opened: opened()
        case .headBegan: headBegan()
        case .givenBack(let rest): givenBack(rest)
        case .requestHead(let request): requestHead(request)
        case .contentQueued: contentQueued()
        case .requestEnded: requestEnded()
        case .responseBegan: responseBegan()
        case .interimHead(let persists): interimHead(persists: persists)
        case .emptyLinePassed: emptyLinePassed()
        case .responseHead(let response): responseHead(response)
        case .headWithdrawn: headWithdrawn()
        case .responseEnded(let rest): responseEnded(rest)
        case .settled(let rest): settled(rest)
        case .cut: cut()
        case .inputEnded(let completing): inputEnded(completing: completing)
        case .peerFinished: peerFinished()
        case .sendingFailed: sendingFailed()
        case .refused: refused()
        case .drain(let hasInput): drain(hasInput: hasInput)
        case .detached: detached()
        case .versionChanged: versionChanged()
        case .lingers: lingers()
        case .closed: closed()
        }
    }

    @inlinable
    mutating func opened() -> Reaction {
        switch current {
        case .opening:
            current = .idle
            return .nothing
        case .idle, .starting, .requesting, .awaiting, .answering, .responding, .answered,
            .finishing, .lingering, .detached, .closed:
            return .illegal
        }
    }

    // MARK: The request

    @inlinable
    @inline(__always)
    mutating func headBegan() -> Reaction {
        switch current {
        case .idle:
            current = .starting
            facts.formIntersection(.ofConnection)
            return .nothing
        case .opening, .starting, .requesting, .awaiting, .answering, .responding, .answered,
            .finishing, .lingering, .detached, .closed:
            return .illegal
        }
    }

    @inlinable
    mutating func givenBack(_ rest: Rest) -> Reaction {
        switch (role, current) {
        case (.client, .starting):
            // What arrived before a request is no answer to the next one.
            guard persists, rest.isFlushed, !rest.hasInput, !responseHasBegun else {
                return .close
            }
            current = .idle
            return .reuse
        case (.server, _), (_, .opening), (_, .idle), (_, .requesting), (_, .awaiting),
            (_, .answering), (_, .responding), (_, .answered), (_, .finishing), (_, .lingering),
            (_, .detached), (_, .closed):
            return .illegal
        }
    }

    /// ``Event/requestHead(_:)``, for a caller that is too long for all events to be a part of it.
    @inlinable
    @inline(__always)
    public mutating func requestHead(_ request: Request) -> Reaction {
        switch (role, current) {
        case (.server, .idle), (_, .starting):
            current = request.hasContent ? .requesting : .awaiting
            requestVersion = request.version
            framing = request.isChunked ? .chunked : .counted
            // What began before the head remains true.
            facts.formIntersection(.ofConnection.union(.responseBegan))
            if !request.persists { facts.remove(.persists) }
            if request.maySwitch { facts.insert(.maySwitch) }
            if request.expectsContinue { facts.insert(.holdsBack) }
            if !request.hasContent { facts.insert(.requestEnded) }
            return .nothing
        case (.client, .idle), (_, .opening), (_, .requesting), (_, .awaiting), (_, .answering),
            (_, .responding), (_, .answered), (_, .finishing), (_, .lingering), (_, .detached),
            (_, .closed):
            return .illegal
        }
    }

    @inlinable
    mutating func contentQueued() -> Reaction {
        switch (role, current) {
        case (.client, .requesting), (.client, .answering), (.client, .answered):
            facts.remove(.holdsBack)
            return .nothing
        case (.server, _), (_, .opening), (_, .idle), (_, .starting), (_, .awaiting),
            (_, .responding), (_, .finishing), (_, .lingering), (_, .detached), (_, .closed):
            return .illegal
        }
    }

    @inlinable
    @inline(__always)
    mutating func requestEnded() -> Reaction {
        switch current {
        case .requesting: current = .awaiting
        case .answering: current = .responding
        case .answered: current = .finishing
        case .opening, .idle, .starting, .awaiting, .responding, .finishing, .lingering,
            .detached, .closed:
            return .illegal
        }
        facts.insert(.requestEnded)
        return .nothing
    }

    @inlinable
    mutating func refused() -> Reaction {
        switch (role, current) {
        case (.server, .idle), (.server, .starting):
            current = .awaiting
            requestVersion = .http11
            framing = .counted
            facts.formIntersection(.ofConnection)
        case (.server, .requesting): current = .awaiting
        case (.server, .answering): current = .responding
        case (.client, _), (_, .opening), (_, .awaiting), (_, .responding), (_, .answered),
            (_, .finishing), (_, .lingering), (_, .detached), (_, .closed):
            return .illegal
        }
        facts.remove(.persists)
        return .nothing
    }

    // MARK: The response

    @inlinable
    @inline(__always)
    mutating func responseBegan() -> Reaction {
        switch (role, current) {
        case (.client, .starting), (.client, .requesting), (.client, .awaiting),
            (.client, .answering), (.client, .responding), (.client, .answered),
            (.client, .finishing):
            facts.insert(.responseBegan)
            return .nothing
        case (.server, _), (_, .opening), (_, .idle), (_, .lingering), (_, .detached),
            (_, .closed):
            return .illegal
        }
    }

    @inlinable
    mutating func interimHead(persists: Bool) -> Reaction {
        switch current {
        case .requesting, .awaiting:
            facts.insert(.afterInterim)
            if !persists { facts.remove(.persists) }
            return .nothing
        case .opening, .idle, .starting, .answering, .responding, .answered, .finishing,
            .lingering, .detached, .closed:
            return .illegal
        }
    }

    @inlinable
    mutating func emptyLinePassed() -> Reaction {
        switch current {
        case .requesting, .awaiting:
            facts.remove(.afterInterim)
            return .nothing
        case .opening, .idle, .starting, .answering, .responding, .answered, .finishing,
            .lingering, .detached, .closed:
            return .illegal
        }
    }

    /// ``Event/responseHead(_:)``, as above.
    @inlinable
    @inline(__always)
    public mutating func responseHead(_ response: Response) -> Reaction {
        switch current {
        case .requesting: current = .answering
        case .awaiting: current = .responding
        case .opening, .idle, .starting, .answering, .responding, .answered, .finishing,
            .lingering, .detached, .closed:
            return .illegal
        }
        facts.remove(.afterInterim)
        if !response.persists { facts.remove(.persists) }
        if response.isSuccess { facts.insert(.isSuccess) }
        guard role == .server else { return .nothing }
        // The rest of a request that has been answered is not waited for.
        if current == .answering { facts.remove(.persists) }
        guard response.isStreamed else { return .nothing }
        if requestVersion.hasTransferCodings {
            framing = .chunked
        } else {
            framing = .untilClose
            facts.remove(.persists)
        }
        return .nothing
    }

    @inlinable
    mutating func headWithdrawn() -> Reaction {
        switch (role, current) {
        case (.server, .answering): current = .requesting
        case (.server, .responding): current = .awaiting
        case (.server, .requesting), (.server, .awaiting): break
        case (.client, _), (_, .opening), (_, .idle), (_, .starting), (_, .answered),
            (_, .finishing), (_, .lingering), (_, .detached), (_, .closed):
            return .illegal
        }
        framing = .counted
        return .nothing
    }

    /// Whether a client sends the rest of its request after an early response. A server that
    /// responds with success and keeps the connection open continues to read the request, and
    /// relies on getting all of it (RFC 9110 §7.5).
    @inlinable
    @inline(__always)
    public func finishesRequest(_ rest: Rest) -> Bool {
        switch (role, current) {
        case (.client, .answering): break
        case (.client, .responding): if rest.isFlushed { return false }
        case (.server, _), (_, .opening), (_, .idle), (_, .starting), (_, .requesting),
            (_, .awaiting), (_, .answered), (_, .finishing), (_, .lingering), (_, .detached),
            (_, .closed):
            return false
        }
        return facts.isSuperset(of: [.persists, .isSuccess])
            && facts.isDisjoint(with: [.peerFinished, .holdsBack]) && !rest.hasInput
    }

    @inlinable
    @inline(__always)
    mutating func responseEnded(_ rest: Rest) -> Reaction {
        switch (role, current) {
        case (.client, .answering):
            let finishes = finishesRequest(rest)
            current = .answered
            return finishes ? .finishRequest : conclude(rest)
        case (.client, .responding):
            let finishes = finishesRequest(rest)
            current = .finishing
            return finishes ? .finishRequest : conclude(rest)
        case (.server, .answering), (.server, .responding):
            guard persists, current == .responding else {
                current = .lingering
                return .linger
            }
            current = .idle
            facts.insert(.hasCarried)
            return .reuse
        case (_, .opening), (_, .idle), (_, .starting), (_, .requesting), (_, .awaiting),
            (_, .answered), (_, .finishing), (_, .lingering), (_, .detached), (_, .closed):
            return .illegal
        }
    }

    @inlinable
    @inline(__always)
    mutating func settled(_ rest: Rest) -> Reaction {
        switch (role, current) {
        case (.client, .answered), (.client, .finishing): return conclude(rest)
        case (.server, _), (_, .opening), (_, .idle), (_, .starting), (_, .requesting),
            (_, .awaiting), (_, .answering), (_, .responding), (_, .lingering), (_, .detached),
            (_, .closed):
            return .illegal
        }
    }

    /// A client's exchange is over, with the request complete (`finishing`) or not (`answered`).
    @inlinable
    @inline(__always)
    mutating func conclude(_ rest: Rest) -> Reaction {
        facts.insert(.hasCarried)
        guard current == .finishing, persists, rest.isFlushed, !rest.hasInput else {
            return .close
        }
        current = .idle
        return .reuse
    }

    @inlinable
    mutating func cut() -> Reaction {
        switch (role, current) {
        case (.server, .requesting), (.server, .awaiting), (.server, .answering),
            (.server, .responding):
            return framing == .untilClose ? .reset : .close
        case (.client, _), (_, .opening), (_, .idle), (_, .starting), (_, .answered),
            (_, .finishing), (_, .lingering), (_, .detached), (_, .closed):
            return .illegal
        }
    }

    // MARK: The connection

    @inlinable
    mutating func inputEnded(completing: Bool) -> Reaction {
        let reaction: Reaction
        switch (role, current) {
        case (_, .idle), (.server, .opening), (.server, .lingering): reaction = .close
        case (.client, .opening), (.client, .starting), (.client, .requesting),
            (.client, .awaiting):
            reaction = .abandon
        case (.client, .answering), (.client, .responding):
            facts.remove(.persists)
            reaction = completing ? .nothing : .abandon
        // The rest of the request will not be read (``Event/settled``).
        case (.client, .answered), (.client, .finishing):
            facts.remove(.persists)
            reaction = .nothing
        case (.server, .starting): reaction = .refuse
        case (.server, .requesting), (.server, .answering): reaction = .abandon
        // It may have finished sending, and still be waiting for the response (RFC 9112 §9.6).
        case (.server, .awaiting), (.server, .responding): reaction = .nothing
        case (.server, .answered), (.server, .finishing), (.client, .lingering), (_, .detached),
            (_, .closed):
            return .illegal
        }
        facts.insert(.peerFinished)
        return reaction
    }

    @inlinable
    mutating func peerFinished() -> Reaction {
        guard isOpen else { return .illegal }
        facts.insert(.peerFinished)
        return .nothing
    }

    @inlinable
    mutating func sendingFailed() -> Reaction {
        let reaction: Reaction
        switch (role, current) {
        // The response may have arrived already: reading shows that, or reports the failure.
        case (.client, .starting), (.client, .requesting), (.client, .awaiting),
            (.client, .answering), (.client, .responding), (.client, .answered),
            (.client, .finishing):
            reaction = .nothing
        case (.server, .requesting), (.server, .awaiting), (.server, .answering),
            (.server, .responding):
            reaction = .abandon
        case (_, .opening), (_, .idle), (.server, .starting), (.server, .lingering):
            reaction = .close
        case (.server, .answered), (.server, .finishing), (.client, .lingering), (_, .detached),
            (_, .closed):
            return .illegal
        }
        facts.remove(.persists)
        return reaction
    }

    @inlinable
    mutating func drain(hasInput: Bool) -> Reaction {
        let isOver: Bool
        switch current {
        case .opening: isOver = true
        case .idle: isOver = !hasInput
        case .starting, .requesting, .awaiting, .answering, .responding, .answered, .finishing,
            .lingering:
            isOver = false
        case .detached, .closed: return .illegal
        }
        facts.remove(.persists)
        return isOver ? .close : .nothing
    }

    @inlinable
    mutating func detached() -> Reaction {
        guard facts.contains(.maySwitch) else { return .illegal }
        switch (role, current) {
        // A client has parsed the head of the 101; a server sends its head as it hands over.
        case (.client, .responding), (.server, .awaiting):
            current = .detached
            return .nothing
        case (.server, .responding), (.client, .awaiting), (_, .opening), (_, .idle),
            (_, .starting), (_, .requesting), (_, .answering), (_, .answered), (_, .finishing),
            (_, .lingering), (_, .detached), (_, .closed):
            return .illegal
        }
    }

    @inlinable
    mutating func versionChanged() -> Reaction {
        guard !facts.contains(.hasCarried) else { return .illegal }
        switch (role, current) {
        case (.server, .idle), (.server, .starting):
            current = .detached
            return .nothing
        case (.client, _), (_, .opening), (_, .requesting), (_, .awaiting), (_, .answering),
            (_, .responding), (_, .answered), (_, .finishing), (_, .lingering), (_, .detached),
            (_, .closed):
            return .illegal
        }
    }

    @inlinable
    mutating func lingers() -> Reaction {
        switch (role, current) {
        case (.server, .opening):
            current = .lingering
            return .linger
        case (.client, _), (_, .idle), (_, .starting), (_, .requesting), (_, .awaiting),
            (_, .answering), (_, .responding), (_, .answered), (_, .finishing), (_, .lingering),
            (_, .detached), (_, .closed):
            return .illegal
        }
    }

    @inlinable
    mutating func closed() -> Reaction {
        switch current {
        case .opening, .idle, .starting, .requesting, .awaiting, .answering, .responding,
            .answered, .finishing, .lingering:
            current = .closed
            return .nothing
        case .detached, .closed: return .illegal
        }
    }
}
