/// What status codes mean to a cache.
enum StatusRules {
    /// Whether responses may be stored and given heuristic freshness without a field that permits
    /// it. Three of the statuses in RFC 9110 §15.1 are excluded: 414 and 501, which are about a
    /// single request; and 405, with which an origin that takes the method from a request field
    /// answers a GET: it needs explicit freshness.
    static func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 410: true
        default: false
        }
    }

    /// Whether the status's caching requirements are implemented here, for `must-understand` (RFC
    /// 9111 §5.2.2.3).
    static func isUnderstood(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300...303, 307, 308: true
        case 403, 404, 405, 410, 451: true
        case 500, 502, 503, 504: true
        default: false
        }
    }

    /// Whether the response is about this one request, connection or client, so that it must never
    /// answer another, whatever its Cache-Control. The key does not contain what was wrong with the
    /// request (its syntax, credentials, preferences, preconditions, ranges, sizes, rate): a client
    /// that sends a bad one must not be able to have the refusal served to everyone. RFC 6585 and
    /// RFC 8470 forbid storing theirs; RFC 3229 requires caches to understand 226.
    static func isAboutThisRequestOnly(_ status: UInt16) -> Bool {
        switch status {
        case 226: true
        case 400, 401, 402, 406...409, 411...417, 421...426, 428, 429, 431: true
        case 501, 505, 506, 510, 511: true
        default: false
        }
    }

    /// Whether a stale response may be served in its place (RFC 5861 §4).
    static func isServerError(_ status: UInt16) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
