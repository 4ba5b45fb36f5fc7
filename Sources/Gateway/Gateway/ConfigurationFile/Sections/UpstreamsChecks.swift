import HTTPCore
import PinfoldConfiguration

/// Checks of `upstreams` against `hosts` and `access`, which apply to a route before one of its
/// servers is chosen: they must not tell its servers apart.
extension SnapshotReader {
    func checkUpstreams(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        guard let elements = field?.elements, elements.count == snapshot.listeners.count else {
            return
        }
        for (element, listener) in zip(elements, snapshot.listeners) {
            checkSingly(element, listener, snapshot)
            guard case .balanced(let set) = listener.kind, let first = set.servers.first?.origin,
                let servers = element.key("upstreams")?.key("servers")?.elements,
                servers.count == set.servers.count
            else { continue }
            for (place, server) in zip(servers, set.servers).dropFirst() {
                let other = server.origin
                let keys = snapshot.messageKeys(thatDifferFor: first, other)
                if !keys.isEmpty {
                    place.fail(
                        "the entries of hosts for \(first.authority) and \(other.authority) "
                            + "differ in \(keys.joined(separator: ", ")), which applies before a "
                            + "server is chosen",
                        expected: "entries that differ in pinsets, tls, http2 and timeouts only")
                }
                if let rule = snapshot.rule(thatTells: first, from: other) {
                    place.fail(
                        "the rule \(rule) of access.rules is for one of \(first.authority) and "
                            + "\(other.authority), but applies before a server is chosen",
                        expected: "rules that are for all servers of a route, or for none")
                }
            }
        }
    }

    /// Reports servers that cannot be used as they are written, each by itself.
    private func checkSingly(
        _ element: Field, _ listener: ListenerConfiguration, _ snapshot: ConfigurationSnapshot
    ) {
        let servers = element.key("upstreams")?.key("servers")?.elements
        let places = servers?.map { $0.key("url") ?? $0 } ?? [element.key("upstream") ?? element]
        guard places.count == listener.upstreamOrigins.count else { return }
        let own = snapshot.listeners.flatMap(\.unixPaths) + snapshot.admin.unixPaths
        for (place, origin) in zip(places, listener.upstreamOrigins) {
            if let path = origin.unixPath, own.contains(path) {
                place.fail(
                    "\(origin.url) is where this gateway listens itself",
                    expected: "another server")
            }
            if listener.upstreamProxyProtocol != .none,
                snapshot.entry(of: origin)?.http2 == .require
            {
                place.fail(
                    "the entry of hosts for \(origin.authority) requires HTTP/2, in which a "
                        + "connection carries the requests of many clients; a PROXY header names "
                        + "one for all of them",
                    expected: "http2: auto or off in the entry, or no PROXY header")
            }
        }
    }
}

extension ConfigurationSnapshot {
    fileprivate func entry(of origin: UpstreamOrigin) -> HostEntry? {
        hostEntry(host: origin.host.utf8.span, port: origin.port).map { hosts.entries[$0] }
    }

    /// The keys of two servers' host entries that are about messages and the cache, and differ.
    fileprivate func messageKeys(
        thatDifferFor one: UpstreamOrigin, _ other: UpstreamOrigin
    ) -> [String] {
        let (one, other) = (entry(of: one) ?? HostEntry(), entry(of: other) ?? HostEntry())
        var keys: [String] = []
        if one.request != other.request { keys.append("request") }
        if one.response != other.response { keys.append("response") }
        if one.cache != other.cache { keys.append("cache") }
        if one.paths != other.paths { keys.append("paths") }
        if one.via != other.via { keys.append("via") }
        if one.switchProtocols != other.switchProtocols { keys.append("switchProtocols") }
        return keys
    }

    /// The first rule of `access.rules` that is for one of two servers only.
    fileprivate func rule(
        thatTells one: UpstreamOrigin, from other: UpstreamOrigin
    ) -> String? {
        guard
            let rules = AccessRules(
                access.rules, lists: access.lists, allowsByDefault: access.byDefault == .allow)
        else { return nil }
        let ofOne = Set(rules.candidates(host: one.host.utf8.span, port: one.port))
        let ofOther = Set(rules.candidates(host: other.host.utf8.span, port: other.port))
        return ofOne.symmetricDifference(ofOther).min().map { access.rules[$0].name }
    }
}
