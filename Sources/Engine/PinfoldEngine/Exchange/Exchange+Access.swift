import Clocks
import HTTPCore
import PinfoldConfiguration

// Phase 2: whether the rules of access.rules let the client have what it asks for. It is decided
// before the cache is asked, so that a stored response is given only to those who may ask for it.
extension Exchange {
    /// Whether a request may proceed now. If not, it has been answered, or waits for its turn.
    @inline(never)
    func mayRequest(by rules: HostRules, at origin: Origin) -> Bool {
        if let peer,
            rules.allowsAtOnce(request.method, from: peer.address, isKnown: identity != nil)
        {
            return true
        }
        guard let judgement = judge(by: rules, scope: .path) else { return true }
        if let refusal = rules.refusal(judgement) {
            reply(with: refusal, closing: false)
            return false
        }
        let origin = rules.haveWays ? goes(by: judgement, of: rules, to: origin) : origin
        return !rules.haveRates || isWithinRates(rules, judgement, before: .request(origin))
    }

    /// The same for a CONNECT.
    func mayOpen(
        tunnelTo authority: BoundAuthority, _ handling: TunnelHandling, _ policy: PolicySnapshot
    ) -> Bool {
        // The requests in an intercepted tunnel will be judged themselves.
        var scope = AccessRules.Scope.authority
        if case .intercepted = handling { scope = .interceptedTunnel }
        guard let rules = policy.rules(host: authority.host, port: authority.port),
            var judgement = judge(by: rules, scope: scope)
        else { return true }
        if let refusal = rules.refusal(judgement) {
            reply(with: refusal, closing: false)
            return false
        }
        guard rules.haveRates else { return true }
        // It may be relayed after all: then the rate is that of the rule that allows it as it is.
        if judgement.rule == nil, let request = accessRequest(scope: .authority) {
            let relayed = rules.judge(request)
            if case .allowed = relayed.verdict { judgement.rule = relayed.rule }
        }
        return isWithinRates(rules, judgement, before: .tunnel(authority, handling))
    }

    /// How the rule that allows a tunnel has it handled. It is asked again for each configuration
    /// under which the tunnel goes on.
    func tunnelSettings(
        to authority: BoundAuthority, _ policy: PolicySnapshot
    ) -> TunnelSettings {
        guard policy.accessRules?.decideOnTunnels ?? false else { return .none }
        return policy.tunnelSettings(for: accessRequest(scope: .authority), to: authority)
    }

    /// Whether an intercepted tunnel may be relayed instead, in which no request can be judged.
    func mayRelay(tunnelTo authority: BoundAuthority, _ policy: PolicySnapshot) -> Bool {
        guard let rules = policy.rules(host: authority.host, port: authority.port),
            let request = accessRequest(scope: .authority)
        else { return true }
        return rules.allowsUnseen(in: request)
    }

    /// What the rules say; `nil` if none apply to the request.
    private func judge(
        by rules: HostRules, scope: AccessRules.Scope
    ) -> AccessRules.Judgement? {
        guard let subject = accessSubject else { return nil }
        let now = environment.wallSeconds
        let judgement = withRequestHead { bytes in
            rules.judge(
                subject, methodName: bytes.extracting(request.methodRange.indices), scope: scope,
                path: bytes.extracting(request.path.withoutQuery(in: bytes)),
                minuteOfWeek: { Clock.localMinuteOfWeek(at: now) })
        }
        if judgement.rule != nil || !judgement.reported.isEmpty {
            rules.count(judgement)
            remarks.judged(
                by: judgement.rule.map(rules.nameBytes),
                reported: judgement.reported.map(rules.name))
        }
        return judgement
    }

    /// Who asks, and how; `nil` for a request of the program itself, to which no rule applies.
    private var accessSubject: AccessRules.Subject? {
        guard let ingress, let peer, ingress.isIntermediary else { return nil }
        return AccessRules.Subject(
            listener: ingress.name, client: peer.address, identity: identity,
            method: request.method)
    }

    /// The request as rules see it, which is as the client has sent it, to be judged again after a
    /// reload.
    func accessRequest(scope: AccessRules.Scope) -> AccessRequest? {
        guard var subject = accessSubject else { return nil }
        if let head = clientHead {
            subject.method = head.knownMethod
            let bytes = head.bytes.span
            return AccessRequest(
                subject: subject, methodName: bytes.copy(of: head.method.indices), scope: scope,
                path: bytes.copy(of: head.path.withoutQuery(in: bytes)),
                at: environment.wallSeconds)
        }
        return withRequestHead { bytes in
            AccessRequest(
                subject: subject, methodName: bytes.copy(of: request.methodRange.indices),
                scope: scope, path: bytes.copy(of: request.path.withoutQuery(in: bytes)),
                at: environment.wallSeconds)
        }
    }

    /// The page with which a rule refuses the request; `nil` for the gateway's own text.
    func page(of fault: ExchangeError) -> [UInt8]? {
        guard case .deniedByRule(let denial) = fault, let page = denial.page else { return nil }
        return page.filled { value in
            switch value {
            case .host: serverText ?? ""
            case .url: urlText
            case .rule: denial.rule
            case .client: clientText
            case .id: idText
            }
        }
    }

    /// The client's address.
    var clientText: String { peer.map { String($0.address.clientText) } ?? "" }

    /// The requested URL; for a CONNECT its authority. Empty if the head was not understood; one
    /// that was has no userinfo.
    var urlText: String {
        guard request.length > 0 else { return "" }
        let target = withRequestHead { $0.text(at: request.target) }
        guard request.form == .origin, let server = serverText else { return target }
        let isSecure = origin?.key.isSecure ?? false
        return "\(isSecure ? "https" : "http")://\(server)\(target)"
    }
}

extension ByteRange {
    /// Of a path with a query, the range of the path.
    fileprivate func withoutQuery(in bytes: Span<UInt8>) -> Range<Int> {
        let range = indices
        var end = range.lowerBound
        while end < range.upperBound, bytes[end] != UInt8(ascii: "?") { end += 1 }
        return range.lowerBound..<end
    }
}

extension Span<UInt8> {
    fileprivate func copy(of range: Range<Int>) -> [UInt8] { range.map { self[$0] } }
}
