/// Applies the rules to a chain, the leaf first and the anchor last.
package struct ChainRules {
    let chain: [CertificateFields]
    package var profile: AppliedProfile
    let suffixes: any PublicSuffixes
    let isComplete: Bool

    /// - Parameter isComplete: whether the last certificate is an anchor; otherwise it is just the
    ///   last one that was found.
    package init(
        chain: [CertificateFields], profile: AppliedProfile, suffixes: any PublicSuffixes,
        isComplete: Bool = true
    ) {
        self.isComplete = isComplete
        self.chain = chain
        self.profile = profile
        self.suffixes = suffixes
    }

    /// The first violation, from the leaf up; `nil` if there is none. A complete chain of one
    /// certificate is a leaf that is itself the anchor and is trusted as such: no rule applies to
    /// it.
    package var violation: RuleViolation? {
        guard profile.profile != .lenient, chain.count > (isComplete ? 1 : 0) else {
            return nil
        }
        return firstViolation(from: 0)
    }

    /// The first violation in the certificates from a position on.
    func firstViolation(from start: Int) -> RuleViolation? {
        for position in chain.indices[start...] {
            var found = certificate(chain[position])
            if position == 0 { found += leaf(chain[0]) } else { found += authority(at: position) }
            found += keyIdentifiers(at: position)
            let isAnchor = position == chain.count - 1
            if let rule = found.first(where: { profile.counts($0, isAnchor: isAnchor) }) {
                return RuleViolation(rule, position: position)
            }
        }
        return nil
    }

    // MARK: Every certificate

    private func certificate(_ fields: CertificateFields) -> [CertificateRule] {
        var found: [CertificateRule] = []
        if fields.version != 3 { found.append(.notVersion3) }
        if let rule = serial(fields.serial) { found.append(rule) }
        if hasDuplicate(fields.extensions) { found.append(.duplicateExtension) }
        found += KeyRules.violations(publicKey: fields.publicKey)
        if fields.innerAlgorithm != fields.outerAlgorithm { found.append(.signatureMismatch) }
        if let rule = KeyRules.violation(signature: fields.outerAlgorithm) { found.append(rule) }
        if let access = fields.informationAccess, !Self.isWellFormed(informationAccess: access) {
            found.append(.informationAccessMalformed)
        }
        return found
    }

    private func serial(_ serial: ArraySlice<UInt8>) -> CertificateRule? {
        guard let first = serial.first else { return .serialZero }
        if first >= 0x80 { return .serialNotPositive }
        if serial.allSatisfy({ $0 == 0 }) { return .serialZero }
        return serial.count > 20 ? .serialTooLong : nil
    }

    private func hasDuplicate(_ extensions: [CertificateFields.Extension]) -> Bool {
        guard extensions.count <= Self.extensionsCompared else { return true }
        for (index, one) in extensions.enumerated() {
            for other in extensions[..<index] where other.identifier == one.identifier {
                return true
            }
        }
        return false
    }

    /// A certificate with more extensions than this is treated as an attempt to flood the
    /// comparison.
    private static let extensionsCompared = 64

    /// RFC 5280 §4.2.2.1: at least one pair of a method and a GeneralName; never critical.
    private static func isWellFormed(
        informationAccess access: CertificateFields.Extension
    ) -> Bool {
        guard !access.isCritical,
            let list = DERReader.single(access.value, DERElement.sequence)?.children, !list.isEmpty
        else { return false }
        return list.allSatisfy { element in
            guard element.tag == DERElement.sequence, let parts = element.children,
                parts.count == 2, parts[0].tag == DERElement.objectIdentifier,
                !parts[0].contents.isEmpty
            else { return false }
            // GeneralName: the context-specific tags 0 to 8. A URI consists of IA5 characters.
            guard parts[1].tag & 0xC0 == 0x80, parts[1].tag & 0x1F <= 8 else { return false }
            return parts[1].tag != 0x86
                || (!parts[1].contents.isEmpty
                    && parts[1].contents.allSatisfy { (0x21...0x7E).contains($0) })
        }
    }

    // MARK: Authorities

    private func authority(at position: Int) -> [CertificateRule] {
        let fields = chain[position]
        let isRoot = position == chain.count - 1 && fields.isSelfIssued
        var found: [CertificateRule] = []
        if fields.hasEmptySubject { found.append(.authorityWithoutName) }
        if fields.standard(StandardExtension.basicConstraints) == nil {
            found.append(.basicConstraintsMissing)
        } else if let constraints = fields.basicConstraints {
            if !constraints.isAuthority { found.append(.notAnAuthority) }
            if !constraints.isCritical { found.append(.basicConstraintsNotCritical) }
        } else {
            found.append(.notAnAuthority)
        }
        switch fields.maySignCertificates {
        case nil: found.append(.keyUsageMissing)
        case false: found.append(.notAnAuthority)
        default: break
        }
        if isRoot, fields.standard(StandardExtension.extendedKeyUsage) != nil {
            found.append(.rootWithPurpose)
        }
        found += constraints(at: position)
        if let policy = fields.standard(StandardExtension.policyConstraints), !policy.isCritical {
            found.append(.policyConstraintsNotCritical)
        }
        return found
    }

    // MARK: Key identifiers

    private func keyIdentifiers(at position: Int) -> [CertificateRule] {
        let fields = chain[position]
        let isAnchor = position == chain.count - 1
        var found: [CertificateRule] = []
        if let own = fields.standard(StandardExtension.subjectKeyIdentifier) {
            if own.isCritical { found.append(.keyIdentifierCritical) }
            if fields.subjectKeyIdentifier == nil { found.append(.subjectKeyMissing) }
        } else if position > 0 {
            found.append(.subjectKeyMissing)
        }
        guard fields.standard(StandardExtension.authorityKeyIdentifier) != nil else {
            // A root need not identify its own key (RFC 5280 §4.2.1.1).
            if !fields.isSelfIssued { found.append(.authorityKeyMissing) }
            return found
        }
        guard let authority = fields.authorityKeyIdentifier else {
            found.append(.authorityKeyForm)
            return found
        }
        if authority.isCritical { found.append(.keyIdentifierCritical) }
        guard let key = authority.keyIdentifier, !authority.namesIssuer else {
            found.append(.authorityKeyForm)
            return found
        }
        let issuer =
            isAnchor
            ? (fields.isSelfIssued ? fields.subjectKeyIdentifier : nil)
            : chain[position + 1].subjectKeyIdentifier
        if let issuer, issuer != key { found.append(.keyIdentifierMismatch) }
        return found
    }
}

extension CertificateFields {
    /// authorityInfoAccess, 1.3.6.1.5.5.7.1.1.
    var informationAccess: Extension? {
        extensions.first {
            $0.identifier.elementsEqual([0x2B, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x01])
        }
    }
}

/// Knows which names are public suffixes.
package protocol PublicSuffixes: Sendable {
    /// - Parameter name: in ASCII and lower case, without a trailing dot.
    func kind(of name: String) -> PublicSuffixKind
}

/// What kind of public suffix a name is (https://publicsuffix.org).
package enum PublicSuffixKind: Hashable, Sendable {
    /// Not a suffix: a name that someone registered, or one below it.
    case none
    /// A registry's suffix, such as `co.uk`.
    case listed
    /// A suffix of a company whose customers have names below it, such as `github.io`.
    case privateSuffix
    /// A single label that the list does not contain; the list's default rule makes it a suffix.
    case unlisted
}
