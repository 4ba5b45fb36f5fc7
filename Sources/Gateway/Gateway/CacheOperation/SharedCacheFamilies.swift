import PinfoldMetrics
import SharedCacheLevel

extension ServiceMetrics {
    private typealias Sample = ServiceFamily.Sample

    /// The level of the cache that is shared with other gateways.
    /// - Parameter level: `nil` if there is none: then there are no metrics of it.
    mutating func addSharedCache(_ level: SharedLevelStatistics?) {
        guard let level else { return }
        add(
            .gauge, "pinfold_cache_shared_up",
            "1 while the shared cache is in use, 0 while requests are served without it.",
            level.isReady ? 1 : 0)
        add(
            .gauge, "pinfold_cache_shared_breaker_state",
            "1 for the current state of the circuit breaker of the shared cache.",
            SharedLevelStatistics.Breaker.allCases.map {
                Sample(LabelText("state", $0.rawValue), $0 == level.breaker ? 1 : 0)
            })
        addLookups(level)
        add(
            .counter, "pinfold_cache_shared_stores",
            "Responses that were stored in the shared cache.", level.stores)
        add(
            .counter, "pinfold_cache_shared_stores_skipped",
            "Responses that were not stored in the shared cache because too much was waiting.",
            level.skipped)
        add(
            .counter, "pinfold_cache_shared_errors",
            "What went wrong with the shared cache, by reason.",
            SharedLevelReason.allCases.map {
                Sample(LabelText("reason", $0.rawValue), level[$0])
            })
        add(
            .counter, "pinfold_cache_shared_connections",
            "Connections that were made to the shared cache.", level.connections)
        add(
            .counter, "pinfold_cache_shared_received_bytes", unit: "bytes",
            "Bytes received from the shared cache.", level.bytesRead)
        add(
            .counter, "pinfold_cache_shared_sent_bytes", unit: "bytes",
            "Bytes sent to the shared cache.", level.bytesWritten)
        add(
            .gauge, "pinfold_cache_shared_queue_bytes", unit: "bytes",
            "Bytes waiting to be sent to the shared cache.", level.queueBytes)
        add(
            .gauge, "pinfold_cache_shared_queue_commands",
            "Commands waiting to be sent to the shared cache, or for a reply.",
            level.queueCommands)
        add(
            .gauge, "pinfold_cache_shared_lost_keys",
            "URLs that could not be removed from the shared cache yet, because it is away.",
            level.lostKeys)
        addFleet(level)
        addLeases(level)
        addNodes(level)
    }

    /// The nodes of a cluster.
    private mutating func addNodes(_ level: SharedLevelStatistics) {
        add(
            .gauge, "pinfold_cache_shared_nodes",
            "Masters of the cluster that the shared cache is: known ones, and those in use.",
            [
                Sample(LabelText("state=\"known\""), level.knownNodes),
                Sample(LabelText("state=\"used\""), level.usedNodes),
            ])
        add(
            .counter, "pinfold_cache_shared_redirects",
            "Replies of a cluster that a key is another node's, for good or while it is moving.",
            [
                Sample(LabelText("kind=\"moved\""), level.moved),
                Sample(LabelText("kind=\"ask\""), level.asked),
            ])
    }

    /// Who fetches for the fleet.
    private mutating func addLeases(_ level: SharedLevelStatistics) {
        add(
            .counter, "pinfold_cache_shared_leases",
            "Responses that this gateway fetched for all that share the cache.", level.leases)
        add(
            .gauge, "pinfold_cache_shared_held_leases",
            "Responses that it is fetching for all.", level.heldLeases)
        let other = level.waits - level.waitsAnswered - level.waitsInVain
        add(
            .counter, "pinfold_cache_shared_waits",
            "Lookups that waited for a response that another gateway fetched, by result.",
            [
                Sample(LabelText("result=\"answered\""), level.waitsAnswered),
                Sample(LabelText("result=\"timed_out\""), level.waitsInVain),
                Sample(LabelText("result=\"none\""), other),
            ])
        add(
            .gauge, "pinfold_cache_shared_waiting_lookups",
            "Lookups that wait for a response that another gateway fetches.",
            level.waitingLookups)
    }

    /// What gateways that share the cache tell each other.
    private mutating func addFleet(_ level: SharedLevelStatistics) {
        add(
            .gauge, "pinfold_cache_shared_members",
            "Gateways that share the cache and were there lately, this one included.",
            level.members)
        add(
            .gauge, "pinfold_cache_shared_following",
            "1 while what other gateways purge is known here, otherwise 0.",
            level.isFollowing ? 1 : 0)
        add(
            .counter, "pinfold_cache_shared_purges",
            "Purges that gateways which share the cache were told of, by direction.",
            [
                Sample(LabelText("direction=\"received\""), level.purgesReceived),
                Sample(LabelText("direction=\"sent\""), level.purgesSent),
            ])
        add(
            .counter, "pinfold_cache_shared_invalidations",
            "URLs whose responses unsafe requests invalidated in all gateways, by direction.",
            [
                Sample(LabelText("direction=\"received\""), level.removalsReceived),
                Sample(LabelText("direction=\"sent\""), level.removalsSent),
            ])
        add(
            .counter, "pinfold_cache_shared_made_stale",
            "Times that all stored responses became stale because a purge may have been missed.",
            level.madeStale)
    }

    private mutating func addLookups(_ level: SharedLevelStatistics) {
        add(
            .counter, "pinfold_cache_shared_lookups",
            "Lookups in the shared cache that ended in time, by result.",
            [
                Sample(LabelText("result=\"hit\""), level.hits),
                Sample(LabelText("result=\"miss\""), level.misses),
            ])
        var sum: UInt64 = 0
        var samples: [Sample] = []
        for (index, count) in level.latencies.enumerated() {
            sum += count
            let bound =
                index < SharedLevelStatistics.latencyBounds.count
                ? Self.seconds(milliseconds: SharedLevelStatistics.latencyBounds[index]) : "+Inf"
            samples.append(Sample(LabelText("le", bound), sum))
        }
        add(
            .counter, "pinfold_cache_shared_lookup_times",
            "Lookups in the shared cache that took at most this many seconds.", samples)
    }

    private static func seconds(milliseconds: Int64) -> String {
        let thousandths = String(milliseconds % 1000 + 1000).dropFirst()
        return "\(milliseconds / 1000).\(thousandths)"
    }
}
