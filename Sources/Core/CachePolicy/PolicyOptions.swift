/// What an operator may choose about the cache's policy, with the limits it works within.
///
/// Everything else follows RFC 9111.
package struct PolicyOptions: Sendable, Equatable {
    /// Whether several users share the cache. One that is a single user's own keeps what is
    /// `private`, and answers to Authorization, too; `s-maxage` and `proxy-revalidate` are not for
    /// it (RFC 9111 §3, §3.5, §5.2.2.7, §5.2.2.8, §5.2.2.10).
    package var isShared = true
    /// Share of (Date - Last-Modified) that a heuristic freshness lifetime takes, in percent.
    ///
    /// RFC 9111 §4.2.2 suggests 10. 0 turns heuristic freshness off.
    package var heuristicPercent: Int64 = 10
    /// The longest heuristic freshness lifetime, in seconds.
    package var heuristicMaximumSeconds: Int64 = 86_400
    /// Whether a response to a URI with a query may get heuristic freshness.
    ///
    /// Off by default: a query mostly names a computed answer, and RFC 9111 §4.2.2 (note) tells
    /// why caches have held back; Squid and Apache httpd do the same. Explicit freshness is
    /// honoured for every URI.
    package var heuristicForQueries = false
    /// When a response that sets a cookie may be stored.
    package var setCookie = SetCookiePolicy.whenShared
    /// Whether CDN-Cache-Control is for this cache (RFC 9213): for one that stands before an
    /// origin, not for a forward proxy beside its clients.
    package var honoursCDNCacheControl = false
    /// Whether Last-Modified tells two contents apart. Not where rules of the gateway change them:
    /// with the rules changes what clients are sent, and the date does not. Ranges by a date
    /// (If-Range) are then answered with the whole, and If-Modified-Since is ignored, as where no
    /// modification date is known (RFC 9110 §13.1.3).
    package var trustsLastModified = true
    /// Bodies known to be longer than this are not stored, in bytes.
    package var maximumObjectBytes: UInt64 = 256 << 20
    /// The most field names a stored response's Vary may nominate.
    package var maximumVaryNames = 16
    /// The longest serialised `VaryKey`, in bytes.
    package var maximumVaryKeyBytes = 4096
    /// Request fields, in lower case, that every response of the route varies by, besides what its
    /// Vary nominates. At most `VaryKey.maximumNameBytes` each.
    package var nominatedFields: [[UInt8]] = []
    /// Request fields, in lower case, that the gateway itself writes for each client: a response
    /// that varies by one cannot be matched by what the client sent, and is not stored.
    package var fieldsOfOurs: [[UInt8]] = []
    /// How long past its freshness a response may be served when the origin cannot be reached and
    /// neither the origin nor the client said anything about it, in seconds (RFC 9111 §4.2.4).
    ///
    /// 0 by default: an app then sees that its server is away. `stale-if-error` is honoured
    /// whatever this says.
    package var staleWhenUnreachableSeconds: Int64 = 0

    /// The default policy.
    package init() {}
}

/// When a response with Set-Cookie may be stored.
///
/// RFC 9111 §7.3 lets a shared cache store it like any other, but servers that attach a session
/// cookie to a cacheable page are common, and one such page served to a second user hands over the
/// first one's session. nginx and Varnish refuse by default, Squid strips the field from hits.
package enum SetCookiePolicy: UInt8, Sendable, CaseIterable {
    /// Never.
    case never
    /// Only if the response says that it is meant for shared caches: `public` or `s-maxage`.
    case whenShared
    /// As any other response (RFC 9111 as written).
    case always
}
