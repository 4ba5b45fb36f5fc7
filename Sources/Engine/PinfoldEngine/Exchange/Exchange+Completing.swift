import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// A response that breaks off while it is stored is completed, once, by another exchange without a
// client, which asks for the rest (RFC 9111 §3.4): for its client, for others that read it, and for
// the cache, if that is being filled. Those who read what is stored notice nothing but a pause.
extension Exchange {
    /// Has the response completed by another exchange. Returns false if that is not possible, or
    /// nobody would have anything of it.
    func handsOn() -> Bool {
        if storing.parts != nil { return goesOnInParts() }
        if serving.reader?.readsParts ?? false, isResponding { return readsOn() }
        guard case .responding = state.step, request.method == .get, forwarding.rest == nil,
            client != nil || storing.filling != nil || isWanted,
            let origin, origin.policy === environment.policy, origin.passesUnchanged,
            let key = caching.key, let reason = caching.forwardReason,
            let shared = storing.ticket?.share(), let body = storing.ticket?.shared,
            let rest = RestOfResponse(
                of: shared.metadata, storedHead: shared.head.octets, offset: body.count)
        else { return false }
        share(body, of: shared)
        if client != nil, serving.reader == nil, !readsApart() { return false }
        let successor = environment.takeExchange()
        guard successor.prepare(toAskFor: SubstituteRequest(rest: rest), key, reason, for: self)
        else {
            environment.recycle(successor)
            return false
        }
        successor.takeOver(from: self)
        metrics.add(.cacheCompletions)
        handle(.handedOn)
        environment.loop.afterTurn { successor.forward() }
        return true
    }

    private var isResponding: Bool { if case .responding = state.step { true } else { false } }

    /// The client goes on with what is fetched, without the server's response.
    private func readsOn() -> Bool {
        abandonStore()
        handle(.handedOn)
        return true
    }

    /// Its client reads what is fetched in place of what its server sends. That is received no
    /// further, unless others read it.
    func leavesServer() -> Bool { isResponding && !isWanted && readsOn() }

    /// Has the rest of a part fetched for the client.
    private func goesOnInParts() -> Bool {
        guard case .responding = state.step, client != nil,
            serving.reader != nil || readsParts()
        else { return false }
        return readsOn()
    }

    /// Goes on with what the other exchange stores, and for those who wait for it.
    private func takeOver(from other: Exchange) {
        storing = other.storing.handOver()
        // It counts for the client: there is no end of responses that break off.
        if let account = other.forwarding.takeAccount() { forwarding.count(for: account) }
        switch other.collapsing.role {
        case .leads(let hash):
            collapsing = other.collapsing.handOver()
            environment.flights.replace(other, by: self, hash: hash)
        case .alone: collapsing = other.collapsing.handOver()
        default: break
        }
    }

    /// Handles the head of the response to a request for the rest.
    func takeRest(_ bytes: Span<UInt8>) {
        guard goesOn(after: .answered(.passedOn)) else { return }
        switch forwarding.rest?.answer(response, in: bytes) ?? .unusable {
        case .rest: break
        case .whole(let known): forwarding.skip(known)
        case .unusable: endSilently()
        }
    }
}
