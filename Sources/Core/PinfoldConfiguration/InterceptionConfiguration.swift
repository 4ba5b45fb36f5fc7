/// Which tunnels the gateway answers itself, in the name of their servers, and by whose authority.
package struct InterceptionConfiguration: Sendable, Equatable {
    /// Who issues the certificates that clients are shown; nil: nothing is intercepted.
    package var authority: InterceptionAuthority?
    /// What is done with CONNECT to hosts that no entry of `hosts` matches.
    package var byDefault = InterceptMode.never
    /// Certificates that are kept at most.
    package var maximumCertificates = 10_000
    /// The oldest version that is spoken with clients inside tunnels.
    package var minimum = ListenerTLS.Minimum.tls12
    /// When clients that reject the authority's certificates are no longer shown them.
    package var rejections = RejectionRules()

    /// No interception.
    package init() {}
}

/// How many rejections in a row, without a request in between, make the gateway stop intercepting
/// tunnels from one client to one host, and for how long, where the host's entry lets tunnels pass,
/// or has them inspected.
package struct RejectionRules: Sendable, Equatable {
    /// Alerts that say that the certificate will not do; 0: however many.
    package var alerts = 3
    /// Connections that the client ended after its handshake began and before any request; 0:
    /// however many.
    package var closes = 12
    /// Within what time they count.
    package var windowMilliseconds: Int64 = 600_000
    /// For how long the client is not shown a certificate for the host.
    package var periodMilliseconds: Int64 = 3_600_000

    /// The defaults.
    package init() {}
}

/// The files of the authority, read and checked when the configuration was loaded.
package struct InterceptionAuthority: Sendable, Equatable {
    /// Absolute.
    package var certificatePath: String
    /// Absolute.
    package var keyPath: String
    /// The content of the file of the certificate.
    package var certificatePEM: [UInt8]
    /// The content of the file of the key: a secret, never shown.
    package var keyPEM: [UInt8]

    /// An authority of these files.
    package init(
        certificatePath: String, keyPath: String, certificatePEM: [UInt8], keyPEM: [UInt8]
    ) {
        self.certificatePath = certificatePath
        self.keyPath = keyPath
        self.certificatePEM = certificatePEM
        self.keyPEM = keyPEM
    }
}

/// Whether CONNECT to a host is answered by the gateway itself.
package enum InterceptMode: String, Sendable, Equatable, CaseIterable {
    /// It is intercepted.
    case always = "true"
    /// It is not.
    case never = "false"
    /// It is where the host has pinsets, which a tunnel would go around, and there is an authority;
    /// not where `tunnel` says in words what is done with one, unless it is to be inspected.
    case auto
}

extension ConfigurationSnapshot {
    /// Whether CONNECT to a host is answered in its name.
    /// - Parameter index: The entry that applies to host and port; nil for none.
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

    /// Whether of intercepted tunnels to a host those are relayed that are not TLS: where its entry
    /// says in words that tunnels are.
    /// - Parameter index: The entry that applies to host and port; nil for none.
    package func passesClearText(entry index: Int?) -> Bool {
        index.map { hosts.entries[$0].tunnel == .pass } ?? false
    }

    /// Whether interception ends for clients that keep rejecting the certificates for a host: where
    /// its entry says in words that tunnels are relayed, or inspected.
    /// - Parameter index: The entry that applies to host and port; nil for none.
    package func fallsBack(entry index: Int?) -> Bool {
        passesClearText(entry: index) || inspection(entry: index) != nil
    }

    /// Whether tunnels to a host that are not intercepted are inspected, and what is done with
    /// those in which TLS 1.3 is spoken; nil: they are not.
    /// - Parameter index: The entry that applies to host and port; nil for none.
    package func inspection(entry index: Int?) -> TLS13TunnelMode? {
        guard let index, hosts.entries[index].tunnel == .inspect else { return nil }
        return hosts.entries[index].tls13Tunnel
    }

    /// Whether any host is intercepted whose tunnels pass, or are inspected, where clients reject
    /// the certificate.
    package var mayGiveUpInterception: Bool {
        hosts.entries.indices.contains {
            intercepts(entry: $0) && fallsBack(entry: $0) || inspection(entry: $0) == .intercept
        }
    }
}
