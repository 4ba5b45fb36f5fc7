/// Something about the policy that an operator should know of.
enum PolicyAlarm: String, Sendable, CaseIterable {
    /// None has been verified yet.
    case missing
    /// The last one that arrived was refused.
    case refused
    /// None has arrived for a while, nor the answer that there is no other.
    case unreachable
    /// The one in force is older than it says that it may be.
    case expired
    /// The one in force could not be stored: after a restart it would be missing.
    case unkept
}
