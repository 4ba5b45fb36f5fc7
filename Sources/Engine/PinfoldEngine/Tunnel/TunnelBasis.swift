import Authentication
import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration

/// The basis of a relay: the server requirements and rules under which it was begun. It outlives
/// the policy itself, which a tunnel that is open for days does not retain.
struct TunnelBasis {
    /// The authority requested, by which the host entry is found.
    let authority: BoundAuthority
    let approach: PolicySnapshot.Approach
    /// The client's address; `nil` if no rule applies to it.
    let client: IPAddress?
    /// Who asked for it; `nil` if nobody had to say.
    let identity: Identity?
    /// The request that opened it; `nil` if no rule applies to it.
    let request: AccessRequest?
    /// The server's address.
    let endpoint: Endpoint?
    /// The parent through which it is reached, whose address `endpoint` then is; `nil` for a direct
    /// connection.
    let parent: ParentConfiguration?
    /// What the parent had to prove; `nil` without one, and if it is in clear text.
    let parentRequirements: ServerRequirements?
    let proof: Proof
    /// Whether the server listens on a Unix socket, which no parent leads to.
    let isOnSocket: Bool
    let requirements: ServerRequirements
    let generations: PolicySnapshot.Generations

    /// How the server had to prove its identity.
    enum Proof {
        /// Not at all.
        case none
        /// By the relayed connection itself.
        case verified
        /// By another connection, which was verified (`tls13Tunnel: probe`).
        case probed
    }

    /// - Parameters:
    ///   - policy: the policy under which the server was verified, or connected to.
    ///   - generations: those of the policy under which `access` admitted the client, if that was
    ///     another one.
    init(
        _ authority: BoundAuthority, by approach: PolicySnapshot.Approach, from client: Endpoint?,
        as identity: Identity?, request: AccessRequest?, at endpoint: Endpoint?,
        through parent: UpstreamProxy? = nil, proof: Proof, onSocket isOnSocket: Bool = false,
        under policy: PolicySnapshot, since generations: PolicySnapshot.Generations? = nil
    ) {
        self.authority = authority
        self.approach = approach
        self.client = client?.address
        self.identity = identity
        self.request = request
        self.endpoint = endpoint
        self.parent = parent?.standing?.parent
        parentRequirements = self.parent.flatMap { policy.requirements(of: $0) }
        self.proof = proof
        self.isOnSocket = isOnSocket
        requirements = policy.requirements(
            entryIndex: policy.entry(host: authority.host, port: authority.port))
        self.generations = generations ?? policy.generations
    }

    /// Whether something that matters to relays may have changed since.
    func isOlder(than policy: PolicySnapshot) -> Bool {
        var current = policy.generations
        // Whom nobody knows, no change of the files of users concerns.
        if identity == nil { current.credentials = generations.credentials }
        return current != generations
    }

    /// Whether the relay must end under another policy, according to that policy's entry for its
    /// host (`liveTunnels`).
    func isSuperseded(by policy: PolicySnapshot) -> Bool {
        guard isOlder(than: policy) else { return false }
        let entry = policy.entry(host: authority.host, port: authority.port)
        switch liveTunnels(under: policy, entry) {
        case .keep: return false
        // Nothing was known about its server before either; but whose tunnels a rule has inspected,
        // intercepted or refused must not go on unread.
        case .auto where proof == .none:
            return !hasAccess(under: policy) || isForbidden(by: policy, entry)
        case .auto, .close:
            return policy.requirements(entryIndex: entry) != requirements
                || !hasAccess(under: policy) || !isAllowed(by: policy, entry)
        }
    }

    /// How long the proof of who asked is still worth something: `.max` if it does not expire, or
    /// if the entry for its host says that the tunnel is kept (`liveTunnels`).
    /// - Parameter now: milliseconds since 1970.
    func millisecondsOfProof(at now: Int64, under policy: PolicySnapshot) -> Int64 {
        guard let end = identity?.expires else { return .max }
        if liveTunnels(under: policy, policy.entry(host: authority.host, port: authority.port))
            == .keep
        {
            return .max
        }
        return max(0, end * 1000 - now)
    }

    private func liveTunnels(under policy: PolicySnapshot, _ entry: Int?) -> LiveTunnelMode {
        entry.map { policy.configuration.hosts.entries[$0].liveTunnels } ?? .auto
    }

    /// Whether its client could still prove who it is, and the rules of `access` would allow it to
    /// begin.
    private func hasAccess(under policy: PolicySnapshot) -> Bool {
        let now = Clock.wallSeconds()
        if let identity, !policy.confirms(identity, at: now) { return false }
        let access = policy.configuration.access
        if let client, !access.serves(client: client) { return false }
        guard isOnSocket || policy.allows(parent, to: authority, for: request),
            parent.flatMap({ policy.requirements(of: $0) }) == parentRequirements
        else { return false }
        if let request, let rules = policy.rules(host: authority.host, port: authority.port) {
            // By the time at which it began: a time that is over ends no tunnel.
            guard rules.judge(request).verdict == .allowed else { return false }
            if isUnseen, policy.intercepts(authority, by: rule(under: policy)),
                !rules.allowsUnseen(in: request)
            {
                return false
            }
        }
        switch approach {
        case .fixed: return true
        case .request: break
        case .tunnel:
            guard access.connectPorts.contains(authority.port) else { return false }
        }
        let target = target(under: policy)
        if case .hostNotListed = target.refusal { return false }
        let match = target.match
        guard !match.denied else { return false }
        // The operator has named a parent, to whose address no rule applies.
        guard let endpoint, parent == nil else { return true }
        return policy.destinationRules.decide(endpoint.address, host: match) == .allowed
    }

    /// Whether a rule allows such a tunnel only in another way.
    private func isForbidden(by policy: PolicySnapshot, _ entry: Int?) -> Bool {
        rule(under: policy) != .none && !isAllowed(by: policy, entry)
    }

    /// Whether it could begin as it is, if `access` allows it.
    private func isAllowed(by policy: PolicySnapshot, _ entry: Int?) -> Bool {
        guard target(under: policy).refusal == nil else { return false }
        guard case .tunnel = approach else { return policy.allowsUpgrade(entryIndex: entry) }
        switch proof {
        case .none: return policy.mayPass(authority, by: rule(under: policy))
        case .verified: return true
        case .probed:
            let mode = policy.configuration.inspection(entry: entry, by: rule(under: policy))
            return (mode ?? .probe) == .probe
        }
    }

    /// Whether it is relayed unread.
    private var isUnseen: Bool { if case .tunnel = approach { true } else { false } }

    private func target(under policy: PolicySnapshot) -> PolicySnapshot.Target {
        policy.target(
            host: authority.host, port: authority.port, by: approach, rule(under: policy))
    }

    /// How the rule that allows the tunnel under a policy has it handled.
    private func rule(under policy: PolicySnapshot) -> TunnelSettings {
        guard case .tunnel = approach else { return .none }
        return policy.tunnelSettings(for: request, to: authority)
    }
}

extension PolicySnapshot {
    /// What a tunnel that was begun under a snapshot depends on.
    struct Generations: Equatable {
        let trust: UInt64
        let rules: UInt64
        var credentials: UInt64
    }

    var generations: Generations {
        Generations(
            trust: trustGeneration, rules: rulesGeneration, credentials: credentialsGeneration)
    }

    /// What a parent must prove; `nil` if it is spoken to in clear text.
    fileprivate func requirements(of parent: ParentConfiguration) -> ServerRequirements? {
        guard parent.scheme == .https else { return nil }
        return requirements(entryIndex: entry(host: parent.host, port: parent.port))
    }
}
