import PinfoldConfiguration

/// Which rules for the cache apply to a URL.
package struct CacheRulesExplanation: Sendable {
    /// Whose rules they are.
    package enum Source: Sendable, Equatable {
        /// Of an entry's path, by its index and first pattern.
        case path(Int, pattern: String)
        /// Of the entry itself: no path has a pattern that matches.
        case entry
        /// Of nothing: servers may read the path in ways that have different rules, so that the
        /// cache is not used.
        case ambiguous
    }

    package let source: Source
    /// What the path and its entry come to.
    package let rules: CacheRules

    /// - Returns: `nil` if the entry says nothing out of the ordinary.
    init?(_ policy: PolicySnapshot, _ target: TargetURL, entry: Int?) {
        guard let entry, let set = policy.cacheRules(entryIndex: entry) else { return nil }
        let index = set.index(of: target.path.span)
        let paths = policy.configuration.hosts.entries[entry].paths
        rules = set.routes[index].rules
        source =
            if index < paths.count {
                .path(index, pattern: paths[index].label)
            } else {
                index == paths.count ? .entry : .ambiguous
            }
    }
}
