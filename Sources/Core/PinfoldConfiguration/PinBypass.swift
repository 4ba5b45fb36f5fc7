import Trust

/// Why a request must not be sent to a host that has pinsets: it would bypass them.
package enum PinBypass: Sendable, Equatable, CaseIterable {
    /// Clear text proves nothing about the server.
    case clearText
    /// The contents of a tunnel cannot be verified.
    case tunnel
    /// The host has pinsets in an entry other than the one for this port, which names none.
    case port
}

/// How a request is sent to a server.
package enum ServerApproach: Sendable, Equatable {
    /// Unencrypted HTTP.
    case clearText
    /// CONNECT: the client's own bytes.
    case tunnel
    /// Verified TLS, either upgraded to or as requested.
    case verifiedTLS
}

extension ConfigurationSnapshot {
    /// Why a host must not be contacted in this way; `nil` if it may be.
    ///
    /// A host that matches a pattern of an entry with pinsets, whatever the pattern's port, is
    /// *pinned*. A pinned host is contacted in clear text or by a tunnel only if the entry that
    /// applies explicitly allows it (`clearText: allow`, `tunnel: pass`), and by verified TLS, or
    /// an inspected tunnel, only if that entry names pinsets: an entry that names none, whether it
    /// precedes the pinned one or is for another port, does not exempt a host. To exempt one, name
    /// a pinset of `mode: none`.
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
            // The server is verified, as with verified TLS.
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
