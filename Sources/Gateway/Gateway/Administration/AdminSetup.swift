/// What clients need to know to use the gateway: the content of the setup pages.
package struct AdminSetup: Sendable, Equatable {
    /// The certificate that clients of intercepted hosts must trust.
    package struct Authority: Sendable, Equatable {
        package var pem: [UInt8]
        package var der: [UInt8]
        /// SHA-256, as `openssl x509 -fingerprint -sha256` prints it.
        package var fingerprint: String

        package init(pem: [UInt8], der: [UInt8], fingerprint: String) {
            self.pem = pem
            self.der = der
            self.fingerprint = fingerprint
        }
    }

    /// The address of one of the gateway's listeners, as seen by clients.
    package struct Address: Sendable, Equatable {
        /// A name or an address, IPv6 in brackets.
        package var host: String
        package var port: UInt16
        /// Whether clients speak TLS to it.
        package var isSecure: Bool

        package init(host: String, port: UInt16, isSecure: Bool = false) {
            self.host = host
            self.port = port
            self.isSecure = isSecure
        }

        var url: String { "\(isSecure ? "https" : "http")://\(host):\(port)" }
    }

    /// The forward proxy, or `nil` if there is none.
    package var proxy: Address?
    /// The address of these pages.
    package var site: Address
    /// `nil` if nothing is intercepted.
    package var authority: Authority?

    package init(proxy: Address?, site: Address, authority: Authority?) {
        self.proxy = proxy
        self.site = site
        self.authority = authority
    }

    /// Whether the response for a target contains any of this.
    package static func isShown(at target: String) -> Bool {
        switch AdminSite.Page(path: target.prefix { $0 != "?" }) {
        case .authorityPEM, .authorityDER, .proxyConfiguration, .setup: true
        case .index, .metrics, .health, .readiness, nil: false
        }
    }
}

/// The proxy auto-configuration file, which browsers and devices read.
enum ProxyAutoConfiguration {
    /// - Parameters:
    ///   - proxy: host and port of the forward proxy.
    ///   - isSecure: whether clients speak TLS to it.
    static func text(proxy: String, isSecure: Bool) -> String {
        """
        // Everything goes through the gateway, except what is on the client itself. There is no
        // fallback: a client that bypassed the gateway would bypass its pins.
        function FindProxyForURL(url, host) {
            if (host === "localhost" || dnsDomainIs(host, ".localhost") ||
                shExpMatch(host, "127.*") || host === "::1" || host === "[::1]") {
                return "DIRECT";
            }
            return "\(isSecure ? "HTTPS" : "PROXY") \(proxy)";
        }

        """
    }
}
