import EventLoop
import HTTPCore
import PinfoldConfiguration

/// What a relay stands on: the demands and rules under which it was begun. It outlives the policy
/// itself, which a tunnel that is open for days does not keep.
struct TunnelBasis {
    /// What was asked for, by which the host entry is found.
    let authority: BoundAuthority
    let approach: PolicySnapshot.Approach
    /// The client's address; nil: it is nobody's that a rule applies to.
    let client: IPAddress?
    /// The server's address.
    let endpoint: Endpoint?
    let proof: Proof
    let demand: ServerDemand
    let trustGeneration: UInt64

    /// How the server had to prove who it is.
    enum Proof {
        /// It did not.
        case none
        /// What is relayed is its proof.
        case verified
        /// Another connection to it was verified (`tls13Tunnel: probe`).
        case probed
    }

    /// - Parameters:
    ///   - policy: by which the server was judged, or connected to.
    ///   - generation: of the policy under which `access` let the client in, if that was another.
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
        demand = policy.demand(
            entryIndex: policy.entry(host: authority.host, port: authority.port))
        trustGeneration = generation ?? policy.trustGeneration
    }

    /// Whether the relay has to end under another policy, by the choice of the entry that applies
    /// to its host there (`liveTunnels`).
    func isSuperseded(by policy: PolicySnapshot) -> Bool {
        guard policy.trustGeneration != trustGeneration else { return false }
        let entry = policy.entry(host: authority.host, port: authority.port)
        switch entry.map({ policy.configuration.hosts.entries[$0].liveTunnels }) ?? .auto {
        case .keep: return false
        // Nothing was known of its server before either.
        case .auto where proof == .none: return !hasAccess(under: policy)
        case .auto, .close:
            return policy.demand(entryIndex: entry) != demand || !hasAccess(under: policy)
                || !isAllowed(by: policy, entry)
        }
    }

    /// Whether the rules of `access` would let it be begun.
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

    /// Whether it could be begun as it is, where `access` lets it.
    private func isAllowed(by policy: PolicySnapshot, _ entry: Int?) -> Bool {
        guard target(under: policy).refusal == nil else { return false }
        guard case .tunnel = approach else { return policy.mayLeaveHTTP(entryIndex: entry) }
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
