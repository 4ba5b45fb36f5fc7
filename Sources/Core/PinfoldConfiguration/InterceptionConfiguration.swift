/// Which tunnels the gateway terminates itself in the server's name, and the authority it uses.
package struct InterceptionConfiguration: Sendable, Equatable {
    /// The authority that issues the certificates shown to clients; `nil` if nothing is
    /// intercepted.
    package var authority: InterceptionAuthority?
    /// How CONNECT to hosts that no entry of `hosts` matches is handled.
    package var byDefault = InterceptMode.never
    /// The maximum number of certificates that are kept.
    package var maximumCertificates = 10_000
    /// The minimum TLS version with clients inside tunnels.
    package var minimum = ListenerTLS.Minimum.tls12
    /// When interception stops for clients that reject the authority's certificates.
    package var rejections = RejectionRules()

    /// Creates a configuration without interception.
    package init() {}
}

/// After how many consecutive rejections, without a request in between, the gateway stops
/// intercepting tunnels from one client to one host, and for how long, if the host's entry lets
/// tunnels pass or has them inspected.
package struct RejectionRules: Sendable, Equatable {
    /// Alerts that reject the certificate; 0 for no limit.
    package var alerts = 3
    /// Connections that the client closed after its handshake began and before any request; 0 for
    /// no limit.
    package var closes = 12
    /// The time within which they count.
    package var windowMilliseconds: Int64 = 600_000
    /// How long the client is then not shown a certificate for the host.
    package var periodMilliseconds: Int64 = 3_600_000

    /// Creates the defaults.
    package init() {}
}

/// The files of the authority, read and checked when the configuration was loaded.
package struct InterceptionAuthority: Sendable, Equatable {
    /// The absolute path of the certificate.
    package var certificatePath: String
    /// The absolute path of the key.
    package var keyPath: String
    /// The contents of the certificate file.
    package var certificatePEM: [UInt8]
    /// The contents of the key file: a secret, never shown.
    package var keyPEM: [UInt8]

    /// Creates an authority from its files.
    package init(
        certificatePath: String, keyPath: String, certificatePEM: [UInt8], keyPEM: [UInt8]
    ) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.certificatePEM = certificatePEM
        self.keyPEM = keyPEM
    }
}

/// Whether the gateway itself answers CONNECT to a host.
package enum InterceptMode: String, Sendable, Equatable, CaseIterable {
    /// Always.
    case always = "true"
    /// Never.
    case never = "false"
    /// If the host has pinsets, which a tunnel would bypass, and there is an authority; but not if
    /// `tunnel` is explicitly set to anything but `inspect`.
    case auto
}

extension ConfigurationSnapshot {
    /// Whether CONNECT to a host is intercepted.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func intercepts(entry index: Int?) -> Bool {
        guard interception.authority != nil else { return false }
        guard let index else { return interception.byDefault == .always }
        let entry = hosts.entries[index]
        switch entry.intercept {
        case .always: return true
        case .never: return false
        case .auto:
            return !entry.pinsets.isEmpty && (entry.tunnel == .auto || entry.tunnel == .inspect)
        }
    }

    /// Whether intercepted tunnels to a host are relayed if they are not TLS: only if its entry
    /// explicitly allows tunnels.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func passesClearText(entry index: Int?) -> Bool {
        index.map { hosts.entries[$0].tunnel == .pass } ?? false
    }

    /// Whether interception stops for clients that keep rejecting the certificates for a host: only
    /// if its entry explicitly relays or inspects tunnels.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func fallsBack(entry index: Int?) -> Bool {
        passesClearText(entry: index) || inspection(entry: index) != nil
    }

    /// Whether tunnels to a host that are not intercepted are inspected, and how those with TLS 1.3
    /// are handled; `nil` if they are not inspected.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func inspection(entry index: Int?) -> TLS13TunnelMode? {
        guard let index, hosts.entries[index].tunnel == .inspect else { return nil }
        return hosts.entries[index].tls13Tunnel
    }

    /// Whether interception may be given up for any host: one whose tunnels are relayed or
    /// inspected when clients reject the certificate.
    package var mayGiveUpInterception: Bool {
        hosts.entries.indices.contains {
            intercepts(entry: $0) && fallsBack(entry: $0) || inspection(entry: $0) == .intercept
        }
    }
}
