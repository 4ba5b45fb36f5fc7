import HTTPCore
import PinfoldConfiguration

/// The policy as operators see it.
package struct PolicyReport: Sendable {
    var standing: PolicyStanding
    /// In milliseconds since 1970.
    var now: Int64
    /// Whether `***` stands for what errors quote of the configuration and the policy.
    var hidesQuotes = false

    /// - Returns: `nil` if none is configured.
    init?(_ standing: PolicyStanding, now: Int64) {
        guard standing.settings != nil else { return nil }
        (self.standing, self.now) = (standing, now)
    }

    enum State: String, Sendable, CaseIterable {
        case missing, inForce, expired
    }

    var state: State {
        if standing.inForce == nil { return .missing }
        return standing.isExpired(at: now) ? .expired : .inForce
    }

    private var isFromEngine: Bool { standing.settings?.isFromEngine ?? false }

    /// What each alarm means here, one sentence without a full stop.
    var alarms: [(alarm: PolicyAlarm, text: String)] {
        standing.alarms(at: now).map { ($0, shown(text($0))) }
    }

    private var refused: Refused? {
        standing.lastRefused.map {
            Refused(time: $0.time, reason: $0.refusal.token, text: shown($0.refusal.text))
        }
    }

    private func shown(_ text: String) -> String {
        hidesQuotes ? [ConfigurationFinding].hidingQuoted(text) : text
    }

    /// The last refusal as it is shown.
    private struct Refused {
        var time: Int64
        var reason: String
        var text: String
    }

    private func text(_ alarm: PolicyAlarm) -> String {
        switch alarm {
        case .missing:
            let cause = standing.failure.map { ": \($0)" } ?? ""
            return "no policy has been verified yet\(cause)"
        case .refused:
            let how = isFromEngine ? "published" : "fetched"
            return "the policy that was \(how) last is refused: "
                + (standing.lastRefused?.refusal.text ?? "")
        case .unreachable:
            return "no policy can be \(isFromEngine ? "received" : "fetched") since "
                + "\(CivilDate.text(secondsSince1970: standing.waitingSince / 1000)): "
                + (standing.failure ?? "")
        case .expired:
            let time = CivilDate.text(secondsSince1970: standing.inForce?.expires ?? 0)
            let consequence =
                standing.settings?.afterExpiry == .refuse
                ? "and every request is refused" : "and stays in force"
            return "the policy expired at \(time), \(consequence)"
        case .unkept:
            return "the policy in force cannot be stored, so that it would be missing after a "
                + "restart: \(standing.storing ?? "")"
        }
    }

    private static let refusal = ObjectShape<Refused>(
        "The last policy that was refused; absent if none was.",
        [
            .time("time", "When it was.") { $0.time },
            .word("reason", PolicyRefusalReason.tokens, "Why, as in metrics.") { $0.reason },
            .text("text", "Why.") { $0.text },
        ])

    private static let alarm = ObjectShape<(alarm: PolicyAlarm, text: String)>(
        "Something that an operator should know.",
        [
            .word("alarm", PolicyAlarm.allCases.map(\.rawValue), "What it is.") {
                $0.alarm.rawValue
            },
            .text("text", "What it means.") { $0.text },
        ])

    package static let shape = ObjectShape<PolicyReport>(
        "The policy from elsewhere; absent if none is configured.",
        [
            .optionalText(
                "url",
                "Where it comes from, without the query; absent if that is the fleet's engine."
            ) { report in
                report.standing.settings?.url.map { String("\($0)".prefix { $0 != "?" }) }
            },
            .word("state", State.allCases.map(\.rawValue), "Whether there is one.") {
                $0.state.rawValue
            },
            .optionalNumber("serial", "The serial of the one in force.") {
                $0.standing.inForce.map { Int($0.serial) }
            },
            .optionalText("hash", "The SHA-256 of what is signed of it, in hex.") {
                $0.standing.inForce?.hash
            },
            .optionalTime("expires", "When that expires.") {
                $0.standing.inForce.map { $0.expires * 1000 }
            },
            .texts("keys", "The public keys that have signed it.") {
                $0.standing.inForce?.keys.map(\.description) ?? []
            },
            .number("hosts", "How many entries of hosts are its.") {
                $0.standing.inForce?.hosts ?? 0
            },
            .number("pinsets", "How many pinsets are its.") { $0.standing.inForce?.pinsets ?? 0 },
            .number("rules", "How many rules of access are its.") {
                $0.standing.inForce?.rules ?? 0
            },
            .optionalTime("taken", "When this process put it in force.") { $0.standing.taken },
            .optionalTime("confirmed", "When its server last said that it is the current one.") {
                $0.standing.confirmed
            },
            .optionalText("failure", "Why the last attempt to fetch it failed.") {
                $0.standing.failure
            },
            .optionalObject("lastRefused", refusal) { $0.refused },
            .list("alarms", alarm, "What an operator should know.") { $0.alarms },
        ])
}
