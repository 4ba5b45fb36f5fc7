import HTTPCore
import Locking
import PinfoldConfiguration
import PinfoldMetrics

/// What is known about a parent, for all workers: whether it is used, and what is counted.
package final class ParentStanding: Sendable {
    /// Its name in the configuration.
    package let name: String
    /// Its name in UTF-8, for the access log.
    let nameBytes: [UInt8]
    /// What it is the standing of: another proxy under the same name begins anew.
    let parent: ParentConfiguration
    private let health: Locked<ParentHealth>
    private let counts: EventCounts<ParentEvent>
    private let failures: EventCounts<ParentFailureReason>

    /// - Parameter now: of the monotonic clock, in milliseconds; likewise below.
    init(
        _ parent: ParentConfiguration, _ counts: EventCounts<ParentEvent>,
        _ failures: EventCounts<ParentFailureReason>, at now: Int64
    ) {
        name = parent.name
        nameBytes = Array(parent.name.utf8)
        self.parent = parent
        self.counts = counts
        self.failures = failures
        health = Locked(ParentHealth(interval: parent.probeMilliseconds, at: now))
    }

    /// Whether it is passed over while there are other ways.
    package var isDown: Bool { health.withLock { $0.isDown } }

    func count(_ event: ParentEvent) { counts.add(to: event) }

    /// It has answered something. Returns whether it had been down.
    func answered(at now: Int64) -> Bool { health.withLock { $0.answered(at: now) } }

    /// A request could not be sent through it. Returns whether it is down since this.
    func failed(_ error: ProxyError, at now: Int64) -> Bool {
        failures.add(to: ParentFailureReason(error))
        switch error.evidence {
        case .answered:
            _ = health.withLock { $0.answered(at: now) }
            return false
        case .suspicious:
            health.withLock { $0.suspect() }
            return false
        case .failed: return health.withLock { $0.failed(at: now) }
        case .none: return false
        }
    }

    /// Whether it is to be asked now whether it answers; then ``probed(_:at:)`` must follow.
    func takeProbe(at now: Int64) -> Bool { health.withLock { $0.takeProbe(at: now) } }

    /// Returns whether it has come up or gone down.
    func probed(_ hasAnswered: Bool, at now: Int64) -> Bool {
        if !hasAnswered { failures.add(to: .probe) }
        return health.withLock { $0.probed(hasAnswered, at: now) }
    }
}

extension ProxyError {
    /// What an error says about the health of the proxy.
    enum Evidence { case answered, suspicious, failed, none }

    var evidence: Evidence {
        switch self {
        case .unreachable, .tlsFailed, .ownAddress: .failed
        // The server that was asked for may be the reason.
        case .timeout, .closed, .badAnswer, .tooManyInterim, .spokeUnasked, .socks(.malformed),
            .socks(.notSOCKS5), .socks(.methodNotOffered):
            .suspicious
        case .refused, .loop, .socks: .answered
        case .nameUnchecked: .none
        }
    }

    /// Whether the request may go by the next way: nothing of it has been sent, and the refusal is
    /// not a decision that another way would evade.
    var allowsNextWay: Bool {
        switch self {
        case .unreachable(let fault): !fault.isOwn
        case .tlsFailed, .timeout, .closed, .badAnswer, .tooManyInterim, .nameUnchecked,
            .ownAddress:
            true
        case .spokeUnasked, .loop: false
        case .refused(let answer): answer.status >= 500
        case .socks(let error):
            switch error {
            case .refused(let refusal): !refusal.isByRule
            case .notSOCKS5, .methodNotOffered, .malformed: true
            case .authenticationRequired, .authenticationFailed: false
            }
        }
    }
}

extension ParentFailureReason {
    /// What a failure is counted as.
    init(_ error: ProxyError) {
        if case .ownAddress = error {
            self = .unreachable
            return
        }
        switch error.reason {
        case .unreachable: self = .unreachable
        case .tlsFailed: self = .tls
        case .timeout: self = .timeout
        case .refused, .loop: self = .refused
        case .authenticationRequired: self = .authentication
        case .badResponse: self = .badResponse
        case .nameUnchecked: self = .nameUnchecked
        }
    }
}
