import HTTPCore

extension Authenticator {
    /// A protection space (RFC 9110, section 11.5): a realm of an origin server or of a proxy.
    package struct Space: Hashable, Sendable {
        /// The server or proxy that sends the challenge.
        package var origin: Origin
        /// The realm's name as the server sends it. An empty name is a valid realm.
        package var realm: String

        /// Creates the protection space of one realm of an origin.
        package init(origin: Origin, realm: String) { (self.origin, self.realm) = (origin, realm) }
    }

    /// The server or proxy that sends challenges.
    package struct Origin: Hashable, Sendable {
        /// `http` or `https`.
        package var scheme: String
        /// The host, in lower case.
        package var host: String
        /// The port in the URL, or the scheme's default.
        package var port: Int
        /// Whether the challenges come from a proxy (407) and not from an origin server (401).
        package var isProxy: Bool

        /// Creates an origin. The letter case of scheme and host does not matter.
        package init(scheme: String, host: String, port: Int, isProxy: Bool = false) {
            (self.scheme, self.host) = (scheme.lowercasedASCII, host.lowercasedASCII)
            (self.port, self.isProxy) = (port, isProxy)
        }
    }
}
