/// A histogram metric of durations, recorded by the workers without a route.
struct DurationFamily: Sendable {
    var name: StaticString
    var help: StaticString
    var histogram: WorkerHistogram

    /// Every family, in the order of the exposition. Each `WorkerHistogram` is in exactly one.
    static let all = [
        DurationFamily(
            name: "pinfold_dns_query_duration_seconds",
            help: "Time from a query to a name server to its answer.", histogram: .dnsQuery),
        DurationFamily(
            name: "pinfold_upstream_connect_duration_seconds",
            help: "Time from the first connection attempt to the connected socket.",
            histogram: .upstreamConnect),
        DurationFamily(
            name: "pinfold_tls_handshake_duration_seconds",
            help: "Time from the first byte of a TLS handshake to the verdict on the peer.",
            histogram: .tlsHandshake),
        DurationFamily(
            name: "pinfold_upstream_pool_wait_duration_seconds",
            help: """
                What exchanges waited for an upstream connection when they had to, until they got \
                one or gave up; those that need not wait are not observed.
                """,
            histogram: .poolWait),
    ]
}
