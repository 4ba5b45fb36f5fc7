import EventLoop
import HTTPCore
import PinfoldEngine

/// Whether a connection's client is one of `access.clients`, and proved to be someone its listener
/// serves; determined once per configuration.
struct ClientStanding {
    private(set) var generation: UInt64 = 0
    private(set) var mayBeServed = false

    /// Determines it under the configuration in force.
    /// - Parameters:
    ///   - session: that of the connection; `nil` for clear text.
    ///   - outer: the ingress from outside.
    @inline(never)
    mutating func determine(
        _ session: ClientSession?, through outer: Ingress, from peer: Endpoint,
        isCounted: Bool, by worker: Worker
    ) {
        let policy = worker.policy
        generation = policy.generation
        mayBeServed =
            Self.serves(session, outer, policy) && (!isCounted || Self.serves(peer, policy))
    }

    /// Why a client is not served that is not.
    static func refusal(
        of peer: Endpoint, isCounted: Bool, by worker: Worker
    ) -> ExchangeError {
        let isAmongClients = !isCounted || serves(peer, worker.policy)
        return .access(isAmongClients ? .clientSubjectNotAllowed : .clientNotAllowed)
    }

    private static func serves(_ peer: Endpoint, _ policy: PolicySnapshot) -> Bool {
        policy.configuration.access.serves(client: peer.address)
    }

    private static func serves(
        _ session: ClientSession?, _ outer: Ingress, _ policy: PolicySnapshot
    ) -> Bool {
        guard let former = outer.tls else { return true }
        let tls =
            (outer.role == .admin ? policy.adminTLS : policy.clientTLS(ofListener: outer.name))
            ?? former
        return tls.configuration.serves(subject: session?.subject)
    }
}
