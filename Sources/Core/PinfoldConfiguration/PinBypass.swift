import Trust

/// Why a request must not reach a host that has pinsets: it would go around them.
package enum PinBypass: Sendable, Equatable, CaseIterable {
    /// Clear text proves nothing about the server.
    case clearText
    /// What goes through a tunnel cannot be judged.
    case tunnel
    /// The host has pinsets in another entry than the one for this port, which names none.
    case port
}

/// How a request reaches a server.
package enum ServerApproach: Sendable, Equatable {
    /// Unencrypted HTTP.
    case clearText
    /// CONNECT: the client's own bytes.
    case tunnel
    /// Verified TLS, after an upgrade or as requested.
    case verifiedTLS
}

extension ConfigurationSnapshot {
    /// Why a host must not be approached in this way, or nil when it may.
    ///
    /// A host that a pattern of an entry with pinsets matches, whatever the pattern's port, is
    /// *pinned*. A pinned host is reached in clear text or by a tunnel only if the entry that
    /// applies says so in words (`clearText: allow`, `tunnel: pass`), and by verified TLS, or a
    /// tunnel that is inspected, only if that entry names pinsets: an entry that says nothing,
    /// before the pinned one or for another port, exempts no host. One that is meant to names a
    /// pinset of `mode: none`.
    ///
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - index: The entry that applies to host and port.
    package func pinBypass(
        host: Span<UInt8>, entry index: Int?, by approach: ServerApproach
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
            // The server is judged, as with verified TLS.
            case .inspect: return pinBypass(host: host, entry: index, by: .verifiedTLS)
            case .refuse: return .tunnel
            case .auto: return hosts.isPinned(host) ? refusal(.tunnel, entry) : nil
            }
        case .verifiedTLS:
            return entry.namesPinsets || !hosts.isPinned(host) ? nil : .port
        }
    }

    private func refusal(_ bypass: PinBypass, _ entry: HostEntry?) -> PinBypass {
        entry.namesPinsets ? bypass : .port
    }
}

extension HostEntry? {
    fileprivate var namesPinsets: Bool { !(self?.pinsets.isEmpty ?? true) }
}
