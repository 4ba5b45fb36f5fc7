import CachePolicy
import CacheStore
import Clocks
import EventLoop
import HTTPCore

// Revalidation in the background (RFC 5861 §3): an exchange without a client, which asks the origin
// about a stored response that is being served stale meanwhile.
extension Exchange {
    /// A claim that is not ended lasts so long at most.
    private static let claimSeconds: Int64 = 300

    /// Asks the origin about a stale response that is about to be served, if nobody does already:
    /// one at a time, of whichever environment.
    func revalidateInBackground(_ response: CachedResponse, _ view: CacheKeyView) {
        let now = environment.wallSeconds
        guard response.claim(now: now, until: now + Self.claimSeconds) else { return }
        let background = environment.takeExchange()
        guard background.prepare(toRevalidate: response, CacheKey(view), for: self) else {
            response.endClaim(at: now + 1)
            return environment.recycle(background)
        }
        // The client's answer goes out first.
        environment.loop.afterTurn { background.forward() }
    }

    /// Takes over what there is to ask from the exchange that serves the response.
    private func prepare(
        toRevalidate response: CachedResponse, _ key: CacheKey, for other: Exchange
    ) -> Bool {
        guard copyRequest(of: other) else { return false }
        handle(
            .begin(.init(hasContent: false, isIdempotent: true, hasClient: false)))
        ingress = nil
        peer = nil
        onBehalfOf = other.peer
        started = Clock.monotonicMicroseconds()
        id = environment.nextExchangeID()
        hasRequestBody = false
        contentHasEnded = true
        origin = other.origin
        self.key = key
        revalidated = response
        stored = response
        forwardReason = .stale
        let decision = withRequestHead {
            CacheDecision.inBackground(
                response.metadata,
                storedHead: response.head.octets,
                for: request, in: $0)
        }
        if case .validate(let validation) = decision { self.validation = validation }
        environment.metrics.add(.cacheBackgroundRevalidations)
        return true
    }

    /// The other exchange's request as GET, without what is about its client only.
    private func copyRequest(of other: Exchange) -> Bool {
        let copy = environment.loop.buffers.take(bytes: other.request.length + 16)
        var writer = HeadWriter(copy.writable)
        other.withRequestHead { bytes in
            writer.appendRequestLine(of: other.request, in: bytes, method: "GET")
            writer.appendForwardedFields(
                other.request.fields, of: bytes, omitting: CacheDecision.clientsOwn)
            writer.appendLineEnd()
        }
        guard !writer.overflowed else { return false }
        copy.end = writer.count
        requestBuffer = copy
        requestHeadStart = 0
        var parser = RequestHeadParser(limits: environment.policy.headLimits)
        let bytes = copy.readable.octets
        guard let progress = try? parser.parse(bytes, into: &request) else { return false }
        return progress == .complete(headBytes: copy.count)
    }

    /// Lets the next one ask: not in the same second, or an origin that is away would be asked at
    /// every hit.
    func endRevalidation() { revalidated?.endClaim(at: environment.wallSeconds + 1) }
}
