/// What the status codes mean to a cache.
enum StatusRules {
    /// Whether responses may be stored and given heuristic freshness without any field that says
    /// so (RFC 9110 §15.1). 206 is left out: parts are not stored.
    static func isHeuristicallyCacheable(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether the caching requirements of the status are known here, for `must-understand`
    /// (RFC 9111 §5.2.2.3).
    static func isUnderstood(_ status: UInt16) -> Bool {
        switch status {
        case 200, 203, 204, 300...303, 307, 308: true
        case 400, 401, 403, 404, 405, 406, 410, 414, 451: true
        case 500, 501, 502, 503, 504: true
        default: false
        }
    }

    /// Whether the response says something about this one request or connection, so that it never
    /// answers another, whatever its Cache-Control: proxy authentication, time-outs, failed
    /// preconditions and ranges, refused bodies and headers, early data, rate limits (RFC 6585
    /// and RFC 8470 forbid storing theirs).
    static func isAboutThisRequestOnly(_ status: UInt16) -> Bool {
        switch status {
        case 407, 408, 411, 412, 413, 415, 416, 417, 421, 425, 426, 428, 429, 431, 511: true
        default: false
        }
    }

    /// Whether a stale response may stand in for it (RFC 5861 §4).
    static func isServerError(_ status: UInt16) -> Bool {
        switch status {
        case 500, 502, 503, 504: true
        default: false
        }
    }
}
