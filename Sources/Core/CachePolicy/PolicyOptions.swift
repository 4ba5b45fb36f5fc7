/// The cache policy's options, with the limits that it works within.
///
/// Everything else follows RFC 9111.
public struct PolicyOptions: Sendable, Equatable {
    /// Whether the cache is shared by several users. A single user's private cache stores responses
    /// marked `private` and responses to requests with Authorization, too; `s-maxage` and
    /// `proxy-revalidate` do not apply to it (RFC 9111 §3, §3.5, §5.2.2.7, §5.2.2.8, §5.2.2.10).
    public var isShared = true
    /// The heuristic freshness lifetime as a percentage of (Date - Last-Modified).
    ///
    /// RFC 9111 §4.2.2 suggests 10. 0 turns heuristic freshness off.
    public var heuristicPercent: Int64 = 10
    /// The maximum heuristic freshness lifetime, in seconds.
    public var heuristicMaximumSeconds: Int64 = 86_400
    /// Whether a response to a URI with a query may get heuristic freshness.
    ///
    /// Off by default: a query usually means a computed response, and RFC 9111 §4.2.2 (note)
    /// explains why caches have avoided this; Squid and Apache httpd do the same. Explicit
    /// freshness is honoured for every URI.
    public var heuristicForQueries = false
    /// When a response that sets a cookie may be stored.
    public var setCookie = SetCookiePolicy.whenShared
    /// Whether Last-Modified distinguishes two contents. Not if rules of the gateway change them:
    /// when the rules change, so does what clients are sent, but the date does not. Ranges by date
    /// (If-Range) are then answered with the whole content, and If-Modified-Since is ignored, as it
    /// is where no modification date is known (RFC 9110 §13.1.3).
    public var trustsLastModified = true
    /// The maximum size of a stored body, in bytes; bodies known to be longer are not stored.
    public var maximumObjectBytes: UInt64 = 256 << 20
    /// The maximum number of field names that a stored response's Vary may nominate.
    public var maximumVaryNames = 16
    /// The maximum length of a serialized `VaryKey`, in bytes.
    public var maximumVaryKeyBytes = 4096
    /// Request fields, in lower case, by which every response of the route varies in addition to
    /// what its Vary nominates. At most `VaryKey.maximumNameBytes` each.
    public var nominatedFields: [[UInt8]] = []
    /// How long after it has become stale a response may be served if the origin cannot be reached
    /// and neither the origin nor the client gave a limit, in seconds (RFC 9111 §4.2.4).
    ///
    /// 0 by default: an app then notices that its server is down. `stale-if-error` is honoured
    /// whatever the value.
    public var staleWhenUnreachableSeconds: Int64 = 0

    /// ``route``; `nil` if that says nothing.
    var box: RouteOptionsBox?

    /// Creates the default policy.
    public init() {}
}

/// When a response with Set-Cookie may be stored.
///
/// RFC 9111 §7.3 allows a shared cache to store it like any other, but servers commonly attach a
/// session cookie to a cacheable page, and serving one such page to a second user hands over the
/// first user's session. nginx and Varnish refuse by default; Squid removes the field from hits.
public enum SetCookiePolicy: UInt8, Sendable, CaseIterable {
    /// Never.
    case never
    /// Only if the response states that it is meant for shared caches: `public` or `s-maxage`.
    case whenShared
    /// Like any other response (RFC 9111 as written).
    case always
    /// Without the cookies, which only the client gets whose request it answers.
    case stripped
}
