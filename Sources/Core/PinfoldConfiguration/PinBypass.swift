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
    /// a pinset of `mode: none`. An entry of a policy exempts no host that the local file pins,
    /// whatever it says.
    ///
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - index: The entry that applies to host and port.
    ///   - rule: What the rule says that allows a tunnel.
    package func pinBypass(
        host: Span<UInt8>, entry index: Int?, by approach: ServerApproach,
        _ rule: TunnelSettings = .none
    ) -> PinBypass? {
        if hosts.escapesLocalPins(host, entry: index) { return .port }
        return pinBypass(entry: index, by: approach, rule) { hosts.isPinned(host) }
    }

    /// The same for the hosts of an entry whose names are in no other entry with pinsets; `**`
    /// counts, whose pinsets pin every host.
    package func pinBypass(
        entry index: Int?, by approach: ServerApproach, _ rule: TunnelSettings = .none
    ) -> PinBypass? {
        pinBypass(entry: index, by: approach, rule) {
            (index.map { hosts.entries[$0] }).namesPinsets
                || (hosts.everyOther.map { hosts.entries[$0] }).namesPinsets
        }
    }

    private func pinBypass(
        entry index: Int?, by approach: ServerApproach, _ rule: TunnelSettings,
        isPinned: () -> Bool
    ) -> PinBypass? {
        let entry = index.map { hosts.entries[$0] }
        switch approach {
        case .clearText:
            switch entry?.clearText ?? .auto {
            case .allow: return nil
            case .refuse: return .clearText
            case .auto: return isPinned() ? refusal(.clearText, entry) : nil
            }
        case .tunnel:
            switch tunnelMode(entry: index, by: rule) {
            case .pass: return nil
            // The server is verified, as with verified TLS.
            case .inspect:
                return pinBypass(entry: index, by: .verifiedTLS, rule, isPinned: isPinned)
            case .refuse: return .tunnel
            case .auto: return isPinned() ? refusal(.tunnel, entry) : nil
            }
        case .verifiedTLS:
            return entry.namesPinsets || !isPinned() ? nil : .port
        }
    }

    private func refusal(_ bypass: PinBypass, _ entry: HostEntry?) -> PinBypass {
        entry.namesPinsets ? bypass : .port
    }
}

extension HostEntry? {
    fileprivate var namesPinsets: Bool { !(self?.pinsets.isEmpty ?? true) }
}
