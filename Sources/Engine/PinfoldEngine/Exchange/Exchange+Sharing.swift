import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Followers read the response that they wait for while it arrives, if it is being stored.
extension Exchange {
    /// Lets those who wait read the response while it arrives, if it is being stored; but only
    /// whole content can be translated.
    func shareWithFollowers() {
        guard origin?.passesUnchanged ?? true, let queue = collapsing.followers,
            let ticket = storing.ticket, let response = ticket.share(), let body = ticket.shared
        else { return }
        share(body, of: response)
        // It has been waiting for the client.
        if let client, !client.isFlushed, serving.reader == nil, readsApart() { upstream?.resume() }
        let remote = queue.remote
        queue.remote = []
        for follower in remote {
            environment.shared.mailboxes[follower.place].post(.arriving(follower.token, response))
        }
        let loop = environment.loop
        guard !queue.waiting.isEmpty else { return }
        loop.afterTurn { Self.share(response, of: ticket, with: queue, on: loop) }
    }

    func share(_ body: BodyUnderWay, of response: CachedResponse) {
        if storing.shared == nil { metrics.adjust(.cacheBodiesUnderWay, by: 1) }
        storing.share(body, of: response)
    }

    /// The body is complete, or will not be.
    func endSharing() -> BodyUnderWay? {
        guard let body = storing.endSharing() else { return nil }
        metrics.adjust(.cacheBodiesUnderWay, by: -1)
        return body
    }

    /// A portion in each turn. Those who must wait for the end stay in the queue.
    private static func share(
        _ response: CachedResponse, of ticket: StoreTicket, with queue: FollowerQueue,
        on loop: EventLoop
    ) {
        // Others may have come in the meantime.
        guard ticket.isCurrent else { return }
        var stay: [Exchange] = []
        for _ in 0..<EventLoop.portion {
            guard let follower = queue.waiting.popFirst() else { break }
            if !follower.responseArrives(response) { stay.append(follower) }
        }
        let isDone = queue.waiting.isEmpty
        for follower in stay { queue.waiting.append(follower) }
        if !isDone { loop.afterTurn { share(response, of: ticket, with: queue, on: loop) } }
    }

    /// The response that it waits for begins to arrive.
    /// - Returns: `false` if it goes on waiting for the end.
    func responseArrives(_ response: CachedResponse) -> Bool {
        guard case .waiting = state.step, let origin,
            origin.policy === environment.policy, origin.passesUnchanged
        else { return false }
        collapsing.endWait(patience: nil, isAnswered: true)
        environment.loop.setDeadline(self, after: nil)
        guard goesOn(after: .flightEnded) else { return true }
        if let hit = hit(on: response, origin) {
            serveCollapsed(response, hit)
        } else {
            // Unless it waits for its own variant, it needs the origin in any case.
            regroup(for: response, origin)
            lookUp(at: origin)
        }
        return true
    }

    /// The same, of an exchange of another environment, which tells it nothing more. If it may not
    /// read it, because another configuration is in force here, it goes to its server.
    func remoteResponseArrives(_ response: CachedResponse) {
        guard !responseArrives(response), case .followsRemotely = collapsing.role else { return }
        collapsing.endWait(patience: nil, isAnswered: false)
        environment.loop.setDeadline(self, after: nil)
        if goesOn(after: .flightEnded) { forward() }
    }

    /// How the response answers the request without its origin; `nil` if it does not.
    private func hit(on response: CachedResponse, _ origin: Origin) -> CacheHit? {
        guard answers(response, origin) else { return nil }
        let decision = withRequestHead { bytes in
            CacheDecision.decide(
                for: request, in: bytes, stored: response.metadata,
                storedHead: response.head.octets, now: environment.wallSeconds,
                options: origin.caching.options)
        }
        guard case .hit(let hit) = decision else { return nil }
        // The end of a body of unknown length is unknown, and what comes much later is asked for.
        guard request.fields.contains(.range), case .arriving(let body) = response.body else {
            return hit
        }
        guard case .partial(let first, _, _) = hit.form, first <= body.count + Self.nearbyBytes
        else { return nil }
        return hit
    }

    /// A range is waited for if it begins at most this far behind what has arrived.
    private static let nearbyBytes: UInt64 = 1 << 20
}
