import Authentication
import HTTPCore
import PinfoldConfiguration

// What listeners expect of their clients.
extension PolicySnapshot {
    /// From where a listener's connections must begin with a PROXY header, and no others are
    /// accepted; `nil` if none may.
    package func proxySenders(ofListener name: String) -> [IPNetwork]? {
        configuration.listeners.first { $0.name == name }?.proxyProtocol?.from
    }

    /// The methods by which a listener's clients may prove who they are; empty if they need not.
    package func methods(ofListener name: String) -> AuthenticationMethods {
        AuthenticationMethods(
            configuration.listeners.first { $0.name == name }?.authentication ?? [])
    }

    /// The ports to which a transparent listener's connections are tunnelled at once, because
    /// servers speak first there.
    package func serverFirstPorts(ofListener name: String) -> [UInt16] {
        guard
            case .transparent(let options) =
                configuration.listeners.first(where: { $0.name == name })?.kind
        else { return [] }
        return options.serverFirst
    }

    /// TLS with a listener's clients; `nil` for clear text.
    package func clientTLS(ofListener name: String) -> ClientTLS? { clientTLS[name] }

    /// Whether a listener's clients may speak HTTP/2.
    package func takesHTTP2(ofListener name: String) -> Bool {
        configuration.listeners.first { $0.name == name }?.http2 == .auto
    }
}
