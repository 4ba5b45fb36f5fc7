import PinfoldConfiguration

/// What is known about the policy, from the start of the process. Pure: times are arguments, in
/// milliseconds since 1970.
struct PolicyStanding: Sendable, Equatable {
    /// What became of an attempt to fetch it.
    enum Result: String, Sendable, CaseIterable {
        /// It was put in force.
        case taken
        /// It was the one in force.
        case unchanged
        case refused
        /// There was no answer with a policy.
        case failed
    }

    /// A refusal, and when it was.
    struct Refused: Sendable, Equatable {
        var refusal: PolicyRefusalReason
        var time: Int64
    }

    /// For how many intervals nothing may arrive until that is an alarm.
    static let patience: Int64 = 5

    /// Where it comes from; `nil` if nothing is configured.
    private(set) var settings: PolicyConfiguration?
    private(set) var inForce: PolicyInForce?
    /// When it was put in force by this process.
    private(set) var taken: Int64?
    /// When the server last said that it is the one; `nil` if it has not yet.
    private(set) var confirmed: Int64?
    /// Since when its server should have answered.
    private(set) var waitingSince: Int64 = 0
    /// The last refusal, whatever followed.
    private(set) var lastRefused: Refused?
    /// Whether nothing better than that has followed.
    private(set) var isRefused = false
    /// Why nothing arrives; `nil` if the last attempt was answered.
    private(set) var failure: String?
    /// Why it is not stored; `nil` if it is.
    private(set) var storing: String?
    private(set) var results: [Result: UInt64] = [:]
    private(set) var refusals: [String: UInt64] = [:]

    /// A configuration is in force.
    mutating func adopt(_ configuration: ConfigurationSnapshot, at now: Int64) {
        let isElsewhere =
            settings?.url != configuration.policy?.url
            || settings?.isFromEngine != configuration.policy?.isFromEngine
        if isElsewhere { (waitingSince, failure) = (now, nil) }
        settings = configuration.policy
        if inForce != configuration.policyInForce {
            taken = configuration.policyInForce == nil ? nil : now
        }
        inForce = configuration.policyInForce
        guard settings == nil else { return }
        (confirmed, isRefused, storing, taken) = (nil, false, nil, nil)
    }

    mutating func took(at now: Int64) {
        results[.taken, default: 0] += 1
        answered(at: now)
        isRefused = false
    }

    mutating func confirm(at now: Int64) {
        results[.unchanged, default: 0] += 1
        answered(at: now)
        isRefused = false
    }

    private mutating func answered(at now: Int64) {
        (confirmed, waitingSince, failure) = (now, now, nil)
    }

    /// - Returns: whether it is another refusal than the one before.
    mutating func refuse(_ refusal: PolicyRefusalReason, at now: Int64) -> Bool {
        let isNew = !isRefused || lastRefused?.refusal != refusal
        results[.refused, default: 0] += 1
        refusals[refusal.token, default: 0] += 1
        // The server did answer; that it does not confirm anything is said by the refusal.
        (waitingSince, failure) = (now, nil)
        lastRefused = Refused(refusal: refusal, time: now)
        isRefused = true
        return isNew
    }

    /// - Returns: whether it is the first failure since the last answer.
    mutating func fail(_ problem: String) -> Bool {
        let isFirst = failure == nil
        results[.failed, default: 0] += 1
        failure = problem
        return isFirst
    }

    /// The engine that it comes by way of is in use, or why it is not.
    /// - Parameter isOffered: whether the one in force is what was published there last.
    mutating func looked(_ problem: String?, isOffered: Bool, at now: Int64) {
        failure = problem
        guard problem == nil else { return }
        waitingSince = now
        if isOffered { confirmed = now }
    }

    /// - Returns: whether that is new.
    mutating func store(_ problem: String?) -> Bool {
        defer { storing = problem }
        return storing != problem
    }

    /// Whether the one in force has expired.
    func isExpired(at now: Int64) -> Bool { inForce.map { now >= $0.expires * 1000 } ?? false }

    /// Whether new work is to go elsewhere: there is none yet, or the one that there is must not
    /// be used any longer.
    func isMissing(at now: Int64) -> Bool {
        guard let settings else { return false }
        return inForce == nil || settings.afterExpiry == .refuse && isExpired(at: now)
    }

    /// What an operator should know, the worst first.
    func alarms(at now: Int64) -> [PolicyAlarm] {
        guard let settings else { return [] }
        return PolicyAlarm.allCases.filter { alarm in
            switch alarm {
            case .missing: inForce == nil
            case .refused: isRefused
            case .unreachable:
                failure != nil
                    && now - waitingSince > Self.patience * settings.intervalMilliseconds
            case .expired: isExpired(at: now)
            case .unkept: storing != nil && inForce != nil
            }
        }
    }
}
