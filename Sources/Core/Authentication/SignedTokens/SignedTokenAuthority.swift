import HTTPCore

/// Whose signed tokens are accepted: the issuer's keys, and what a token must say (RFC 7519, RFC
/// 8725). Whatever can be decided without a signature is, so that only a token that would be
/// accepted costs one.
package struct SignedTokenAuthority: Sendable, Equatable {
    package let rules: SignedTokenRules
    package let keys: KeyFile

    package init(rules: SignedTokenRules, keys: KeyFile) {
        self.rules = rules
        self.keys = keys
    }

    /// A token that lacks nothing but the proof that it is genuine.
    package struct Candidate {
        fileprivate let token: SignedToken
        fileprivate let keys: [VerificationKey]
        fileprivate let rules: SignedTokenRules
        fileprivate let user: String
        fileprivate let groups: [String]
        fileprivate let expires: Int64

        /// Verifies the signature: 20 to 100 µs for each key that may be the token's.
        /// - Returns: who the token is about.
        /// - Throws: `signature` if it is not genuine.
        package func verified() throws(SignedTokenError) -> Identity {
            let key = keys.first { $0.verifies(token.signature, of: token.input) }
            guard let key else { throw .signature }
            return Identity(
                user: user, groups: groups,
                by: .signedToken(SignedTokenProof(key: key, rules: rules)), expires: expires)
        }
    }

    /// Whether a token may be meant as a signed one: it has three parts.
    package static func mayBeMeant(by token: Span<UInt8>) -> Bool {
        SignedToken.ends(ofParts: token) != nil
    }

    /// Whether a token is meant as a signed one. It then counts as nothing else.
    package static func isMeant(by token: Span<UInt8>) -> Bool { SignedToken.isMeant(by: token) }

    /// Reads a token.
    /// - Parameter now: seconds since 1970.
    package func read(_ token: Span<UInt8>, at now: Int64) throws(SignedTokenError) -> Candidate {
        let token = try SignedToken(token)
        let candidates = keys.candidates(id: token.keyID, token.algorithm)
        guard !candidates.isEmpty else { throw .unknownKey }
        let (user, groups, expires) = try rules.read(token.claims, at: now)
        return Candidate(
            token: token, keys: candidates, rules: rules, user: user, groups: groups,
            expires: expires)
    }

    /// Whether a token that was accepted would still be, apart from its end: the same is demanded,
    /// and its key is still there.
    package func confirms(_ proof: SignedTokenProof) -> Bool {
        rules == proof.rules && keys.contains(proof.key)
    }
}

/// By what a signed token was found genuine.
package struct SignedTokenProof: Sendable, Equatable {
    package let key: VerificationKey
    package let rules: SignedTokenRules

    package init(key: VerificationKey, rules: SignedTokenRules) {
        self.key = key
        self.rules = rules
    }
}
