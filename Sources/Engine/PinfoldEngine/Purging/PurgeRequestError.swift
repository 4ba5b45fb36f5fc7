/// Why a request with PURGE is not carried out.
package enum PurgeRequestError: Error, Sendable, Equatable {
    /// The client is in none of the networks of `cache.purge.clients`.
    case clientNotAllowed
    /// It does not present the token.
    case tokenMissing
    /// The token is another one.
    case tokenWrong
    /// It has presented wrong tokens: how long it has to wait, in seconds.
    case tooManyFailures(seconds: Int64)
    /// A field says what it may not say.
    case malformed(field: String, expected: String)
    /// Too many purges wait.
    case busy
    /// The process shuts down, and another one may serve already.
    case draining
    /// The purge could not be recorded, for this reason.
    case failed(String)
    /// What a dry run is to count cannot be read, for this reason.
    case notCounted(String)

    /// The part that is the same for all of a kind.
    package var reason: PurgeReason {
        switch self {
        case .clientNotAllowed: .clientNotAllowed
        case .tokenMissing: .tokenMissing
        case .tokenWrong: .tokenWrong
        case .tooManyFailures: .tooManyFailures
        case .malformed: .malformed
        case .busy: .busy
        case .draining: .draining
        case .failed: .failed
        case .notCounted: .notCounted
        }
    }

    /// One sentence with the details.
    package var explanation: String {
        switch self {
        case .malformed(let field, let expected):
            "the field \(field) is not valid: expected \(expected)"
        case .failed(let cause), .notCounted(let cause): "\(reason.entry.meaning): \(cause)"
        case .clientNotAllowed, .tokenMissing, .tokenWrong, .tooManyFailures, .busy, .draining:
            reason.entry.meaning
        }
    }

    /// After how many seconds another attempt makes sense; `nil` if that does not depend on time.
    var retrySeconds: Int64? {
        switch self {
        case .tooManyFailures(let seconds): seconds
        case .busy, .draining: 1
        case .clientNotAllowed, .tokenMissing, .tokenWrong, .malformed, .failed, .notCounted: nil
        }
    }
}

/// Why a request with PURGE is not carried out, in the order of the documentation.
package enum PurgeReason: UInt8, Sendable, CaseIterable {
    case clientNotAllowed
    case tokenMissing
    case tokenWrong
    case tooManyFailures
    case malformed
    case busy
    case draining
    case failed
    case notCounted

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .clientNotAllowed:
            ReasonEntry(
                "purge-client-not-allowed", .purging, 403, .requestDenied,
                "the client's address is in none of the networks of cache.purge.clients",
                remedy: "Add the client's network to `cache.purge.clients` if it should be allowed "
                    + "to purge. Fields such as X-Forwarded-For do not count; behind a load "
                    + "balancer, use the listener's `proxyProtocol`.")
        case .tokenMissing:
            ReasonEntry(
                "purge-token-missing", .purging, 401, .requestDenied,
                "purging requires the token in cache.purge.tokenFile",
                remedy: "Send it as `Authorization: Bearer TOKEN`, or as `X-Purge-Token: TOKEN` "
                    + "where Authorization says who is asking.")
        case .tokenWrong:
            ReasonEntry(
                "purge-token-wrong", .purging, 401, .requestDenied,
                "the token is not the one in cache.purge.tokenFile",
                remedy: "Send the token in the file. If the file has changed, the log says whether "
                    + "it was read.")
        case .tooManyFailures:
            ReasonEntry(
                "purge-too-many-failures", .purging, 503, .requestDenied,
                "this client's network has presented too many wrong tokens for purging",
                remedy: "Retry-After says when its next token is looked at. Find out which client "
                    + "sends wrong ones.")
        case .malformed:
            ReasonEntry(
                "purge-malformed", .purging, 400, .requestError,
                "a field of the request to purge is not valid",
                remedy: "The reply names the field and what was expected: tags of at most 1024 "
                    + "bytes, at most 256 of them, and `1` or `0` for Soft-Purge and "
                    + "Purge-Dry-Run.")
        case .busy:
            ReasonEntry(
                "purge-busy", .purging, 503, .internalResponse,
                "too many purges are waiting, in total or of this client's network",
                remedy: "Send purges one after the other, or several tags in one request; "
                    + "Retry-After says when to try again.")
        case .draining:
            ReasonEntry(
                "purge-draining", .purging, 503, .internalResponse,
                "the gateway is shutting down, and a process that serves in its place would not "
                    + "learn of the purge",
                remedy: "Send the request again: this connection is closed, and a new one reaches "
                    + "the process that serves. Where both have the cache on disk, either purges.")
        case .failed:
            ReasonEntry(
                "purge-not-recorded", .purging, 500, .internalError,
                "the purge could not be recorded, so that it would not survive a restart",
                remedy: "The message says why: usually the file system of `cache.path` is full or "
                    + "cannot be written. Purge again when that is mended.")
        case .notCounted:
            ReasonEntry(
                "purge-not-counted", .purging, 500, .internalError,
                "what the purge would be about cannot be counted: not all of it can be read",
                remedy: "The message says why: the cache on disk is not open yet, or has failed. "
                    + "Nothing was purged; a purge without Purge-Dry-Run does not need to count.")
        }
    }
}
