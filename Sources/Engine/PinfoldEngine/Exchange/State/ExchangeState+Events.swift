// The transitions: every event handles every state, so that a new state or event must be handled
// everywhere.
extension ExchangeState {
    /// Handles an event. The caller must carry out the reaction immediately, in its order.
    @inline(__always)
    mutating func handle(_ event: Event) -> Reaction {
        switch event {
        case .begin(let request): begin(request)
        case .decided(let decision): decided(decision)
        case .authenticated: authenticated()
        case .turnCame: turnCame()
        case .loaded: loaded()
        case .flightEnded: flightEnded()
        case .connected(let upstream, let wasReused, let sendsGathered):
            connected(upstream, wasReused: wasReused, sendsGathered: sendsGathered)
        case .answered(let answer): answered(answer)
        case .responseEnded(let isRead): responseEnded(isRead: isRead)
        case .failed(let failure): failed(failure)
        case .content: contentArrived()
        case .contentEnded(let isKept): contentEnded(isKept: isKept)
        case .drained: drained()
        case .clientGone(let isWanted): clientGone(isWanted: isWanted)
        case .clientTimedOut: clientTimedOut()
        case .handedOn: handedOn()
        case .relayed: relayed()
        case .over: over()
        }
    }

    private static var illegal: Reaction { Reaction(next: .illegal) }

    private mutating func begin(_ request: Request) -> Reaction {
        switch step {
        case .ended:
            step = .routing
            hasClient = request.hasClient
            isIdempotent = request.isIdempotent
            content = request.hasContent ? .untouched : .none
            retries = RetryReasons()
            upstreamWasReused = false
            return Reaction()
        case .routing, .authenticating, .delayed, .loading, .waiting, .gathering, .connecting,
            .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func decided(_ decision: Decision) -> Reaction {
        switch step {
        case .routing:
            switch decision {
            case .authenticate: step = .authenticating
            case .delay: step = .delayed
            case .load: step = .loading
            case .follow: step = .waiting
            case .gather: step = .gathering
            case .connect: step = .connecting
            case .respond: step = .finishing
            case .serve: step = .serving
            case .open: step = .opening
            case .lookUp: return Self.illegal
            }
            return Reaction()
        // Checks again whether it may connect.
        case .gathering:
            switch decision {
            case .gather: return Reaction()
            case .connect:
                step = .connecting
                return Reaction()
            case .lookUp:
                step = .routing
                return Reaction()
            case .authenticate, .delay, .load, .follow, .respond, .serve, .open: return Self.illegal
            }
        case .serving:
            guard decision == .respond else { return Self.illegal }
            step = .finishing
            return Reaction()
        case .ended, .authenticating, .delayed, .loading, .waiting, .connecting, .requesting,
            .discarding,
            .responding, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func authenticated() -> Reaction {
        switch step {
        case .authenticating:
            step = .routing
            return Reaction()
        case .ended, .routing, .delayed, .loading, .waiting, .gathering, .connecting, .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func turnCame() -> Reaction {
        switch step {
        case .delayed:
            step = .routing
            return Reaction()
        case .ended, .routing, .authenticating, .loading, .waiting, .gathering, .connecting,
            .requesting, .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func loaded() -> Reaction {
        switch step {
        case .loading:
            step = .routing
            return Reaction()
        case .ended, .routing, .authenticating, .delayed, .waiting, .gathering, .connecting,
            .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func flightEnded() -> Reaction {
        switch step {
        case .waiting:
            step = .routing
            return Reaction()
        case .ended, .routing, .authenticating, .delayed, .loading, .gathering, .connecting,
            .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    // MARK: The server

    private mutating func connected(
        _ upstream: Upstream, wasReused: Bool, sendsGathered: Bool
    ) -> Reaction {
        switch step {
        case .connecting:
            step = .requesting(upstream)
            upstreamWasReused = wasReused
            guard sendsGathered else { return Reaction() }
            switch content {
            case .none: break
            case .untouched, .partlySent: content = .partlySent
            case .ended: content = .ended(isKept: false)
            }
            return Reaction()
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Reaction(release: .upstream(upstream), next: .illegal)
        }
    }

    private mutating func answered(_ answer: Answer) -> Reaction {
        switch step {
        case .requesting(let upstream):
            switch answer {
            case .interim: return Reaction()
            case .passedOn:
                step = .responding(upstream)
                return Reaction()
            case .discarded(let continuation):
                step = .discarding(upstream, then: continuation)
                return Reaction()
            case .replaced:
                step = .routing
                return Reaction(release: .upstream(upstream))
            }
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func responseEnded(isRead: Bool) -> Reaction {
        switch step {
        case .responding where isRead && hasClient:
            step = .serving
            return Reaction(next: .read)
        case .responding:
            step = hasClient ? .finishing : .ended
            return Reaction(next: hasClient ? .complete : .end(cut: false))
        case .discarding(_, .serveConfirmed):
            // In the background there is no client to send the confirmed response to.
            step = hasClient ? .routing : .ended
            return Reaction(next: hasClient ? .serveConfirmed : .end(cut: false))
        case .discarding(_, .forwardAgain):
            return routeAgain(after: .validationFailed)
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .requesting, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func relayed() -> Reaction {
        switch step {
        // The connection belongs to the relay and is not released.
        case .opening, .requesting:
            step = .tunnelling
            return Reaction()
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .discarding, .responding, .serving, .finishing, .tunnelling:
            return Self.illegal
        }
    }

    private mutating func handedOn() -> Reaction {
        switch step {
        case .responding(let upstream):
            step = hasClient ? .serving : .ended
            return Reaction(
                release: .upstream(upstream), next: hasClient ? .read : .end(cut: false))
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .requesting, .discarding, .serving, .finishing, .opening, .tunnelling:
            return Self.illegal
        }
    }

    // MARK: Failures

    private mutating func failed(_ failure: FailureInfo) -> Reaction {
        switch step {
        case .routing, .gathering: return routeAgain(after: nil)
        case .loading: return routeAgain(after: failure.ending)
        case .connecting: return routeAgain(after: failure.ending, .wait)
        case .requesting(let upstream), .discarding(let upstream, _):
            return routeAgain(
                after: failure.ending, wasReused: upstreamWasReused, .upstream(upstream))
        case .responding(let upstream):
            guard failure.headWithdrawn else { return end(cut: true) }
            return routeAgain(after: nil, .upstream(upstream))
        case .serving:
            guard failure.headWithdrawn else { return end(cut: true) }
            return routeAgain(after: failure.ending)
        case .finishing:
            guard failure.headWithdrawn else { return end(cut: true) }
            return routeAgain(after: nil)
        case .opening: return routeAgain(after: nil, .opening)
        case .ended, .authenticating, .delayed, .waiting, .tunnelling: return Self.illegal
        }
    }

    /// Back to routing: the request is sent again, or the failure is reported.
    private mutating func routeAgain(
        after ending: RetryDecision.Ending?, wasReused: Bool = false, _ release: Release = .nothing
    ) -> Reaction {
        step = .routing
        let policy = RetryDecision(
            isIdempotent: isIdempotent, wasReused: wasReused, content: content, reasons: retries)
        if let reason = ending.flatMap(policy.reason(after:)) {
            retries.insert(reason)
            return Reaction(release: release, next: .forwardAgain(reason))
        }
        guard !hasClient else { return Reaction(release: release, next: .reply) }
        // There is no client to reply to.
        step = .ended
        return Reaction(release: release, next: .end(cut: true))
    }

    // MARK: The request's content

    private mutating func contentArrived() -> Reaction {
        switch step {
        case .requesting, .discarding, .responding:
            content = .partlySent
            return Reaction(next: .sendContent)
        case .gathering: return Reaction(next: .gatherContent)
        case .routing, .authenticating, .delayed, .loading, .waiting, .connecting:
            return Reaction(next: .holdContent)
        // It is no longer needed.
        case .serving, .finishing, .opening, .tunnelling: return Reaction(next: .dropContent)
        case .ended: return Self.illegal
        }
    }

    private mutating func contentEnded(isKept: Bool) -> Reaction {
        switch step {
        case .requesting, .discarding, .responding:
            content = .ended(isKept: isKept)
            return Reaction(next: .endContent)
        case .gathering:
            content = .ended(isKept: isKept)
            return Reaction(next: .forward)
        case .routing, .authenticating, .delayed, .loading, .waiting, .connecting, .serving,
            .finishing,
            .opening, .tunnelling:
            content = .ended(isKept: isKept)
            return Reaction()
        case .ended: return Self.illegal
        }
    }

    // MARK: The client

    private mutating func drained() -> Reaction {
        switch step {
        case .finishing:
            step = .ended
            return Reaction(next: .end(cut: false))
        case .serving: return Reaction(next: .read)
        case .requesting, .discarding, .responding: return Reaction(next: .resume)
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .opening, .tunnelling:
            return Reaction()
        }
    }

    private mutating func clientGone(isWanted: Bool) -> Reaction {
        switch step {
        case .requesting where isWanted && hasClient && content == .none,
            .responding where isWanted && hasClient && content == .none:
            hasClient = false
            return Reaction(next: .detach)
        case .routing, .authenticating, .delayed, .loading, .waiting, .gathering, .connecting,
            .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return end(cut: true)
        case .ended: return Reaction()
        }
    }

    private mutating func clientTimedOut() -> Reaction {
        switch step {
        // The client must still get a response, saying that its request did not arrive.
        case .gathering: return routeAgain(after: nil)
        case .requesting(let upstream), .discarding(let upstream, _):
            return routeAgain(after: nil, .upstream(upstream))
        case .routing, .authenticating, .delayed, .loading, .waiting, .connecting, .responding,
            .serving,
            .finishing, .opening, .tunnelling:
            return end(cut: true)
        case .ended: return Self.illegal
        }
    }

    // MARK: The end

    private mutating func over() -> Reaction {
        switch step {
        case .routing, .authenticating, .delayed, .loading, .waiting, .gathering, .connecting,
            .requesting,
            .discarding, .responding, .serving, .finishing, .opening, .tunnelling:
            return end(cut: false)
        case .ended: return Self.illegal
        }
    }

    private mutating func end(cut: Bool) -> Reaction {
        let release: Release
        switch step {
        case .requesting(let upstream), .discarding(let upstream, _),
            .responding(let upstream):
            release = .upstream(upstream)
        case .connecting: release = .wait
        case .opening: release = .opening
        case .authenticating: release = .check
        case .delayed: release = .turn
        case .ended, .routing, .loading, .waiting, .gathering, .serving, .finishing, .tunnelling:
            release = .nothing
        }
        step = .ended
        return Reaction(release: release, next: .end(cut: cut))
    }
}

extension ExchangeState {
    /// The connection that carries the request.
    @inline(__always)
    var upstream: Upstream? {
        switch step {
        case .requesting(let upstream), .responding(let upstream),
            .discarding(let upstream, _):
            upstream
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .serving, .finishing, .opening, .tunnelling:
            nil
        }
    }

    /// Whether a head or a whole response is queued for the client or being sent.
    var headIsSent: Bool {
        switch step {
        case .responding: hasClient
        case .serving, .finishing, .tunnelling: true
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting,
            .requesting, .discarding, .opening:
            false
        }
    }
}
