/// A request's method as a label value: a closed set, so that traffic cannot create series.
///
/// The raw values are those of the HTTP core's `Method`, so that one converts by its raw value.
public enum MetricMethod: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, connect, options, trace, patch, query
    /// Any other method, and a request that ended before its method was known.
    case other

    /// The label value: the method's name, or `other`.
    public var label: StaticString {
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
        case .other: "other"
        }
    }
}

/// The class of the status that the client was sent.
public enum CodeClass: UInt8, Sendable, CaseIterable {
    /// No status line was sent: the client left, or the connection was cut.
    case none
    case informational, success, redirection, clientError, serverError

    /// The class of a status code; `none` for 0 and for what is not a status code.
    @inlinable @inline(__always)
    public init(status: UInt16) {
        self = CodeClass(rawValue: UInt8(truncatingIfNeeded: min(status / 100, 6))) ?? .none
    }

    /// The label value: `1xx` … `5xx`, or `none`.
    public var label: StaticString {
        switch self {
        case .none: "none"
        case .informational: "1xx"
        case .success: "2xx"
        case .redirection: "3xx"
        case .clientError: "4xx"
        case .serverError: "5xx"
        }
    }
}

/// The part of the cache in an exchange.
public enum CacheResult: UInt8, Sendable, CaseIterable {
    /// None: a tunnel, an upgrade, or a reply of the gateway.
    case none
    /// Answered from the cache, fresh.
    case hit
    /// Answered from the cache, stale, as the request or the response allowed.
    case hitStale
    /// Answered from the cache after the origin confirmed that nothing changed.
    case revalidated
    /// Answered by the response to another client's request for the same resource.
    case collapsed
    /// Forwarded because no stored response could be used; the response could be stored.
    case miss
    /// Forwarded; the response could not be stored.
    case uncacheable
    /// Forwarded without a lookup: the route's cache is disabled, or the request's method or
    /// directives required it.
    case bypass

    /// The value of the label and in the access log: `none`, `hit`, `hit_stale`, `revalidated`,
    /// `collapsed`, `miss`, `uncacheable`, `bypass`.
    public var label: StaticString {
        switch self {
        case .none: "none"
        case .hit: "hit"
        case .hitStale: "hit_stale"
        case .revalidated: "revalidated"
        case .collapsed: "collapsed"
        case .miss: "miss"
        case .uncacheable: "uncacheable"
        case .bypass: "bypass"
        }
    }
}

/// A pinset's verdict on a server.
public enum PinResult: UInt8, Sendable, CaseIterable {
    /// A pin matched, or the pinset's mode does not need one.
    case passed
    /// The chain is trusted, but no pin matched it.
    case noPinMatched
    /// The chain is not valid under the trust roots, or has expired.
    case untrustedChain
    /// The certificate is not for this host name.
    case hostNameMismatch
    /// The pinset itself can never be satisfied: a pinned mode without pins, or a contradictory
    /// policy.
    case policyRefused
    /// No pin matched, which the pinset only reports: the server was accepted.
    case reported
    /// The pinset has expired, and refuses.
    case expired

    /// The label value: `passed`, `no_pin_matched`, `untrusted_chain`, `host_name_mismatch`,
    /// `policy_refused`, `reported`, `expired`.
    public var label: StaticString {
        switch self {
        case .passed: "passed"
        case .noPinMatched: "no_pin_matched"
        case .untrustedChain: "untrusted_chain"
        case .hostNameMismatch: "host_name_mismatch"
        case .policyRefused: "policy_refused"
        case .reported: "reported"
        case .expired: "expired"
        }
    }
}

/// What becomes of a tunnel that a client asks for, and of the identity of its server.
public enum TunnelResult: UInt8, Sendable, CaseIterable {
    /// Opened, and relayed unread: nobody but the client knows who its server is.
    case relayed
    /// The same, although its host is intercepted.
    case passed
    /// Opened. Its server has proved its identity in the tunnel itself,
    case verified
    /// by resuming a session in which it had,
    case resumed
    /// or on another connection.
    case probed
    /// It ends in the gateway, which has verified the server.
    case intercepted
    /// Not opened, or closed before its client got anything from its server.
    case refused

    /// The label value: `relayed`, `passed`, `verified`, `resumed`, `probed`, `intercepted`,
    /// `refused`.
    public var label: StaticString {
        switch self {
        case .relayed: "relayed"
        case .passed: "passed"
        case .verified: "verified"
        case .resumed: "resumed"
        case .probed: "probed"
        case .intercepted: "intercepted"
        case .refused: "refused"
        }
    }
}

/// The kind of an exchange, which determines how its duration is counted.
public enum ExchangeKind: UInt8, Sendable, CaseIterable {
    /// A request and its response.
    case request
    /// A tunnel opened by CONNECT.
    case tunnel
    /// A connection that switched to another protocol (101), for example a WebSocket.
    case upgrade
    /// A stream of events (`text/event-stream`).
    case eventStream

    /// The label value: `request`, `tunnel`, `upgrade`, `event_stream`.
    public var label: StaticString {
        switch self {
        case .request: "request"
        case .tunnel: "tunnel"
        case .upgrade: "upgrade"
        case .eventStream: "event_stream"
        }
    }
}
