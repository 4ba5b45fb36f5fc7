/// The field names that mean something to the gateway; all others are `other` or `disguised`.
///
/// At most 64, so that a set of them is one word (``FieldIDSet``).
public enum FieldID: UInt8, Sendable, CaseIterable {
    case other
    // Message framing and connection (RFC 9110 §7.6, 9112 §6).
    case host, connection, proxyConnection, keepAlive, te, trailer, transferEncoding, upgrade
    case http2Settings, expect, maxForwards
    /// The name of a framing or hop-by-hop field with `_` in place of a `-`: a different field in
    /// HTTP, but the same one to programs that receive fields as CGI variables. Refused in
    /// requests; dropped from responses and trailers.
    case disguised
    // Content (RFC 9110 §8).
    case contentLength, contentType, contentEncoding, contentLanguage, contentLocation
    case contentRange, etag, lastModified
    // Caching (RFC 9111).
    case date, expires, age, cacheControl, cdnCacheControl, pragma, vary, warning
    // Conditions and ranges (RFC 9110 §13, §14).
    case ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange, range, acceptRanges
    // Authentication (RFC 9110 §11).
    case authorization, wwwAuthenticate, authenticationInfo
    case proxyAuthorization, proxyAuthenticate, proxyAuthenticationInfo
    // The chain of intermediaries.
    case via, forwarded, xForwardedFor, xForwardedHost, xForwardedProto
    case xForwardedUser
    case cacheStatus, proxyStatus
    // Other fields that the gateway reads. Set-Cookie2 (RFC 2965) is also `setCookie`: both set a
    // cookie.
    case location, retryAfter, allow, altSvc, setCookie, cookie
    case accept, acceptEncoding, acceptLanguage, server, userAgent, referer, origin
    case strictTransportSecurity

    /// The name as the gateway writes it; empty for `other` and `disguised`.
    public var name: StaticString {
        switch self {
        case .other, .disguised: ""
        case .host: "Host"
        case .connection: "Connection"
        case .proxyConnection: "Proxy-Connection"
        case .keepAlive: "Keep-Alive"
        case .te: "TE"
        case .trailer: "Trailer"
        case .transferEncoding: "Transfer-Encoding"
        case .upgrade: "Upgrade"
        case .http2Settings: "HTTP2-Settings"
        case .expect: "Expect"
        case .maxForwards: "Max-Forwards"
        case .contentLength: "Content-Length"
        case .contentType: "Content-Type"
        case .contentEncoding: "Content-Encoding"
        case .contentLanguage: "Content-Language"
        case .contentLocation: "Content-Location"
        case .contentRange: "Content-Range"
        case .etag: "ETag"
        case .lastModified: "Last-Modified"
        case .date: "Date"
        case .expires: "Expires"
        case .age: "Age"
        case .cacheControl: "Cache-Control"
        case .cdnCacheControl: "CDN-Cache-Control"
        case .pragma: "Pragma"
        case .vary: "Vary"
        case .warning: "Warning"
        case .ifMatch: "If-Match"
        case .ifNoneMatch: "If-None-Match"
        case .ifModifiedSince: "If-Modified-Since"
        case .ifUnmodifiedSince: "If-Unmodified-Since"
        case .ifRange: "If-Range"
        case .range: "Range"
        case .acceptRanges: "Accept-Ranges"
        case .authorization: "Authorization"
        case .wwwAuthenticate: "WWW-Authenticate"
        case .authenticationInfo: "Authentication-Info"
        case .proxyAuthorization: "Proxy-Authorization"
        case .proxyAuthenticate: "Proxy-Authenticate"
        case .proxyAuthenticationInfo: "Proxy-Authentication-Info"
        case .via: "Via"
        case .forwarded: "Forwarded"
        case .xForwardedFor: "X-Forwarded-For"
        case .xForwardedHost: "X-Forwarded-Host"
        case .xForwardedProto: "X-Forwarded-Proto"
        case .xForwardedUser: "X-Forwarded-User"
        case .cacheStatus: "Cache-Status"
        case .proxyStatus: "Proxy-Status"
        case .location: "Location"
        case .retryAfter: "Retry-After"
        case .allow: "Allow"
        case .altSvc: "Alt-Svc"
        case .setCookie: "Set-Cookie"
        case .cookie: "Cookie"
        case .accept: "Accept"
        case .acceptEncoding: "Accept-Encoding"
        case .acceptLanguage: "Accept-Language"
        case .server: "Server"
        case .userAgent: "User-Agent"
        case .referer: "Referer"
        case .origin: "Origin"
        case .strictTransportSecurity: "Strict-Transport-Security"
        }
    }
}
