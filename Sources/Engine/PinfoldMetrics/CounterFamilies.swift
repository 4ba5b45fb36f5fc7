/// A counter metric whose series are counted by the workers.
struct CounterFamily: Sendable {
    /// One series: its labels as written, and its counter.
    struct Series: Sendable {
        var labels: StaticString
        var counter: WorkerCounter

        init(_ labels: StaticString = "", _ counter: WorkerCounter) {
            self.labels = labels
            self.counter = counter
        }
    }

    /// The name without `_total`.
    var name: StaticString
    var unit: StaticString?
    var help: StaticString
    var series: [Series]

    init(
        _ name: StaticString, unit: StaticString? = nil, _ help: StaticString, _ series: [Series]
    ) {
        self.name = name
        self.unit = unit
        self.help = help
        self.series = series
    }

    init(
        _ name: StaticString, unit: StaticString? = nil, _ help: StaticString,
        _ counter: WorkerCounter
    ) {
        self.init(name, unit: unit, help, [Series("", counter)])
    }

    /// Every family, in the order of the exposition. Each `WorkerCounter` is in exactly one.
    static let all = clients + arrivals + upstreams + names + handshakes + relays + cache

    private static let clients = [
        CounterFamily(
            "pinfold_client_connections_accepted", "Client connections that were accepted.",
            .clientConnectionsAccepted),
        CounterFamily(
            "pinfold_client_connections_refused",
            "Client connections that were closed at once, by reason.",
            [
                Series("reason=\"limit\"", .clientConnectionsRefusedByLimit),
                Series("reason=\"client_limit\"", .clientConnectionsRefusedByClientLimit),
                Series("reason=\"address\"", .clientConnectionsRefusedByAddress),
            ]),
        CounterFamily(
            "pinfold_client_connections_evicted",
            "Client connections that were closed to make room for others, by reason and state.",
            [
                Series("reason=\"limit\",state=\"idle\"", .clientsEvictedByLimit),
                Series("reason=\"limit\",state=\"head\"", .slowHeadsEvicted),
                Series("reason=\"limit\",state=\"lingering\"", .lingeringClientsEvicted),
                Series("reason=\"client_limit\",state=\"idle\"", .clientsEvictedByClientLimit),
                Series("reason=\"descriptors\",state=\"idle\"", .clientsEvictedForDescriptors),
            ]),
        CounterFamily(
            "pinfold_client_heads_evicted",
            """
            Requests refused while they arrived, and TLS handshakes ended, because the memory for \
            such was full, or their client had its half of it.
            """,
            .clientHeadsEvicted),
        CounterFamily(
            "pinfold_accept_pauses",
            "Times that accepting was paused because descriptors had run out.", .acceptPauses),
        CounterFamily(
            "pinfold_client_tls_handshakes",
            """
            TLS handshakes with clients that ended well, by version and whether a session was \
            resumed.
            """,
            [
                Series("version=\"1.0\",resumed=\"false\"", .clientHandshakesTLS10),
                Series("version=\"1.0\",resumed=\"true\"", .clientHandshakesTLS10Resumed),
                Series("version=\"1.1\",resumed=\"false\"", .clientHandshakesTLS11),
                Series("version=\"1.1\",resumed=\"true\"", .clientHandshakesTLS11Resumed),
                Series("version=\"1.2\",resumed=\"false\"", .clientHandshakesTLS12),
                Series("version=\"1.2\",resumed=\"true\"", .clientHandshakesTLS12Resumed),
                Series("version=\"1.3\",resumed=\"false\"", .clientHandshakesTLS13),
                Series("version=\"1.3\",resumed=\"true\"", .clientHandshakesTLS13Resumed),
            ]),
        CounterFamily(
            "pinfold_client_tls_protocols",
            """
            TLS handshakes with clients that ended well, by the protocol that was agreed on \
            (ALPN); http/1.1 also for clients without ALPN.
            """,
            [
                Series("protocol=\"http/1.1\"", .clientHandshakesHTTP1),
                Series("protocol=\"h2\"", .clientHandshakesHTTP2),
            ]),
        CounterFamily(
            "pinfold_client_tls_failures", "TLS handshakes with clients that failed, by reason.",
            [
                Series("reason=\"not_tls\"", .clientHandshakesNotTLS),
                Series("reason=\"version\"", .clientHandshakesVersionRefused),
                Series("reason=\"untrusted\"", .clientHandshakesUntrusted),
                Series("reason=\"alert\"", .clientHandshakesAlert),
                Series("reason=\"certificate\"", .clientHandshakesCertificateRefused),
                Series("reason=\"name\"", .clientHandshakesNameRefused),
                Series("reason=\"server\"", .clientHandshakesServerRefused),
                Series("reason=\"timeout\"", .clientHandshakesTimeout),
                Series("reason=\"closed\"", .clientHandshakesClosed),
                Series("reason=\"protocol_error\"", .clientHandshakesProtocolError),
            ]),
        CounterFamily(
            "pinfold_client_protocol_errors",
            "HTTP/2 connections of clients that were ended with an error, by its code.",
            [
                Series("code=\"no_error\"", .http2EndedNoError),
                Series("code=\"protocol_error\"", .http2EndedProtocolError),
                Series("code=\"internal_error\"", .http2EndedInternalError),
                Series("code=\"flow_control_error\"", .http2EndedFlowControlError),
                Series("code=\"settings_timeout\"", .http2EndedSettingsTimeout),
                Series("code=\"stream_closed\"", .http2EndedStreamClosed),
                Series("code=\"frame_size_error\"", .http2EndedFrameSizeError),
                Series("code=\"compression_error\"", .http2EndedCompressionError),
                Series("code=\"enhance_your_calm\"", .http2EndedEnhanceYourCalm),
            ]),
        CounterFamily(
            "pinfold_client_protocol_warnings",
            """
            HTTP/2 connections whose clients were asked to open no more streams, because much that \
            they send costs work and brings nothing.
            """,
            .http2Warned),
        CounterFamily(
            "pinfold_client_protocol_abuse",
            "HTTP/2 connections of clients that were ended for that, by what cost the most.",
            [
                Series("cause=\"resets_received\"", .http2AbuseResetsReceived),
                Series("cause=\"resets_caused\"", .http2AbuseResetsCaused),
                Series("cause=\"malformed_messages\"", .http2AbuseMalformedMessages),
                Series("cause=\"fields_refused\"", .http2AbuseFieldsRefused),
                Series("cause=\"streams_refused\"", .http2AbuseStreamsRefused),
                Series("cause=\"discarded_fields\"", .http2AbuseDiscardedFields),
                Series("cause=\"continuations\"", .http2AbuseContinuations),
                Series("cause=\"empty_continuations\"", .http2AbuseEmptyContinuations),
                Series("cause=\"empty_data\"", .http2AbuseEmptyData),
                Series("cause=\"tiny_data\"", .http2AbuseTinyData),
                Series("cause=\"padding\"", .http2AbusePadding),
                Series("cause=\"pings\"", .http2AbusePings),
                Series("cause=\"settings\"", .http2AbuseSettings),
                Series("cause=\"priorities\"", .http2AbusePriorities),
                Series("cause=\"window_updates\"", .http2AbuseWindowUpdates),
                Series("cause=\"tiny_windows\"", .http2AbuseTinyWindows),
                Series("cause=\"unknown_frames\"", .http2AbuseUnknownFrames),
                Series("cause=\"late_frames\"", .http2AbuseLateFrames),
                Series("cause=\"goaways\"", .http2AbuseGoaways),
            ]),
        CounterFamily(
            "pinfold_authentications",
            "Requests to listeners with authentication, by result.",
            [
                Series("result=\"accepted\"", .authenticationsAccepted),
                Series("result=\"remembered\"", .authenticationsRemembered),
                Series("result=\"missing\"", .authenticationsMissing),
                Series("result=\"unusable\"", .authenticationsUnusable),
                Series("result=\"wrong\"", .authenticationsWrong),
                Series("result=\"expired\"", .authenticationsExpired),
                Series("result=\"repeated\"", .authenticationsRepeated),
                Series("result=\"busy\"", .authenticationsBusy),
                Series("result=\"ended\"", .authenticationsEnded),
            ]),
        CounterFamily(
            "pinfold_authentication_delays",
            "Password checks that were delayed because of failures before them.",
            .authenticationsDelayed),
        CounterFamily(
            "pinfold_client_received_bytes", unit: "bytes", "Bytes received from clients.",
            .clientBytesReceived),
        CounterFamily(
            "pinfold_client_sent_bytes", unit: "bytes", "Bytes sent to clients.", .clientBytesSent),
        CounterFamily(
            "pinfold_flows_left_out",
            "Exchanges that ended while somebody looked, and are not held: there were too many.",
            .flowsLeftOut),
    ]

    private static let upstreams = [
        CounterFamily(
            "pinfold_illegal_transitions",
            "Exchanges cut off because of an illegal state transition: bugs in the program.",
            .illegalTransitions),
        CounterFamily(
            "pinfold_upstream_connections_created", "Upstream connections that were established.",
            .upstreamConnectionsCreated),
        CounterFamily(
            "pinfold_upstream_connections_reused",
            "Times that an exchange reused an idle connection of the pool.",
            .upstreamConnectionsReused),
        CounterFamily(
            "pinfold_upstream_connections_outdated",
            """
            Upstream connections closed because the policy they were made under is gone or the \
            verdict on their server no longer holds.
            """,
            .upstreamConnectionsOutdated),
        CounterFamily(
            "pinfold_upstream_connect_failures",
            "Attempts to connect that failed, one per address tried, by reason.",
            [
                Series("reason=\"refused\"", .upstreamConnectRefused),
                Series("reason=\"timeout\"", .upstreamConnectTimedOut),
                Series("reason=\"unreachable\"", .upstreamConnectUnreachable),
                Series("reason=\"other\"", .upstreamConnectFailedOtherwise),
            ]),
        CounterFamily(
            "pinfold_upstream_pool_waits", "Exchanges that waited for an upstream connection.",
            .poolWaits),
        CounterFamily(
            "pinfold_upstream_pool_wait_timeouts",
            "Exchanges that gave up waiting for an upstream connection.", .poolWaitTimeouts),
        CounterFamily(
            "pinfold_upstream_pool_wait_refusals",
            "Exchanges refused because the queue for an upstream connection was full.",
            .poolWaitRefusals),
        CounterFamily(
            "pinfold_upstream_retries",
            "Requests sent again, by reason.",
            [
                Series("reason=\"connection_died\"", .retriesConnectionDied),
                Series("reason=\"not_processed\"", .retriesNotProcessed),
                Series("reason=\"other_server\"", .retriesOtherServer),
                Series("reason=\"superseded\"", .retriesSuperseded),
                Series("reason=\"validation_failed\"", .retriesValidationFailed),
                Series("reason=\"stored_body_unreadable\"", .retriesStoredBodyUnreadable),
            ]),
        CounterFamily(
            "pinfold_upstream_protocol_fallbacks",
            "Servers that are spoken to in HTTP/1.1 for a while, as HTTP/2 failed with them.",
            .http2Fallbacks),
        CounterFamily(
            "pinfold_upstream_received_bytes", unit: "bytes", "Bytes received from upstreams.",
            .upstreamBytesReceived),
        CounterFamily(
            "pinfold_upstream_sent_bytes", unit: "bytes", "Bytes sent to upstreams.",
            .upstreamBytesSent),
    ]

    private static let names = [
        CounterFamily("pinfold_dns_queries", "Queries sent to name servers.", .dnsQueries),
        CounterFamily(
            "pinfold_dns_answers", "Results of queries to name servers.",
            [
                Series("result=\"found\"", .dnsAnswersFound),
                Series("result=\"no_such_name\"", .dnsAnswersNoSuchName),
                Series("result=\"no_data\"", .dnsAnswersNoData),
                Series("result=\"server_failure\"", .dnsAnswersServerFailure),
                Series("result=\"timeout\"", .dnsAnswersTimeout),
                Series("result=\"unreachable\"", .dnsAnswersUnreachable),
                Series("result=\"refused\"", .dnsAnswersRefused),
                Series("result=\"other\"", .dnsAnswersOther),
            ]),
        CounterFamily(
            "pinfold_dns_cache_hits", "Names answered from the resolver's cache.", .dnsCacheHits),
    ]

    private static let handshakes = [
        CounterFamily(
            "pinfold_tls_handshakes",
            "TLS handshakes with upstreams, by result and whether a session was resumed.",
            [
                Series("result=\"ok\",resumed=\"false\"", .tlsHandshakesFull),
                Series("result=\"ok\",resumed=\"true\"", .tlsHandshakesResumed),
                Series("result=\"untrusted\",resumed=\"false\"", .tlsHandshakesUntrusted),
                Series("result=\"pin_mismatch\",resumed=\"false\"", .tlsHandshakesPinMismatch),
                Series("result=\"protocol_error\",resumed=\"false\"", .tlsHandshakesProtocolError),
                Series("result=\"timeout\",resumed=\"false\"", .tlsHandshakesTimeout),
                Series("result=\"closed\",resumed=\"false\"", .tlsHandshakesClosed),
            ]),
        CounterFamily(
            "pinfold_tls_protocols",
            """
            TLS handshakes with upstreams that ended well, by the protocol that was agreed on \
            (ALPN); http/1.1 also for servers without ALPN.
            """,
            [
                Series("protocol=\"http/1.1\"", .tlsHandshakesHTTP1),
                Series("protocol=\"h2\"", .tlsHandshakesHTTP2),
            ]),
    ]

    private static let relays = [
        CounterFamily("pinfold_tunnels_opened", "Tunnels that CONNECT opened.", .tunnelsOpened),
        CounterFamily(
            "pinfold_tunnels_intercepted", "Tunnels that were intercepted.",
            .tunnelsIntercepted),
        CounterFamily(
            "pinfold_interception_passed",
            "Tunnels to intercepted hosts that were nevertheless relayed, by cause.",
            [
                Series("cause=\"not_tls\"", .tunnelsPassedNotTLS),
                Series("cause=\"server_first\"", .tunnelsPassedServerFirst),
                Series("cause=\"rejected\"", .tunnelsPassedRejected),
            ]),
        CounterFamily(
            "pinfold_tunnels_inspected",
            "Tunnels whose server had to prove its identity, by result and TLS version.",
            [
                Series("result=\"verified\",version=\"1.0\"", .tunnelsVerifiedTLS10),
                Series("result=\"verified\",version=\"1.1\"", .tunnelsVerifiedTLS11),
                Series("result=\"verified\",version=\"1.2\"", .tunnelsVerifiedTLS12),
                Series("result=\"resumed\",version=\"1.0\"", .tunnelsResumedTLS10),
                Series("result=\"resumed\",version=\"1.1\"", .tunnelsResumedTLS11),
                Series("result=\"resumed\",version=\"1.2\"", .tunnelsResumedTLS12),
                Series("result=\"probed\",version=\"1.3\"", .tunnelsProbedTLS13),
                Series("result=\"intercepted\",version=\"1.3\"", .tunnelsInterceptedTLS13),
                Series("result=\"refused\",version=\"none\"", .tunnelsRefusedBeforeVersion),
                Series("result=\"refused\",version=\"1.0\"", .tunnelsRefusedTLS10),
                Series("result=\"refused\",version=\"1.1\"", .tunnelsRefusedTLS11),
                Series("result=\"refused\",version=\"1.2\"", .tunnelsRefusedTLS12),
                Series("result=\"refused\",version=\"1.3\"", .tunnelsRefusedTLS13),
            ]),
        CounterFamily(
            "pinfold_tunnel_bytes", unit: "bytes", "Bytes relayed by tunnels, by direction.",
            [
                Series("direction=\"to_upstream\"", .tunnelBytesToUpstream),
                Series("direction=\"to_client\"", .tunnelBytesToClient),
            ]),
        CounterFamily(
            "pinfold_upgrades", "Connections that switched to another protocol (status 101).",
            .upgrades),
    ]

    private static let cache = [
        CounterFamily(
            "pinfold_cache_hits", "Responses served from the cache, by tier.",
            [
                Series("tier=\"memory\"", .cacheMemoryHits),
                Series("tier=\"disk\"", .cacheDiskHits),
                Series("tier=\"shared\"", .cacheSharedHits),
            ]),
        CounterFamily(
            "pinfold_cache_recoded_hits",
            "Responses from the cache that were sent in a coding other than the stored one.",
            [
                Series("form=\"decoded\"", .cacheDecodedHits),
                Series("form=\"compressed\"", .cacheCompressedHits),
            ]),
        CounterFamily("pinfold_cache_stores", "Responses stored in the cache.", .cacheStores),
        CounterFamily(
            "pinfold_cache_stores_aborted",
            "Responses discarded while being stored because they ended early.",
            .cacheStoresAborted),
        CounterFamily(
            "pinfold_cache_invalidations",
            "Stored responses invalidated because of an unsafe request.", .cacheInvalidations),
        CounterFamily(
            "pinfold_cache_background_revalidations",
            "Background revalidations of responses that were served stale.",
            .cacheBackgroundRevalidations),
        CounterFamily(
            "pinfold_cache_collapse_waits",
            "Requests that waited for the response to another request for the same resource.",
            .cacheCollapseWaits),
        CounterFamily(
            "pinfold_cache_fills_given_up",
            "Responses received only for the cache that were too slow and were given up.",
            .cacheFillsGivenUp),
        CounterFamily(
            "pinfold_cache_completions",
            "Responses that had broken off and were completed by a request for the rest.",
            .cacheCompletions),
        CounterFamily(
            "pinfold_cache_part_fetches",
            "Requests for missing parts of responses, in place of what the client asked for.",
            .cachePartFetches),
    ]
}

/// A gauge metric whose parts the workers hold.
struct GaugeFamily: Sendable {
    var name: StaticString
    var help: StaticString
    var gauge: WorkerGauge

    /// Every family, in the order of the exposition. Each `WorkerGauge` is in exactly one.
    static let all = [
        GaugeFamily(
            name: "pinfold_client_connections_open", help: "Open client connections.",
            gauge: .clientConnectionsOpen),
        GaugeFamily(
            name: "pinfold_accept_paused",
            help: "Workers that have paused accepting because descriptors have run out.",
            gauge: .acceptPaused),
        GaugeFamily(
            name: "pinfold_client_head_buffer_bytes",
            help: "Memory used by incomplete request heads and TLS handshakes.",
            gauge: .headBufferBytes),
        GaugeFamily(
            name: "pinfold_http_requests_in_flight", help: "Exchanges in progress.",
            gauge: .exchangesInFlight),
        GaugeFamily(
            name: "pinfold_upstream_connections_open",
            help: "Open upstream connections, including idle ones.",
            gauge: .upstreamConnectionsOpen),
        GaugeFamily(
            name: "pinfold_upstream_connections_idle",
            help: "Upstream connections in the pool that no exchange uses.",
            gauge: .upstreamConnectionsIdle),
        GaugeFamily(
            name: "pinfold_upstream_pool_waiting",
            help: "Exchanges waiting for an upstream connection.", gauge: .poolWaiting),
        GaugeFamily(
            name: "pinfold_tunnels_open", help: "Tunnels that are open.", gauge: .tunnelsOpen),
        GaugeFamily(
            name: "pinfold_cache_bodies_under_way",
            help: "Responses that other requests read while they arrive.",
            gauge: .cacheBodiesUnderWay),
        GaugeFamily(
            name: "pinfold_cache_body_readers",
            help: "Requests that read a response while it arrives.", gauge: .cacheBodyReaders),
        GaugeFamily(
            name: "pinfold_cache_fills",
            help: "Responses received for the cache although their client has left.",
            gauge: .cacheFills),
    ]
}
