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
    /// The server's address.
    let endpoint: Endpoint?
    let proof: Proof
    let requirements: ServerRequirements
    let trustGeneration: UInt64

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
    ///   - generation: the generation of the policy under which `access` admitted the client, if
    ///     that was another one.
    init(
        _ authority: BoundAuthority, by approach: PolicySnapshot.Approach, from client: Endpoint?,
        at endpoint: Endpoint?, proof: Proof, under policy: PolicySnapshot,
        since generation: UInt64? = nil
    ) {
        self.authority = authority
        self.approach = approach
        self.client = client?.address
        self.endpoint = endpoint
        self.proof = proof
        requirements = policy.requirements(
            entryIndex: policy.entry(host: authority.host, port: authority.port))
        trustGeneration = generation ?? policy.trustGeneration
    }

    /// Whether the relay must end under another policy, according to that policy's entry for its
    /// host (`liveTunnels`).
    func isSuperseded(by policy: PolicySnapshot) -> Bool {
        guard policy.trustGeneration != trustGeneration else { return false }
        let entry = policy.entry(host: authority.host, port: authority.port)
        switch entry.map({ policy.configuration.hosts.entries[$0].liveTunnels }) ?? .auto {
        case .keep: return false
        // Nothing was known about its server before either.
        case .auto where proof == .none: return !hasAccess(under: policy)
        case .auto, .close:
            return policy.requirements(entryIndex: entry) != requirements
                || !hasAccess(under: policy) || !isAllowed(by: policy, entry)
        }
    }

    /// Whether the rules of `access` would allow it to begin.
    private func hasAccess(under policy: PolicySnapshot) -> Bool {
        let access = policy.configuration.access
        if let client, !access.serves(client: client) { return false }
        switch approach {
        case .fixed: return true
        case .request: break
        case .tunnel:
            guard access.connectPorts.contains(authority.port) else { return false }
        }
        let match = target(under: policy).match
        guard !match.denied else { return false }
        guard let endpoint else { return true }
        return policy.destinationRules.decide(endpoint.address, host: match) == .allowed
    }

    /// Whether it could begin as it is, if `access` allows it.
    private func isAllowed(by policy: PolicySnapshot, _ entry: Int?) -> Bool {
        guard target(under: policy).refusal == nil else { return false }
        guard case .tunnel = approach else { return policy.allowsUpgrade(entryIndex: entry) }
        switch proof {
        case .none: return policy.mayPass(authority)
        case .verified: return true
        case .probed:
            return (policy.configuration.inspection(entry: entry) ?? .probe) == .probe
        }
    }

    private func target(under policy: PolicySnapshot) -> PolicySnapshot.Target {
        policy.target(host: authority.host, port: authority.port, by: approach)
    }
}
