import CachePolicy

/// The documentation of a reason that is not an error.
package struct CacheReasonEntry: Sendable, Hashable {
    package var token: String
    /// One sentence without a full stop.
    package var meaning: String
    /// How to change it, if that is wanted; empty if there is no way.
    package var remedy: String

    init(_ token: StaticString, _ meaning: String, _ remedy: String) {
        self.token = "\(token)"
        self.meaning = meaning
        self.remedy = remedy
    }
}

extension NotStoredReason {
    /// The token, meaning and remedy.
    package var entry: CacheReasonEntry {
        let (meaning, remedy) = texts
        return CacheReasonEntry(token, meaning, remedy)
    }

    private var texts: (meaning: String, remedy: String) {
        switch self {
        case .method: ("the request's method is neither GET nor QUERY", "")
        case .requestNoStore: ("the request had `no-store`", "Correct the client.")
        case .responseNoStore: ("the response has `no-store`", "Change the server's field.")
        case .responsePrivate: ("the response has `private`", "Change the server's field.")
        case .authorization:
            (
                "the request had Authorization and the response does not allow sharing",
                "Have the server send `public` or `s-maxage` if all users may see the response."
            )
        case .notFinal: ("the response is interim, or 101", "")
        case .partialContent:
            (
                "the response is partial (206), and its part is unknown, or cannot be combined "
                    + "with what is stored", ""
            )
        case .notModified: ("a 304 updates the stored response and is not stored itself", "")
        case .statusNotUnderstood:
            ("the response has `must-understand`, and its status is unknown to the gateway", "")
        case .aboutThisRequestOnly:
            ("the status applies to this request or connection only (412, 416, 429 …)", "")
        case .notCacheableByDefault:
            (
                "neither the status nor any field makes the response cacheable",
                "Have the server send `max-age` or `Expires`."
            )
        case .varyAny:
            ("the response has `Vary: *`", "Have the server name the fields that it uses.")
        case .varyNames: ("Vary names more fields than the limit", "Have the server name fewer.")
        case .varyValues:
            ("the values of the fields that Vary names are longer than the limit", "")
        case .setCookie:
            (
                "the response sets a cookie and is not marked as shareable",
                "Have the server send `public`, or no Set-Cookie."
            )
        case .uselessWithoutValidator:
            (
                "the response would be stale immediately and has no validator",
                "Have the server send `max-age`, ETag or Last-Modified."
            )
        case .malformedCacheControl:
            ("Cache-Control is malformed, so it is unknown what it forbids", "Correct the server.")
        case .tooLarge: ("the body is larger than allowed", "Raise `cache.maximumObject`.")
        case .cookie:
            (
                "the request had Cookie, and the response has no explicit lifetime",
                "Have the server send `max-age` if all users may see the response."
            )
        case .bypassField:
            (
                "the request had one of the fields of `cache.bypassFields`",
                "Add the field to the entry's `cache: { key: […] }` if it selects the response."
            )
        case .requestContent: ("the request had content that is not part of the key", "")
        case .keyTooLong: ("the URL is too long for a key", "")
        case .disabled:
            (
                "the cache is disabled, for this host or altogether",
                "Set `cache.enabled`, and `cache: { store: true }` in the host's entry."
            )
        case .incomplete: ("the response was incomplete, or may have been", "")
        case .storeUnavailable:
            (
                "the cache could not accept it: it is busy or full, or its disk is disabled",
                "Check the metrics of the cache's disk and queue."
            )
        case .invalidated:
            (
                "the stored responses for the URL were invalidated or replaced while the server "
                    + "responded",
                ""
            )
        case .duplicate:
            (
                "another response to the same request is being stored; this request had stopped "
                    + "waiting for it, or had not waited because the responses before could not be "
                    + "shared",
                "If there are many, find out why the server is so slow, or raise "
                    + "`timeouts.collapse`."
            )
        }
    }
}

extension ForwardReason {
    /// The token, meaning and remedy.
    package var entry: CacheReasonEntry {
        let (meaning, remedy) = texts
        return CacheReasonEntry(token, meaning, remedy)
    }

    private var texts: (meaning: String, remedy: String) {
        switch self {
        case .uriMiss: ("nothing is stored for the URL", "")
        case .varyMiss:
            (
                "the stored responses are for other values of the fields that Vary names",
                "Have the server name fewer fields in Vary."
            )
        case .method: ("the method is neither GET, HEAD nor QUERY", "")
        case .bypass:
            (
                "the cache is disabled, for this host or altogether",
                "Set `cache.enabled`, and `cache: { store: true }` in the host's entry."
            )
        case .policy:
            (
                "the stored response was obtained under different trust settings or another "
                    + "configuration", ""
            )
        case .bypassField:
            (
                "the request has one of the fields of `cache.bypassFields`",
                "Add the field to the entry's `cache: { key: […] }` if it selects the response."
            )
        case .requestContent: ("the request has content that is not part of the key", "")
        case .keyTooLong: ("the URL is too long for a key", "")
        case .upgrade: ("the request asks to switch protocols", "")
        case .requestNoCache: ("the request has `no-cache`", "Correct the client.")
        case .requestNoStore: ("the request has `no-store`", "Correct the client.")
        case .requestMaxAge: ("the stored response is older than the request's `max-age`", "")
        case .requestMinFresh:
            ("the stored response does not stay fresh for as long as the request's `min-fresh`", "")
        case .requestPrecondition:
            ("only the server can evaluate If-Match or If-Unmodified-Since", "")
        case .authorization:
            (
                "the request has Authorization, and the stored response is not marked as shareable",
                "Have the server send `public` or `s-maxage` if all users may see the response."
            )
        case .stale: ("the stored response is stale", "Have the server send a longer `max-age`.")
        case .responseNoCache:
            ("the stored response must be validated before each use (`no-cache`)", "")
        case .clock:
            (
                "the stored response was received in the future: the clock was set back",
                "Check the clock."
            )
        case .damaged:
            ("the stored response cannot be read", "Check the operational log and the disk.")
        case .partial:
            ("parts of the response are stored, but not all that the request asks for", "")
        case .coding:
            (
                "the stored response is compressed in a way that the client does not accept, and "
                    + "could not be decompressed, or would be too large",
                "Have the server send content as clients accept it, and `Vary: Accept-Encoding`."
            )
        }
    }
}

extension StaleUse {
    /// The token, meaning and remedy.
    package var entry: CacheReasonEntry {
        switch self {
        case .maxStale:
            CacheReasonEntry(token, "the request's `max-stale` allows it", "")
        case .whileRevalidating:
            CacheReasonEntry(
                token,
                "`stale-while-revalidate` allows it; the response is revalidated in the background",
                "")
        case .staleIfError:
            CacheReasonEntry(token, "`stale-if-error` allows it, because the server failed", "")
        case .unreachable:
            CacheReasonEntry(token, "the server cannot be reached", "")
        case .offline:
            CacheReasonEntry(
                token, "the entry of `hosts` says `offline: true`, so that its server is not asked",
                "")
        }
    }
}
