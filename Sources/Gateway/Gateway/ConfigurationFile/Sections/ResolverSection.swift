import HTTPCore
import PinfoldConfiguration

/// `resolver`.
extension ResolverConfiguration {
    static var table: KeyTable<Self> {
        let range: ClosedRange<Int64> = 0...604_800
        return KeyTable(keys: [
            ConfigurationKey(
                "servers", \.servers, reading: { $1.nameServers() },
                text: { servers in
                    switch servers {
                    case .system: "system"
                    case .list(let servers): YAMLText.list(servers.map(\.description))
                    }
                }),
            .seconds("minimumTTL", \.minimumTTLSeconds, in: range),
            ConfigurationKey(
                "maximumTTL",
                read: { _, field, resolver in
                    resolver.maximumTTLSeconds =
                        field?.seconds(in: range)
                        ?? max(resolver.minimumTTLSeconds, resolver.maximumTTLSeconds)
                },
                text: { Quantity.text(milliseconds: $0.maximumTTLSeconds * 1_000) }),
        ])
    }
}

extension SnapshotReader {
    /// Reads `resolver`: the settings for name resolution.
    func resolver(_ field: Field?) -> ResolverConfiguration {
        let (resolver, section) = read(
            field, by: ResolverConfiguration.table, over: ResolverConfiguration())
        if resolver.minimumTTLSeconds > resolver.maximumTTLSeconds {
            let maximum = Quantity.text(milliseconds: resolver.maximumTTLSeconds * 1_000)
            (section?["minimumTTL"] ?? section?["maximumTTL"])?.fail(
                "exceeds maximumTTL (\(maximum))", expected: "at most maximumTTL")
        }
        return resolver
    }
}

extension Field {
    /// `system`, or a list of addresses.
    fileprivate func nameServers() -> ResolverConfiguration.Servers? {
        let expected = "system, or a list of addresses, each optionally with a :port"
        switch node.content {
        case .scalar("system", _), .null: return .system
        case .sequence(let nodes) where (1...16).contains(nodes.count):
            let elements = list(of: "addresses") ?? []
            return .list(
                elements.compactMap { element in
                    element.parsed(
                        expected: "an address such as 192.0.2.53 or [2001:db8::53]:5353"
                    ) {
                        if let address = IPAddress($0) {
                            return Endpoint(address: address, port: 53)
                        }
                        return Endpoint($0).flatMap { $0.port == 0 ? nil : $0 }
                    }
                })
        case .sequence(let nodes):
            fail("has \(nodes.count) servers", expected: "system, or 1 to 16 addresses")
        case .scalar(let text, _): fail("\(quoted(text)) is not a list", expected: expected)
        case .mapping: fail("is a mapping", expected: expected)
        }
        return nil
    }
}
