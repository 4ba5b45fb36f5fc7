import CachePolicy
import CacheStore
import Clocks
import EventLoop
import HTTPCore

// Revalidation in the background (RFC 5861 §3): an exchange without a client asks the origin about
// a stored response, which is served stale in the meantime.
extension Exchange {
    /// The longest time that a claim lasts if it is not ended.
    private static let claimSeconds: Int64 = 300

    /// Revalidates a stale response that is about to be served, unless that is already in progress
    /// in this or another environment.
    func revalidateInBackground(_ response: CachedResponse, _ view: CacheKeyView) {
        let now = environment.wallSeconds
        guard response.claim(now: now, until: now + Self.claimSeconds) else { return }
        let background = environment.takeExchange()
        guard background.prepare(toRevalidate: response, CacheKey(view), for: self) else {
            response.endClaim(at: now + 1)
            return environment.recycle(background)
        }
        // The client's response is sent first.
        environment.loop.afterTurn { background.askFleetOrForward(about: response) }
    }

    /// Another gateway may have had it confirmed.
    private func askFleetOrForward(about response: CachedResponse) {
        if !asksForFresh(insteadOf: response, because: .stale) { forward() }
    }

    /// Takes the request over from the exchange that serves the response.
    private func prepare(
        toRevalidate response: CachedResponse, _ key: CacheKey, for other: Exchange
    ) -> Bool {
        guard copyRequest(of: other),
            goesOn(
                after: .begin(.init(hasContent: false, isIdempotent: true, hasClient: false)))
        else { return false }
        intake.begin(onBehalfOf: other)
        report.begin(environment.nextExchangeID(), at: Clock.monotonicMicroseconds())
        if let origin = other.origin { forwarding.go(to: origin) }
        let decision = withRequestHead {
            CacheDecision.inBackground(
                response.metadata,
                storedHead: response.head.octets,
                for: request, in: $0)
        }
        var validation: ValidationRequest?
        if case .validate(let request) = decision { validation = request }
        caching.revalidate(response, key, by: validation)
        environment.metrics.add(.cacheBackgroundRevalidations)
        return true
    }

    /// Copies the other exchange's request as GET, without the fields that concern only its client.
    func copyRequest(of other: Exchange) -> Bool {
        let copy = environment.loop.buffers.take(bytes: other.request.length + 16)
        var writer = HeadWriter(copy.writable)
        other.withRequestHead { bytes in
            writer.appendRequestLine(of: other.request, in: bytes, method: "GET")
            writer.appendForwardedFields(
                other.request.fields, of: bytes, omitting: CacheDecision.clientPreferences)
            writer.appendLineEnd()
        }
        guard !writer.overflowed else { return false }
        copy.end = writer.count
        intake.takeHead(in: copy)
        var parser = RequestHeadParser(
            limits: environment.policy.headLimits, carrier: other.request.version.carrier)
        let bytes = copy.readable.octets
        guard let progress = try? parser.parse(bytes, into: &request) else { return false }
        if other.caller.identity != nil { stand(for: other) }
        joinTrace(of: other)
        return progress == .complete(headBytes: copy.count)
    }

    /// The other exchange's client is who asks here, too.
    private func stand(for other: Exchange) {
        caller.stand(for: other.caller)
        if caller.consumedAuthorization { request.fields.countAsPresent(.authorization) }
    }

    /// Allows the next revalidation, but not within the same second: otherwise an unreachable
    /// origin would be asked at every hit.
    func endRevalidation() { caching.revalidated?.endClaim(at: environment.wallSeconds + 1) }
}
