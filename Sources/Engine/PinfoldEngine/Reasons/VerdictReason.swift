/// The reasons of `pinfold trust` that are not refusals. A refusal has the reason for which a
/// connection would be refused.
package enum VerdictReason: Sendable, CaseIterable {
    case trusted
    case badQuestion

    /// The token, meaning and remedy.
    package var entry: CacheReasonEntry {
        switch self {
        case .trusted:
            CacheReasonEntry("trusted", "a server with these certificates would be trusted", "")
        case .badQuestion:
            CacheReasonEntry(
                "bad-question", "no verdict: the question is invalid",
                "`detail` says what is wrong and what was expected.")
        }
    }
}
