import Trust

/// The users, groups, tokens and keys of one configuration: immutable, and the same object as long
/// as none of them changes.
package final class CredentialStore: Sendable {
    package let realm: String
    package let users: UserFile?
    package let groups: GroupFile?
    package let tokens: TokenFile?
    /// Whose signed tokens are accepted; `nil` if none are.
    package let signedTokens: SignedTokenAuthority?
    /// Whom the certificates of clients stand for.
    package let certificates: CertificateUsers

    package init(
        realm: String, users: UserFile? = nil, groups: GroupFile? = nil,
        tokens: TokenFile? = nil, signedTokens: SignedTokenAuthority? = nil,
        certificates: CertificateUsers = CertificateUsers([])
    ) {
        self.realm = realm
        self.users = users
        self.groups = groups
        self.tokens = tokens
        self.signedTokens = signedTokens
        self.certificates = certificates
    }

    /// What a token is worth.
    package enum TokenResult: Equatable {
        case accepted(Identity)
        case expired
        case unknown
    }

    /// - Parameters:
    ///   - digest: the token's SHA-256.
    ///   - now: seconds since 1970.
    package func identity(ofToken digest: ProofDigest, at now: Int64) -> TokenResult {
        guard let identity = tokens?[digest] else { return .unknown }
        return identity.isValid(at: now) ? .accepted(identity) : .expired
    }

    /// The identity of a user whose password was verified against `hash`; `nil` if that is not the
    /// user's any more.
    package func identity(of user: String, by hash: PasswordHash) -> Identity? {
        guard let users, users.hash(of: user) == hash else { return nil }
        return Identity(user: user, groups: groups?.groups(of: user) ?? [], by: .password(hash))
    }

    /// Whom a certificate stands for that leads to an anchor of the listener; `nil` for nobody.
    /// - Parameter end: the second since 1970 from which it is not valid any more.
    package func identity(of names: CertificateNames, until end: Int64) -> Identity? {
        certificates.user(of: names).map { user in
            Identity(
                user: user.name, groups: (groups?.groups(of: user.name) ?? []) + user.groups,
                by: .certificate(names), expires: end)
        }
    }

    /// Who somebody is now who was verified under other files; `nil` if that counts no more.
    func renewed(_ identity: Identity) -> Identity? {
        switch identity.proof {
        case .password(let hash): self.identity(of: identity.user, by: hash)
        case .signedToken(let proof):
            signedTokens?.confirms(proof) ?? false ? identity : nil
        // Cost no more to look up than to remember.
        case .token, .certificate: nil
        }
    }

    /// Whether an identity could be proved here now, by the same password or token: for the same
    /// user with the same groups.
    /// - Parameter now: seconds since 1970.
    package func confirms(_ identity: Identity, at now: Int64) -> Bool {
        switch identity.proof {
        case .password(let hash):
            return users?.hash(of: identity.user) == hash
                && (groups?.groups(of: identity.user) ?? []) == identity.groups
        case .token(let digest):
            guard case .accepted(let found) = self.identity(ofToken: digest, at: now) else {
                return false
            }
            return found.user == identity.user && found.groups == identity.groups
        case .signedToken(let proof):
            return identity.isValid(at: now) && signedTokens?.confirms(proof) ?? false
        case .certificate(let names):
            guard identity.isValid(at: now), let end = identity.expires,
                let found = self.identity(of: names, until: end)
            else { return false }
            return found.user == identity.user && found.groups == identity.groups
        }
    }

    /// The challenges to a client, one for each method, strongest first.
    /// - Parameter refused: the method of credentials that the client has just sent, and that are
    ///   not accepted.
    package func challenges(
        _ methods: AuthenticationMethods, refused: AuthenticationMethod? = nil
    ) -> [Challenge] {
        methods.byStrength.compactMap {
            Challenge($0, realm: realm, wasRefused: $0 == refused)
        }
    }
}
