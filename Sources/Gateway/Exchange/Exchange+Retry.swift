import HTTPCore
import Metrics

// Sending a request another time: what `RetryPolicy` decides, counted and logged.
extension Exchange {
    /// Whether the request is sent another time; that is counted then, and `sendAgain` follows.
    func mayRetry(after ending: RetryPolicy.Ending?) -> Bool {
        guard let ending, let reason = retryPolicy.reason(after: ending) else { return false }
        retries.insert(reason)
        worker.metrics.add(reason.counter)
        debug("sent again", ["reason": "\(reason.token)"])
        return true
    }

    /// Asks for a connection to send the request on another time.
    func sendAgain() {
        client?.pauseRequestBody()
        forward(fresh: RetryPolicy.needsFreshConnection(retries))
    }

    private var retryPolicy: RetryPolicy {
        RetryPolicy(
            isIdempotent: request.method.isIdempotent, content: contentToRepeat,
            responseHeadSent: responseHeadSent,
            isWanted: clientReference != nil || revalidated != nil, reasons: retries)
    }

    private var contentToRepeat: RetryPolicy.Content {
        if !hasRequestBody { return .none }
        // Of content that has ended only its bytes could be sent again: not its last chunk.
        let isKept = replayableBody != nil || gathered != nil
        if requestBodyEnded { return .ended(isKept: isKept) }
        return sentBodyBytes == 0 ? .untouched : .partlySent
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
