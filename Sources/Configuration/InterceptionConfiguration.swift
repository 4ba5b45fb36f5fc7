/// Which tunnels the gateway answers itself, in the name of their servers, and by whose authority.
package struct InterceptionConfiguration: Sendable, Equatable {
    /// Who issues the certificates that clients are shown; nil: nothing is intercepted.
    package var authority: InterceptionAuthority?
    /// What is done with CONNECT to hosts that no entry of `hosts` matches.
    package var byDefault = InterceptMode.never
    /// Certificates that are kept at most.
    package var maximumCertificates = 10_000

    /// No interception.
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
    /// not where `tunnel` says in words what is done with one.
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
        case .auto: return !entry.pinsets.isEmpty && entry.tunnel == .auto
        }
    }
}
