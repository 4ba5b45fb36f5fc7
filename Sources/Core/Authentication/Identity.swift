import Trust

/// How a client proves who it is. The names are those of the configuration.
package enum AuthenticationMethod: String, Sendable, CaseIterable {
    /// A user name and a password (RFC 7617).
    case basic
    /// A token (RFC 6750), which a file lists, or which is signed (RFC 7519).
    case bearer
    /// A certificate, in the TLS handshake with the listener.
    case certificate

    /// The methods from the strongest to the weakest: the key of a certificate is never sent, a
    /// token cannot be guessed, a password may be.
    package static let byStrength: [AuthenticationMethod] = [.certificate, .bearer, .basic]
}

/// The methods that a listener accepts; empty if it asks nobody.
package struct AuthenticationMethods: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let basic = AuthenticationMethods(rawValue: 1)
    package static let bearer = AuthenticationMethods(rawValue: 2)
    package static let certificate = AuthenticationMethods(rawValue: 4)

    package init(_ method: AuthenticationMethod) {
        switch method {
        case .basic: self = .basic
        case .bearer: self = .bearer
        case .certificate: self = .certificate
        }
    }

    /// The methods of a list.
    package init(_ methods: [AuthenticationMethod]) {
        self = methods.reduce(into: []) { $0.formUnion(AuthenticationMethods($1)) }
    }

    package func contains(_ method: AuthenticationMethod) -> Bool {
        contains(AuthenticationMethods(method))
    }

    /// The methods, strongest first.
    package var byStrength: [AuthenticationMethod] {
        AuthenticationMethod.byStrength.filter { contains($0) }
    }
}

/// Who a client has proved to be. It never changes: it is found once, when a request's head is
/// complete, or taken over from the CONNECT of the tunnel that the request came through.
package final class Identity: Sendable, Equatable {
    /// The name of the user or of the token, as a file has it, or as a signed token says, with a
    /// prefix.
    package let user: String
    /// The groups that the user is a member of, each once, sorted.
    package let groups: [String]
    /// By what it was proved.
    package let proof: IdentityProof
    /// Seconds since 1970 from which the proof is worth nothing; `nil` if it does not expire.
    package let expires: Int64?
    /// The user's name in UTF-8, for the access log.
    package let userBytes: [UInt8]

    package init(
        user: String, groups: some Sequence<String>, by proof: IdentityProof, expires: Int64? = nil
    ) {
        self.user = user
        self.groups = Set(groups).sorted()
        self.proof = proof
        self.expires = expires
        userBytes = Array(user.utf8)
    }

    /// How it was proved.
    package var method: AuthenticationMethod { proof.method }

    /// Whether the proof is still worth something.
    /// - Parameter now: seconds since 1970.
    package func isValid(at now: Int64) -> Bool { expires.map { now < $0 } ?? true }

    /// Whether the user is a member of a group.
    package func isMember(of group: String) -> Bool { groups.contains(group) }

    package static func == (one: Identity, other: Identity) -> Bool {
        one === other
            || one.user == other.user && one.groups == other.groups && one.proof == other.proof
                && one.expires == other.expires
    }
}

/// By what somebody has proved who they are. It contains nothing that would prove it again.
package enum IdentityProof: Sendable, Equatable {
    /// A password, which matched this hash.
    case password(PasswordHash)
    /// A token with this SHA-256.
    case token(ProofDigest)
    /// A token that was signed with this key.
    case signedToken(SignedTokenProof)
    /// A certificate with these names, which leads to an anchor of the listener.
    case certificate(CertificateNames)

    package var method: AuthenticationMethod {
        switch self {
        case .password: .basic
        case .token, .signedToken: .bearer
        case .certificate: .certificate
        }
    }
}
