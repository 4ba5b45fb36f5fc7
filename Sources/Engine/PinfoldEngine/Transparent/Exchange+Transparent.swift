import HTTPCore
import PinfoldConfiguration

// Requests of clients that do not know of the gateway: the system has led their connections here.
extension Exchange {
    /// Routes a request to the host that it names, and to the port that its client connected to. A
    /// CONNECT is what a connection without HTTP has become.
    func routeTransparent(at ingress: Ingress) {
        guard let original = ingress.original else {
            return reply(with: .access(.requestForProxy), closing: true)
        }
        if request.form == .authority, original.opening != .http { return openTunnel() }
        guard !isForProxy(original), let origin = findOrigin(of: original) else {
            return reply(with: .access(.requestForProxy), closing: true)
        }
        guard let allowed = allowed(at: origin) else { return }
        compareOriginal(with: allowed)
        goOn(to: allowed)
    }

    /// Whether the client takes whom it speaks to for a proxy. A server accepts the absolute form,
    /// too (RFC 9112 §3.2.2).
    private func isForProxy(_ original: OriginalDestination) -> Bool {
        switch request.form {
        case .authority: true
        case .absolute: request.scheme != .http || request.port != original.endpoint.port
        case .origin, .asterisk: false
        }
    }

    /// The origin of a request: the host that it names, or the address if it names none.
    func findOrigin(of original: OriginalDestination) -> Origin? {
        let port = original.endpoint.port
        guard request.hostKind != .none else {
            return origins.origin(
                host: original.host.utf8.span, port: port, scheme: .http,
                policy: environment.policy)
        }
        return origins.origin(
            host: requestHead.octets.extracting(request.host.indices), port: port, scheme: .http,
            policy: environment.policy)
    }

    func compareOriginal(with origin: Origin) {
        compareOriginal(
            with: origin.key.host, origin.key.requestedPort, by: origin.key.ruleWays ?? [])
    }

    /// Has the address that the client connected to compared with those of the host that it names,
    /// once the host may be looked up. A parent resolves names itself.
    /// - Parameter rule: the ways that the rule names which allows the request.
    func compareOriginal(with host: String, _ port: UInt16, by rule: [WayName]) {
        guard let original = ingress?.original, original.mayCompare(with: host) else { return }
        let policy = environment.policy
        let entry = policy.entry(host: host, port: port)
        guard policy.ways(host: host, port: port, entryIndex: entry, by: rule) == nil else {
            return
        }
        original.beginComparison(with: host)
        OriginalAddressCheck(environment: environment, original: original, host: host)
            .start(for: clientNetwork)
    }

    /// The address that the client connected to, if it is none of the host's that it named; `nil`
    /// for most.
    package var foreignOriginal: Endpoint? {
        guard let original = ingress?.original else { return nil }
        let host: String
        if let key = origin?.key {
            host = key.host
        } else {
            guard request.length > 0 else { return nil }
            host = withRequestHead { $0.text(at: request.host) }.lowercasedASCII
        }
        return original.relation(to: host) == .foreign ? original.endpoint : nil
    }

    /// `host:port` of a request whose target does not say so, at a transparent listener; `nil` for
    /// all others.
    package var transparentAuthority: [UInt8]? {
        guard ingress?.original?.opening == .http, let key = origin?.key else { return nil }
        return Array(HostText.text(key.host, port: key.requestedPort).utf8)
    }
}
