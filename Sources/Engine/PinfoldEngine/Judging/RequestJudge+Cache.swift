import CachePolicy
import HTTPCore
import PinfoldConfiguration

/// What a configuration says of a request about the cache.
package struct CacheUse: Sendable, Equatable {
    /// Whether a stored response is looked up, and the response stored if its fields allow that.
    package var isUsed: Bool
    /// The path and query as they are in the key; empty if it is not used.
    package var target: [UInt8] = []
    /// The fields of the request that are in the key.
    package var fields: [String] = []
    /// The rules that apply to the path.
    package var rules = CacheRules()
}

extension RequestJudge {
    /// What is said about the cache.
    /// - Parameter verdict: what becomes of the request.
    package func cacheUse(of request: PastRequest, _ verdict: RequestVerdict) -> CacheUse {
        // Of other methods nothing is looked up, and all but nothing stored (RFC 9111 §3).
        guard request.method == .get || request.method == .head,
            verdict.handling?.looksUpResponses ?? false
        else { return CacheUse(isUsed: false) }
        let entry = verdict.entry.map { configuration.hosts.entries[$0] }
        let set = policy.cacheRules(entryIndex: verdict.entry)
        let rules =
            set.map { $0.routes[$0.index(of: request.target.span)].rules } ?? entry?.cache
            ?? CacheRules.ofEntry
        guard configuration.cacheStores(entry: verdict.entry), rules.stores ?? true else {
            return CacheUse(isUsed: false)
        }
        return CacheUse(
            isUsed: true, target: set?.keyed(request.target.span) ?? request.target,
            fields: entry?.keyFields(under: rules) ?? rules.key.fields ?? [], rules: rules)
    }
}
