/// Why a client has not proved who it is, in the order of the documentation. The statuses are those
/// of a forward listener; a reverse one answers 401 in place of 407.
package enum AuthenticationReason: UInt8, Sendable, CaseIterable {
    case required
    case credentialsUnusable
    case credentialsWrong
    case credentialsExpired
    case credentialsRepeated
    case busy
    case ended
    case certificateUnknown

    /// The token, status, meaning and remedy.
    package var entry: ReasonEntry {
        switch self {
        case .required:
            ReasonEntry(
                "authentication-required", .authentication, 407, .requestDenied,
                "the listener serves only clients that prove who they are",
                remedy: "Give the client a user name and password or a token "
                    + "(`http://user:password@host:port` as its proxy). 401 on a reverse listener.")
        case .credentialsUnusable:
            ReasonEntry(
                "credentials-unusable", .authentication, 407, .requestDenied,
                "the credentials are malformed, or of a scheme that the listener does not accept",
                remedy: "The reply's challenges name the schemes of the listener's "
                    + "`authentication`. Basic must be the base64 of `user:password` in UTF-8. 401 "
                    + "on a reverse listener.")
        case .credentialsWrong:
            ReasonEntry(
                "credentials-wrong", .authentication, 407, .requestDenied,
                "the user, the password or the token is wrong",
                remedy: "Compare them with the files of `authentication`; what is wrong with a "
                    + "signed token is in the log at the level `debug`. Failures delay the next "
                    + "attempts for the same user from the same network. 401 on a reverse "
                    + "listener.")
        case .credentialsExpired:
            ReasonEntry(
                "credentials-expired", .authentication, 407, .requestDenied,
                "the token has expired",
                remedy: "Issue another one; if it is not signed, with its line in "
                    + "`authentication.tokens`. 401 on a reverse listener.")
        case .credentialsRepeated:
            ReasonEntry(
                "credentials-repeated", .authentication, 400, .requestError,
                "the request has more than one field with credentials for the gateway",
                remedy: "The client, or something between it and the gateway, adds a second "
                    + "Proxy-Authorization (Authorization on a reverse listener).")
        case .busy:
            ReasonEntry(
                "authentication-busy", .authentication, 503, .connectionLimitReached,
                "too many passwords are waiting to be checked, this user's next attempt from this "
                    + "network is too far away after failures, or too many tokens from this "
                    + "network had wrong signatures",
                remedy: "Find out who is trying passwords. A cheaper hash (a lower bcrypt cost) "
                    + "lets more be checked. After failures, `Retry-After` says when the next "
                    + "attempt is made at once; without them it is 5 seconds, a guess.")
        case .ended:
            ReasonEntry(
                "credentials-ended", .authentication, 403, .requestDenied,
                "who asked for the tunnel could not do so any more: the token has expired, or "
                    + "the files of `authentication` have changed",
                remedy: "The client has to open another tunnel, with credentials that are still "
                    + "accepted.")
        case .certificateUnknown:
            ReasonEntry(
                "certificate-unknown", .authentication, 403, .requestDenied,
                "the listener serves only clients whose certificate stands for a user, and this "
                    + "one has none, or one that stands for nobody",
                remedy: "Add its subject or its alternative name to "
                    + "`authentication.certificates`; a name that matches in two ways, or that has "
                    + "control characters, stands for nobody.")
        }
    }

    /// Whether the reply asks the client to try again with other credentials.
    package var isChallenge: Bool {
        switch self {
        case .required, .credentialsUnusable, .credentialsWrong, .credentialsExpired: true
        case .credentialsRepeated, .busy, .ended, .certificateUnknown: false
        }
    }
}
