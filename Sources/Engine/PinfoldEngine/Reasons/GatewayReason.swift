/// Limits and states of the gateway that end an exchange. The order is that of the documentation.
package enum GatewayReason: UInt8, Sendable, CaseIterable {
    case requestTimeout
    case clientTimeout
    case tunnelIdleTimeout
    case tunnelPolicyChanged
    case clientExchangeLimit
    case headBuffersFull
    case connectionsFull
    case tooManyPending
    case poolWaitTimeout
    case descriptorsExhausted
    case onlyIfCached
    case storedBodyUnreadable
    case superseded

    /// Everything that is said of it.
    package var entry: ReasonEntry {
        switch self {
        case .requestTimeout:
            ReasonEntry(
                "request-timeout", .gateway, 408, .requestError,
                "the request did not arrive in time",
                remedy: "The client or its network is slow: `timeouts.head` bounds the head, "
                    + "`timeouts.body` a pause within the body.")
        case .clientTimeout:
            ReasonEntry(
                "client-timeout", .gateway, 504, .connectionWriteTimeout,
                "the client took nothing of its response for timeouts.body",
                remedy: "The client or its network is gone or stands still. If such pauses are "
                    + "meant, raise `timeouts.body`.")
        case .tunnelIdleTimeout:
            ReasonEntry(
                "tunnel-idle-timeout", .gateway, 504, .connectionReadTimeout,
                "neither side of the tunnel took anything for timeouts.tunnel",
                remedy: "If such pauses are meant, raise `timeouts.tunnel`, for one host alone in "
                    + "its entry of `hosts`, or have the client or the server send pings.")
        case .tunnelPolicyChanged:
            ReasonEntry(
                "tunnel-policy-changed", .gateway, 502, .internalResponse,
                "a reload changed what the tunnel's host must prove, or forbids the tunnel",
                remedy: "The client can open another one, which is judged by the new "
                    + "configuration. To let tunnels go on, write `liveTunnels: keep` in the "
                    + "host's entry.")
        case .clientExchangeLimit:
            ReasonEntry(
                "client-exchange-limit", .gateway, 503, .connectionLimitReached,
                "this client has as many requests under way as limits.perClient.exchanges allows",
                remedy: "Raise `limits.perClient.exchanges` if one address stands for many "
                    + "clients; else look at what that client does.")
        case .headBuffersFull:
            ReasonEntry(
                "head-buffers-full", .gateway, 408, .requestError,
                "the memory for unfinished requests is full, or this client has its half of it, "
                    + "and this one was among the oldest of the client that holds the most",
                remedy: "Clients begin requests, or TLS handshakes, and do not finish them: look "
                    + "at who they are. `limits.bufferBytes` bounds the memory.")
        case .connectionsFull:
            ReasonEntry(
                "connections-full", .gateway, 408, .requestError,
                "all connections are in use, and this request had not arrived after a second",
                remedy: "Clients begin requests and do not finish them, or there are more clients "
                    + "than `limits.connections` allows for.")
        case .tooManyPending:
            ReasonEntry(
                "too-many-pending", .gateway, 503, .connectionLimitReached,
                "too many requests wait for a connection to this server",
                remedy: "The server is slower than its load. Raise `limits.upstreamPerHost` if it "
                    + "takes more connections, or `limits.pending` if the requests can wait.")
        case .poolWaitTimeout:
            ReasonEntry(
                "pool-wait-timeout", .gateway, 504, .connectionLimitReached,
                "no connection to the server became free in time",
                remedy: "All `limits.upstreamPerHost` connections are busy: raise it, or find out "
                    + "why the server is slow.")
        case .descriptorsExhausted:
            ReasonEntry(
                "descriptors-exhausted", .gateway, 503, .connectionLimitReached,
                "the gateway has no file descriptor left",
                remedy: "Raise the process's limit (`ulimit -n`, systemd's `LimitNOFILE`), or "
                    + "lower `limits.connections`.")
        case .onlyIfCached:
            ReasonEntry(
                "only-if-cached", .gateway, 504, .internalResponse,
                "nothing usable is stored, and the request allows stored responses only",
                remedy: "Nothing: the client asked with `Cache-Control: only-if-cached`.")
        case .storedBodyUnreadable:
            ReasonEntry(
                "stored-body-unreadable", .gateway, 502, .internalError,
                "the stored response could not be read",
                remedy: "The cache's disk fails or is overloaded: look at the operational log. "
                    + "The request can be repeated.")
        case .superseded:
            ReasonEntry(
                "superseded", .gateway, 502, .internalResponse,
                "the configuration changed while the request was waiting",
                remedy: "The request can be repeated.")
        }
    }
}
