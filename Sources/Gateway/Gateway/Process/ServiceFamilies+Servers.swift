import PinfoldEngine
import PinfoldMetrics

// The servers of reverse listeners that have several.
extension ServiceMetrics {
    /// - Parameters:
    ///   - limit: on connections to a server that has none of its own.
    ///   - now: in milliseconds of the monotonic clock.
    mutating func addServers(_ sets: [ServerSet], limit: Int, now: Int64) {
        typealias Sample = ServiceFamily.Sample
        func labels(_ set: ServerSet, _ server: ServerState) -> LabelText {
            var labels = LabelText("listener", set.listener)
            labels.append("server", server.url)
            return labels
        }
        let servers = sets.flatMap { set in
            set.servers.enumerated().map { index, server in
                (
                    labels: labels(set, server), counts: server.counts,
                    standing: server.standing(
                        weight: set.configuration.servers[index].weight, at: now),
                    load: server.requestsUnderWay,
                    limit: set.configuration.servers[index].maxConnections
                )
            }
        }
        add(
            .gauge, "pinfold_upstream_server_state",
            "1 for the current state of a server of a route that has several.",
            servers.flatMap { server in
                ServerState.Standing.allCases.map { standing in
                    var labels = server.labels
                    labels.append("state", standing.rawValue)
                    return Sample(labels, server.standing == standing ? 1 : 0)
                }
            })
        add(
            .gauge, "pinfold_upstream_server_requests_in_flight",
            "Requests that are under way at a server of a route that has several.",
            servers.map { Sample($0.labels, $0.load) })
        add(
            .gauge, "pinfold_upstream_server_connections_limit",
            "Limit on connections to a server of a route that has several.",
            servers.map { Sample($0.labels, $0.limit ?? limit) })
        add(
            .counter, "pinfold_upstream_server_requests",
            "Requests that were sent to a server of a route that has several, or were to be.",
            servers.map { Sample($0.labels, $0.counts.requests) })
        add(
            .counter, "pinfold_upstream_server_retries",
            "Requests among them that another server had failed.",
            servers.map { Sample($0.labels, $0.counts.retries) })
        add(
            .counter, "pinfold_upstream_server_failures",
            "Requests that a server of a route that has several failed, by the cause.",
            servers.flatMap { server in
                ServerFailureReason.allCases.map { failure in
                    var labels = server.labels
                    labels.append("cause", "\(failure.word)")
                    return Sample(labels, server.counts.failures[failure.rawValue])
                }
            })
        add(
            .counter, "pinfold_upstream_server_ejections",
            "Times that a server was left out because it failed requests.",
            servers.map { Sample($0.labels, $0.counts.ejections) })
        add(
            .counter, "pinfold_upstream_server_checks",
            "Checks of a server that ended, by the result.",
            servers.flatMap { server in
                [("passed", server.counts.checksPassed), ("failed", server.counts.checksFailed)].map
                {
                    var labels = server.labels
                    labels.append("result", $0.0)
                    return Sample(labels, $0.1)
                }
            })
    }
}
