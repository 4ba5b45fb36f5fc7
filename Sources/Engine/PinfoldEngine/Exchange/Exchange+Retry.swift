import HTTPCore
import PinfoldMetrics

// Sending a request another time: what `RetryDecision` decides, counted and logged.
extension Exchange {
    /// Sends the request on another time.
    func sendAgain(_ reason: RetryReason) {
        environment.metrics.add(reason.counter)
        debug("sent again", ["reason": "\(reason.token)"])
        guard reason != .storedBodyUnreadable else { return askInsteadOfStored() }
        client?.pauseContent()
        forward(fresh: RetryDecision.needsFreshConnection(state.retries))
    }

    /// What is stored cannot be read: it is as if it were not there.
    private func askInsteadOfStored() {
        serving = nil
        stored = nil
        validation = nil
        status = 0
        // A hit in memory needed none.
        if key == nil, let origin { makeKey(origin) }
        missed(.uriMiss)
    }
}

extension ExchangeState<any UpstreamStream>.FailureInfo.Cause {
    /// What a fault on the way to the server means for sending the request another time.
    init(_ fault: ExchangeError, responseStarted: Bool) {
        switch fault {
        case .superseded: self = .superseded
        case .upstreamClosed, .upstreamReset, .upstreamUnanswered, .tlsFailed(.truncated),
            .tlsFailed(.transport), .tlsFailed(.unanswered):
            self = .connectionDied(responseStarted: responseStarted)
        default: self = .other
        }
    }
}

extension RetryReason {
    /// What it is counted as.
    fileprivate var counter: WorkerCounter {
        switch self {
        case .connectionDied: .retriesConnectionDied
        case .superseded: .retriesSuperseded
        case .validationFailed: .retriesValidationFailed
        case .storedBodyUnreadable: .retriesStoredBodyUnreadable
        }
    }

    /// Its name in the log.
    fileprivate var token: StaticString {
        switch self {
        case .connectionDied: "connection-died"
        case .superseded: "superseded"
        case .validationFailed: "validation-failed"
        case .storedBodyUnreadable: "stored-body-unreadable"
        }
    }
}
