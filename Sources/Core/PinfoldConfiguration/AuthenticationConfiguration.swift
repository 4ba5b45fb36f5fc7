import Authentication
import Trust

/// Against what clients of listeners with `authentication` prove who they are.
package struct AuthenticationConfiguration: Sendable, Equatable {
    /// The realm in challenges, printable ASCII.
    package var realm = "Pinfold"
    /// The users and their passwords; `nil` if there are none.
    package var users: UserFile?
    /// The groups of users; `nil` if there are none.
    package var groups: GroupFile?
    /// The tokens; `nil` if there are none.
    package var tokens: TokenFile?
    /// Whose signed tokens are accepted; `nil` if none are.
    package var signedTokens: SignedTokenConfiguration?
    /// Whom the certificates of clients stand for; the first rule that matches decides.
    package var certificates: [CertificateUserRule] = []

    /// Creates the default: nobody can prove anything.
    package init() {}

    /// Whether a rule may name a user who is in no file: one in a signed token or certificate.
    package func mayName(user name: String) -> Bool {
        signedTokens?.rules.mayName(name) ?? false || certificates.contains { $0.mayName(name) }
    }

    /// The same for a group.
    package func mayName(group name: String) -> Bool {
        signedTokens.map { $0.rules.groupsClaim != nil && $0.rules.mayName(name) } ?? false
    }

    /// The names of all in files who can prove who they are, sorted.
    package var userNames: [String] {
        Set(
            (users?.users ?? []) + (tokens?.everyIdentity.map(\.user) ?? [])
                + certificates.compactMap(\.fixedUser)
        ).sorted()
    }

    /// The names of all groups in files, sorted.
    package var groupNames: [String] {
        Set(
            (groups?.names ?? []) + (tokens?.everyIdentity.flatMap(\.groups) ?? [])
                + certificates.flatMap(\.groups)
        ).sorted()
    }

    /// Who a user is: with a password, or else with the first of the name's tokens, with a
    /// certificate, or with a signed token that names no group; `nil` if nobody can have this name.
    package func identity(ofUser name: String) -> Identity? {
        if let hash = users?.hash(of: name) {
            return Identity(
                user: name, groups: groups?.groups(of: name) ?? [], by: .password(hash))
        }
        if let known = tokens?.everyIdentity.first(where: { $0.user == name }) { return known }
        if let rule = certificates.first(where: { $0.mayName(name) }) {
            return Identity(
                user: name, groups: (groups?.groups(of: name) ?? []) + rule.groups,
                by: .certificate(CertificateNames()))
        }
        guard let signedTokens, signedTokens.rules.mayName(name),
            let key = signedTokens.keys?.keys.first?.key
        else { return nil }
        return Identity(
            user: name, groups: [],
            by: .signedToken(SignedTokenProof(key: key, rules: signedTokens.rules)))
    }
}

/// Whose signed tokens are accepted: `authentication.jwt`.
package struct SignedTokenConfiguration: Sendable, Equatable {
    package var rules = SignedTokenRules()
    /// The issuer's keys; `nil` only while the configuration is read.
    package var keys: KeyFile?

    package init() {}

    fileprivate var authority: SignedTokenAuthority? {
        keys.map { SignedTokenAuthority(rules: rules, keys: $0) }
    }
}

extension CredentialStore {
    package convenience init(_ configuration: AuthenticationConfiguration) {
        self.init(
            realm: configuration.realm, users: configuration.users, groups: configuration.groups,
            tokens: configuration.tokens, signedTokens: configuration.signedTokens?.authority,
            certificates: CertificateUsers(configuration.certificates))
    }
}
