import HTTPAuthentication
import HTTPCore

/// A user's name and password (`NSURLCredential`).
public struct Credential: Sendable, Hashable {
    /// How long a credential is used that a ``ChallengeHook`` gives.
    public enum Persistence: Sendable, Hashable, CaseIterable {
        /// For the tasks that were waiting for it.
        case none
        /// For all requests of its protection space, as long as the session is there.
        case forSession
    }

    /// In UTF-8 and Unicode's form C, as servers expect it (RFC 7616 section 4).
    public var user: String
    /// As ``user``.
    public var password: String
    /// How long it is used.
    public var persistence: Persistence

    /// A credential of these parts; see the properties.
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

/// The password is left out, so that it gets into no log.
extension Credential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Credential(user: \(user))" }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(self, children: ["user": user, "persistence": persistence])
    }
}

/// Where a credential is valid: a realm of an origin (RFC 9110 section 11.5;
/// `NSURLProtectionSpace`). Nothing that is for one space is ever sent to another.
public struct ProtectionSpace: Sendable, Hashable {
    /// `http` or `https`.
    public let scheme: String
    /// In lower case; an address of IPv6 without brackets.
    public let host: String
    /// Said by the URL, or its scheme's own.
    public let port: UInt16
    /// What the server calls it; empty where it has no name.
    public let realm: String
    /// A proxy asks (407), not an origin server (401). The spaces of the two are never equal.
    public let isProxy: Bool

    /// A realm of an origin.
    ///
    /// - Parameters:
    ///   - url: Any URL of the origin; its path does not count.
    ///   - realm: As the server writes it: letter case counts.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidRequest`` for no absolute http or
    ///   https URL.
    public init(_ url: String, realm: String) throws(ClientError) {
        guard let reference = URIReference(url), let scheme = reference.scheme,
            scheme == "http" || scheme == "https", let authority = reference.authority,
            !authority.isEmpty, !authority.contains("@"),
            let origin = RequestOrigin(scheme: scheme, authority: authority.lowercasedASCII)
        else {
            throw ClientError(
                .invalidRequest, "the URL is not an absolute http or https URL", url: url)
        }
        self.init(origin, realm: realm)
    }

    /// A realm of a proxy, which asks by a 407.
    ///
    /// - Parameter realm: As the proxy writes it: letter case counts.
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
