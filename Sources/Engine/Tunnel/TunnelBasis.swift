import Addressing
import Configuration
import EventLoop

/// What a relay stands on: the demands and rules under which it was begun. It outlives the policy
/// itself, which a tunnel that is open for days does not keep.
struct TunnelBasis {
    /// What was asked for, by which the host entry is found.
    let authority: BoundAuthority
    let approach: PolicySnapshot.Approach
    /// The server's address.
    let endpoint: Endpoint?
    /// The server had to prove who it is.
    let isVerified: Bool
    let demand: ServerDemand
    let trustGeneration: UInt64

    init(
        _ authority: BoundAuthority, by approach: PolicySnapshot.Approach, at endpoint: Endpoint?,
        isVerified: Bool, under policy: PolicySnapshot
    ) {
        self.authority = authority
        self.approach = approach
        self.endpoint = endpoint
        self.isVerified = isVerified
        demand = policy.demand(
            entryIndex: policy.entry(host: authority.host, port: authority.port))
        trustGeneration = policy.trustGeneration
    }

    /// Whether the relay has to end under another policy, by the choice of the entry that applies
    /// to its host there (`liveTunnels`).
    func isSuperseded(by policy: PolicySnapshot) -> Bool {
        guard policy.trustGeneration != trustGeneration else { return false }
        let entry = policy.entry(host: authority.host, port: authority.port)
        switch entry.map({ policy.configuration.hosts.entries[$0].liveTunnels }) ?? .auto {
        case .keep: return false
        case .auto where !isVerified: return false
        case .auto, .close:
            return policy.demand(entryIndex: entry) != demand || !isAllowed(by: policy)
        }
    }

    /// Whether it could be begun as it is.
    private func isAllowed(by policy: PolicySnapshot) -> Bool {
        let target = policy.target(host: authority.host, port: authority.port, by: approach)
        guard target.refusal == nil else { return false }
        switch approach {
        case .fixed: return true
        case .request: break
        case .tunnel:
            guard policy.configuration.access.connectPorts.contains(authority.port),
                isVerified || policy.mayPass(authority)
            else { return false }
        }
        guard let endpoint else { return true }
        return policy.destinationRules.decide(endpoint.address, host: target.match) == .allowed
    }
}
