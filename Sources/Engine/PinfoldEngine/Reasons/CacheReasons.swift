import CachePolicy

/// What the documentation says of a reason that is no fault.
package struct CacheReasonEntry: Sendable, Hashable {
    package var token: String
    /// One sentence without full stop.
    package var meaning: String
    /// What changes it, if that is wanted.
    package var remedy: String

    init(_ token: StaticString, _ meaning: String, _ remedy: String) {
        self.token = "\(token)"
        self.meaning = meaning
        self.remedy = remedy
    }
}

extension NotStoredReason {
    /// Everything that is said of it.
    package var entry: CacheReasonEntry {
        let (meaning, remedy) = texts
        return CacheReasonEntry(token, meaning, remedy)
    }

    private var texts: (meaning: String, remedy: String) {
        switch self {
        case .method: ("the request's method is not GET", "")
        case .requestNoStore: ("the request said `no-store`", "Correct the client.")
        case .responseNoStore: ("the response said `no-store`", "Change the server's field.")
        case .responsePrivate: ("the response said `private`", "Change the server's field.")
        case .authorization:
            (
                "the request had Authorization and the response does not allow sharing",
                "Have the server send `public` or `s-maxage` if all users may see it."
            )
        case .notFinal: ("the response is an interim one, or 101", "")
        case .partialContent: ("the response is a part (206)", "")
        case .notModified: ("304 updates what is stored and is not stored itself", "")
        case .statusNotUnderstood:
            ("`must-understand`, and the status is not known here", "")
        case .aboutThisRequestOnly:
            ("the status is about this request or connection only (412, 416, 429 …)", "")
        case .notCacheableByDefault:
            (
                "neither the status nor any field makes the response cacheable",
                "Have the server send `max-age` or `Expires`."
            )
        case .varyAny: ("`Vary: *`", "Have the server name the fields it looks at.")
        case .varyNames: ("Vary names more fields than the limit", "Have the server name fewer.")
        case .varyValues:
            ("the values of the fields that Vary names are longer than the limit", "")
        case .setCookie:
            (
                "the response sets a cookie and has no sign that it is meant to be shared",
                "Have the server send `public`, or no Set-Cookie."
            )
        case .uselessWithoutValidator:
            (
                "it would be stale at once, and has nothing to validate it with",
                "Have the server send `max-age`, ETag or Last-Modified."
            )
        case .malformedCacheControl:
            ("Cache-Control cannot be read, so what it forbids is unknown", "Correct the server.")
        case .tooLarge: ("the body is larger than allowed", "Raise `cache.maximumObject`.")
        case .cookie:
            (
                "the request had Cookie, and the response has no explicit lifetime",
                "Have the server send `max-age` if all users may see it."
            )
        case .bypassField:
            (
                "the request had one of the fields of `cache.bypassFields`",
                "Add the field to the entry's `cache: { key: […] }` if it selects the response."
            )
        case .requestContent: ("the request had a body, which is not part of the key", "")
        case .keyTooLong: ("the URL is too long for a key", "")
        case .disabled:
            (
                "the cache is off, here or as a whole",
                "`cache.enabled`, and `cache: { store: true }` of the host's entry."
            )
        case .incomplete: ("the response ended before it was complete, or may have", "")
        case .storeUnavailable:
            (
                "the cache could not take it: busy, full, or its disk is off",
                "Look at the metrics of the cache's disk and queue."
            )
        case .invalidated:
            (
                "what is stored for the URL was invalidated or replaced while the server answered",
                ""
            )
        case .duplicate:
            (
                "another response to the same request, for which this one waited in vain, "
                    + "is stored instead",
                "Look at why the server is so slow, or raise `timeouts.collapse`."
            )
        }
    }
}

extension ForwardReason {
    /// Everything that is said of it.
    package var entry: CacheReasonEntry {
        let (meaning, remedy) = texts
        return CacheReasonEntry(token, meaning, remedy)
    }

    private var texts: (meaning: String, remedy: String) {
        switch self {
        case .uriMiss: ("nothing is stored for the URL", "")
        case .varyMiss:
            (
                "what is stored is for other values of the fields that Vary names",
                "Have the server name fewer fields in Vary."
            )
        case .method: ("the method is neither GET nor HEAD", "")
        case .bypass:
            (
                "the cache is off, here or as a whole",
                "`cache.enabled`, and `cache: { store: true }` of the host's entry."
            )
        case .policy:
            ("what is stored was obtained under another trust or another configuration", "")
        case .bypassField:
            (
                "the request has one of the fields of `cache.bypassFields`",
                "Add the field to the entry's `cache: { key: […] }` if it selects the response."
            )
        case .requestContent: ("the request has a body, which is not part of the key", "")
        case .keyTooLong: ("the URL is too long for a key", "")
        case .upgrade: ("the request wants to change the protocol", "")
        case .requestNoCache: ("the request said `no-cache`", "Correct the client.")
        case .requestNoStore: ("the request said `no-store`", "Correct the client.")
        case .requestMaxAge: ("what is stored is older than the request's `max-age`", "")
        case .requestMinFresh:
            ("what is stored is not fresh for as long as the request's `min-fresh`", "")
        case .requestPrecondition:
            ("If-Match or If-Unmodified-Since is for the server to decide", "")
        case .authorization:
            (
                "the request has Authorization, and what is stored is not marked as shared",
                "Have the server send `public` or `s-maxage` if all users may see it."
            )
        case .stale: ("what is stored is stale", "Have the server send a longer `max-age`.")
        case .responseNoCache:
            ("what is stored must be validated at each use (`no-cache`)", "")
        case .clock:
            ("what is stored was received after now: the clock went back", "Check the clock.")
        case .damaged:
            ("what is stored cannot be read", "Look at the operational log and at the disk.")
        }
    }
}

extension StaleUse {
    /// Everything that is said of it.
    package var entry: CacheReasonEntry {
        switch self {
        case .maxStale:
            CacheReasonEntry(token, "the request's `max-stale` allows it", "")
        case .whileRevalidating:
            CacheReasonEntry(
                token, "`stale-while-revalidate`: the server is asked in the background", "")
        case .staleIfError:
            CacheReasonEntry(token, "`stale-if-error`: the server failed", "")
        case .unreachable:
            CacheReasonEntry(token, "the server cannot be reached", "")
        }
    }
}
