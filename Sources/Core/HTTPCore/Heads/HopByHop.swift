extension FieldIDSet {
    /// The fields that end at this hop whether or not Connection nominates them (RFC 9110 §7.6.1,
    /// §11.7).
    ///
    /// Trailer is not among them: trailers are forwarded, and so is their announcement. The fields
    /// of proxy authentication are meant for the next proxy, which is this one.
    public static let hopByHop = FieldIDSet([
        .connection, .proxyConnection, .keepAlive, .te, .transferEncoding, .upgrade,
        .http2Settings, .proxyAuthorization, .proxyAuthenticate, .proxyAuthenticationInfo,
        .disguised,
    ])

    /// The fields that must not be accepted from a trailer section (RFC 9110 §6.5.1): framing,
    /// routing, authentication, request modifiers, response control, and those that describe the
    /// content.
    public static let forbiddenInTrailers = FieldIDSet([
        // Framing and routing.
        .host, .connection, .proxyConnection, .keepAlive, .te, .trailer, .transferEncoding,
        .disguised, .upgrade, .http2Settings, .contentLength, .via, .forwarded, .xForwardedFor,
        .xForwardedHost, .xForwardedProto, .xForwardedUser,
        // Request modifiers.
        .expect, .maxForwards, .cacheControl, .cdnCacheControl, .pragma, .range, .ifMatch,
        .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        // Authentication and state.
        .authorization, .wwwAuthenticate, .authenticationInfo, .proxyAuthorization,
        .proxyAuthenticate, .proxyAuthenticationInfo, .cookie, .setCookie,
        // Response control.
        .age, .date, .expires, .location, .retryAfter, .vary, .warning, .altSvc,
        .strictTransportSecurity,
        // The description of the content.
        .contentEncoding, .contentType, .contentRange, .contentLanguage, .contentLocation,
    ])
}
