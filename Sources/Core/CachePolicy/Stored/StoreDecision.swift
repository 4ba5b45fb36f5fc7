import HTTPCore

/// Whether a response may be stored.
public enum StoreDecision: Sendable, Equatable {
    /// Store it: write the stored head with `StoredHead.write`, and create its metadata.
    case store(Storable)
    /// Do not store it, for this reason.
    case doNotStore(NotStoredReason)
}

/// What is known about a response that may be stored, before its head is stored.
public struct Storable: Sendable, Equatable {
    /// The times to store with it.
    public let times: StoredTimes
    /// Freshness lifetime in seconds.
    public let lifetime: Int64
    /// Where the lifetime comes from.
    public let source: FreshnessSource
    /// The secondary key, made from the request.
    public let vary: VaryKey
    /// Whether the response has exactly one Date and it is valid.
    let hasDate: Bool
    /// The fields that are not stored because of `private`; usually `nil`, for none.
    let unstored: QualifiedFields?
    /// The part of the representation that a 206 has; `nil` if the response is not one.
    public let part: ContentRange?
    /// Whether the response says that it is for one user, or for one request, which does not count
    /// on the route: where users are known, they must not share it.
    public internal(set) var isPersonal = false
}

/// Why a response is not stored. The same word is used in Cache-Status' `detail`, in the log and in
/// the metric's label.
public enum NotStoredReason: UInt8, Error, Sendable, CaseIterable {
    /// The request's method is not GET, nor POST with a response that says that a GET would get
    /// it (RFC 9110 §9.3.3).
    case method
    /// The request has `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore
    /// The response has `no-store` (§5.2.2.5), without `must-understand` and a status that is
    /// understood.
    case responseNoStore
    /// The response has `private` (§5.2.2.7), unqualified.
    case responsePrivate
    /// The request had Authorization and the response does not allow sharing (§3.5).
    case authorization
    /// An interim response, or 101.
    case notFinal
    /// A 206 without one usable Content-Range, or a Content-Range in another response: an unknown
    /// part of a representation; or one that is stored completely, or that cannot be combined.
    case partialContent
    /// 304 updates a stored response; it is not stored itself.
    case notModified
    /// `must-understand` with a status not understood here (§5.2.2.3).
    case statusNotUnderstood
    /// The status is only about this request or connection (412, 416, 429 …): the response must not
    /// answer another.
    case aboutThisRequestOnly
    /// The request had a Cookie, and the response's freshness is only a guess.
    case cookie
    /// The request has a field that may change the response and is not part of the key.
    case bypassField
    /// Neither the status nor any field makes it cacheable (§3).
    case notCacheableByDefault
    /// Vary has a `*` (§4.1).
    case varyAny
    /// Vary nominates more names than the limit.
    case varyNames
    /// The request's nominated values are longer than the limit.
    case varyValues
    /// Set-Cookie without an indication that the response is meant to be shared.
    case setCookie
    /// Stale on arrival and without a validator: storing it would be pointless.
    case uselessWithoutValidator
    /// Cache-Control is malformed, so that what it forbids is unknown.
    case malformedCacheControl
    /// The body is known to be longer than the limit.
    case tooLarge
    /// The request had content that is not part of the key.
    case requestContent
    /// The key is too long.
    case keyTooLong
    /// The route or the configuration excludes the response from the cache.
    case disabled
    /// The body ended before it was complete.
    case incomplete
    /// The store could not accept it (busy, full, off).
    case storeUnavailable
    /// The stored responses for the key were invalidated, or replaced, after the request was sent.
    case invalidated
    /// The response to another request for the same resource is stored instead.
    case duplicate

    /// One lower-case word or several with hyphens: a token (RFC 9110).
    public var token: StaticString {
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
