import PinfoldMetrics

extension ServiceMetrics {
    /// Purges of the cache.
    /// - Parameter counts: `nil` if there is no cache.
    mutating func addPurges(_ counts: PurgeOrderCounts?) {
        guard let counts else { return }
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
    }
}
