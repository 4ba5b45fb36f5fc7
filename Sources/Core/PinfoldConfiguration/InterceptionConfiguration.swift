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
    /// - Parameters:
    ///   - index: The entry that applies to host and port; `nil` if there is none.
    ///   - rule: What the rule says that allows it.
    package func intercepts(entry index: Int?, by rule: TunnelSettings = .none) -> Bool {
        guard interception.authority != nil else { return false }
        let entry = index.map { hosts.entries[$0] }
        var mode = entry?.intercept ?? interception.byDefault
        if let asked = rule.intercept {
            mode = asked
        } else if mode == .auto, let tunnel = rule.tunnel, tunnel != .auto {
            // As in an entry: what is written about tunnels takes precedence.
            mode = .never
        }
        switch mode {
        case .always: return true
        case .never: return false
        case .auto:
            guard let entry else { return false }
            let tunnel = tunnelMode(entry: index, by: rule)
            return !entry.pinsets.isEmpty && (tunnel == .auto || tunnel == .inspect)
        }
    }

    /// Whether intercepted tunnels to a host are relayed if they are not TLS: only if its entry
    /// explicitly allows tunnels.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func passesClearText(entry index: Int?, by rule: TunnelSettings = .none) -> Bool {
        index != nil && tunnelMode(entry: index, by: rule) == .pass
    }

    /// Whether interception stops for clients that keep rejecting the certificates for a host: only
    /// if its entry explicitly relays or inspects tunnels.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func fallsBack(entry index: Int?, by rule: TunnelSettings = .none) -> Bool {
        passesClearText(entry: index, by: rule) || inspection(entry: index, by: rule) != nil
    }

    /// Whether tunnels to a host that are not intercepted are inspected, and how those with TLS 1.3
    /// are handled; `nil` if they are not inspected.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func inspection(
        entry index: Int?, by rule: TunnelSettings = .none
    ) -> TLS13TunnelMode? {
        guard tunnelMode(entry: index, by: rule) == .inspect else { return nil }
        return index.map { hosts.entries[$0].tls13Tunnel } ?? .refuse
    }

    /// Whether interception may be given up for any host: one whose tunnels are relayed or
    /// inspected when clients reject the certificate.
    package var mayGiveUpInterception: Bool {
        ([.none] + access.rules.map(\.tunnels)).contains { rule in
            (hosts.entries.indices.map { $0 } + [nil]).contains { entry in
                intercepts(entry: entry, by: rule) && fallsBack(entry: entry, by: rule)
                    || inspection(entry: entry, by: rule) == .intercept
            }
        }
    }
}
