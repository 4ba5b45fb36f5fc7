import PinfoldConfiguration
import Trust

/// Whether the rules of an entry's requests and responses meet any request, and which go around
/// them.
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

    /// Rules that meet nothing, and tunnels that go around them.
    private func check(_ ways: RuleWays, _ element: Field, _ entry: HostEntry) {
        let key = entry.response.isEmpty ? "request" : "response"
        let place = element.key(key) ?? element
        let remedy = "intercept: true, upgrade: https, or a reverse listener that leads there"
        if !ways.hasForward, ways.reverse.isEmpty {
            return place.fail(
                "applies to no request: there is no forward listener, and no reverse one leads to "
                    + "these hosts", expected: "a listener that does")
        }
        guard let tunnels = ways.passedTunnels else { return }
        if ways.isSeen {
            place.warn(
                "does not apply to \(tunnels) to these hosts, which the gateway cannot read; write "
                    + (ways.intercepts
                        ? "tunnel: refuse if none are to go around it"
                        : "intercept: true, or tunnel: refuse if none are to go around it"))
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
                "\(policy.rawValue) needs a cache, and there is none",
                expected: "useProtocol, or a cache")
        } else if !entry.cacheStores {
            place.fail(
                "\(policy.rawValue) needs what is stored, and cache.store is false",
                expected: "useProtocol, or cache: { store: true }")
        }
    }

    /// What the cache would keep of responses that nobody changes, or that nobody keeps.
    private func warnOfForm(
        _ element: Field, _ entry: HostEntry, _ cache: CacheConfiguration
    ) {
        guard entry.response.cacheForm == .origin,
            let place = element.key("cache")?.key("form")
        else { return }
        if !entry.response.translates {
            place.warn(
                "has no effect: response changes no content (body, or image with convert or scale)")
        } else if !cache.storesAnything {
            place.warn("has no effect: there is no cache")
        } else if !entry.cacheStores {
            place.warn("has no effect beside store: false")
        }
    }

    private func warn(
        of authorization: RequestAuthorization, _ ways: RuleWays, _ element: Field,
        _ entry: HostEntry
    ) {
        guard let place = element.key("request")?.key("authorization") else { return }
        if authorization.allowsClearText {
            if entry.upgradesToHTTPS {
                place.key("clearText")?.warn("has no effect beside upgrade: https")
            }
        } else if ways.isClearTextOnly {
            place.warn(
                "is added to no request: all that can be read go out in clear text, where it is "
                    + "refused; write upgrade: https, or clearText: allow here if anybody may read "
                    + "it")
        }
    }
}

extension HostEntry {
    /// Whether requests or responses are changed or checked.
    fileprivate var hasRules: Bool {
        var request = request
        // By itself it is about the cache, which no tunnel uses.
        request.cachePolicy = .useProtocol
        return request != RequestRules() || !response.isEmpty
    }
}

/// The ways by which requests to the hosts of an entry come and go.
private struct RuleWays {
    let hasForward: Bool
    /// The servers of reverse listeners that the entry applies to.
    let reverse: [UpstreamOrigin]
    let intercepts: Bool
    /// Requests for `http://` are served, and go out so.
    let servesClearText: Bool
    /// They are served, and go out as TLS.
    let upgrades: Bool
    /// All patterns are for port 443, which clear text is not sent to.
    let isTLSOnly: Bool
    /// Which tunnels are relayed unread, in words; nil: none.
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
                ? "what is not TLS in tunnels, and tunnels of clients that keep rejecting the "
                    + "interception's certificates,"
                : "tunnels of clients that keep rejecting the interception's certificates"
        } else {
            passedTunnels = nil
        }
    }

    /// Whether any requests can be read, but for those for `https://` in absolute form, which
    /// hardly any client sends.
    var isSeen: Bool { intercepts || upgrades || servesClearText || !reverse.isEmpty }

    /// Whether those that can be read all go out in clear text.
    var isClearTextOnly: Bool {
        isSeen && !intercepts && !upgrades && reverse.allSatisfy { $0.scheme == .http }
    }
}

extension CacheConfiguration {
    fileprivate var storesAnything: Bool { isEnabled && (memoryBytes > 0 || diskBytes > 0) }
}
