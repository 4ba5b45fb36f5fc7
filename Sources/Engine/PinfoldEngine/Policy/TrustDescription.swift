import CacheStore
import PinfoldConfiguration
import Trust

/// How a server was verified whose responses are stored, in words for operators. What is used, and
/// for which requests, depends on the ``TrustFingerprint`` alone, which tells more apart.
///
///     clear                           without TLS
///     verified                        its certificate chain and its name
///     pinned: api, spare              the same, and each of these pinsets
///     pinned: api; reported: next     the same; what `next` says is only reported
///     pinned: api (any chain)         the pins of `api` alone, whatever the chain is worth
///     any chain                       nothing: a pinset without pins that allows every chain
enum TrustDescription {
    /// - Parameters:
    ///   - isSecure: whether TLS is used.
    ///   - pinsets: those that apply, in the order of evaluation.
    static func text(isSecure: Bool, _ pinsets: [Pinset]) -> String {
        guard isSecure else { return "clear" }
        let pinning = pinsets.filter { $0.mode != .none }
        let enforced = pinning.filter(\.isEnforced).map { pinset in
            pinset.allowInvalidCertificates ? "\(pinset.name) (any chain)" : pinset.name
        }
        let reported = pinning.filter { !$0.isEnforced }.map(\.name)
        let pins = "pinned: " + enforced.joined(separator: ", ")
        var parts = [enforced.isEmpty ? basis(pinsets) : pins]
        if !reported.isEmpty { parts.append("reported: " + reported.joined(separator: ", ")) }
        return parts.joined(separator: "; ")
    }

    /// What is verified without pins that are enforced.
    private static func basis(_ pinsets: [Pinset]) -> String {
        let allowsAny = pinsets.contains {
            $0.mode == .none && $0.isEnforced && $0.allowInvalidCertificates
        }
        return allowsAny ? "any chain" : "verified"
    }
}

extension Origin {
    /// Tells the store how the servers of what is stored were verified, once.
    func describeTrust(in store: CacheStore) {
        guard !trustIsDescribed else { return }
        trustIsDescribed = true
        store.describe(policy: fingerprint, as: trustText)
    }

    /// How its servers are verified (``TrustDescription``).
    var trustText: String {
        let entry = entryIndex.map { policy.configuration.hosts.entries[$0] }
        let pinsets = (entry?.pinsets ?? []).map { policy.configuration.pinsets[$0].pinset }
        return TrustDescription.text(isSecure: key.isSecure, pinsets)
    }
}
