import PinfoldConfiguration
import Trust

/// Warnings of valid settings of hosts and pinsets that leave a server unreachable, or less
/// protected than probably intended.
extension SnapshotReader {
    /// Warns of pinsets that no entry of `hosts` names, and of pins that are not compared.
    func warnOfUnusedPinsets(_ field: Field?, _ pinsets: [PinsetEntry], _ hosts: [HostEntry]) {
        guard let field, case .mapping(let written) = field.node.content else { return }
        let used = Set(hosts.flatMap(\.pinsets))
        for (index, entry) in pinsets.enumerated() {
            let name = entry.pinset.name
            guard let key = written.first(where: { $0.key == name }) else { continue }
            let path = Section.path(field.path, name)
            if !used.contains(index) {
                validation.warn(
                    key.keyOrigin, path,
                    "no entry of hosts uses this pinset, so it protects nothing; add it to the "
                        + "pinsets of an entry")
            }
            if entry.pinset.mode == .none, !entry.pinset.pins.isEmpty {
                validation.warn(
                    key.keyOrigin, path,
                    "its pins are not compared, because its mode is none; write mode: publicKey "
                        + "or mode: certificate")
            }
        }
    }

    /// Warns of patterns without effect, because an earlier entry matches all of their hosts.
    func warnOfShadowedPatterns(_ field: Field?, _ hosts: [HostEntry]) {
        // With errors in the lists, entries and fields do not correspond.
        guard let elements = field?.elements, elements.count == hosts.count else {
            return
        }
        var coverage = PatternCoverage<Int>()
        for (index, (element, entry)) in zip(elements, hosts).enumerated() {
            let written = element.key("match")?.elements ?? []
            guard written.count == entry.match.count else { continue }
            for (pattern, place) in zip(entry.match, written) {
                guard let earlier = coverage.owner(covering: pattern) else { continue }
                let line = elements[earlier].node.origin.line.map { ", line \($0)" } ?? ""
                let consequence =
                    entry.pinsets.isEmpty || !hosts[earlier].pinsets.isEmpty
                    ? "" : ", so this entry's pinsets are not applied"
                place.warn(
                    "never applies: an earlier entry (hosts[\(earlier)]\(line)) matches all of "
                        + "\(pattern)\(consequence); put this entry before that one")
            }
            // What no pattern matches comes last, wherever it is written.
            for pattern in entry.match where pattern != .everything {
                coverage.insert(pattern, owner: index)
            }
        }
    }

    /// Warns of entries that let requests bypass their pinsets, and of unreachable entries.
    func warnOfBypasses(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        let hosts = snapshot.hosts.entries
        guard let elements = field?.elements, elements.count == hosts.count else {
            return
        }
        let upstreams = snapshot.reverseUpstreams
        for (index, (element, entry)) in zip(elements, hosts).enumerated() {
            if entry.upgradesToHTTPS, entry.clearText == .allow {
                element.key("clearText")?.warn(
                    "has no effect with upgrade: https; remove one of the two")
            } else if entry.clearText == .allow, !entry.pinsets.isEmpty {
                element.key("clearText")?.warn(
                    "requests in clear text bypass the pinsets of this entry")
            }
            let isUpToRules = snapshot.access.rules.contains { $0.tunnels.tunnel == .inspect }
            if entry.tunnel != .inspect, !isUpToRules {
                element.key("tls13Tunnel")?.warn(
                    "has no effect without tunnel: inspect; write that, or remove this key")
            }
            if entry.tunnel == .pass, !entry.pinsets.isEmpty {
                let what =
                    snapshot.intercepts(entry: index)
                    ? "tunnels without TLS, and tunnels of clients that keep rejecting the "
                        + "interception's certificates," : "tunnels"
                element.key("tunnel")?.warn("\(what) bypass the pinsets of this entry")
            }
            if entry.pinsets.isEmpty { warnOfPinsElsewhere(hosts, element, index) }
            // No warning if the author has set one of these keys deliberately.
            guard !entry.pinsets.isEmpty, !snapshot.intercepts(entry: index),
                !upstreams.contains(where: { $0.entry == index }),
                ["upgrade", "tunnel", "clearText"].allSatisfy({ element.key($0) == nil })
            else { continue }
            element.warn(
                "has pinsets but no upgrade: only requests for https:// in absolute form reach "
                    + "these hosts, while clear text and CONNECT to them are refused; write "
                    + "upgrade: https, or upgrade: none if that is intended")
        }
    }

    /// Warns of an entry without pinsets that applies to requests to hosts that another entry pins:
    /// what it allows bypasses those pinsets, and everything else is refused.
    private func warnOfPinsElsewhere(_ hosts: [HostEntry], _ element: Field, _ index: Int) {
        let entry = hosts[index]
        func pinsHosts(_ other: Int) -> Bool {
            !hosts[other].pinsets.isEmpty
                && hosts[other].match.contains { pin in
                    // Requests that an earlier pattern matches do not reach this entry.
                    entry.match.contains {
                        $0.sharesNames(with: pin)
                            && (other > index || pin.port != nil && pin.port != $0.port)
                    }
                }
        }
        guard let other = hosts.indices.first(where: pinsHosts) else { return }
        let pinned = "hosts that hosts[\(other)] pins"
        if entry.tunnel == .pass {
            element.key("tunnel")?.warn("lets tunnels to \(pinned) bypass their pinsets")
        }
        if entry.clearText == .allow, !entry.upgradesToHTTPS {
            element.key("clearText")?.warn("lets clear text to \(pinned) bypass their pinsets")
        }
        element.warn(
            "refuses requests for https to \(pinned), because it names no pinsets; name them here "
                + "too, or name a pinset with mode: none to exempt these hosts")
    }

    /// Warns of reverse listeners whose requests are all refused.
    func warnOfRefusedUpstreams(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        guard let elements = field?.elements, elements.count == snapshot.listeners.count else {
            return
        }
        for upstream in snapshot.reverseUpstreams {
            let origin = upstream.origin
            let approach: ServerApproach =
                origin.scheme == .https ? .verifiedTLS : .clearText
            let bypass = snapshot.pinBypass(
                host: origin.host.utf8.span, entry: upstream.entry, by: approach)
            let remedy: String
            switch bypass {
            case .clearText: remedy = "clear text to this host is refused; write https://"
            case .port:
                remedy = "the entry that applies to this port does not name them"
            case .tunnel, nil: continue
            }
            let element = elements[upstream.listener]
            guard let index = upstream.server else {
                (element.key("upstream") ?? element)
                    .warn("all requests are refused: the host has pinsets, and \(remedy)")
                continue
            }
            let servers = element.key("upstreams")?.key("servers")?.elements ?? []
            (servers.indices.contains(index) ? servers[index] : element)
                .warn("it is never used: the host has pinsets, and \(remedy)")
        }
    }
}

extension ConfigurationSnapshot {
    /// The index of each reverse listener, its upstream (with its index if it is one of several),
    /// and the host entry that applies to it.
    fileprivate var reverseUpstreams:
        [(listener: Int, server: Int?, origin: UpstreamOrigin, entry: Int?)]
    {
        listeners.enumerated().flatMap { index, listener in
            var isOneOfSeveral = false
            if case .balanced = listener.kind { isOneOfSeveral = true }
            return listener.upstreamOrigins.enumerated().map { server, origin in
                let entry = hostEntry(host: origin.host.utf8.span, port: origin.port)
                return (index, isOneOfSeveral ? server : nil, origin, entry)
            }
        }
    }
}
