import Pinning

/// What is valid about hosts and pinsets and yet leaves a server less protected than its author
/// probably believes, or unreachable.
extension SnapshotReader {
    /// A pinset that no entry of `hosts` names protects nothing, nor do pins that are not compared.
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
                    "no entry of hosts uses this pinset, so it protects nothing; name it in the "
                        + "pinsets of the entry that it is for")
            }
            if entry.pinset.mode == .none, !entry.pinset.pins.isEmpty {
                validation.warn(
                    key.keyOrigin, path,
                    "its pins are not compared, since its mode is none; write mode: publicKey or "
                        + "mode: certificate")
            }
        }
    }

    /// A pattern that never decides, since an earlier entry matches all that it does.
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
                    ? "" : ", so the pinsets of this one are not applied"
                place.warn(
                    "never applies: an earlier entry (hosts[\(earlier)]\(line)) matches all of "
                        + "\(pattern)\(consequence); put this entry before that one")
            }
            for pattern in entry.match { coverage.insert(pattern, owner: index) }
        }
    }

    /// Entries that let requests go around their pinsets, and entries that nothing can reach.
    func warnOfBypasses(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        let hosts = snapshot.hosts.entries
        guard let elements = field?.elements, elements.count == hosts.count else {
            return
        }
        let upstreams = snapshot.reverseUpstreams
        for (index, (element, entry)) in zip(elements, hosts).enumerated() {
            if entry.upgradesToHTTPS, entry.clearText == .allow {
                element.key("clearText")?.warn(
                    "has no effect beside upgrade: https; write one of the two")
            } else if entry.clearText == .allow, !entry.pinsets.isEmpty {
                element.key("clearText")?.warn(
                    "requests in clear text go around the pinsets of this entry")
            }
            if entry.tunnel == .pass, !entry.pinsets.isEmpty {
                element.key("tunnel")?.warn("tunnels go around the pinsets of this entry")
            }
            warnOfUpgrade(past: snapshot, element, entry)
            // Who says anything of it has thought of it.
            guard !entry.pinsets.isEmpty, !upstreams.contains(where: { $0.entry == index }),
                ["upgrade", "tunnel", "clearText"].allSatisfy({ element.key($0) == nil })
            else { continue }
            element.warn(
                "has pinsets and no upgrade: only requests for https:// in absolute form reach "
                    + "these hosts, while clear text and CONNECT to them are refused; write "
                    + "upgrade: https, or upgrade: none if that is meant")
        }
    }

    /// An upgrade to a port for which another entry names pinsets is refused.
    private func warnOfUpgrade(
        past snapshot: ConfigurationSnapshot, _ element: Field, _ entry: HostEntry
    ) {
        guard entry.upgradesToHTTPS, entry.pinsets.isEmpty else { return }
        for pattern in entry.match where pattern.port == nil || pattern.port == 80 {
            guard let name = pattern.exactName,
                let other = snapshot.hostEntry(host: name.utf8.span, port: 443),
                !snapshot.hosts.entries[other].pinsets.isEmpty
            else { continue }
            element.key("upgrade")?.warn(
                "requests to \(pattern) are refused: they would go to port 443, whose pinsets "
                    + "(hosts[\(other)]) this entry does not name; name them here too")
        }
    }

    /// A reverse listener whose requests are all refused.
    func warnOfRefusedUpstreams(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        guard let elements = field?.elements, elements.count == snapshot.listeners.count else {
            return
        }
        for upstream in snapshot.reverseUpstreams {
            let origin = upstream.origin
            let approach: ServerApproach =
                origin.scheme == .https ? .verifiedTLS(port: origin.port) : .clearText
            let bypass = snapshot.pinBypass(
                host: origin.host.utf8.span, port: origin.port, entry: upstream.entry, by: approach)
            let remedy: String
            switch bypass {
            case .clearText: remedy = "clear text to this host is refused; write https://"
            case .port:
                remedy = "this port of the host is not covered by the entry with its pinsets"
            case .tunnel, nil: continue
            }
            (elements[upstream.listener].key("upstream") ?? elements[upstream.listener])
                .warn("all requests are refused: the host has pinsets, and \(remedy)")
        }
    }
}

extension ConfigurationSnapshot {
    /// A reverse listener's index, its upstream, and the host entry that applies to that.
    fileprivate var reverseUpstreams: [(listener: Int, origin: UpstreamOrigin, entry: Int?)] {
        listeners.enumerated().compactMap { index, listener in
            guard case .reverse(let origin) = listener.kind else { return nil }
            let entry = hostEntry(host: origin.host.utf8.span, port: origin.port)
            return (index, origin, entry)
        }
    }
}

extension Field {
    /// The elements of a list that has been checked; nil when it is none.
    fileprivate var elements: [Field]? {
        guard case .sequence(let nodes) = node.content else { return nil }
        return nodes.enumerated().map { index, node in
            Field(node: node, path: "\(path)[\(index)]", validation: validation)
        }
    }

    /// The value of a key of a mapping that has been checked; nil when it is not written.
    fileprivate func key(_ name: String) -> Field? {
        node[name].map {
            Field(node: $0, path: Section.path(path, name), validation: validation)
        }
    }
}
