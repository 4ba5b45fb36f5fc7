public import HTTPTypes

/// What a server asks for (`NSURLAuthenticationChallenge`).
public struct AuthenticationChallenge: Sendable {
    /// How the asker wants to be convinced.
    public enum Method: String, Sendable, Hashable, CaseIterable {
        /// RFC 7617: name and password, which anybody on the way reads where there is no TLS.
        case basic
        /// RFC 7616: proof that the client has the password.
        case digest
        /// The server's certificate, in the TLS handshake: the policy trusts it, and the hook may
        /// refuse it before anything is sent.
        case serverTrust
        /// A certificate of the client's, in the TLS handshake, where the policy and the hook trust
        /// the server, and none of ``SessionConfiguration/clientCertificates`` is for it.
        case clientCertificate
    }

    /// Who asks, and for what; without a realm for what is asked in the TLS handshake.
    public let space: ProtectionSpace
    /// How the answer is to be given.
    public let method: Method
    /// How many credentials the server has refused for this request already.
    public let previousFailureCount: Int
    /// The credential that was refused last; nil: none was.
    public let refusedCredential: Credential?
    /// The 401; nil for what is asked in the TLS handshake.
    public let response: HTTPResponse?
    /// What was asked, without credentials and cookies of the session's; nil for what is asked in
    /// the TLS handshake, since a connection serves many requests.
    public let request: HTTPRequest?
    /// What the server has shown; nil but for what is asked in the TLS handshake.
    public let serverTrust: ServerTrust?
    /// For ``Method/clientCertificate``, the authorities whose certificates the server accepts:
    /// their distinguished names in DER (`NSURLProtectionSpace.distinguishedNames`; RFC 8446
    /// section 4.2.4). Empty where it accepts any.
    public let acceptedAuthorities: [[UInt8]]

    init(
        space: ProtectionSpace, method: Method, previousFailureCount: Int = 0,
        refusedCredential: Credential? = nil, response: HTTPResponse? = nil,
        request: HTTPRequest? = nil, serverTrust: ServerTrust? = nil,
        acceptedAuthorities: [[UInt8]] = []
    ) {
        (self.space, self.method) = (space, method)
        self.previousFailureCount = previousFailureCount
        self.refusedCredential = refusedCredential
        (self.response, self.request) = (response, request)
        self.serverTrust = serverTrust
        self.acceptedAuthorities = acceptedAuthorities
    }
}

/// What is done about a challenge (`NSURLSessionAuthChallengeDisposition`).
///
/// Of ``AuthenticationChallenge/Method/serverTrust`` only ``performDefaultHandling`` lets pass the
/// server, which the ``SecurityPolicy`` has found to be trusted; anything else ends the connection,
/// and the tasks that need it fail with ``ClientError/Reason/secureConnectionFailed``. So a hook
/// can be stricter than the policy, never more lenient.
///
/// To ``AuthenticationChallenge/Method/clientCertificate`` the answer is ``useCertificate(_:)``, or
/// ``cancel``, which ends the connection as above. With anything else the server is shown none, and
/// decides what comes of that.
public enum ChallengeDisposition: Sendable, Hashable {
    /// The request is sent again with this. A credential that has just been refused is not sent
    /// again: the response with the challenge is then the task's.
    case useCredential(Credential)
    /// The server is shown this certificate, if it is one of its ``ClientCertificate/hosts``; else,
    /// none. To any other challenge it is no answer: ``performDefaultHandling``.
    case useCertificate(ClientCertificate)
    /// As without a hook: the response with the challenge is the task's.
    case performDefaultHandling
    /// The task fails with ``ClientError/Reason/cancelled``.
    case cancel
    /// Another challenge of the same response is looked at; without one, the response is the
    /// task's.
    case rejectProtectionSpace
}

/// Asked when a server wants credentials and the session's ``CredentialStore`` has none for it, or
/// they were refused; about the trust in the server of each connection by TLS; and for a
/// certificate where that server wants one.
///
/// **Whoever a task has to do with may ask**: besides the server of its URL each one that a
/// redirect leads to, in clear text, too, and proxies. So a hook looks at
/// ``AuthenticationChallenge/space`` before it gives a password away:
///
///     let own = try? ProtectionSpace("https://example.com/", realm: challenge.space.realm)
///     guard challenge.space == own else { return .rejectProtectionSpace }
///
/// It may take its time: only the tasks wait that need the answer. Tasks that are challenged alike
/// meanwhile wait for the same answer, so that a person is asked once. It is cancelled when none of
/// them waits any longer. About a server it is asked for each connection by itself, and has as long
/// as ``SessionConfiguration/connectTimeout`` says. Sessions with a hook resume no TLS session, so
/// that it always sees the whole chain.
public typealias ChallengeHook =
    @Sendable (_ challenge: AuthenticationChallenge) async -> ChallengeDisposition
