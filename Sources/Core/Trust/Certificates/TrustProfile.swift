/// How much is required of a server's chain beyond RFC 5280's path validation.
package enum TrustProfile: String, Hashable, Sendable, CaseIterable {
    /// What the TLS library requires.
    case lenient
    /// The rules of `CertificateRule`, but none for a root of the system's store: root programmes
    /// have reviewed these, and old roots cannot be changed.
    case strict
    /// All rules, for every certificate.
    case pedantic
}

/// A profile, and whether it was configured.
package struct ChosenProfile: Hashable, Sendable {
    package var profile: TrustProfile
    /// Whether it was configured. If not, the rules about what private authorities commonly omit
    /// (`CertificateRule.isAboutPresence`) are waived for private anchors: those from files,
    /// pinsets and pins. A gateway must still reach the servers that it reached before.
    package var isChosen: Bool

    package init(_ profile: TrustProfile, isChosen: Bool = true) {
        self.profile = profile
        self.isChosen = isChosen
    }

    /// `strict`, not configured.
    package static let byDefault = ChosenProfile(.strict, isChosen: false)
}

/// A profile as applied to one chain.
package struct AppliedProfile: Hashable, Sendable {
    package var profile: TrustProfile
    /// Whether the rules in `CertificateRule.isAboutPresence` are waived, as they are if no profile
    /// was configured and the anchor is a private one.
    package var waivesPresence: Bool
    /// Whether the anchor is in the system's store.
    package var hasSystemAnchor: Bool

    package init(
        _ profile: TrustProfile, waivesPresence: Bool = false, hasSystemAnchor: Bool = false
    ) {
        self.profile = profile
        self.waivesPresence = waivesPresence
        self.hasSystemAnchor = hasSystemAnchor
    }

    /// Whether a violation at a position in the chain counts.
    func counts(_ rule: CertificateRule, isAnchor: Bool) -> Bool {
        switch profile {
        case .lenient: false
        case .pedantic: true
        case .strict:
            !rule.isPedantic
                && !(hasSystemAnchor && (isAnchor || rule.isLeftToAuthorities))
                && !(waivesPresence && rule.isAboutPresence)
        }
    }
}
