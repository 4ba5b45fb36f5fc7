import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import PinfoldResolver

// Limits, each beside what it limits: an operator sees how close the gateway is to one before it is
// reached. Those of the cache, of interception and of reports are with their other metrics.
extension ServiceMetrics {
    /// What of the limits on one client and on one server is used most.
    struct LimitUse {
        var client = ClientAccounts.Use()
        var origin = SharedLimit.Use()
        /// Password checks that wait or are being made.
        var passwordChecks = 0
        var resolver = ResolverStatistics()
    }

    /// - Parameter passwordChecks: the limit on those.
    mutating func addLimits(_ limits: LimitsConfiguration, passwordChecks: Int, _ use: LimitUse) {
        add(
            .gauge, "pinfold_client_connections_limit",
            "Limit on open client connections (limits.connections).", limits.connections)
        add(
            .gauge, "pinfold_client_head_buffer_limit_bytes", unit: "bytes",
            "Limit on memory for incomplete heads and TLS handshakes (limits.bufferBytes).",
            limits.bufferBytes)
        add(
            .gauge, "pinfold_busiest_client_connections",
            "Open connections of the client that has the most.", use.client.connections)
        add(
            .gauge, "pinfold_per_client_connections_limit",
            "Limit on open connections of one client (limits.perClient.connections).",
            limits.perClient.connections)
        add(
            .gauge, "pinfold_busiest_client_exchanges",
            "Requests and tunnels to servers of the client that has the most.",
            use.client.exchanges)
        add(
            .gauge, "pinfold_per_client_exchanges_limit",
            "Limit on requests and tunnels to servers of one client (limits.perClient.exchanges).",
            limits.perClient.exchanges)
        add(
            .gauge, "pinfold_upstream_connections_limit",
            "Limit on open upstream connections (limits.connections).", limits.connections)
        add(
            .gauge, "pinfold_busiest_origin_connections",
            "Connections to the server that has the most.", use.origin.connections)
        add(
            .gauge, "pinfold_origin_connections_limit",
            "Limit on connections to one server (limits.upstreamPerHost).",
            limits.upstreamPerHost)
        add(
            .gauge, "pinfold_busiest_origin_waiting",
            "Exchanges waiting for a connection to the server that most wait for.",
            use.origin.waiting)
        add(
            .gauge, "pinfold_origin_waiting_limit",
            "Limit on exchanges waiting for a connection to one server (limits.pending).",
            limits.pending)
        add(
            .gauge, "pinfold_dns_lookups_pending", "Names that are being looked up.",
            use.resolver.pending)
        add(
            .gauge, "pinfold_dns_lookups_pending_limit",
            "Limit on names that are being looked up.", use.resolver.pendingLimit)
        add(
            .gauge, "pinfold_password_checks_pending",
            "Password checks that are waiting or being made.", use.passwordChecks)
        add(
            .gauge, "pinfold_password_checks_pending_limit",
            "Limit on password checks that are waiting or being made.", passwordChecks)
    }
}
