import PinfoldConfiguration
import PinfoldMetrics

extension ServiceMetrics {
    private typealias Sample = ServiceFamily.Sample

    /// The policy from elsewhere. Without one there are no samples; before the first one there is
    /// no time, and the serial is 0.
    ///
    /// - Parameter now: in milliseconds since 1970.
    mutating func addPolicy(_ standing: PolicyStanding, now: Int64) {
        let isConfigured = standing.settings != nil
        func samples(_ make: () -> [Sample]) -> [Sample] { isConfigured ? make() : [] }
        func time(_ milliseconds: Int64?) -> [Sample] {
            samples {
                milliseconds.map { [Sample(millionths: UInt64(max(0, $0)) &* 1000)] } ?? []
            }
        }
        add(
            .gauge, "pinfold_policy_serial",
            "The serial of the policy in force (policy.url), or 0 while there is none.",
            samples { [Sample(.none, UInt64(standing.inForce?.serial ?? 0))] })
        add(
            .gauge, "pinfold_policy_info",
            "1, with the SHA-256 of what is signed of the policy in force.",
            samples {
                (standing.inForce?.hash).map { [Sample(LabelText("hash", $0), UInt64(1))] } ?? []
            })
        add(
            .gauge, "pinfold_policy_expires_timestamp_seconds", unit: "seconds",
            "When the policy in force expires, in seconds since 1970.",
            time(standing.inForce.map { $0.expires * 1000 }))
        add(
            .gauge, "pinfold_policy_confirmed_timestamp_seconds", unit: "seconds",
            "When the policy's server last confirmed the one in force, in seconds since 1970.",
            time(standing.confirmed))
        add(
            .counter, "pinfold_policy_fetches", "Attempts to fetch the policy, by result.",
            samples {
                PolicyStanding.Result.allCases.map {
                    Sample(LabelText("result", $0.rawValue), standing.results[$0] ?? 0)
                }
            })
        add(
            .counter, "pinfold_policy_refusals", "Policies that were refused, by cause.",
            samples {
                PolicyRefusalReason.tokens.map {
                    Sample(LabelText("cause", $0), standing.refusals[$0] ?? 0)
                }
            })
        let alarms = standing.alarms(at: now)
        add(
            .gauge, "pinfold_policy_alarm", "1 for what an operator should know of the policy.",
            samples {
                PolicyAlarm.allCases.map {
                    Sample(
                        LabelText("alarm", $0.rawValue), alarms.contains($0) ? UInt64(1) : 0)
                }
            })
    }
}
