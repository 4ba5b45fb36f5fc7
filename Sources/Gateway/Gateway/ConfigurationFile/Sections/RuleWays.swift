import PinfoldConfiguration

/// The ways in which requests to an entry's hosts, or to those without an entry, can arrive and be
/// sent.
struct RuleWays {
    let hasForward: Bool
    /// The servers of reverse listeners that the entry applies to.
    let reverse: [UpstreamOrigin]
    let intercepts: Bool
    /// Whether requests for `http://` are served and sent in clear text.
    let servesClearText: Bool
    /// Whether requests for `http://` are served and sent as TLS.
    let upgrades: Bool
    /// Whether all patterns are for port 443, to which no clear text is sent.
    let isTLSOnly: Bool
    /// A description of the tunnels that are relayed unread, or `nil` if there are none.
    let passedTunnels: String?
    /// A description of the tunnels that are relayed to servers that are not verified, or `nil` if
    /// there are none.
    let unverifiedTunnels: String?
    /// The names of the rules that have tunnels relayed to servers that are not verified.
    let unverifiedByRules: [String]
    /// Whether tunnels are relayed unread for somebody, by the entry or by a rule.
    let relaysUnread: Bool

    /// - Parameter index: The entry; `nil` for hosts without one.
    init(_ snapshot: ConfigurationSnapshot, _ index: Int?) {
        let entry = index.map { snapshot.hosts.entries[$0] }
        hasForward = snapshot.listeners.contains(where: \.kind.takesRequests)
        reverse = snapshot.listeners.flatMap(\.upstreamOrigins).filter { origin in
            snapshot.hostEntry(host: origin.host.utf8.span, port: origin.port) == index
        }
        let hasTunnels =
            snapshot.listeners.contains(where: \.kind.isForward)
            && snapshot.access.connectPorts != .ports([])
        intercepts = hasTunnels && snapshot.interceptsSomebody(entry: index)
        isTLSOnly = entry?.match.allSatisfy { $0.port == 443 } ?? false
        let isUpgraded = entry?.upgradesToHTTPS ?? false
        upgrades = hasForward && isUpgraded
        servesClearText =
            hasForward && !isUpgraded && !isTLSOnly
            && snapshot.pinBypass(entry: index, by: .clearText) == nil
        relaysUnread = hasTunnels && snapshot.relaysSomebody(entry: index)
        let leavesUnverified = snapshot.leavesUnverified(entry: index, by: .none)
        if !hasTunnels || !leavesUnverified {
            unverifiedTunnels = nil
        } else if !snapshot.intercepts(entry: index) {
            unverifiedTunnels = "tunnels"
        } else {
            unverifiedTunnels =
                snapshot.passesClearText(entry: index)
                ? "tunnels without TLS, or of clients that reject certificates" : nil
        }
        let isOpen = unverifiedTunnels == "tunnels"
        unverifiedByRules = snapshot.access.rules.filter { rule in
            hasTunnels && !isOpen && rule.tunnels != .none
                && snapshot.leavesUnverified(entry: index, by: rule.tunnels)
                && !snapshot.intercepts(entry: index, by: rule.tunnels)
        }.map(\.name)
        if relaysUnread {
            passedTunnels = "tunnels"
        } else if intercepts, snapshot.fallsBack(entry: index) {
            passedTunnels =
                snapshot.passesClearText(entry: index)
                ? "tunnels without TLS, and tunnels of clients that keep rejecting the "
                    + "interception's certificates,"
                : "tunnels of clients that keep rejecting the interception's certificates"
        } else {
            passedTunnels = nil
        }
    }

    /// Whether the gateway can read any requests, apart from those for `https://` in absolute form,
    /// which hardly any client sends.
    var isSeen: Bool { intercepts || upgrades || servesClearText || !reverse.isEmpty }

    /// Whether all requests that the gateway can read are sent in clear text.
    var isClearTextOnly: Bool {
        isSeen && !intercepts && !upgrades && reverse.allSatisfy { $0.scheme == .http }
    }
}

extension ConfigurationSnapshot {
    /// What the rules say about tunnels, and that none says anything.
    private var tunnelSettings: [TunnelSettings] {
        [.none] + access.rules.map(\.tunnels).filter { $0 != .none }
    }

    /// Whether tunnels to an entry's hosts are intercepted for anybody.
    func interceptsSomebody(entry index: Int?) -> Bool {
        tunnelSettings.contains { intercepts(entry: index, by: $0) }
    }

    /// Whether tunnels to an entry's hosts are relayed, and not intercepted, for anybody.
    func relaysSomebody(entry index: Int?) -> Bool {
        tunnelSettings.contains { settings in
            !intercepts(entry: index, by: settings)
                && pinBypass(entry: index, by: .tunnel, settings) == nil
        }
    }

    /// Whether the servers of tunnels that are not intercepted are not verified.
    func leavesUnverified(entry index: Int?, by settings: TunnelSettings) -> Bool {
        tunnelMode(entry: index, by: settings) != .inspect
            && pinBypass(entry: index, by: .tunnel, settings) == nil
    }
}
