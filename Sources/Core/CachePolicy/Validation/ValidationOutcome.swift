import HTTPCore

/// What the origin's response to a validation request means (RFC 9111 §4.3.3).
public enum ValidationOutcome: Sendable, Equatable {
    /// 304 for the stored response: update it (`FreshenedResponse`) and answer from it in this
    /// form.
    case freshen(HitForm)
    /// 304 for a copy that only the client has: forward it; the stored response stays as it is.
    case forwardNotModified
    /// 304 that matches nothing in the request: send the request again without the conditional
    /// fields, and drop the stored response.
    case retryWithoutConditions
    /// Any other response: forward it; `StoreDecision` decides whether it is stored. It makes the
    /// stored response outdated: to be replaced if the new one is stored, to be dropped if not and
    /// `outdatesStored`.
    case replace(outdatesStored: Bool)
    /// A server error in place of which the stored response may be served (RFC 5861 §4).
    case serveStale(CacheHit)

    /// Interprets the response.
    ///
    /// - Parameters:
    ///   - response: the final response to the request that `validation` wrote.
    ///   - responseBytes: its head's bytes.
    ///   - validation: the validation request.
    ///   - stored: the stored response that was validated.
    ///   - storedHead: its head.
    ///   - request: the client's request.
    ///   - requestBytes: its bytes.
    ///   - now: the current second.
    ///   - options: the policy.
    public static func of(
        _ response: ResponseHead, in responseBytes: Span<UInt8>, to validation: ValidationRequest,
        stored: StoredMetadata, storedHead: Span<UInt8>, request: borrowing RequestHead,
        in requestBytes: Span<UInt8>, now: Int64, options: PolicyOptions
    ) -> ValidationOutcome {
        if response.status == 304 {
            let selects = NotModifiedSelection(
                of: response, in: responseBytes, stored: stored, storedHead: storedHead)
            switch selects {
            case .stored: break
            // A 304 without validators can only be about the stored response if only its validators
            // were sent. RFC 9111 §4.3.4 would not accept it even then, but many servers omit
            // validators although RFC 9110 §15.4.5 requires them, and it can have no other meaning.
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

    /// Whether a response with this status means that the stored one is outdated.
    public static func outdatesStored(status: UInt16) -> Bool {
        status < 500 && status != 206 && status != 304
            && !StatusRules.isAboutThisRequestOnly(status)
    }
}

/// Which response a 304 to a validation request is about (RFC 9111 §4.3.4).
enum NotModifiedSelection: Equatable {
    /// The stored response that was validated.
    case stored
    /// Another: its validators are not the stored ones.
    case other
    /// Unknown: it has no validators.
    case unnamed

    init(
        of response: ResponseHead, in bytes: Span<UInt8>, stored: StoredMetadata,
        storedHead: Span<UInt8>
    ) {
        if let tag = response.fields.first(.etag)?.value, !tag.isEmpty {
            // Strong tags must match by strong comparison, weak ones by weak comparison.
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

/// Why the origin gave no useful response. A failed trust evaluation is not one of these: no stored
/// response may hide that.
public enum OriginErrorReason: Sendable, Equatable {
    /// No connection, or it ended or timed out before a response head.
    case unreachable
    /// A response with this status.
    case status(UInt16)
}

extension CacheHit {
    /// A stale response in place of a failure, if something permits it: `stale-if-error` of the
    /// response or the request (RFC 5861 §4) or, if the origin is unreachable, the configuration
    /// (RFC 9111 §4.2.4). Otherwise `nil`, and always if the response forbids stale or unvalidated
    /// use (`must-revalidate`, `proxy-revalidate`, `s-maxage`, `no-cache`), or if the request
    /// requires validation.
    public static func inPlaceOfFailure(
        _ failure: OriginErrorReason, stored: StoredMetadata, storedHead: Span<UInt8>,
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>, now: Int64,
        options: PolicyOptions
    ) -> CacheHit? {
        let requestDirectives = CacheDirectives(request: request.fields, in: requestBytes)
        guard stored.flags.isDisjoint(with: [.neverStale, .noCache]),
            requestDirectives.flags.isDisjoint(with: [.noCache, .noStore]),
            !request.fields.contains(.ifMatch), !request.fields.contains(.ifUnmodifiedSince),
            !request.fields.contains(.authorization)
                || stored.flags.contains(.sharedWithAuthorized)
        else { return nil }
        let age = stored.age(at: now)
        let staleness = -stored.timeToLive(at: now)
        let use: StaleUse
        switch failure {
        case .status(let status) where !StatusRules.isServerError(status): return nil
        case .status, .unreachable:
            let window = max(stored.staleIfErrorSeconds, requestDirectives.staleIfError ?? 0)
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
