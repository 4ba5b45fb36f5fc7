/// How a rule of `access.rules` that allows a CONNECT has its tunnel handled, in place of the entry
/// of `hosts`; `nil` for as the entry says.
///
/// A rule may be stricter than the entry, and choose whether tunnels are intercepted. It never has
/// a tunnel relayed or inspected that the entry refuses, nor one relayed unread that the entry has
/// inspected, or whose host is pinned.
package struct TunnelSettings: Sendable, Equatable {
    package var tunnel: TunnelMode?
    package var intercept: InterceptMode?

    package init(tunnel: TunnelMode? = nil, intercept: InterceptMode? = nil) {
        self.tunnel = tunnel
        self.intercept = intercept
    }

    /// As the entry says.
    package static let none = TunnelSettings()
}

extension ConfigurationSnapshot {
    /// How tunnels that are not intercepted are handled: the stricter of what the entry and the
    /// rule say.
    /// - Parameter index: The entry that applies to host and port; `nil` if there is none.
    package func tunnelMode(entry index: Int?, by rule: TunnelSettings) -> TunnelMode {
        let own = index.map { hosts.entries[$0].tunnel } ?? .auto
        guard let asked = rule.tunnel else { return own }
        switch (own, asked) {
        case (_, .auto), (.refuse, _): return own
        // Passed already, unless the host is pinned.
        case (.auto, .pass): return .auto
        case (.inspect, .pass): return .inspect
        case (.auto, .inspect), (.auto, .refuse), (.pass, .pass), (.pass, .inspect),
            (.pass, .refuse), (.inspect, .inspect), (.inspect, .refuse):
            return asked
        }
    }
}
