public import HTTPTypes

/// A request for credentials or for a trust decision (`NSURLAuthenticationChallenge`).
public struct AuthenticationChallenge: Sendable {
    /// The authentication method.
    public enum Method: String, Sendable, Hashable, CaseIterable {
        /// Basic (RFC 7617): user name and password, which anyone on the path can read without TLS.
        case basic
        /// Digest (RFC 7616): proof that the client knows the password.
        case digest
        /// The server's certificate in the TLS handshake. The security policy already trusts it;
        /// the hook can reject it before anything is sent.
        case serverTrust
        /// A client certificate in the TLS handshake. Asked only if the policy and the hook trust
        /// the server, and none of ``SessionConfiguration/clientCertificates`` is for it.
        case clientCertificate
    }

    /// The protection space of the challenge. It has no realm if the challenge is part of the TLS
    /// handshake.
    public let protectionSpace: ProtectionSpace
    /// The authentication method.
    public let method: Method
    /// How many credentials the server has already rejected for this request.
    public let previousFailureCount: Int
    /// The credential that was rejected last, or `nil` if there is none.
    public let rejectedCredential: Credential?
    /// The response with status 401 or 407, or `nil` if the challenge is part of the TLS handshake.
    public let response: HTTPResponse?
    /// The request, without the session's credentials and cookies, or `nil` if the challenge is
    /// part of the TLS handshake, because a connection serves many requests.
    public let request: HTTPRequest?
    /// The server's certificates if the challenge is part of the TLS handshake, otherwise `nil`.
    public let serverTrust: ServerTrust?
    /// For ``Method/clientCertificate``, the distinguished names in DER of the authorities whose
    /// certificates the server accepts (`NSURLProtectionSpace.distinguishedNames`; RFC 8446 section
    /// 4.2.4). Empty if it accepts any authority.
    public let acceptedAuthorities: [[UInt8]]

    init(
        protectionSpace: ProtectionSpace, method: Method, previousFailureCount: Int = 0,
        rejectedCredential: Credential? = nil, response: HTTPResponse? = nil,
        request: HTTPRequest? = nil, serverTrust: ServerTrust? = nil,
        acceptedAuthorities: [[UInt8]] = []
    ) {
        (self.protectionSpace, self.method) = (protectionSpace, method)
        self.previousFailureCount = previousFailureCount
        self.rejectedCredential = rejectedCredential
        (self.response, self.request) = (response, request)
        self.serverTrust = serverTrust
        self.acceptedAuthorities = acceptedAuthorities
    }
}

/// How to respond to a challenge (`NSURLSessionAuthChallengeDisposition`).
///
/// For ``AuthenticationChallenge/Method/serverTrust``, only ``performDefaultHandling`` accepts the
/// server, which the ``SecurityPolicy`` already trusts. Anything else closes the connection, and
/// the tasks that need it fail with ``ClientError/Reason/secureConnectionFailed``. So a hook can be
/// stricter than the policy, but never more lenient.
///
/// For ``AuthenticationChallenge/Method/clientCertificate``, the response is
/// ``useCertificate(_:)``, or ``cancel``, which closes the connection as above. With anything else,
/// no certificate is sent, and the server decides what happens next.
public enum ChallengeDisposition: Sendable, Hashable {
    /// Repeat the request with this credential. A credential that has just been rejected is not
    /// sent again: the task then gets the response with the challenge.
    case useCredential(Credential)
    /// Present this certificate, if the server is one of its ``ClientCertificate/hosts``, otherwise
    /// none. For all other challenges this is the same as ``performDefaultHandling``.
    case useCertificate(ClientCertificate)
    /// Continue as without a hook: the task gets the response with the challenge.
    case performDefaultHandling
    /// The task fails with ``ClientError/Reason/cancelled``.
    case cancel
    /// Try another challenge of the same response. If there is none, the task gets the response.
    case rejectProtectionSpace
}

/// Responds to challenges. It is called if a server requires credentials and the session's
/// ``CredentialStore`` has none for it, or they were rejected; for each TLS connection, to confirm
/// the trust in the server; and if a server requests a client certificate.
///
/// **Any host involved in a task may send a challenge**: besides the server of its URL, every
/// server that a redirect leads to, even in clear text, and proxies. So a hook must check
/// ``AuthenticationChallenge/protectionSpace`` before it gives away a password:
///
///     let space = challenge.protectionSpace
///     let own = try? ProtectionSpace("https://example.com/", realm: space.realm)
///     guard space == own else { return .rejectProtectionSpace }
///
/// The hook may take its time: only tasks that need the answer wait for it. Tasks with the same
/// challenge wait for the same answer, so that a user is asked only once. The hook is cancelled
/// once no task waits for it any more. For server trust it is called separately for each
/// connection, within ``SessionConfiguration/connectTimeout``. Sessions with a hook do not resume
/// TLS sessions, so that the hook always sees the whole chain.
public typealias ChallengeHook =
    @Sendable (_ challenge: AuthenticationChallenge) async -> ChallengeDisposition
