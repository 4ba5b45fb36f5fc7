import HTTPCore
import PinfoldConfiguration

/// Decides about the addresses that a destination's name has: by the rules of access, and so that
/// the gateway is not made to connect to itself.
package struct DestinationCheck: Sendable {
    /// Which addresses may be connected to; nil: all, for the operator has named the destination.
    private let rules: DestinationRules?
    /// What the patterns of the configuration say of the name.
    private let match: DestinationRules.HostMatch
    /// The port that is connected to.
    private let port: UInt16

    package init(rules: DestinationRules?, match: DestinationRules.HostMatch, port: UInt16) {
        self.rules = rules
        self.match = match
        self.port = port
    }

    /// Why an address may not be connected to; nil: it may. What the operator named as a reverse
    /// listener's upstream is not judged, even if it is another listener: a request that comes back
    /// to where it was is found by its Via field.
    ///
    /// - Parameter own: the gateway's own listeners; asked for only where the rules allow the
    ///   address.
    package func refusal(
        of address: IPAddress, own: @autoclosure () -> OwnListeners
    ) -> ExchangeError? {
        guard let rules else { return nil }
        if case .refused(let refusal) = rules.decide(address, host: match) {
            return .destinationRefused(refusal)
        }
        return own().contains(address, port: port) ? .ownListenerRefused : nil
    }
}

extension OwnListeners {
    /// What a configuration has listeners at. A port that the system is to choose is not known.
    package init(of configuration: ConfigurationSnapshot) {
        let endpoints = configuration.listeners.map(\.address) + [configuration.admin.address]
        self.init(endpoints.filter { $0.port != 0 })
    }
}
