import Activity
import Addressing
import CertificateAuthority
import PinfoldConfiguration
import Pinning
import TLS

/// How requests for a URL would travel under a configuration: what the functions say that decide it
/// in exchanges, asked before there is one.
package struct RouteExplanation: Sendable {
    /// How a request comes to the gateway.
    package enum Asking: Sendable, Hashable, CaseIterable {
        /// CONNECT with the URL's host and port, as clients do for https.
        case connect
        /// The whole URL in the request.
        case absolute
    }

    /// How it goes on.
    package enum Way: Sendable {
        case refused(ExchangeFault)
        /// The tunnel's bytes are relayed unread.
        case tunnel
        /// They are once the server's handshake has been judged; with TLS 1.3 as the mode says.
        case inspect(TLS13TunnelMode)
        /// The tunnel ends in the gateway, and requests in it are served like others.
        case intercept
        /// Intercepted; what is not TLS, and clients that reject the certificate, are relayed.
        case interceptOrPass
        /// Intercepted; tunnels of clients that reject the certificate are inspected.
        case interceptOrInspect(TLS13TunnelMode)
        /// Asked in clear text, sent as TLS to this port.
        case upgrade(port: UInt16)
        /// TLS, as asked for.
        case verified
        case clearText
    }

    /// What the rules of access say of a destination.
    package struct Destination: Sendable {
        package enum Verdict: String, Sendable {
            case allowed
            case refused
            /// By its name, private networks are allowed, too; each address decides the rest.
            case privateAllowed = "private-allowed"
            /// Each address that the name has decides.
            case byAddress = "by-address"
        }

        package let verdict: Verdict
        /// What is spoken of; nil: the name.
        package let address: IPAddress?
        /// Why, for people; nil: there is nothing to say.
        package let detail: String?

        /// One sentence.
        package var text: String {
            let subject = address.map { "\($0): " } ?? ""
            switch verdict {
            case .allowed: return subject + "allowed"
            case .refused: return "\(subject)refused: \(detail ?? "")"
            case .privateAllowed, .byAddress: return subject + (detail ?? "")
            }
        }
    }

    package let host: String
    package let port: UInt16
    /// The index of the host entry that applies, and its label; nil: none does.
    package let entry: Int?
    package let label: String
    /// The pattern by which it applies.
    package let pattern: String?
    /// The pinsets that a server is held to, in the order of evaluation.
    package let pinsets: [Pinset]
    /// What is asked of the server by Certificate Transparency; nil: nothing.
    package let transparency: TransparencyPolicy?
    /// How each way of asking goes on.
    package let ways: [(asking: Asking, way: Way)]
    /// What the rules of access say of the destination by its name or, if that is one, its address.
    package let destination: Destination
    /// Whether responses are looked up and stored; else why not.
    package let cacheIsUsed: Bool
    package let cacheReason: String

    /// - Parameters:
    ///   - policy: the snapshot whose functions are asked.
    ///   - host: lower case, an address without brackets.
    package init(_ policy: PolicySnapshot, host: String, port: UInt16, isSecure: Bool) {
        let configuration = policy.configuration
        let entry = configuration.hostEntry(host: host.utf8.span, port: port)
        let hostEntry = entry.map { configuration.hosts.entries[$0] }
        self.host = host
        self.port = port
        self.entry = entry
        label = hostEntry?.label ?? "default"
        pattern = hostEntry?.match.first { $0.matches(host: host.utf8.span, port: port) }
            .map { "\($0)" }
        transparency = (hostEntry?.tls ?? configuration.tls).transparency.policy
        pinsets = (hostEntry?.pinsets ?? []).map { configuration.pinsets[$0].pinset }
        var ways: [(asking: Asking, way: Way)] = []
        if isSecure { ways.append((.connect, Self.connect(policy, host, port, entry))) }
        ways.append((.absolute, Self.absolute(policy, host, port, isSecure)))
        self.ways = ways
        destination = Self.destination(policy, host, port)
        (cacheIsUsed, cacheReason) = Self.cache(configuration, hostEntry)
    }

    /// The order of `Exchange.tunnel`.
    private static func connect(
        _ policy: PolicySnapshot, _ host: String, _ port: UInt16, _ entry: Int?
    ) -> Way {
        guard policy.configuration.access.connectPorts.contains(port) else {
            return .refused(.connectPortRefused(port))
        }
        let tunnel = policy.target(host: host, port: port, by: .tunnel)
        let inspection = policy.configuration.inspection(entry: entry)
        guard policy.configuration.intercepts(entry: entry) else {
            if let refusal = tunnel.refusal { return .refused(refusal) }
            return inspection.map { .inspect($0) } ?? .tunnel
        }
        if let refusal = policy.target(host: host, port: port, by: .request(isSecure: true)).refusal
        {
            return .refused(refusal)
        }
        guard ReferenceIdentifier(host) != nil else { return .refused(.interceptionImpossible) }
        if let inspection { return .interceptOrInspect(inspection) }
        guard policy.configuration.passesClearText(entry: entry) else { return .intercept }
        return tunnel.refusal.map { .refused($0) } ?? .interceptOrPass
    }

    private static func absolute(
        _ policy: PolicySnapshot, _ host: String, _ port: UInt16, _ isSecure: Bool
    ) -> Way {
        let target = policy.target(host: host, port: port, by: .request(isSecure: isSecure))
        if let refusal = target.refusal { return .refused(refusal) }
        if isSecure { return .verified }
        return target.isSecure ? .upgrade(port: target.port) : .clearText
    }

    private static func destination(
        _ policy: PolicySnapshot, _ host: String, _ port: UInt16
    ) -> Destination {
        let match = policy.destinationMatch(host: host, port: port)
        if let address = IPAddress(literal: host.utf8.span) {
            return verdict(policy, address, match)
        }
        if match.denied {
            let detail = ExchangeFault.destinationRefused(.deniedHost).explanation
            return Destination(verdict: .refused, address: nil, detail: detail)
        }
        if match.allowed {
            return Destination(
                verdict: .privateAllowed, address: nil,
                detail: "its name is in access.destinations.allow: private networks are allowed, "
                    + "too")
        }
        return Destination(
            verdict: .byAddress, address: nil,
            detail: "no rule names it: decided by each address that the name has")
    }

    /// What the rules say of an address of the destination.
    private static func verdict(
        _ policy: PolicySnapshot, _ address: IPAddress, _ match: DestinationRules.HostMatch
    ) -> Destination {
        switch policy.destinationRules.decide(address, host: match) {
        case .allowed: Destination(verdict: .allowed, address: address, detail: nil)
        case .refused(let refusal):
            Destination(
                verdict: .refused, address: address,
                detail: ExchangeFault.destinationRefused(refusal).explanation)
        }
    }

    /// The same for an address that the name was found to have.
    package func verdict(on address: IPAddress, under policy: PolicySnapshot) -> Destination {
        Self.verdict(policy, address, policy.destinationMatch(host: host, port: port))
    }

    private static func cache(
        _ configuration: ConfigurationSnapshot, _ entry: HostEntry?
    ) -> (Bool, String) {
        guard configuration.cache.isEnabled else { return (false, "cache.enabled is false") }
        guard entry?.cacheStores ?? true else {
            return (false, "the entry says cache.store: false")
        }
        return (true, "responses are stored and used as their fields allow")
    }
}

extension PolicySnapshot {
    /// A snapshot to ask, not to serve with: nothing is issued, resumed or counted under it.
    package convenience init(
        asking configuration: ConfigurationSnapshot
    ) throws(TLSContextError) {
        try self.init(
            configuration, generation: 1, sessions: TLSSessionCache(), labels: RouteLabels(),
            reachability: { HostReachability(host: $0) })
    }

    /// What TLS is spoken with to servers of a host entry; nil: of none.
    package func context(entry: Int?) -> TLSClientContext { tls(entryIndex: entry) }
}
