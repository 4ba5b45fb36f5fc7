/// Limits and states of the gateway that end an exchange, in the order of the documentation.
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
    case offline
    case mustRevalidate
    case storedBodyUnreadable
    case superseded

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .requestTimeout:
            ReasonEntry(
                "request-timeout", .gateway, 408, .requestError,
                "the request did not arrive in time",
                remedy: "The client or its network is slow: `timeouts.head` limits the time for "
                    + "the head, `timeouts.body` a pause within the body.")
        case .clientTimeout:
            ReasonEntry(
                "client-timeout", .gateway, 504, .connectionWriteTimeout,
                "the client stopped reading its response for longer than timeouts.body",
                remedy: "The client or its network has stalled or is gone. If such pauses are "
                    + "intended, raise `timeouts.body`.")
        case .tunnelIdleTimeout:
            ReasonEntry(
                "tunnel-idle-timeout", .gateway, 504, .connectionReadTimeout,
                "no data passed through the tunnel for timeouts.tunnel",
                remedy: "If such pauses are intended, raise `timeouts.tunnel` (for a single host "
                    + "in its entry of `hosts`), or have the client or the server send pings.")
        case .tunnelPolicyChanged:
            ReasonEntry(
                "tunnel-policy-changed", .gateway, 502, .internalResponse,
                "after a reload, the configuration forbids the tunnel or sets other requirements "
                    + "for its server",
                remedy: "The client can open another tunnel, under the new configuration. To keep "
                    + "tunnels open, write `liveTunnels: keep` in the host's entry.")
        case .clientExchangeLimit:
            ReasonEntry(
                "client-exchange-limit", .gateway, 503, .connectionLimitReached,
                "this client has as many requests or tunnels under way as limits.perClient allows",
                remedy: "Raise `limits.perClient.exchanges`, or for tunnels in streams of HTTP/2 "
                    + "`limits.perClient.connections`, if one address is shared by many clients; "
                    + "otherwise find out what that client is doing.")
        case .headBuffersFull:
            ReasonEntry(
                "head-buffers-full", .gateway, 408, .requestError,
                "the memory for unfinished requests was full, or this client used half of it; this "
                    + "was one of the oldest requests of the client that used the most",
                remedy: "Clients begin requests or TLS handshakes and do not finish them: find out "
                    + "which clients. `limits.bufferBytes` limits the memory.")
        case .connectionsFull:
            ReasonEntry(
                "connections-full", .gateway, 408, .requestError,
                "all connections were in use, and this request was still incomplete after a "
                    + "second",
                remedy: "Clients begin requests and do not finish them, or there are more clients "
                    + "than `limits.connections` allows for.")
        case .tooManyPending:
            ReasonEntry(
                "too-many-pending", .gateway, 503, .connectionLimitReached,
                "too many requests are waiting for a connection to this server",
                remedy: "The server is too slow for its load. Raise `limits.upstreamPerHost` if it "
                    + "can handle more connections, or `limits.pending` if the requests can wait.")
        case .poolWaitTimeout:
            ReasonEntry(
                "pool-wait-timeout", .gateway, 504, .connectionLimitReached,
                "no connection to the server became free in time",
                remedy: "All `limits.upstreamPerHost` connections are busy: raise it, or find out "
                    + "why the server is slow.")
        case .descriptorsExhausted:
            ReasonEntry(
                "descriptors-exhausted", .gateway, 503, .connectionLimitReached,
                "the gateway has run out of file descriptors",
                remedy: "Raise the process's limit (`ulimit -n`, systemd's `LimitNOFILE`), or "
                    + "lower `limits.connections`.")
        case .onlyIfCached:
            ReasonEntry(
                "only-if-cached", .gateway, 504, .internalResponse,
                "no usable response is stored, and the request allows stored responses only",
                remedy: "Nothing: the client sent `Cache-Control: only-if-cached`.")
        case .offline:
            ReasonEntry(
                "offline", .gateway, 504, .internalResponse,
                "nothing is stored that answers the request, and its server is not asked",
                remedy:
                    "The entry of `hosts`, or one of its `paths`, says `offline: true`: without "
                    + "it, the request is sent to the server.")
        case .mustRevalidate:
            ReasonEntry(
                "must-revalidate", .gateway, 504, .destinationUnavailable,
                "the stored response is stale, its server forbids using it without confirmation, "
                    + "and the server cannot be reached",
                remedy: "The server's `Cache-Control` has `must-revalidate`, `proxy-revalidate` or "
                    + "`s-maxage`. The reply and the operational log say why it cannot be reached.")
        case .storedBodyUnreadable:
            ReasonEntry(
                "stored-body-unreadable", .gateway, 502, .internalError,
                "the stored response could not be read",
                remedy: "The cache's disk is failing or overloaded: check the operational log. The "
                    + "request can be repeated.")
        case .superseded:
            ReasonEntry(
                "superseded", .gateway, 502, .internalResponse,
                "the configuration changed while the request was waiting",
                remedy: "The request can be repeated.")
        }
    }

    /// Whether it comes from the gateway alone: a limit, a lack of descriptors, a reload.
    var isOwn: Bool {
        switch self {
        case .tooManyPending, .poolWaitTimeout, .descriptorsExhausted, .clientExchangeLimit,
            .headBuffersFull, .connectionsFull, .superseded, .tunnelPolicyChanged:
            true
        case .requestTimeout, .clientTimeout, .tunnelIdleTimeout, .onlyIfCached, .offline,
            .mustRevalidate, .storedBodyUnreadable:
            false
        }
    }
}
