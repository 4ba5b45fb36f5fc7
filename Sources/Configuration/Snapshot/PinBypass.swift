import Pinning

/// Why a request must not reach a host that has pinsets: it would go around them.
package enum PinBypass: Sendable, Equatable, CaseIterable {
    /// Clear text proves nothing about the server.
    case clearText
    /// What goes through a tunnel cannot be judged.
    case tunnel
    /// The host has pinsets, but the entry for this port, or for the port that an upgrade leads to,
    /// does not name them.
    case port
}

/// How a request reaches a server.
package enum ServerApproach: Sendable, Equatable {
    /// Unencrypted HTTP.
    case clearText
    /// CONNECT: the client's own bytes.
    case tunnel
    /// Verified TLS to this port, which differs from the one requested after an upgrade.
    case verifiedTLS(port: UInt16)
}

extension ConfigurationSnapshot {
    /// Why a host must not be approached in this way, or nil when it may.
    ///
    /// A host that a pattern of an entry with pinsets matches, whatever the pattern's port, is
    /// *pinned*. A pinned host is reached in clear text or by a tunnel only if the entry that
    /// applies says so in words (`clearText: allow`, `tunnel: pass`).
    ///
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    ///   - index: The entry that applies to host and port.
    package func pinBypass(
        host: Span<UInt8>, port: UInt16, entry index: Int?, by approach: ServerApproach
    ) -> PinBypass? {
        let entry = index.map { hosts.entries[$0] }
        switch approach {
        case .clearText:
            switch entry?.clearText ?? .auto {
            case .allow: return nil
            case .refuse: return .clearText
            case .auto: return hosts.isPinned(host) ? refusal(.clearText, entry) : nil
            }
        case .tunnel:
            switch entry?.tunnel ?? .auto {
            case .pass: return nil
            case .refuse: return .tunnel
            case .auto: return hosts.isPinned(host) ? refusal(.tunnel, entry) : nil
            }
        case .verifiedTLS(let connected):
            guard let entry else { return hosts.isPinned(host) ? .port : nil }
            guard entry.pinsets.isEmpty, connected != port,
                let other = hostEntry(host: host, port: connected)
            else { return nil }
            return hosts.entries[other].pinsets.isEmpty ? nil : .port
        }
    }

    private func refusal(_ bypass: PinBypass, _ entry: HostEntry?) -> PinBypass {
        entry == nil ? .port : bypass
    }
}
