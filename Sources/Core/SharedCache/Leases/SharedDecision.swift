/// What to do with a request for which the own tiers have nothing.
package enum SharedDecision: Sendable, Hashable {
    /// Use what was found, by the rules of RFC 9111 as if it had been on disk.
    /// - Parameter staleSince: since when it is stale by a soft purge, on the engine's clock.
    case serve(staleSince: Int64?)
    /// What was found may be used once its origin has confirmed it, and not before, stale or not.
    case revalidate(RevalidationReason)
    /// Fetch it, as the one that does so for the whole fleet.
    case lead
    /// Another gateway fetches it: look again after this many milliseconds.
    case wait(Int64)
    /// Fetch it, for oneself.
    case miss(SharedMissReason)

    /// Why something has to be confirmed.
    package enum RevalidationReason: Sendable, Hashable {
        /// It is not known whether it was purged.
        case unknownGeneration(GenerationError)
        /// This gateway has not caught up with the purges, and so does not know either.
        case behind
    }
}

/// Why the shared level has nothing for a request.
package enum SharedMissReason: Sendable, Hashable {
    /// No connection is ready, or the circuit breaker is open.
    case away
    /// It did not answer in time, or too much is waiting.
    case slow
    case nothing
    /// What is stored cannot be used.
    case refused(SharedRecordError)
    /// It belongs to an instance of the key that is not there any longer.
    case otherInstance
    case purged
    /// It was obtained under other rules of trust or access.
    case otherTrust
    /// Responses to the key are not stored.
    case hitForMiss
    /// Another gateway has fetched it for longer than this one waits.
    case waitedTooLong
}

/// What the shared level replied about a request.
package struct SharedReply: Sendable {
    /// What was stored.
    package enum Found: Sendable {
        /// Nothing could be asked, or there was no answer in time.
        case unavailable(isSlow: Bool)
        case nothing
        case refused(SharedRecordError)
        /// - Parameters:
        ///   - instance: that of the key's index; `nil` if there is none.
        ///   - verdict: what purges make of it.
        case value(SharedValue, instance: SharedToken?, GenerationVerdict)
    }

    /// The lease of who fetches it.
    package enum Lease: Sendable, Hashable {
        /// It was not asked for.
        case notAsked
        /// It was free, and is this gateway's now.
        case taken
        case another
    }

    package var found: Found
    package var lease: Lease
    /// Whether there is a note that responses are not stored.
    package var isNotStored: Bool

    package init(found: Found, lease: Lease = .notAsked, isNotStored: Bool = false) {
        self.found = found
        self.lease = lease
        self.isNotStored = isNotStored
    }
}

/// What decides besides the reply.
package struct SharedCircumstances: Sendable, Hashable {
    /// The fingerprint of the rules that the request is under.
    package var trust: UInt64
    /// Whether the gateway has caught up with the purges (`PurgeFollower`).
    package var isFollowing: Bool
    /// How long the request has waited for another gateway, and how long it may, in milliseconds.
    package var waited: Int64
    package var patience: Int64
    /// Whether the response may be waited for at all.
    package var mayWait: Bool

    package init(
        trust: UInt64, isFollowing: Bool, waited: Int64 = 0, patience: Int64 = 0,
        mayWait: Bool = true
    ) {
        self.trust = trust
        self.isFollowing = isFollowing
        self.waited = waited
        self.patience = patience
        self.mayWait = mayWait
    }

    /// How long to wait before looking again: a tenth of what has been waited, within bounds. Those
    /// who watch the lease's name are told earlier.
    var pause: Int64 { min(max(waited / 10, 5), 100) }
}

extension SharedDecision {
    /// - Parameters:
    ///   - reply: what the level has said, in one turn.
    ///   - circumstances: what else counts.
    package init(_ reply: SharedReply, _ circumstances: SharedCircumstances) {
        switch reply.found {
        case .unavailable(let isSlow): self = .miss(isSlow ? .slow : .away)
        case .nothing: self.init(missing: .nothing, reply, circumstances)
        case .refused(let error): self.init(missing: .refused(error), reply, circumstances)
        case .value(let value, let instance, let verdict):
            if value.trust != circumstances.trust {
                self.init(missing: .otherTrust, reply, circumstances)
            } else if value.instance != instance {
                self.init(missing: .otherInstance, reply, circumstances)
            } else {
                self.init(value, verdict, reply, circumstances)
            }
        }
    }

    private init(
        _ value: SharedValue, _ verdict: GenerationVerdict, _ reply: SharedReply,
        _ circumstances: SharedCircumstances
    ) {
        switch verdict {
        case .gone: self.init(missing: .purged, reply, circumstances)
        case .unknown(let error): self = .revalidate(.unknownGeneration(error))
        case .current, .stale:
            guard circumstances.isFollowing else {
                self = .revalidate(.behind)
                return
            }
            if case .stale(let since) = verdict {
                self = .serve(staleSince: min(since, value.staleSince ?? since))
            } else {
                self = .serve(staleSince: value.staleSince)
            }
        }
    }

    private init(
        missing reason: SharedMissReason, _ reply: SharedReply,
        _ circumstances: SharedCircumstances
    ) {
        if reply.isNotStored {
            self = .miss(.hitForMiss)
            return
        }
        switch reply.lease {
        // One who may not publish would make others wait for nothing, but does hold the lease.
        case .taken: self = circumstances.isFollowing ? .lead : .miss(reason)
        case .notAsked: self = .miss(reason)
        case .another:
            guard circumstances.mayWait else {
                self = .miss(reason)
                return
            }
            self =
                circumstances.waited < circumstances.patience
                ? .wait(min(circumstances.pause, circumstances.patience - circumstances.waited))
                : .miss(.waitedTooLong)
        }
    }
}
