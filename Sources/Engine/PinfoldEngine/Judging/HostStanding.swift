import HTTPCore
import PinfoldConfiguration
import Trust

/// What a configuration says of one host and port, whoever asks.
final class HostStanding {
    /// How the host is approached.
    enum Approach: Hashable {
        case tunnel
        case request(isSecure: Bool)
        /// A reverse listener's server.
        case fixed(isSecure: Bool)
    }

    struct Key: Hashable {
        let host: String
        let port: UInt16
        let approach: Approach
    }

    let key: Key
    let target: PolicySnapshot.Target
    /// The index of the entry that applies, and its name in logs.
    let entry: Int?
    let label: String
    /// The rules for it; `nil` if there are none.
    let rules: HostRules?
    /// How such requests are handled before rules are asked; of a tunnel, if no rule says how.
    let handling: RouteExplanation.Handling
    private let pinsets: [Pinset]
    private let check: DestinationCheck
    /// Whether its server is connected to directly unless a rule says otherwise.
    private let isDirect: Bool

    init(_ key: Key, _ policy: PolicySnapshot) {
        self.key = key
        let approach: PolicySnapshot.Approach
        switch key.approach {
        case .tunnel: approach = .tunnel
        case .request(let isSecure): approach = .request(isSecure: isSecure)
        case .fixed(let isSecure): approach = .fixed(isSecure: isSecure)
        }
        let configuration = policy.configuration
        target = policy.target(host: key.host, port: key.port, by: approach)
        entry = target.entryIndex
        let hostEntry = entry.map { configuration.hosts.entries[$0] }
        label = hostEntry?.label ?? "default"
        pinsets = (hostEntry?.pinsets ?? []).map { configuration.pinsets[$0].pinset }
        rules = policy.rules(host: key.host, port: key.port)
        switch key.approach {
        case .tunnel:
            handling = RouteExplanation.connect(policy, key.host, key.port, .none)
        case .request(let isSecure), .fixed(let isSecure):
            handling = RouteExplanation.absolute(target, isSecure)
        }
        var isFixed = false
        if case .fixed = key.approach { isFixed = true }
        check = DestinationCheck(
            rules: isFixed ? nil : policy.destinationRules, match: target.match, port: target.port)
        isDirect = policy.ways(host: key.host, port: key.port, entryIndex: entry) == nil
    }

    /// Why an address of the host may not be connected to; `nil` if it may, or is not asked for:
    /// behind another proxy, the address is that proxy's.
    func refusal(
        of address: IPAddress?, by ways: [WayName], _ policy: PolicySnapshot, _ own: OwnListeners
    ) -> ExchangeError? {
        guard let address, isDirect, ways.isEmpty else { return nil }
        return check.refusal(of: address, own: own)
    }

    /// Whether the addresses of its name decide whether it is connected to.
    func dependsOnAddresses(by ways: [WayName], _ policy: PolicySnapshot) -> Bool {
        if case .fixed = key.approach { return false }
        guard isDirect, ways.isEmpty else { return false }
        return IPAddress(literal: key.host.utf8.span) == nil
    }

    /// The error if one of its pinsets refuses every server.
    func expiry(at seconds: Int64) -> ExchangeError? {
        pinsets.isEmpty ? nil : RouteExplanation.expiry(of: pinsets, at: seconds)
    }
}
