import CacheStore
import PinfoldMetrics

extension ServiceMetrics {
    /// Purges of the cache.
    /// - Parameters:
    ///   - counts: the orders; `nil` if there is no cache, likewise:
    ///   - removed: what the store has done.
    mutating func addPurges(_ counts: PurgeOrderCounts?, _ removed: PurgeCounts?) {
        guard let counts, let removed else { return }
        func samples(_ label: StaticString, _ values: [(String, Int)]) -> [ServiceFamily.Sample] {
            values.map { ServiceFamily.Sample(LabelText(label, $0.0), $0.1) }
        }
        add(
            .counter, "pinfold_cache_purges", "Purges in effect, by what they named.",
            samples(
                "scope",
                [
                    ("url", counts.urls), ("prefix", counts.prefixes), ("host", counts.hosts),
                    ("tag", counts.tags), ("everything", counts.everything),
                ]))
        add(
            .counter, "pinfold_cache_soft_purges",
            "Of these, those that made stale and did not remove.", counts.soft)
        add(
            .counter, "pinfold_cache_purge_dry_runs", "Purges that were only counted.",
            counts.dryRuns)
        add(
            .counter, "pinfold_cache_purges_not_done",
            "Purges that were allowed and not carried out, by reason.",
            samples("reason", [("busy", counts.busy), ("failed", counts.failed)]))
        add(
            .counter, "pinfold_cache_purged_entries",
            "Stored responses that purges have removed, or made stale, by tier.",
            [
                .init(LabelText("tier", "memory"), removed.memoryEntries),
                .init(LabelText("tier", "disk"), removed.diskEntries),
            ])
        add(
            .gauge, "pinfold_cache_purges_under_way",
            "Purges in effect of which something is still to be removed.", removed.patterns)
        add(
            .gauge, "pinfold_cache_purges_under_way_limit",
            "Limit on purges of which something is still to be removed.", removed.patternsLimit)
        add(
            .counter, "pinfold_cache_purges_joined",
            "Purges that became one of everything stored before them: there were too many.",
            removed.joined)
    }
}
