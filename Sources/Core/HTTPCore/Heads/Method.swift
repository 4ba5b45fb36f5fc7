/// A request method (RFC 9110 §9). Methods are case-sensitive: `get` is `other`.
public enum Method: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, connect, options, trace, patch
    /// Safe, with content that says what is asked for (draft-ietf-httpbis-safe-method-w-body).
    case query
    /// A token that is none of these; its bytes are at ``RequestHead/methodRange``.
    case other

    /// Whether the method is defined as safe (RFC 9110 §9.2.1). For `other` see
    /// ``RequestHead/isSafe``.
    @inlinable
    public var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace, .query: true
        case .post, .put, .delete, .connect, .patch, .other: false
        }
    }

    /// Whether repeating the request has no further effect (RFC 9110 §9.2.2). False for `other`,
    /// about which nothing is known.
    @inlinable
    public var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete, .query: true
        case .post, .connect, .patch, .other: false
        }
    }

    /// The method's name as sent; empty for `other`.
    public var name: StaticString {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .connect: "CONNECT"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .patch: "PATCH"
        case .query: "QUERY"
        case .other: ""
        }
    }
}

/// The four forms of a request target (RFC 9112 §3.2).
public enum TargetForm: UInt8, Sendable, CaseIterable {
    /// `/path?query`
    case origin
    /// `http://host/path?query`
    case absolute
    /// `host:port`, only for CONNECT
    case authority
    /// `*`, only for OPTIONS
    case asterisk
}

/// The schemes that an absolute-form target may have.
public enum Scheme: UInt8, Sendable, CaseIterable {
    case http, https

    /// The port of an authority that has none (RFC 9110 §4.2).
    @inlinable
    public var defaultPort: UInt16 {
        switch self {
        case .http: 80
        case .https: 443
        }
    }
}

/// The syntax of a validated host.
public enum HostKind: UInt8, Sendable, CaseIterable {
    /// No host: an HTTP/1.0 request in origin-form without Host.
    case none
    /// A registered name, which is not always a possible domain name.
    case name
    /// Four decimal numbers; no other form that `inet_aton` accepts is allowed.
    case ipv4
    /// An IPv6 literal; its range excludes the brackets.
    case ipv6
}
