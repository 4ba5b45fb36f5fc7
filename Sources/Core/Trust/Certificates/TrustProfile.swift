/// How much is asked of a server's chain beyond RFC 5280's path validation.
package enum TrustProfile: String, Hashable, Sendable, CaseIterable {
    /// What the TLS library asks.
    case lenient
    /// The rules of `CertificateRule`; none of them for a root of the system's store, which root
    /// programmes have looked at, and which are as old as they are.
    case strict
    /// All rules, for every certificate.
    case pedantic
}

/// A profile, and whether somebody chose it.
package struct ChosenProfile: Hashable, Sendable {
    package var profile: TrustProfile
    /// Whether it was written down. Where it was not, the rules about what private authorities
    /// commonly leave out (`CertificateRule.isAboutPresence`) are waived for private anchors:
    /// those of files, pinsets and pins. A gateway must go on reaching what it reached.
    package var isChosen: Bool

    package init(_ profile: TrustProfile, isChosen: Bool = true) {
        self.profile = profile
        self.isChosen = isChosen
    }

    /// `strict`, chosen by nobody.
    package static let byDefault = ChosenProfile(.strict, isChosen: false)
}

/// A profile as it is applied to one chain.
package struct AppliedProfile: Hashable, Sendable {
    package var profile: TrustProfile
    /// Whether the rules in `CertificateRule.isAboutPresence` are waived, as they are where nobody
    /// chose a profile and the anchor is a private one.
    package var waivesPresence: Bool
    /// Whether the anchor is of the system's store.
    package var hasSystemAnchor: Bool

    package init(
        _ profile: TrustProfile, waivesPresence: Bool = false, hasSystemAnchor: Bool = false
    ) {
        self.profile = profile
        self.waivesPresence = waivesPresence
        self.hasSystemAnchor = hasSystemAnchor
    }

    /// Whether a violation at a position of the chain counts.
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
