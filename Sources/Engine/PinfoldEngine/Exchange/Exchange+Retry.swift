import HTTPCore
import PinfoldMetrics

// Sending a request again: carries out, counts and logs what `RetryDecision` decides.
extension Exchange {
    /// Sends the request again.
    func sendAgain(_ reason: RetryReason) {
        endAttempt()
        environment.metrics.add(reason.counter)
        debug("sent again", ["reason": "\(reason.token)"])
        guard reason != .storedBodyUnreadable else { return requestInsteadOfStored() }
        client?.pauseContent()
        forward(
            fresh: RetryDecision.needsFreshConnection(state.retries),
            isSuperseded: reason == .superseded)
    }

    /// The stored response cannot be read, and is treated as absent.
    private func requestInsteadOfStored() {
        serving.endReading()
        caching.forgetStored()
        report.headWithdrawn()
        // A hit in memory needs no key.
        if caching.key == nil, let origin { makeKey(origin) }
        missed(.uriMiss)
    }
}

extension RetryDecision.Ending {
    /// The attempt that ended with an error on the way to the server; `nil` if sending the request
    /// again does not help.
    package init?(_ fault: ExchangeError, responseStarted: Bool) {
        switch fault {
        case .gateway(.superseded): self = .superseded
        case .server(.upstreamNotProcessed): self = .notProcessed
        case .upstreamHTTP2: self = .protocolFailed(responseStarted: responseStarted)
        case .server(.upstreamClosed), .upstreamReset, .upstreamUnanswered, .tlsFailed(.truncated),
            .tlsFailed(.transport), .tlsFailed(.unanswered):
            self = .connectionDied(responseStarted: responseStarted)
        default: return nil
        }
    }
}

extension RetryReason {
    /// The counter for it.
    fileprivate var counter: WorkerCounter {
        switch self {
        case .connectionDied: .retriesConnectionDied
        case .notProcessed: .retriesNotProcessed
        case .superseded: .retriesSuperseded
        case .validationFailed: .retriesValidationFailed
        case .storedBodyUnreadable: .retriesStoredBodyUnreadable
        case .otherServer: .retriesOtherServer
        }
    }

    /// Its name in the log.
    fileprivate var token: StaticString {
        switch self {
        case .connectionDied: "connection-died"
        case .notProcessed: "not-processed"
        case .superseded: "superseded"
        case .validationFailed: "validation-failed"
        case .storedBodyUnreadable: "stored-body-unreadable"
        case .otherServer: "other-server"
        }
    }
}
