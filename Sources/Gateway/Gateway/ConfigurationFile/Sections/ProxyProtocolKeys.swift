import HTTPCore
import PinfoldConfiguration

/// `proxyProtocol` of a listener.
extension ProxyProtocolConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .required(
                "from", \.from, expected: expected,
                reading: { reader, field in
                    guard let elements = field.boundedList(of: "networks") else { return nil }
                    guard !elements.isEmpty else {
                        field.fail("names no sender", expected: expected)
                        return nil
                    }
                    let networks = elements.compactMap { reader.clientNetwork($0) }
                    for network in networks where network.prefixLength == 0 {
                        field.warn(
                            "\(network) lets everyone who can reach the listener say that they are "
                                + "any client: name the load balancers")
                    }
                    return networks
                },
                text: { YAMLText.list($0.map(\.clientDescription)) })
        ])
    }

    private static let expected = """
        the networks of the load balancers that begin each connection with a PROXY header, such \
        as [\"10.0.0.0/8\"]
        """
}
