import PinfoldConfiguration
import Trust

/// Checks whether an entry's rules for requests and responses apply to any request, and which
/// requests bypass them.
extension SnapshotReader {
    func checkRuleReach(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        let hosts = snapshot.hosts.entries
        // With errors in the lists, entries and fields do not correspond.
        guard let elements = field?.elements, elements.count == hosts.count else { return }
        for (index, (element, entry)) in zip(elements, hosts).enumerated() {
            checkCache(element, entry, snapshot.cache)
            warnOfForm(element, entry, snapshot.cache)
            let ways = RuleWays(snapshot, index)
            if entry.hasRules { check(ways, element, entry) }
            if let authorization = entry.request.authorization {
                warn(of: authorization, ways, element, entry)
            }
        }
    }

    /// Reports rules that apply to no request, and warns of tunnels that bypass them.
    private func check(_ ways: RuleWays, _ element: Field, _ entry: HostEntry) {
        let key = entry.response.isEmpty ? "request" : "response"
        let place = element.key(key) ?? element
        let remedy = "intercept: true, upgrade: https, or a reverse listener for these hosts"
        if !ways.hasForward, ways.reverse.isEmpty {
            return place.fail(
                "applies to no request: there is no forward listener, and no reverse listener "
                    + "leads to these hosts", expected: "a listener that does")
        }
        guard let tunnels = ways.passedTunnels else { return }
        if ways.isSeen {
            place.warn(
                "does not apply to \(tunnels) to these hosts, which the gateway cannot read; write "
                    + (ways.intercepts
                        ? "tunnel: refuse to prevent that"
                        : "intercept: true, or tunnel: refuse to prevent that"))
        } else {
            let clearText =
                ways.isTLSOnly ? "the entry is for port 443" : "clear text to them is refused"
            place.fail(
                "applies to no request: the gateway cannot read \(tunnels) to these hosts, and "
                    + clearText, expected: remedy)
        }
    }

    private func checkCache(
        _ element: Field, _ entry: HostEntry, _ cache: CacheConfiguration
    ) {
        let policy = entry.request.cachePolicy
        guard policy == .returnCacheElseLoad || policy == .returnCacheDontLoad,
            let place = element.key("request")?.key("cachePolicy")
        else { return }
        if !cache.storesAnything {
            place.fail(
                "\(policy.rawValue) requires a cache, but there is none",
                expected: "useProtocol, or a cache")
        } else if !entry.cacheStores {
            place.fail(
                "\(policy.rawValue) requires stored responses, but cache.store is false",
                expected: "useProtocol, or cache: { store: true }")
        }
    }

    /// Warns of `cache.form` if responses are not changed or not stored.
    private func warnOfForm(
        _ element: Field, _ entry: HostEntry, _ cache: CacheConfiguration
    ) {
        guard entry.response.cacheForm == .origin,
            let place = element.key("cache")?.key("form")
        else { return }
        if !entry.response.translates {
            place.warn(
                "has no effect unless response changes content (body, or image with convert or "
                    + "scale)")
        } else if !cache.storesAnything {
            place.warn("has no effect without a cache")
        } else if !entry.cacheStores {
            place.warn("has no effect with store: false")
        }
    }

    private func warn(
        of authorization: RequestAuthorization, _ ways: RuleWays, _ element: Field,
        _ entry: HostEntry
    ) {
        guard let place = element.key("request")?.key("authorization") else { return }
        if authorization.allowsClearText {
            if entry.upgradesToHTTPS {
                place.key("clearText")?.warn("has no effect with upgrade: https")
            }
        } else if ways.isClearTextOnly {
            place.warn(
                "is never added: all requests that the gateway can read are sent in clear "
                    + "text, for which it is refused; write upgrade: https, or clearText: allow "
                    + "here to let anyone on the network path read it")
        }
    }
}

extension HostEntry {
    /// Whether requests or responses are changed or checked.
    fileprivate var hasRules: Bool {
        var request = request
        // This concerns only the cache, which tunnels do not use.
        request.cachePolicy = .useProtocol
        return request != RequestRules() || !response.isEmpty
    }
}

/// The ways in which requests to an entry's hosts can arrive and be sent.
private struct RuleWays {
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

    init(_ snapshot: ConfigurationSnapshot, _ index: Int) {
        let entry = snapshot.hosts.entries[index]
        hasForward = snapshot.listeners.contains { $0.kind == .forward }
        reverse = snapshot.listeners.compactMap { listener in
            guard case .reverse(let origin) = listener.kind else { return nil }
            let host = origin.host.utf8.span
            let applying = snapshot.hostEntry(host: host, port: origin.port)
            return applying == index ? origin : nil
        }
        let hasTunnels = hasForward && snapshot.access.connectPorts != .ports([])
        intercepts = hasTunnels && snapshot.intercepts(entry: index)
        isTLSOnly = entry.match.allSatisfy { $0.port == 443 }
        upgrades = hasForward && entry.upgradesToHTTPS
        let refusesClearText =
            switch entry.clearText {
            case .allow: false
            case .refuse: true
            case .auto: !entry.pinsets.isEmpty
            }
        servesClearText =
            hasForward && !entry.upgradesToHTTPS && !refusesClearText && !isTLSOnly
        let passes =
            switch entry.tunnel {
            case .auto: entry.pinsets.isEmpty
            case .pass, .inspect: true
            case .refuse: false
            }
        if !hasTunnels {
            passedTunnels = nil
        } else if !intercepts {
            passedTunnels = passes ? "tunnels" : nil
        } else if snapshot.fallsBack(entry: index) {
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

extension CacheConfiguration {
    fileprivate var storesAnything: Bool { isEnabled && (memoryBytes > 0 || diskBytes > 0) }
}
