import HTTPCore
import Logging
import PinfoldConfiguration

/// What the operational log says about the policy.
enum PolicyEvent: Sendable {
    case taken(PolicyInForce, generation: UInt64)
    /// It came by way of the engine, and is for others first.
    case waits(serial: Int64, percent: Int, share: Int)
    case refused(PolicyRefusalReason, inForce: PolicyInForce?)
    case failing(String)
    case answers
    case raised(PolicyAlarm, String)
    case ended(PolicyAlarm)
    case storedUnusable(String)
}

extension Logger {
    /// Logs an event of the policy.
    func log(_ event: PolicyEvent) {
        switch event {
        case .taken(let policy, let generation):
            notice(
                "the policy is in force",
                metadata: [
                    "serial": "\(policy.serial)", "hash": "\(policy.hash)",
                    "expires": "\(CivilDate.text(secondsSince1970: policy.expires))",
                    "generation": "\(generation)",
                ])
        case .waits(let serial, let percent, let share):
            notice(
                "a policy was published for a share of the gateways, without this one",
                metadata: [
                    "serial": "\(serial)", "percent": "\(percent)", "takes_from": "\(share)",
                ])
        case .refused(let refusal, let inForce):
            warning(
                "a policy is refused; what was in force before remains in force",
                metadata: [
                    "cause": "\(refusal.token)", "detail": "\(refusal.text)",
                    "serial": "\(inForce.map { "\($0.serial)" } ?? "none")",
                ])
        case .failing(let problem):
            warning(
                "the policy cannot be fetched, which will be retried",
                metadata: ["detail": "\(problem)"])
        case .answers: notice("the policy can be fetched again")
        case .raised(let alarm, let text):
            warning("policy: \(text)", metadata: ["alarm": "\(alarm.rawValue)"])
        case .ended(let alarm):
            notice("an alarm about the policy is over", metadata: ["alarm": "\(alarm.rawValue)"])
        case .storedUnusable(let problem):
            error(
                "the stored policy cannot be used; the gateway is not ready before it has another",
                metadata: ["error": "\(problem)"])
        }
    }
}
