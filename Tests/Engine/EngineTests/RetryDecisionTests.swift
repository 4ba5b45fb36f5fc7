import Testing

@testable import PinfoldEngine

@Suite("Sending a request again")
struct RetryDecisionTests {
    private static let contents: [RetryDecision.Content] = [
        .none, .untouched, .partlySent, .ended(isKept: true), .ended(isKept: false),
    ]
    private static let endings = RetryDecision.Ending.allCases

    /// Every policy there can be: 2 x 2 x 5 x 64.
    private static let all: [RetryDecision] = [true, false].flatMap { isIdempotent in
        [true, false].flatMap { wasReused in
            contents.flatMap { content in
                (0..<(1 << RetryReason.allCases.count)).map {
                    RetryDecision(
                        isIdempotent: isIdempotent, wasReused: wasReused, content: content,
                        reasons: reasons($0))
                }
            }
        }
    }

    /// Those whose bits are set, each as often as it may be.
    private static func reasons(_ bits: Int) -> RetryReasons {
        var reasons = RetryReasons()
        for reason in RetryReason.allCases where bits & 1 << reason.rawValue != 0 {
            while !reasons.contains(reason) { reasons.insert(reason) }
        }
        return reasons
    }

    private func each(_ body: (RetryDecision, RetryDecision.Ending, RetryReason?) -> Void) {
        for policy in Self.all {
            for ending in Self.endings { body(policy, ending, policy.reason(after: ending)) }
        }
    }

    @Test func `only content that can be sent in full is sent again`() {
        each { policy, _, reason in
            switch policy.content {
            case .partlySent, .ended(isKept: false): #expect(reason == nil)
            case .none, .untouched, .ended(isKept: true): break
            }
        }
    }

    /// RFC 9110 §9.2.2, and RFC 9112 §9.3.1: a connection that was not used before did not die of
    /// having been idle, and what has begun to answer has acted on the request.
    @Test func `after a reused connection's death only idempotent requests are sent again`() {
        each { policy, ending, reason in
            guard case .connectionDied(let responseStarted) = ending else { return }
            let isAllowed =
                policy.isIdempotent && policy.wasReused && !responseStarted
                && policy.content.isAvailable
                && !policy.reasons.contains(.connectionDied)
            #expect(reason == (isAllowed ? .connectionDied : nil))
        }
    }

    @Test func `a reload is no attempt`() {
        each { policy, ending, reason in
            guard ending == .superseded else { return }
            let isAllowed = policy.content.isAvailable
            #expect(reason == (isAllowed ? .superseded : nil))
        }
    }

    @Test func `every other reason counts once`() {
        each { policy, _, reason in
            guard let reason, reason != .superseded else { return }
            #expect(!policy.reasons.contains(reason))
            var next = policy
            next.reasons.insert(reason)
            let mayBeAgain = reason == .notProcessed || reason == .otherServer
            #expect(next.reasons.contains(reason) == !mayBeAgain)
        }
    }

    /// However attempts end, reloads apart, there are at most as many more as there are reasons.
    @Test func `attempts are limited`() {
        for policy in Self.all {
            var policy = policy
            var sent = 0
            var isOver = false
            while !isOver {
                isOver = true
                for ending in Self.endings where ending != .superseded {
                    guard let reason = policy.reason(after: ending) else { continue }
                    policy.reasons.insert(reason)
                    sent += 1
                    isOver = false
                }
            }
            let several = RetryReasons.notProcessedLimit + RetryReasons.otherServerLimit
            #expect(sent < RetryReason.allCases.count + Int(several) - 2)
        }
    }

    /// Nothing was sent to a server that could not be connected to.
    @Test func `another server gets what the first did not, or what may be sent twice`() {
        each { policy, ending, reason in
            guard case .serverFailed(let wasSent, let responseStarted) = ending else { return }
            let isAllowed =
                policy.content.isAvailable && !responseStarted
                && (policy.isIdempotent || !wasSent) && !policy.reasons.contains(.otherServer)
            #expect(reason == (isAllowed ? .otherServer : nil))
        }
    }

    @Test(
        arguments: [
            (RetryDecision.Ending.validationFailed, RetryReason.validationFailed),
            (.storedBodyUnreadable, .storedBodyUnreadable),
        ])
    func `a stored response that fails leads to another attempt, once`(
        _ ending: RetryDecision.Ending, _ reason: RetryReason
    ) {
        var policy = RetryDecision(
            isIdempotent: true, wasReused: false, content: .none, reasons: [])
        #expect(policy.reason(after: ending) == reason)
        // Safe or not: the request has not been sent, or only in a form that asks about what is
        // stored.
        policy.isIdempotent = false
        #expect(policy.reason(after: ending) == reason)
        policy.reasons.insert(reason)
        #expect(policy.reason(after: ending) == nil)
    }

    @Test func `after a death the next connection is a fresh one`() {
        #expect(!RetryDecision.needsFreshConnection([]))
        #expect(!RetryDecision.needsFreshConnection(RetryReasons(.superseded)))
        #expect(RetryDecision.needsFreshConnection(RetryReasons(.connectionDied)))
        var both = RetryReasons(.connectionDied)
        both.insert(.superseded)
        #expect(RetryDecision.needsFreshConnection(both))
    }

    @Test(
        arguments: [
            (ExchangeError.server(.upstreamClosed), true), (.upstreamReset(.connectionReset), true),
            (.tlsFailed(.truncated), true), (.server(.firstByteTimeout), false),
            (.server(.upstreamBodyTimeout), false), (.connectTimeout, false), (.tlsTimeout, false),
            (.server(.upstreamSpokeUnasked), false), (.response(.malformedVersion), false),
        ])
    func `a closed, reset or truncated connection has died, a slow one has not`(
        _ fault: ExchangeError, _ isDeath: Bool
    ) {
        for started in [true, false] {
            let ending = RetryDecision.Ending(fault, responseStarted: started)
            #expect(ending == (isDeath ? .connectionDied(responseStarted: started) : nil))
        }
    }

    @Test func `a server that breaks the rules of HTTP/2 is asked again in HTTP/1`() {
        for started in [true, false] {
            let ending = RetryDecision.Ending(
                .upstreamHTTP2(.badFrameLength), responseStarted: started)
            #expect(ending == .protocolFailed(responseStarted: started))
        }
        var policy = RetryDecision(
            isIdempotent: true, wasReused: false, content: .none, reasons: [])
        #expect(policy.reason(after: .protocolFailed(responseStarted: false)) == .connectionDied)
        #expect(policy.reason(after: .protocolFailed(responseStarted: true)) == nil)
        policy.isIdempotent = false
        #expect(policy.reason(after: .protocolFailed(responseStarted: false)) == nil)
    }

    @Test func `what the server has not processed is sent again, whatever it is`() {
        let ending = RetryDecision.Ending(
            .server(.upstreamNotProcessed), responseStarted: false)
        #expect(ending == .notProcessed)
        var policy = RetryDecision(
            isIdempotent: false, wasReused: false, content: .ended(isKept: true), reasons: [])
        #expect(policy.reason(after: .notProcessed) == .notProcessed)
        policy.content = .partlySent
        #expect(policy.reason(after: .notProcessed) == nil)
        policy.content = .none
        for _ in 0..<RetryReasons.notProcessedLimit {
            #expect(policy.reason(after: .notProcessed) == .notProcessed)
            policy.reasons.insert(.notProcessed)
        }
        #expect(policy.reason(after: .notProcessed) == nil)
    }

    @Test func `a reload is an ending of its own`() {
        let ending = RetryDecision.Ending(.gateway(.superseded), responseStarted: false)
        #expect(ending == .superseded)
    }
}
