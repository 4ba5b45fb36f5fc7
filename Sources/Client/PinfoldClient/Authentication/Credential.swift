import HTTPCore

/// A user name and password (`NSURLCredential`).
public struct Credential: Sendable, Hashable {
    /// How long a credential returned by a ``ChallengeHook`` is used.
    public enum Persistence: Sendable, Hashable, CaseIterable {
        /// Only for the tasks that were waiting for it.
        case none
        /// For all requests in its protection space, for the lifetime of the session.
        case forSession
    }

    /// The user name. It is sent in UTF-8 and should be in Unicode Normalization Form C, which
    /// servers expect (RFC 7616 section 4).
    public var user: String
    /// The password, with the same encoding as ``user``.
    public var password: String
    /// How long the credential is used.
    public var persistence: Persistence

    /// Creates a credential.
    public init(user: String, password: String, persistence: Persistence = .forSession) {
        self.user = user
        self.password = password
        self.persistence = persistence
    }

    init(_ credentials: UserCredentials) {
        self.init(user: credentials.user, password: credentials.password)
    }

    var credentials: UserCredentials { UserCredentials(user: user, password: password) }
}

/// The password is omitted, so that it does not appear in logs.
extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Credential(user: \(user))" }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(self, children: ["user": user, "persistence": persistence])
    }
}

/// The scope of a credential: a realm of an origin (RFC 9110 section 11.5; `NSURLProtectionSpace`).
/// A credential for one space is never sent to another.
public struct ProtectionSpace: Sendable, Hashable {
    /// `http` or `https`.
    public let scheme: String
    /// The host in lower case. An IPv6 address has no brackets.
    public let host: String
    /// The port in the URL, or the scheme's default.
    public let port: UInt16
    /// The name of the realm; empty if it has none.
    public let realm: String
    /// Whether the challenges come from a proxy (407) and not from an origin server (401). The
    /// space of a proxy is never equal to that of an origin server.
    public let isProxy: Bool

    /// Creates the protection space of an origin server.
    ///
    /// - Parameters:
    ///   - url: Any URL of the origin. Its path is ignored.
    ///   - realm: The realm as the server writes it. The letter case matters.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` if the URL is not an
    ///   absolute http or https URL.
    public init(_ url: String, realm: String) throws(ClientError) {
        guard let reference = URIReference(encoding: url), let scheme = reference.scheme,
            scheme == "http" || scheme == "https", let authority = reference.authority,
            !authority.isEmpty, !authority.contains("@"),
            let origin = RequestOrigin(scheme: scheme, authority: authority.lowercasedASCII)
        else {
            throw ClientError(
                .invalidRequest, "the URL is not an absolute http or https URL", url: url)
        }
        self.init(origin, realm: realm)
    }

    /// Creates the protection space of a proxy.
    ///
    /// - Parameters:
    ///   - proxy: The proxy.
    ///   - realm: The realm as the proxy writes it. The letter case matters.
    public init(_ proxy: Proxy, realm: String) {
        self.init(
            scheme: proxy.scheme.rawValue, host: proxy.host, port: proxy.port, realm: realm,
            isProxy: true)
    }

    init(scheme: String, host: String, port: UInt16, realm: String, isProxy: Bool) {
        (self.scheme, self.host, self.port) = (scheme, host, port)
        (self.realm, self.isProxy) = (realm, isProxy)
    }

    init(_ origin: RequestOrigin, realm: String, isProxy: Bool = false) {
        let isBracketed = origin.host.hasPrefix("[") && origin.host.hasSuffix("]")
        scheme = origin.scheme
        host = isBracketed ? String(origin.host.dropFirst().dropLast()) : origin.host
        port = origin.port
        self.realm = realm
        self.isProxy = isProxy
    }

    init(_ space: Authenticator.Space) {
        scheme = space.origin.scheme
        host = space.origin.host
        port = UInt16(clamping: space.origin.port)
        realm = space.realm
        isProxy = space.origin.isProxy
    }

    var origin: Authenticator.Origin {
        .init(scheme: scheme, host: host, port: Int(port), isProxy: isProxy)
    }

    var space: Authenticator.Space { .init(origin: origin, realm: realm) }
}
