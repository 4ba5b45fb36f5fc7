import HTTPCore

/// Whether a response may be stored.
package enum StoreDecision: Sendable, Equatable {
    /// Store it: write the stored head with `StoredHead.write`, and make its metadata.
    case store(Storable)
    /// Do not, and why.
    case doNotStore(NotStoredReason)
}

/// What is known of a response that may be stored, before its head is.
package struct Storable: Sendable, Equatable {
    /// The times to store it with.
    package let times: StoredTimes
    /// Freshness lifetime in seconds.
    package let lifetime: Int64
    /// Where the lifetime comes from.
    package let source: FreshnessSource
    /// The secondary key, made from the request.
    package let vary: VaryKey
    /// The response has a Date, and only one, that is a date.
    let hasDate: Bool
}

/// Why a response is not stored. The same word stands in Cache-Status' `detail`, the log and the
/// metric's label.
package enum NotStoredReason: UInt8, Error, Sendable, CaseIterable {
    /// The request's method is not GET.
    case method
    /// The request said `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore
    /// The response said `no-store` (§5.2.2.5), and not `must-understand` with a status understood.
    case responseNoStore
    /// The response said `private` (§5.2.2.7), also in its qualified form.
    case responsePrivate
    /// The request had Authorization and the response does not allow sharing (§3.5).
    case authorization
    /// An interim response, or 101.
    case notFinal
    /// 206, or a Content-Range outside one: part of a representation.
    case partialContent
    /// 304 updates what is stored, it is not stored.
    case notModified
    /// `must-understand` with a status not understood here (§5.2.2.3).
    case statusNotUnderstood
    /// The status is about this request or connection only (412, 416, 429 …): it must not answer
    /// another.
    case aboutThisRequestOnly
    /// The request had a Cookie, and nothing but a guess says how long the response is fresh.
    case cookie
    /// The request has a field that may change the response and is no part of the key.
    case bypassField
    /// Neither the status nor any field makes it cacheable (§3).
    case notCacheableByDefault
    /// Vary has a `*` (§4.1).
    case varyAny
    /// Vary nominates more names than the limit.
    case varyNames
    /// The request's nominated values are longer than the limit.
    case varyValues
    /// Set-Cookie without a sign that it is meant to be shared.
    case setCookie
    /// Stale on arrival and nothing to validate it with: storing it would serve nobody.
    case uselessWithoutValidator
    /// Cache-Control cannot be read; what it forbids is unknown.
    case malformedCacheControl
    /// The body is known to be longer than the limit.
    case tooLarge
    /// The request had a body that the key says nothing about.
    case requestContent
    /// The key does not fit.
    case keyTooLong
    /// The route or the configuration keeps out of the cache.
    case disabled
    /// The body ended before it was complete.
    case incomplete
    /// The store could not take it (busy, full, off).
    case storeUnavailable
    /// What is stored for the key was invalidated, or replaced, after the request was sent.
    case invalidated
    /// The response to another request for the same is stored in its place.
    case duplicate

    /// One lower-case word or hyphenated words, a token of RFC 9110.
    package var token: StaticString {
        switch self {
        case .method: "method"
        case .requestNoStore: "request-no-store"
        case .responseNoStore: "no-store"
        case .responsePrivate: "private"
        case .authorization: "authorization"
        case .notFinal: "interim"
        case .partialContent: "partial-content"
        case .notModified: "not-modified"
        case .statusNotUnderstood: "status-not-understood"
        case .aboutThisRequestOnly: "this-request-only"
        case .cookie: "request-cookie"
        case .bypassField: "bypass-field"
        case .notCacheableByDefault: "not-cacheable"
        case .varyAny: "vary-any"
        case .varyNames: "vary-names"
        case .varyValues: "vary-values"
        case .setCookie: "set-cookie"
        case .uselessWithoutValidator: "no-validator"
        case .malformedCacheControl: "malformed-cache-control"
        case .tooLarge: "too-large"
        case .requestContent: "request-content"
        case .keyTooLong: "key-too-long"
        case .disabled: "disabled"
        case .incomplete: "incomplete"
        case .storeUnavailable: "store-unavailable"
        case .invalidated: "invalidated"
        case .duplicate: "duplicate"
        }
    }
}
