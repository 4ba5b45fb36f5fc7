import PinfoldConfiguration
import PinfoldEngine

extension PolicySnapshot {
    /// Where the policy is fetched from; `nil` for nowhere. Its server is verified by `tls` alone,
    /// as those are that receive reports: no policy can lock out the one that follows it.
    var policyFetching: PolicyFetcher.Settings? {
        configuration.policy.flatMap { policy in
            policy.url.map {
                PolicyFetcher.Settings(
                    url: $0, intervalMilliseconds: policy.intervalMilliseconds,
                    context: tls(entryIndex: nil))
            }
        }
    }
}
