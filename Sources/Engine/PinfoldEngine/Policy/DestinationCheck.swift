import HTTPCore
import PinfoldConfiguration

/// Decides which addresses of a destination may be connected to: by the access rules, and such that
/// the gateway cannot be made to connect to itself.
package struct DestinationCheck: Sendable {
    /// Which addresses may be connected to; `nil` for all, because the operator has named the
    /// destination.
    private let rules: DestinationRules?
    /// Which patterns of the configuration match the name.
    private let match: DestinationRules.HostMatch
    /// The port to connect to.
    private let port: UInt16
    /// Whether it is a parent: no rules apply to it, but by SOCKS nothing else would end a circle.
    private let isParent: Bool

    package init(
        rules: DestinationRules?, match: DestinationRules.HostMatch, port: UInt16,
        isParent: Bool = false
    ) {
        self.rules = rules
        self.match = match
        self.port = port
        self.isParent = isParent
    }

    /// Why an address may not be connected to; `nil` if it may. A reverse listener's upstream,
    /// which the operator has named, is not checked, even if it is another listener: a request that
    /// loops is detected by its Via field.
    ///
    /// - Parameter own: the gateway's own listeners; evaluated only if the rules allow the address.
    package func refusal(
        of address: IPAddress, own: @autoclosure () -> OwnListeners
    ) -> ExchangeError? {
        switch rules?.decide(address, host: match) {
        case .refused(let refusal): return .destinationRefused(refusal)
        case .allowed: break
        case nil: guard isParent else { return nil }
        }
        return own().contains(address, port: port) ? .access(.ownListenerRefused) : nil
    }
}

extension OwnListeners {
    /// The addresses of a configuration's listeners. A port that the system chooses is unknown.
    package init(of configuration: ConfigurationSnapshot) {
        let endpoints = configuration.listeners.flatMap(\.endpoints) + configuration.admin.endpoints
        self.init(endpoints.filter { $0.port != 0 })
    }
}
