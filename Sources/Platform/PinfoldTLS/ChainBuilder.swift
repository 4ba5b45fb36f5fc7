import COpenSSL
import Clocks
import HTTPCore
import Trust

/// Builds a chain from a leaf to a trust anchor and verifies it: with the library, and against the
/// rules of the profile. Lives within one verification.
struct ChainBuilder {
    /// The result of verifying one chain.
    struct Attempt {
        var result: Result<BuiltChain, ChainError>
        /// Whether another chain from the same leaf could be accepted.
        var mayDependOnPath = false
        /// Whether the leaf is the anchor, and no list of its issuer could be verified.
        var lacksIssuer = false
    }

    let leaf: OpaquePointer
    let leafIdentity: CertificateIdentity
    /// What the server sent, or `nil` if nothing.
    let sent: OpaquePointer?
    /// The anchors: those of a store, or otherwise `trusted`.
    let store: OpaquePointer?
    let trusted: CertificateStack?
    /// The host that the leaf must name, or `nil` for none.
    let host: String?
    let verifier: TrustVerifier
    /// When the certificates must be valid, in seconds since 1970; `nil` for now.
    let time: Int64?

    /// The chain that the library finds, or else another one: the library decides for an issuer
    /// once and never goes back.
    func build() -> Result<BuiltChain, ChainError> {
        var first = attempt(sent: sent, store: store, trusted: trusted)
        if first.lacksIssuer, trusted != nil,
            let issuers = verifier.roots.anchors(named: X509_get_issuer_name(leaf))
        {
            // Servers do not send their root, which issued the list.
            first = attempt(sent: issuers.pointer, store: store, trusted: trusted)
        }
        guard case .failure(let failure) = first.result, first.mayDependOnPath else {
            return first.result
        }
        var search = PathSearch(self)
        switch search.run() {
        case .success(let chain)?: return .success(chain)
        // A chain that reached an anchor and then broke a rule is more informative than none.
        case .failure(let other)? where failure.isMissingAnchor: return .failure(other)
        default: return first.result
        }
    }

    /// The other accepted chains, within the limits of the search.
    func others(than first: BuiltChain) -> [BuiltChain] {
        var search = PathSearch(self)
        return search.others(than: first)
    }

    /// Verifies a chain up to one of its certificates, the leaf's issuer or above, which becomes
    /// the anchor. Nothing else replaces the certificates in between.
    func attempt(_ chain: CertificateStack, endingAt end: Int) -> Attempt {
        guard let intermediates = CertificateStack(), let anchors = CertificateStack(),
            let anchor = chain[end]
        else { return Attempt(result: .failure(.outOfMemory)) }
        for index in 1..<end {
            if let one = chain[index] { intermediates.append(one) }
        }
        anchors.append(anchor)
        return attempt(sent: intermediates.pointer, store: nil, trusted: anchors)
    }

    /// Verifies the chain that the library builds from these certificates, and applies the profile.
    func attempt(
        sent: OpaquePointer?, store: OpaquePointer?, trusted: CertificateStack?
    ) -> Attempt {
        guard let building = X509_STORE_CTX_new() else {
            return Attempt(result: .failure(.outOfMemory))
        }
        defer {
            X509_STORE_CTX_free(building)
            ErrorQueue.clear()
        }
        guard X509_STORE_CTX_init(building, store, leaf, sent) == 1,
            X509_STORE_CTX_set_default(building, "ssl_server") == 1,
            let parameters = X509_STORE_CTX_get0_param(building)
        else { return Attempt(result: .failure(.outOfMemory)) }
        if let host, !ChainBuilder.require(host, parameters) {
            return Attempt(
                result: .failure(.hostMismatch(host: host, names: X509View(leaf).names)))
        }
        X509_VERIFY_PARAM_set_auth_level(parameters, verifier.securityLevel)
        X509_VERIFY_PARAM_set_time(parameters, time_t(time ?? Clock.wallSeconds()))
        X509_STORE_CTX_set_verify_cb(building, InclusiveExpiry.callback)
        X509_VERIFY_PARAM_set_flags(
            parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST))
        verifier.revocation?.require(in: building, parameters)
        if let trusted { X509_STORE_CTX_set0_trusted_stack(building, trusted.pointer) }
        guard X509_verify_cert(building) == 1 else { return refused(building) }
        guard let chain = X509_STORE_CTX_get1_chain(building),
            let built = BuiltChain(CertificateStack(owning: chain), leaf: leafIdentity)
        else { return Attempt(result: .failure(.outOfMemory)) }
        if let revoked = verifier.revocation?.anchorFailure(
            built.certificates, among: verifier.roots, and: self.trusted)
        {
            return Attempt(result: .failure(.revocation(revoked)), mayDependOnPath: true)
        }
        guard let violation = violation(of: built.certificates, isTrusted: true) else {
            return Attempt(result: .success(built))
        }
        return Attempt(
            result: .failure(failure(violation, in: built.certificates)),
            mayDependOnPath: violation.position > 0 || violation.rule == .keyIdentifierMismatch)
    }

    /// How the library's refusal is reported: by the rule that was broken, if that is more
    /// specific.
    private func refused(_ building: OpaquePointer) -> Attempt {
        var failure = ChainError(building, leaf: leaf, host: host ?? "")
        let depth = X509_STORE_CTX_get_error_depth(building)
        let mayDependOnPath: Bool
        var lacksIssuer = false
        switch failure {
        case .hostMismatch, .selfSigned: mayDependOnPath = false
        case .incompleteChain, .untrustedRoot, .badSignature, .constraintViolated:
            mayDependOnPath = true
        default: mayDependOnPath = depth > 0
        }
        if let chain = X509_STORE_CTX_get1_chain(building) {
            let certificates = CertificateStack(owning: chain)
            if case .revocation(let found) = failure, certificates.count == 1 {
                // The library tried the leaf's own key if a list does not say whose it is.
                lacksIssuer = true
                failure = .revocation(verifier.revocation?.unverifiable(leaf) ?? found)
            }
            // For a leaf alone, the library checks the key before anything else.
            if certificates.count > 1 || isWeak(failure),
                let violation = violation(of: certificates, isTrusted: false),
                ChainBuilder.explains(violation.rule, failure)
            {
                failure = self.failure(violation, in: certificates)
            }
        }
        return Attempt(
            result: .failure(failure), mayDependOnPath: mayDependOnPath, lacksIssuer: lacksIssuer)
    }

    private func isWeak(_ failure: ChainError) -> Bool {
        if case .weakCryptography = failure { true } else { false }
    }

    /// Whether a broken rule explains the library's error.
    static func explains(_ rule: CertificateRule, _ failure: ChainError) -> Bool {
        switch failure {
        case .wrongPurpose, .weakCryptography, .other, .badSignature: true
        case .hostMismatch:
            [.sanMissing, .sanMalformed, .sanBadName, .notVersion3].contains(rule)
        case .constraintViolated:
            rule == .nameConstraintsMalformed || rule == .nameConstraintsEmpty
        default: false
        }
    }

    // MARK: The profile

    /// The first rule that a chain breaks.
    ///
    /// - Parameter isTrusted: whether it ends in an anchor; otherwise it is as far as the library
    ///   got.
    func violation(of chain: CertificateStack, isTrusted: Bool) -> RuleViolation? {
        guard verifier.profile.profile != .lenient, chain.count > (isTrusted ? 1 : 0) else {
            return nil
        }
        var fields: [CertificateFields] = []
        for index in 0..<chain.count {
            guard let der = chain[index].flatMap({ X509View($0).der }),
                let read = CertificateFields(der: der)
            else { return RuleViolation(.notDER, position: index) }
            fields.append(read)
        }
        var applied = AppliedProfile(verifier.profile.profile)
        applied.hasSystemAnchor =
            isTrusted && trusted == nil && chain[chain.count - 1].map(verifier.roots.isOwn) == false
        applied.waivesPresence = !verifier.profile.isChosen && !applied.hasSystemAnchor
        var rules = ChainRules(
            chain: fields, profile: applied, suffixes: SuffixList(), isComplete: isTrusted)
        let first = rules.violation
        guard let found = first, isTrusted,
            found.position == chain.count - 1 || found.rule.isLeftToAuthorities,
            !applied.hasSystemAnchor, let anchor = chain[chain.count - 1],
            SystemStore.contains(anchor)
        else { return first }
        // One of the system's roots is just as good from a file.
        rules.profile.hasSystemAnchor = true
        return rules.violation
    }

    func failure(_ violation: RuleViolation, in chain: CertificateStack) -> ChainError {
        let subject = chain[violation.position].map { X509View($0).subject } ?? ""
        return .rule(violation.rule, subject: subject)
    }

    /// Includes the host in the check: an address is compared with the certificate's addresses, a
    /// name only with its DNS names (RFC 9525 §2: never the common name), with whole-label
    /// wildcards.
    ///
    /// - Returns: `false` for a host that no certificate can name.
    static func require(_ host: String, _ parameters: OpaquePointer) -> Bool {
        let bytes = Array(host.utf8)
        if let address = IPAddress(literal: bytes.span)?.unmapped.networkBytes {
            return X509_VERIFY_PARAM_set1_ip(parameters, address, address.count) == 1
        }
        X509_VERIFY_PARAM_set_hostflags(
            parameters,
            UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        // An empty name would disable the check.
        guard !bytes.isEmpty, !bytes.contains(0) else { return false }
        return bytes.withUnsafeBytes { raw in
            X509_VERIFY_PARAM_set1_host(
                parameters, raw.baseAddress?.assumingMemoryBound(to: CChar.self), raw.count) == 1
        }
    }
}

/// A chain that the library verified.
struct BuiltChain {
    let certificates: CertificateStack
    let verified: VerifiedChain

    /// `nil` only if the library is out of memory.
    ///
    /// - Parameter leaf: the identity of the chain's first certificate.
    init?(_ certificates: CertificateStack, leaf: CertificateIdentity) {
        var identities: [CertificateIdentity] = []
        var expires = Int64.max
        for index in 0..<certificates.count {
            guard let pointer = certificates[index],
                let identity = index == 0 ? leaf : X509View(pointer).identity
            else { return nil }
            identities.append(identity)
            expires = min(expires, X509View(pointer).notAfter)
        }
        guard !identities.isEmpty else { return nil }
        self.certificates = certificates
        verified = VerifiedChain(certificates: identities, expires: expires)
    }
}
