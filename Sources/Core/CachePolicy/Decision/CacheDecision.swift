import HTTPCore

/// What the cache decides to do with a request.
public enum CacheDecision: Sendable, Equatable {
    /// Answer from the stored response.
    case hit(CacheHit)
    /// Ask the origin whether the stored response is still valid, with these conditional fields.
    case validate(ValidationRequest)
    /// Ask the origin; no stored response can be used.
    case forward(ForwardReason)
    /// `only-if-cached` (RFC 9111 §5.2.1.7) and no hit: answer 504.
    case gatewayTimeout(ForwardReason)
}

/// How a stored response answers a request.
public struct CacheHit: Sendable, Equatable {
    /// Which part of it is sent.
    public let form: HitForm
    /// Its age in seconds: the value of the Age field.
    public let age: Int64
    /// Seconds of freshness left; negative when it is served stale.
    public let timeToLive: Int64
    /// Why it may be served although it is stale; `nil` if it is fresh.
    public let stale: StaleUse?
    /// Whether it was found in a level that is shared with other caches, and not in their own.
    public var isShared = false

    /// Creates a hit.
    public init(form: HitForm, age: Int64, timeToLive: Int64, stale: StaleUse?) {
        self.form = form
        self.age = age
        self.timeToLive = timeToLive
        self.stale = stale
    }
}

/// Which part of a stored response is sent.
public enum HitForm: Sendable, Equatable {
    /// Head and body.
    case full
    /// Head only, for HEAD.
    case headOnly
    /// 304: the client's own validators match (RFC 9110 §13).
    case notModified
    /// 206 with bytes `first` through `last` of a body of `complete` bytes.
    case partial(first: UInt64, last: UInt64, complete: UInt64)
    /// 206 with several ranges, as a multipart/byteranges (`MultipartRanges`) of `count` bytes.
    case several(count: UInt64, boundary: UInt64)
    /// 416: the requested range is outside a body of `complete` bytes.
    case rangeNotSatisfiable(complete: UInt64)
}

/// What permits a stale response.
public enum StaleUse: UInt8, Sendable, CaseIterable {
    /// The request's `max-stale`.
    case maxStale
    /// The response's `stale-while-revalidate` (RFC 5861 §3): the caller revalidates it without
    /// making the client wait (`CacheDecision.inBackground`).
    case whileRevalidating
    /// `stale-if-error` of the response or request (RFC 5861 §4).
    case staleIfError
    /// The origin cannot be reached and the configuration allows it (RFC 9111 §4.2.4).
    case unreachable
    /// The route is offline: the origin is not asked.
    case offline

    /// The word in Cache-Status' `detail`.
    public var token: StaticString {
        switch self {
        case .maxStale: "max-stale"
        case .whileRevalidating: "stale-while-revalidate"
        case .staleIfError: "stale-if-error"
        case .unreachable: "unreachable"
        case .offline: "offline"
        }
    }
}

/// Why a request goes to the origin.
public enum ForwardReason: UInt8, Sendable, CaseIterable {
    /// Nothing is stored for the URI.
    case uriMiss
    /// Something is stored for the URI, but for other values of the fields that Vary nominates.
    case varyMiss
    /// The method is not GET, HEAD or QUERY.
    case method
    /// Something is stored for the URI and these values, but it was obtained under different trust
    /// or access rules.
    case policy
    /// The route or the configuration excludes the request from the cache.
    case bypass
    /// The request has a field that may change the response and is not part of the key
    /// (`BypassFields`).
    case bypassField
    /// The request has content that is not part of the key: any but that of a QUERY, and that of a
    /// QUERY without Content-Type, with Range or trailers, or with too much of it.
    case requestContent
    /// The key is too long.
    case keyTooLong
    /// The request asks to leave HTTP (Upgrade).
    case upgrade
    /// `no-cache` in the request, or Pragma's.
    case requestNoCache
    /// `no-store` in the request.
    case requestNoStore
    /// Older than the request's `max-age`.
    case requestMaxAge
    /// Less fresh than the request's `min-fresh`.
    case requestMinFresh
    /// If-Match or If-Unmodified-Since: for the origin to evaluate (RFC 9111 §4.3.2).
    case requestPrecondition
    /// The request has Authorization and the stored response is not marked as shareable.
    case authorization
    /// The stored response is stale.
    case stale
    /// The stored response requires validation on each use (`no-cache`).
    case responseNoCache
    /// The stored response was received after `now`: the clock was set back.
    case clock
    /// The stored head cannot be read, or the length of its body does not match.
    case damaged
    /// Parts of the representation are stored, but not all that the request asks for.
    case partial
    /// The stored content is in a coding that the client does not accept, and cannot be decoded.
    case coding

    /// The word in the log, in the metric's label and in Cache-Status' `detail`.
    public var token: StaticString {
        switch self {
        case .uriMiss: "uri-miss"
        case .varyMiss: "vary-miss"
        case .method: "method"
        case .policy: "policy"
        case .bypass: "bypass"
        case .bypassField: "bypass-field"
        case .requestContent: "request-content"
        case .keyTooLong: "key-too-long"
        case .upgrade: "upgrade"
        case .requestNoCache: "request-no-cache"
        case .requestNoStore: "request-no-store"
        case .requestMaxAge: "request-max-age"
        case .requestMinFresh: "request-min-fresh"
        case .requestPrecondition: "precondition"
        case .authorization: "authorization"
        case .stale: "stale"
        case .responseNoCache: "no-cache"
        case .clock: "clock"
        case .damaged: "damaged"
        case .partial: "partial"
        case .coding: "coding"
        }
    }

    /// The value of Cache-Status' `fwd` parameter (RFC 9211 §2.2).
    public var cacheStatus: StaticString {
        switch self {
        case .uriMiss: "uri-miss"
        case .varyMiss: "vary-miss"
        case .method: "method"
        case .bypass, .bypassField, .requestContent, .keyTooLong, .upgrade: "bypass"
        case .requestNoCache, .requestNoStore, .requestMaxAge, .requestMinFresh,
            .requestPrecondition, .authorization:
            "request"
        case .stale, .responseNoCache, .clock: "stale"
        case .policy, .damaged, .coding: "miss"
        case .partial: "partial"
        }
    }
}
