import HTTPCore

/// What the origin's answer to a validation request means (RFC 9111 §4.3.3).
package enum ValidationOutcome: Sendable, Equatable {
    /// 304 about our copy: update it (`FreshenedResponse`) and answer from it in that form.
    case freshen(HitForm)
    /// 304 about a copy that only the client has: send it on; ours stays as it is.
    case forwardNotModified
    /// 304 that is about nothing we asked for: send the request again without the conditional
    /// fields, and drop the stored response.
    case retryWithoutConditions
    /// Any other answer: send it on; `StoreDecision` says whether it is stored. The stored response
    /// is outdated by it: replaced if stored, to be dropped if not and `outdatesStored`.
    case replace(outdatesStored: Bool)
    /// A server error that the stored response may stand in for (RFC 5861 §4).
    case serveStale(CacheHit)

    /// Reads the answer.
    ///
    /// - Parameters:
    ///   - response: the final response to the request that `validation` wrote.
    ///   - responseBytes: its head's bytes.
    ///   - validation: how the origin was asked.
    ///   - stored: the stored response asked about.
    ///   - storedHead: its head.
    ///   - request: the client's request.
    ///   - requestBytes: its bytes.
    ///   - now: the current second.
    ///   - options: the policy.
    package static func of(
        _ response: ResponseHead, in responseBytes: Span<UInt8>, to validation: Validation,
        stored: StoredMetadata, storedHead: Span<UInt8>, request: borrowing RequestHead,
        in requestBytes: Span<UInt8>, now: Int64, options: PolicyOptions
    ) -> ValidationOutcome {
        if response.status == 304 {
            let selects = NotModifiedSelection(
                of: response, in: responseBytes, stored: stored, storedHead: storedHead)
            switch selects {
            case .stored: break
            // Without any validator of its own a 304 can only be about ours if ours alone were
            // sent. RFC 9111 §4.3.4 would not take it then either, but many servers leave them out
            // although RFC 9110 §15.4.5 asks for them, and there is no other meaning it can have.
            case .unnamed where !validation.includesClientTags: break
            case .unnamed, .other:
                return validation.includesClientTags
                    ? .forwardNotModified : .retryWithoutConditions
            }
            return .freshen(
                HitForm(
                    of: stored, storedHead: storedHead, for: request, in: requestBytes,
                    options: options))
        }
        if StatusRules.isServerError(response.status),
            let hit = CacheHit.inPlaceOfFailure(
                .status(response.status), stored: stored, storedHead: storedHead,
                for: request, in: requestBytes, now: now, options: options)
        {
            return .serveStale(hit)
        }
        return .replace(outdatesStored: outdatesStored(status: response.status))
    }

    /// Whether an answer with the status says that what is stored is no longer right.
    package static func outdatesStored(status: UInt16) -> Bool {
        status < 500 && status != 206 && status != 304
            && !StatusRules.isAboutThisRequestOnly(status)
    }
}

/// Which stored response a 304 is about (RFC 9111 §4.3.4), where one was asked about.
enum NotModifiedSelection: Equatable {
    /// The one asked about.
    case stored
    /// Its validators are not the stored ones.
    case other
    /// It has no validators.
    case unnamed

    init(
        of response: ResponseHead, in bytes: Span<UInt8>, stored: StoredMetadata,
        storedHead: Span<UInt8>
    ) {
        if let tag = response.fields.first(.etag)?.value, !tag.isEmpty {
            // A strong tag must be strongly the same, a weak one weakly.
            let isSame =
                EntityTag.isWeak(tag, in: bytes)
                ? EntityTag.weaklyMatches(tag, in: bytes, stored.entityTag, in: storedHead)
                : EntityTag.stronglyMatches(tag, in: bytes, stored.entityTag, in: storedHead)
            self = isSame && !stored.entityTag.isEmpty ? .stored : .other
        } else if let modified = response.fields.first(.lastModified)?.value {
            let date = bytes.extracting(modified.indices)
            let time = HTTPDate.parse(date, now: stored.times.responseTime)
            self = time != nil && time == stored.lastModifiedTime ? .stored : .other
        } else {
            self = .unnamed
        }
    }
}

/// Why the origin gave no useful answer. A failed trust evaluation is not among these: nothing may
/// stand in for that.
package enum UpstreamFailure: Sendable, Equatable {
    /// No connection, or it ended or timed out before a response head.
    case unreachable
    /// A response with this status.
    case status(UInt16)
}

extension CacheHit {
    /// A stale answer in place of a failure, if anyone allows it: `stale-if-error` of the response
    /// or the request (RFC 5861 §4), or for an unreachable origin the configuration (RFC 9111
    /// §4.2.4). Nil otherwise, and always when the response forbids to be used stale or unvalidated
    /// (`must-revalidate`, `proxy-revalidate`, `s-maxage`, `no-cache`), or when the request asked
    /// for validation.
    package static func inPlaceOfFailure(
        _ failure: UpstreamFailure, stored: StoredMetadata, storedHead: Span<UInt8>,
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>, now: Int64,
        options: PolicyOptions
    ) -> CacheHit? {
        let asked = CacheDirectives(request: request.fields, in: requestBytes)
        guard stored.flags.isDisjoint(with: [.neverStale, .noCache]),
            asked.flags.isDisjoint(with: [.noCache, .noStore]),
            !request.fields.contains(.ifMatch), !request.fields.contains(.ifUnmodifiedSince),
            !request.fields.contains(.authorization)
                || stored.flags.contains(.sharedWithAuthorized)
        else { return nil }
        let age = stored.age(at: now)
        let staleness = age - stored.lifetime
        let use: StaleUse
        switch failure {
        case .status(let status) where !StatusRules.isServerError(status): return nil
        case .status, .unreachable:
            let window = max(stored.staleIfErrorSeconds, asked.staleIfError ?? 0)
            let configured = options.staleWhenUnreachableSeconds
            if window > 0, staleness <= window {
                use = .staleIfError
            } else if failure == .unreachable, configured > 0, staleness <= configured {
                use = .unreachable
            } else {
                return nil
            }
        }
        let form = HitForm(
            of: stored, storedHead: storedHead, for: request, in: requestBytes, options: options)
        return CacheHit(form: form, age: age, timeToLive: -staleness, stale: use)
    }
}
