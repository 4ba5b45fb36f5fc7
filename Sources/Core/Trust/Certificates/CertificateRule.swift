/// What a server's chain must satisfy beyond what the TLS library verifies: requirements of RFC
/// 5280 and of the CA/Browser Forum's Baseline Requirements (BR), each with a token and a sentence.
package enum CertificateRule: String, Hashable, Sendable, CaseIterable {
    // Names of the leaf.
    case sanMissing = "san-missing"
    case sanCritical = "san-critical"
    case sanNotCritical = "san-not-critical"
    case sanMalformed = "san-malformed"
    case sanBadName = "san-bad-name"
    case sanUnderscore = "san-underscore"
    case commonNameNotInSAN = "common-name-not-in-san"
    case publicSuffixWildcard = "public-suffix-wildcard"
    case privateSuffixWildcard = "private-suffix-wildcard"
    case unlistedSuffixWildcard = "unlisted-suffix-wildcard"
    // Purposes.
    case purposeMissing = "purpose-missing"
    case notForServers = "not-for-servers"
    case anyPurpose = "any-purpose"
    case purposeCritical = "purpose-critical"
    case rootWithPurpose = "root-with-purpose"
    // Leaves and authorities.
    case authorityAsLeaf = "authority-as-leaf"
    case leafWithAuthorityFlag = "leaf-with-authority-flag"
    case leafMaySign = "leaf-may-sign"
    case basicConstraintsMissing = "basic-constraints-missing"
    case basicConstraintsNotCritical = "basic-constraints-not-critical"
    case notAnAuthority = "not-an-authority"
    case keyUsageMissing = "key-usage-missing"
    case authorityWithoutName = "authority-without-name"
    // Key identifiers.
    case authorityKeyMissing = "authority-key-missing"
    case authorityKeyForm = "authority-key-form"
    case subjectKeyMissing = "subject-key-missing"
    case keyIdentifierMismatch = "key-identifier-mismatch"
    case keyIdentifierCritical = "key-identifier-critical"
    // Constraints.
    case nameConstraintsOnLeaf = "name-constraints-on-leaf"
    case nameConstraintsNotCritical = "name-constraints-not-critical"
    case nameConstraintsMalformed = "name-constraints-malformed"
    case nameConstraintsEmpty = "name-constraints-empty"
    case nameConstraintsWildcard = "name-constraints-wildcard"
    case policyConstraintsNotCritical = "policy-constraints-not-critical"
    // The certificate itself.
    case notDER = "not-der"
    case notVersion3 = "not-version-3"
    case serialNotPositive = "serial-not-positive"
    case serialZero = "serial-zero"
    case serialTooLong = "serial-too-long"
    case duplicateExtension = "duplicate-extension"
    case informationAccessMalformed = "information-access-malformed"
    // Cryptography.
    case rsaTooShort = "rsa-too-short"
    case rsaNotMultipleOf8 = "rsa-not-multiple-of-8"
    case keyNotAllowed = "key-not-allowed"
    case weakSignature = "weak-signature"
    case signatureNotAllowed = "signature-not-allowed"
    case signatureMismatch = "signature-mismatch"

    /// A short, permanent token for metrics, logs and verdicts.
    package var token: String { rawValue }

    /// Whether the rule requires something that private authorities, including those made with
    /// openssl's own tool, commonly omit, or names that exist only in the public DNS.
    package var isAboutPresence: Bool {
        switch self {
        case .purposeMissing, .authorityKeyMissing, .subjectKeyMissing, .sanUnderscore,
            .privateSuffixWildcard, .unlistedSuffixWildcard:
            true
        default: false
        }
    }

    /// Whether public authorities violate the rule today, so that only `pedantic` applies it.
    package var isPedantic: Bool { self == .keyUsageMissing }

    /// Whether public authorities may issue what the rule forbids after checking that it is
    /// legitimate: the owner of a private suffix may have a wildcard for it, as for `*.github.io`.
    /// Below an anchor of the system's store only `pedantic` applies the rule.
    package var isLeftToAuthorities: Bool { self == .privateSuffixWildcard }

    /// What is wrong, to follow "the certificate of NAME".
    package var problem: String {
        switch self {
        case .sanMissing: "has no subject alternative name (BR 7.1.2.7.12)"
        case .sanCritical:
            "has critical subject alternative names although it has a subject (RFC 5280 §4.2.1.6)"
        case .sanNotCritical:
            "has no subject, and alternative names that are not critical (RFC 5280 §4.2.1.6)"
        case .sanMalformed: "has subject alternative names that cannot be read"
        case .sanBadName: "has an alternative name that no host can have"
        case .sanUnderscore: "has an alternative name with an underscore"
        case .commonNameNotInSAN:
            "has a common name that is a host or address and not among its alternative names,"
                + " letter by letter (BR 7.1.4.3)"
        case .publicSuffixWildcard: "has a wildcard for all names of a public suffix"
        case .privateSuffixWildcard:
            "has a wildcard for all names of a public suffix that a company runs"
        case .unlistedSuffixWildcard: "has a wildcard for all names of a top-level domain"
        case .purposeMissing: "does not state its purpose: extendedKeyUsage is missing"
        case .notForServers: "is not for TLS servers: extendedKeyUsage has no serverAuth"
        case .anyPurpose: "is for any purpose: extendedKeyUsage has anyExtendedKeyUsage"
        case .purposeCritical: "has a critical extendedKeyUsage"
        case .rootWithPurpose: "is a root and has extendedKeyUsage"
        case .authorityAsLeaf: "is a CA certificate, not a server certificate"
        case .leafWithAuthorityFlag:
            "is a server certificate, but its basicConstraints mark it as a CA"
        case .leafMaySign: "is a server certificate whose key may sign certificates (keyCertSign)"
        case .basicConstraintsMissing: "is a CA certificate without basicConstraints"
        case .basicConstraintsNotCritical:
            "is a CA certificate whose basicConstraints are not critical"
        case .notAnAuthority: "signed another certificate but is not a CA certificate"
        case .keyUsageMissing: "is a CA certificate without keyUsage"
        case .authorityWithoutName: "is a CA certificate with an empty subject"
        case .authorityKeyMissing: "does not identify its issuer's key (authorityKeyIdentifier)"
        case .authorityKeyForm:
            "identifies its issuer's key by issuer and serial number, not by the key's identifier"
        case .subjectKeyMissing: "is a CA certificate without subjectKeyIdentifier"
        case .keyIdentifierMismatch: "identifies a key other than its issuer's"
        case .keyIdentifierCritical: "has a critical key identifier"
        case .nameConstraintsOnLeaf: "is a server certificate with name constraints"
        case .nameConstraintsNotCritical: "has name constraints that are not critical"
        case .nameConstraintsMalformed: "has malformed name constraints"
        case .nameConstraintsEmpty: "has name constraints that neither permit nor exclude"
        case .nameConstraintsWildcard:
            "has a wildcard that covers a name excluded by its issuer's constraints"
        case .policyConstraintsNotCritical: "has policy constraints that are not critical"
        case .notDER: "is not encoded in DER"
        case .notVersion3: "is not version 3"
        case .serialNotPositive: "has a negative serial number"
        case .serialZero: "has the serial number zero"
        case .serialTooLong: "has a serial number of more than 20 octets"
        case .duplicateExtension: "has the same extension twice"
        case .informationAccessMalformed: "has a malformed authorityInfoAccess"
        case .rsaTooShort: "has an RSA key of fewer than 2048 bits"
        case .rsaNotMultipleOf8: "has an RSA key whose size is not a multiple of 8 bits"
        case .keyNotAllowed:
            "has a key that is neither RSA nor Ed25519 nor on P-256, P-384 or P-521"
        case .weakSignature: "is signed with SHA-1 or MD5"
        case .signatureNotAllowed: "is signed with an algorithm that is not allowed"
        case .signatureMismatch: "names two different signature algorithms"
        }
    }
}

/// A violation of a rule, and where in the chain it is.
package struct RuleViolation: Hashable, Sendable {
    package var rule: CertificateRule
    /// The certificate's position in the chain; 0 is the leaf.
    package var position: Int

    package init(_ rule: CertificateRule, position: Int) {
        self.rule = rule
        self.position = position
    }
}
