/// What `pinfold trust` says where it has no refusal to name: those have the reason that a
/// connection would be refused for.
package enum VerdictReason: Sendable, CaseIterable {
    case trusted
    case badQuestion

    /// Everything that is said of it.
    package var entry: CacheReasonEntry {
        switch self {
        case .trusted:
            CacheReasonEntry("trusted", "a server with these certificates would be trusted", "")
        case .badQuestion:
            CacheReasonEntry(
                "bad-question", "there is no verdict: the question cannot be answered",
                "`detail` says what is wrong, and what was expected.")
        }
    }
}
