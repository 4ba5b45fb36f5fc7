import HTTPCore
import Trust

/// A key with which a policy would widen what the local file allows.
package struct PolicyWidening: Sendable, Equatable {
    package var key: PolicyKey
    package var problem: String
    package var expected: String

    package init(_ key: PolicyKey, _ problem: String, expected: String) {
        (self.key, self.problem, self.expected) = (key, problem, expected)
    }
}

/// Decides whether what a policy adds only narrows a local configuration. It is given values, not
/// text: however something is written, it counts by what it means.
package struct PolicyNarrowing: Sendable {
    package let local: ConfigurationSnapshot
    /// What its rules say about tunnels, each once, with ``TunnelSettings/none`` first.
    private let tunnelSettings: [TunnelSettings]

    package init(_ local: ConfigurationSnapshot) {
        self.local = local
        var settings = [TunnelSettings.none]
        for rule in local.access.rules where !settings.contains(rule.tunnels) {
            settings.append(rule.tunnels)
        }
        tunnelSettings = settings
    }

    /// What applies to a host that no local entry names, as an entry: that of `**`, or else what
    /// the whole configuration says. Every entry of a policy begins as this.
    package var base: HostEntry {
        var base: HostEntry
        if let index = local.hosts.everyOther {
            base = local.hosts.entries[index]
        } else {
            base = HostEntry(tls: local.tls)
            base.intercept = local.interception.byDefault
        }
        (base.match, base.name, base.probe) = ([], nil, nil)
        return base
    }

    /// An entry of a policy as it applies, from what was read over ``base``: the pinsets that
    /// applied before apply as well, tunnels are intercepted only where they were before, and what
    /// the policy pins is not let past its pins.
    package func applied(_ read: HostEntry) -> HostEntry {
        let base = base
        var entry = read
        entry.pinsets = base.pinsets + read.pinsets.filter { !base.pinsets.contains($0) }
        entry.intercept = intercepts(base, by: .none) ? base.intercept : .never
        if entry.pinsets != base.pinsets {
            if entry.tunnel == .pass { entry.tunnel = .auto }
            if entry.clearText == .allow { entry.clearText = .auto }
        }
        return entry
    }

    // MARK: Entries of hosts

    /// In what an entry of a policy is less strict than what applied before.
    /// - Parameters:
    ///   - entry: as ``applied(_:)``.
    ///   - pinsets: those that its indices mean.
    package func widenings(of entry: HostEntry, pinsets: [PinsetEntry]) -> [PolicyWidening] {
        let base = base
        var found: [PolicyWidening] = []
        func require(
            _ holds: Bool, _ key: PolicyKey, _ problem: @autoclosure () -> String,
            _ expected: @autoclosure () -> String
        ) {
            if !holds { found.append(PolicyWidening(key, problem(), expected: expected())) }
        }
        func choice(_ holds: Bool, _ key: PolicyKey, _ value: String, _ before: String) {
            require(
                holds, key, "\(value) is not as strict as \(before), which applies without it",
                before)
        }
        let label = entry.label
        require(
            !local.hosts.entries.contains { $0.label == label }, .hostsName,
            "\(label) is the name of a local entry", "a name of its own")
        require(
            !Self.reservedLabels.contains(label), .hostsName,
            "\(label) is what hosts without an entry are called", "a name of its own")
        require(
            !entry.match.contains(.everything) || local.hosts.everyOther == nil, .hostsMatch,
            "'**' has an entry in the local file", "other patterns")
        require(
            entry.upgradesToHTTPS || !base.upgradesToHTTPS, .hostsUpgrade,
            "none is not as strict as https, which applies without it", "https")
        require(
            entry.upgradesToHTTPS == base.upgradesToHTTPS || !decidesByPort, .hostsUpgrade,
            "https leads to port 443, and rules of the local file decide by port", "no key")
        choice(
            mayHandle(entry, base), .hostsTunnel, entry.tunnel.rawValue, base.tunnel.rawValue)
        choice(
            mayProbe(entry, base), .hostsTLS13Tunnel, entry.tls13Tunnel.rawValue,
            base.tls13Tunnel.rawValue)
        require(
            tunnelSettings.allSatisfy { !intercepts(entry, by: $0) || intercepts(base, by: $0) },
            entry.pinsets == base.pinsets ? .hostsTunnel : .hostsPinsets,
            "has tunnels intercepted that are not without it",
            "none, because a local rule has tunnels to pinned hosts intercepted")
        choice(
            entry.liveTunnels.strictness >= base.liveTunnels.strictness, .hostsLiveTunnels,
            entry.liveTunnels.rawValue, base.liveTunnels.rawValue)
        choice(
            entry.clearText.strictness >= base.clearText.strictness, .hostsClearText,
            entry.clearText.rawValue, base.clearText.rawValue)
        choice(
            entry.switchProtocols.strictness >= base.switchProtocols.strictness,
            .hostsSwitchProtocols, entry.switchProtocols.rawValue, base.switchProtocols.rawValue)
        choice(
            entry.http2 == base.http2 || entry.http2 == .off && base.http2 == .auto, .hostsHTTP2,
            entry.http2.rawValue, base.http2.rawValue)
        for index in entry.pinsets where !base.pinsets.contains(index) {
            require(
                pinsets.indices.contains(index) && pinsets[index].pinset.onlyAdds, .hostsPinsets,
                "the pinset \(Self.name(index, pinsets)) may accept servers that others would not",
                "pinsets that compare keys, without certificates, roots of their own and invalid "
                    + "certificates")
        }
        choice(
            entry.tls.minimum.strictness >= base.tls.minimum.strictness, .hostsTLSMinimum,
            entry.tls.minimum.rawValue, base.tls.minimum.rawValue)
        choice(
            TrustProfile.strictness(entry.tls.profile) >= TrustProfile.strictness(base.tls.profile),
            .hostsTLSProfile, entry.tls.profile?.rawValue ?? "none",
            base.tls.profile?.rawValue ?? "none")
        choice(
            entry.tls.ocspStapling == base.tls.ocspStapling || entry.tls.ocspStapling == .required,
            .hostsTLSStapling, entry.tls.ocspStapling.rawValue, base.tls.ocspStapling.rawValue)
        require(
            !entry.cacheStores || base.cacheStores, .hostsCacheStore,
            "true is not as strict as false, which applies without it", "false")
        require(
            changesNothingElse(entry, base), .hostsMatch,
            "the entry changes more than a policy may", "the keys of a policy only")
        return found
    }

    /// The labels of requests to which no entry applies.
    private static let reservedLabels = ["none", "default"]

    private static func name(_ index: Int, _ pinsets: [PinsetEntry]) -> String {
        pinsets.indices.contains(index) ? pinsets[index].pinset.name : "\(index)"
    }

    /// Whether it matters to the local file by which port a request goes.
    private var decidesByPort: Bool {
        func name(_ patterns: [HostPattern]) -> Bool { patterns.contains { $0.port != nil } }
        return local.access.rules.contains { !$0.ports.isEmpty || name($0.hosts) }
            || local.hosts.entries.contains { name($0.match) } || name(local.access.allow.patterns)
    }

    /// Whether tunnels to the hosts of an entry are intercepted.
    private func intercepts(_ entry: HostEntry, by rule: TunnelSettings) -> Bool {
        guard local.interception.authority != nil else { return false }
        var snapshot = local
        var entry = entry
        entry.match = []
        snapshot.hosts = HostTable(entries: [entry])
        return snapshot.intercepts(entry: 0, by: rule)
    }

    /// Whether tunnels to hosts of the base are relayed unseen.
    private func passesUnseen(_ base: HostEntry) -> Bool {
        // Inspection is also what interception falls back to.
        guard local.interception.authority == nil else { return false }
        return switch base.tunnel {
        case .pass: true
        case .auto: base.pinsets.isEmpty
        case .inspect, .refuse: false
        }
    }

    private func mayHandle(_ entry: HostEntry, _ base: HostEntry) -> Bool {
        if entry.tunnel == base.tunnel { return true }
        return switch entry.tunnel {
        case .refuse: true
        case .auto: base.tunnel == .pass
        case .inspect: passesUnseen(base)
        case .pass: false
        }
    }

    private func mayProbe(_ entry: HostEntry, _ base: HostEntry) -> Bool {
        if entry.tls13Tunnel == base.tls13Tunnel {
            // What said nothing until now must not begin to intercept.
            return entry.tunnel != .inspect || base.tunnel == .inspect
                || entry.tls13Tunnel != .intercept
        }
        return switch entry.tls13Tunnel {
        case .refuse: true
        // It also decides where a rule has tunnels inspected that the entry would have passed.
        case .probe:
            passesUnseen(base) && !tunnelSettings.contains { $0.tunnel == .inspect }
        case .intercept: false
        }
    }

    /// Whether an entry is what applied before but for the values that were compared: whatever else
    /// an entry may have, now or later, is none of a policy's business.
    private func changesNothingElse(_ entry: HostEntry, _ base: HostEntry) -> Bool {
        var rest = entry
        (rest.match, rest.name) = (base.match, base.name)
        rest.upgradesToHTTPS = base.upgradesToHTTPS
        rest.tunnel = base.tunnel
        // As it is applied.
        if rest.intercept == .never, !intercepts(base, by: .none) {
            rest.intercept = base.intercept
        }
        rest.tls13Tunnel = base.tls13Tunnel
        rest.liveTunnels = base.liveTunnels
        rest.clearText = base.clearText
        rest.switchProtocols = base.switchProtocols
        rest.http2 = base.http2
        rest.pinsets = base.pinsets
        rest.tls.minimum = base.tls.minimum
        rest.tls.profile = base.tls.profile
        rest.tls.ocspStapling = base.tls.ocspStapling
        rest.cacheStores = base.cacheStores
        var former = base
        former.cacheStores = base.cacheStores
        return rest == former && entry.pinsets.starts(with: base.pinsets)
    }

    // MARK: Pinsets

    /// In what a pinset of a policy could accept more than none.
    package func widenings(of entry: PinsetEntry) -> [PolicyWidening] {
        var found: [PolicyWidening] = []
        if entry.pinset.mode == .certificate {
            found.append(
                PolicyWidening(
                    .pinsetMode, "certificate makes roots of what is pinned",
                    expected: "publicKey or none"))
        } else if !entry.pinset.onlyAdds {
            found.append(
                PolicyWidening(
                    .pinsetPins, "may accept servers that others would not",
                    expected: "digests of keys and certificates only"))
        }
        if let destination = entry.reportTo,
            !local.pinsets.contains(where: { $0.reportTo == destination })
        {
            found.append(
                PolicyWidening(
                    .pinsetReportTo, "no pinset of the local file reports to \(destination)",
                    expected: "the reportTo of a local pinset, or none"))
        }
        return found
    }

    // MARK: Access

    /// In what `access` is less strict with a policy.
    /// - Parameter merged: with what the policy says in place of the local values, and added to the
    ///   local lists.
    package func widenings(of merged: AccessConfiguration) -> [PolicyWidening] {
        let own = local.access
        var found: [PolicyWidening] = []
        for network in merged.clients where !own.clients.contains(where: { network.isWithin($0) }) {
            found.append(
                PolicyWidening(
                    .accessClients,
                    "\(network.clientDescription) is not within the clients of the local file",
                    expected: "networks within those"))
        }
        if own.hosts == .listed, merged.hosts != .listed {
            found.append(
                PolicyWidening(
                    .accessHosts, "any is not as strict as listed, which the local file says",
                    expected: "listed"))
        }
        if !merged.connectPorts.isWithin(own.connectPorts) {
            found.append(
                PolicyWidening(
                    .accessConnectPorts, "has ports that the local file does not have",
                    expected: "ports of the local file"))
        }
        if own.byDefault == .deny, merged.byDefault != .deny {
            found.append(
                PolicyWidening(
                    .accessDefault, "allow is not as strict as deny, which the local file says",
                    expected: "deny"))
        }
        let deny = (own.deny, merged.deny)
        let isKept =
            deny.1.networks.starts(with: deny.0.networks)
            && deny.1.patterns.starts(with: deny.0.patterns)
            && merged.allow == own.allow && merged.lists == own.lists
            && merged.rules.starts(with: own.rules)
        if !isKept {
            found.append(
                PolicyWidening(
                    .accessDestinationsDeny, "changes what the local file says",
                    expected: "additions only"))
        }
        return found
    }

    /// In what a rule of a policy could let pass what is refused without it.
    package func widenings(of rule: AccessRule) -> [PolicyWidening] {
        var found: [PolicyWidening] = []
        switch rule.action {
        case .deny, .report: break
        case .allow:
            guard local.access.byDefault == .deny else { break }
            found.append(
                PolicyWidening(
                    .ruleAction,
                    "allow would serve what access.default: deny of the local file "
                        + "refuses", expected: "deny or report"))
        }
        if rule.tunnels.tunnel.map({ $0 != .refuse }) ?? false {
            found.append(
                PolicyWidening(
                    .ruleTunnel, "\(rule.tunnels.tunnel?.rawValue ?? "") may let tunnels pass",
                    expected: "refuse"))
        }
        var page: DenialPage?
        if case .deny(let denial) = rule.action { page = denial.page }
        if rule.tunnels.intercept != nil || !rule.parents.isEmpty || page != nil {
            found.append(
                PolicyWidening(
                    .ruleAction, "the rule says more than a policy may",
                    expected: "the keys of a policy only"))
        }
        return found
    }
}

extension Pinset {
    /// Whether it can only refuse servers that would be accepted without it: the chain must be
    /// valid under the roots that apply anyway, and name the host.
    package var onlyAdds: Bool {
        guard !allowInvalidCertificates, validatesDomainName, anchors.isEmpty else { return false }
        return switch mode {
        case .certificate: false
        case .none, .publicKey:
            pins.allSatisfy { pin in
                switch pin {
                case .keyDigest, .certificateFingerprint, .publicKey: true
                case .certificate: false
                }
            }
        }
    }
}

extension IPNetwork {
    /// Whether all of its clients are in another network.
    fileprivate func isWithin(_ other: IPNetwork) -> Bool {
        if self == other { return true }
        // The clients of Unix sockets are in no network.
        guard self != .unixClients, other != .unixClients else { return false }
        return address.family == other.address.family && other.prefixLength <= prefixLength
            && other.contains(address)
    }
}

extension ConnectPorts {
    fileprivate func isWithin(_ other: ConnectPorts) -> Bool {
        switch (self, other) {
        case (_, .any): true
        case (.any, .ports): false
        case (.ports(let own), .ports(let others)): own.allSatisfy(others.contains)
        }
    }
}

// How strict a value is: a higher number refuses all that a lower one does.

extension LiveTunnelMode {
    fileprivate var strictness: Int {
        switch self {
        case .keep: 0
        case .auto: 1
        case .close: 2
        }
    }
}

extension ClearTextMode {
    fileprivate var strictness: Int {
        switch self {
        case .allow: 0
        case .auto: 1
        case .refuse: 2
        }
    }
}

extension SwitchMode {
    fileprivate var strictness: Int {
        switch self {
        case .allow: 0
        case .auto: 1
        case .refuse: 2
        }
    }
}

extension TLSMinimum {
    fileprivate var strictness: Int {
        switch self {
        case .tls12: 0
        case .tls13: 1
        }
    }
}

extension TrustProfile {
    fileprivate static func strictness(_ profile: TrustProfile?) -> Int {
        switch profile {
        case .lenient: 0
        case nil: 1
        case .strict: 2
        case .pedantic: 3
        }
    }
}
