import CachePolicy
import EventLoop
import HTTPCore

// Phases 1 and 2: which origin a request is for, and whether it may be contacted.
extension Exchange {
    /// Decides who answers the request. `ingress` is the exchange's own, passed by its owner.
    package func route(at ingress: Ingress) {
        guard intake.isServed else {
            let refusal = client?.refusal ?? .access(.clientNotAllowed)
            if case .access(.clientNotAllowed) = refusal {
                environment.metrics.add(.clientConnectionsRefusedByAddress)
            }
            return reply(with: refusal, closing: true)
        }
        if !ingress.methods.isEmpty, !provesWhoAsks(at: ingress) { return }
        dispatch(at: ingress)
    }

    /// Decides who answers the request, once it is known, where that matters, who is asking.
    @inline(__always)
    func dispatch(at ingress: Ingress) {
        switch ingress.role {
        case .admin: return answerAdministration()
        case .forward: routeForward()
        case .reverse(let upstream): routeReverse(upstream)
        case .balanced(let route): routeBalanced(route)
        case .bound(let authority): routeBound(to: authority)
        case .proxied(let route): routeProxied(route)
        case .proof: acceptProof()
        case .transparent: routeTransparent(at: ingress)
        }
    }

    /// Routes requests of this program itself, which name their destination.
    private func routeProxied(_ route: ProxyRoute) {
        guard request.form == .absolute, let origin = findOrigin(route) else {
            return reply(with: .request(.malformedAuthority), closing: true)
        }
        proceed(to: origin)
    }

    /// The origin that the target names, through a proxy.
    private func findOrigin(_ route: ProxyRoute) -> Origin? {
        withRequestHead { bytes in
            environment.origins.origin(
                host: bytes.extracting(request.host.indices), port: request.port,
                scheme: request.scheme, through: route, policy: environment.policy)
        }
    }

    private func routeForward() {
        switch request.form {
        case .absolute:
            guard let origin = findOrigin() else {
                return reply(with: .request(.malformedAuthority), closing: true)
            }
            proceed(to: origin)
        case .authority: openTunnel()
        case .asterisk: answerOptions()
        case .origin: reply(with: .access(.notAProxyRequest), closing: true)
        }
    }

    private func routeReverse(_ upstream: ReverseUpstream) {
        guard request.form != .authority else {
            return reply(with: .access(.connectOnReverseRoute), closing: true)
        }
        let head = requestHead
        request.endForwardingAliases(
            in: head.octets)
        proceed(to: environment.origins.origin(of: upstream, policy: environment.policy))
    }

    /// Routes a request inside a tunnel, which is for the authority that the tunnel was opened to.
    private func routeBound(to authority: BoundAuthority) {
        if let identity = ingress?.identity,
            !environment.policy.confirms(identity, at: environment.wallSeconds)
        {
            return endTunnel()
        }
        guard isFor(authority), let origin = origin(of: authority) else {
            return reply(with: .access(.misdirected), closing: true)
        }
        proceed(to: origin)
    }

    /// Whether the request names the tunnel's authority or none. HTTP/1.0 has neither Host nor
    /// ports in it, and a request that names no authority is for the connection's (RFC 9112 §3.3).
    private func isFor(_ authority: BoundAuthority) -> Bool {
        switch request.form {
        case .authority: return false
        case .absolute where request.scheme != .https: return false
        case .absolute, .origin, .asterisk: break
        }
        if request.hostKind == .none { return true }
        var port: UInt16?
        if request.hasExplicitPort || request.form == .absolute {
            port = request.port
        } else if !request.version.requiresHost {
            port = authority.port
        }
        return withRequestHead {
            authority.isNamed(by: $0.extracting(request.host.indices), port: port)
        }
    }

    private func origin(of authority: BoundAuthority) -> Origin? {
        origins.origin(
            host: authority.host.utf8.span, port: authority.port, scheme: .https,
            policy: environment.policy)
    }

    /// The fields that tell a reverse route's upstream about the client's side.
    var forwardedFields: ForwardedFields? {
        (origin?.key.forwarding).map {
            ForwardedFields($0, peer: (peer ?? intake.onBehalfOf)?.address)
        }
    }

    /// The origin of the request under the current configuration.
    /// - Throws: if there is none, or rules do not allow the request any more.
    func findOriginAgain() throws(ExchangeError) -> Origin {
        guard let base = findBaseAgain() else { throw .gateway(.superseded) }
        return try renewed(base)
    }

    /// The same without the ways that rules name.
    private func findBaseAgain() -> Origin? {
        switch ingress?.role {
        case .forward: findOrigin()
        case .bound(let authority): origin(of: authority)
        case .proxied(let route): findOrigin(route)
        case .reverse(let upstream):
            environment.origins.origin(of: upstream, policy: environment.policy)
        case .balanced(let route):
            environment.origins.origin(of: route, policy: environment.policy)
        case .transparent: (ingress?.original).flatMap { findOrigin(of: $0) }
        case .admin, .proof, nil: nil
        }
    }

    /// The origin that the target names, known or new.
    private func findOrigin() -> Origin? {
        origins.origin(
            host: requestHead.octets.extracting(request.host.indices), port: request.port,
            scheme: request.scheme, policy: environment.policy)
    }

    func proceed(to origin: Origin) {
        if let allowed = allowed(at: origin) { goOn(to: allowed) }
    }

    /// The origin of a request that may proceed to it now, by the ways that a rule names if one
    /// does; `nil` if it has been answered, or waits for its turn.
    @inline(__always)
    func allowed(at origin: Origin) -> Origin? {
        forwarding.go(to: origin)
        report.routed(origin.route)
        debugRoute()
        if let refusal = origin.refusal {
            reply(with: refusal, closing: false)
            return nil
        }
        guard let rules = origin.rules else { return origin }
        guard mayRequest(by: rules, at: origin) else { return nil }
        return rules.haveWays ? forwarding.origin ?? origin : origin
    }

    /// Goes on with a request that the rules let proceed.
    @inline(__always)
    func goOn(to origin: Origin) {
        if origin.endsFields { endFields(for: origin) }
        if hasPassedTooOften {
            return reply(with: .access(.loopDetected), closing: false)
        }
        if isIntermediary, request.fields.contains(.maxForwards), isLastHop {
            return answerAsLastHop()
        }
        if asksForForbiddenUpgrade(of: origin) {
            return reply(with: .access(.protocolSwitchRefused), closing: false)
        }
        if let rules = origin.transformation, !rewrite(by: rules, for: origin) { return }
        lookUp(at: origin)
    }

    /// Ends the fields that are for the gateway, before the cache is asked: the server does not see
    /// them, so no response depends on them.
    @inline(never)
    func endFields(for origin: Origin) {
        if origin.takesPurgeTokens { endPurgeTokens() }
        if environment.tracing.changesRequests { endClientsTrace() }
    }

    /// Whether requests are forwarded for others; otherwise they are this program's own.
    var isIntermediary: Bool { ingress?.isIntermediary ?? !intake.isOwn }

    /// Whether this gateway answers a TRACE or OPTIONS itself, because of Max-Forwards: 0 (RFC 9110
    /// §7.6.2).
    private var isLastHop: Bool {
        guard let hops = withRequestHead({ request.maxForwards(in: $0) }) else { return false }
        return hops.forwarded == nil
    }
}
