import Authentication
import Clocks
import HTTPCore
import PinfoldConfiguration
import Trust

/// Says what becomes of requests of the past under a configuration, by the functions that decide it
/// for exchanges, in the order in which these ask them. What does not depend on the configuration
/// is left out: loops, rates, what a server answers.
///
/// It is for one thread. What it finds out about a host is kept, so that a request costs little
/// more than the rules that are about it.
package final class RequestJudge {
    package let policy: PolicySnapshot
    var configuration: ConfigurationSnapshot { policy.configuration }
    private let own: OwnListeners
    private let listeners: [String: ListenerConfiguration]
    private var standings: [HostStanding.Key: HostStanding] = [:]
    private var identities: [String: Identity?] = [:]
    private var clients: [IPAddress: Bool] = [:]

    /// The bytes of the names of hosts and users that are remembered.
    private var standingBytes = 0
    private var identityBytes = 0

    /// The number of hosts, users and clients that are remembered, and the bytes of the names of
    /// hosts, and of users: then all of them are forgotten.
    private static let remembered = 65_536
    private static let rememberedBytes = 8 << 20

    /// - Parameter policy: a snapshot for queries.
    package init(_ policy: PolicySnapshot) {
        self.policy = policy
        own = OwnListeners(of: policy.configuration)
        listeners = Dictionary(
            policy.configuration.listeners.map { ($0.name, $0) },
            uniquingKeysWith: { one, _ in one })
    }

    /// Judges a request as of the time at which it was made.
    package func judge(_ request: PastRequest) -> RequestVerdict {
        guard let listener = listeners[request.listener] else {
            return RequestVerdict(
                handling: nil, label: "none", host: request.host, port: request.port)
        }
        if let refusal = arrivalRefusal(of: request, at: listener) {
            return RequestVerdict(
                handling: .refused(refusal), label: "none", host: request.host, port: request.port)
        }
        let identity = request.user.flatMap { user in
            listener.authentication.isEmpty ? nil : self.identity(user)
        }
        switch request.form {
        case .tunnel: return judge(tunnel: request, identity)
        case .named(let isSecure):
            return judge(
                request, standing(request.host, request.port, .request(isSecure: isSecure)),
                identity)
        case .inTunnel:
            // First the tunnel that it is in.
            var tunnel = request
            (tunnel.method, tunnel.methodName) = (.connect, Array("CONNECT".utf8))
            (tunnel.target, tunnel.address) = ([], nil)
            let outer = judge(tunnel: tunnel, identity)
            guard outer.handling?.showsRequests ?? false else { return outer }
            return judge(
                request, standing(request.host, request.port, .request(isSecure: true)), identity)
        case .path:
            guard let upstream = listener.upstreamOrigins.first else {
                return RequestVerdict(
                    handling: .refused(.access(.notAProxyRequest)), label: "none",
                    host: request.host, port: request.port)
            }
            let standing = standing(
                upstream.host, upstream.port, .fixed(isSecure: upstream.scheme == .https))
            return judge(request, standing, identity)
        }
    }

    // MARK: Who asks, and how

    /// Why a request is refused whatever it is for.
    private func arrivalRefusal(
        of request: PastRequest, at listener: ListenerConfiguration
    ) -> ExchangeError? {
        guard serves(request.client) else { return .access(.clientNotAllowed) }
        let isForward = listener.kind.isForward
        // No proxy request, and refused as such before anybody is asked who they are.
        if isForward, request.form == .path { return .access(.notAProxyRequest) }
        if !listener.authentication.isEmpty {
            let recipient = isForward ? ProofRecipient.proxy : .origin
            guard let user = request.user else {
                let isByCertificate = listener.authentication == [.certificate]
                return .authentication(
                    isByCertificate ? .certificateUnknown : .required, recipient)
            }
            // Nobody can prove to be somebody whom the configuration does not know.
            guard identity(user) != nil else {
                return .authentication(.credentialsWrong, recipient)
            }
        }
        switch (listener.kind, request.form) {
        case (.reverse, .tunnel), (.balanced, .tunnel): return .access(.connectOnReverseRoute)
        case (.socks5, .named): return .access(.notAProxyRequest)
        default: return nil
        }
    }

    private func serves(_ client: IPAddress) -> Bool {
        if let known = clients[client] { return known }
        if clients.count >= Self.remembered { clients = [:] }
        let isServed = configuration.access.serves(client: client)
        clients[client] = isServed
        return isServed
    }

    /// Who a user is; `nil` if nobody can have the name.
    private func identity(_ user: String) -> Identity? {
        if let known = identities[user] { return known }
        identityBytes += user.utf8.count
        if identities.count >= Self.remembered || identityBytes > Self.rememberedBytes {
            (identities, identityBytes) = ([:], user.utf8.count)
        }
        let identity = configuration.authentication.identity(ofUser: user)
        identities[user] = .some(identity)
        return identity
    }

    // MARK: What it is for

    private func standing(
        _ host: String, _ port: UInt16, _ approach: HostStanding.Approach
    ) -> HostStanding {
        let key = HostStanding.Key(host: host, port: port, approach: approach)
        if let known = standings[key] { return known }
        standingBytes += host.utf8.count
        if standings.count >= Self.remembered || standingBytes > Self.rememberedBytes {
            (standings, standingBytes) = ([:], host.utf8.count)
        }
        let made = HostStanding(key, policy)
        standings[key] = made
        return made
    }

    private func judge(tunnel request: PastRequest, _ identity: Identity?) -> RequestVerdict {
        let standing = standing(request.host, request.port, .tunnel)
        var settings = TunnelSettings.none
        if policy.accessRules?.decideOnTunnels ?? false {
            settings = policy.tunnelSettings(
                for: accessRequest(request, identity),
                to: BoundAuthority(host: request.host, port: request.port))
        }
        let handling =
            settings == .none
            ? standing.handling
            : RouteExplanation.connect(policy, request.host, request.port, settings)
        return judge(
            request, standing, identity, handling: handling,
            scope: handling.isIntercepted ? .interceptedTunnel : .authority)
    }

    /// Judges a request by what is known of its host.
    private func judge(
        _ request: PastRequest, _ standing: HostStanding, _ identity: Identity?,
        handling: RouteExplanation.Handling? = nil, scope: AccessRules.Scope = .path
    ) -> RequestVerdict {
        var verdict = RequestVerdict(
            handling: handling ?? standing.handling, entry: standing.entry, label: standing.label,
            host: standing.key.host, port: standing.target.port)
        if verdict.refusal != nil { return verdict }
        var ways: [WayName] = []
        if let rules = standing.rules {
            let judgement = rules.judge(
                AccessRules.Subject(
                    listener: request.listener, client: request.client, identity: identity,
                    method: request.method),
                methodName: request.methodName.span, scope: scope,
                path: request.target.span.extracting(0..<request.pathCount),
                minuteOfWeek: { Clock.localMinuteOfWeek(at: request.seconds) })
            verdict.rule = judgement.rule.map(rules.name)
            verdict.reported = judgement.reported.map(rules.name)
            if let refusal = rules.refusal(judgement) {
                verdict.handling = .refused(refusal)
                return verdict
            }
            if rules.haveWays {
                ways =
                    scope == .interceptedTunnel
                    ? rules.ways(ofIntercepted: accessRequest(request, identity))
                    : rules.ways(by: judgement)
            }
        }
        if let refusal = standing.refusal(of: request.address, by: ways, policy, own) {
            verdict.handling = .refused(refusal)
        } else if verdict.verifiesServer, let expired = standing.expiry(at: request.seconds) {
            verdict.handling = .refused(expired)
        }
        verdict.needsAddress =
            request.address == nil && standing.dependsOnAddresses(by: ways, policy)
        return verdict
    }

    /// A tunnel as rules see it.
    private func accessRequest(_ request: PastRequest, _ identity: Identity?) -> AccessRequest {
        AccessRequest(
            subject: AccessRules.Subject(
                listener: request.listener, client: request.client, identity: identity,
                method: .connect),
            methodName: Array("CONNECT".utf8), scope: .authority, path: [], at: request.seconds)
    }
}

extension RouteExplanation.Handling {
    /// Whether requests in the tunnel are served like any others.
    fileprivate var showsRequests: Bool {
        switch self {
        case .intercept, .interceptOrPass, .interceptOrInspect, .inspect(.intercept): true
        case .refused, .tunnel, .inspect, .upgrade, .verified, .clearText: false
        }
    }

    /// Whether the tunnel ends in the gateway from the start.
    fileprivate var isIntercepted: Bool {
        switch self {
        case .intercept, .interceptOrPass, .interceptOrInspect: true
        case .refused, .tunnel, .inspect, .upgrade, .verified, .clearText: false
        }
    }
}
