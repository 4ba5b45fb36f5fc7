import HTTPCore
import PinfoldConfiguration
import Trust

/// `access`.
extension AccessConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "clients", \.clients,
                reading: { reader, field in
                    field.boundedList(of: "networks")?.compactMap { reader.clientNetwork($0) }
                },
                text: { YAMLText.list($0.map(\.clientDescription)) }),
            .choice("hosts", \.hosts),
            ConfigurationKey(
                "connectPorts", \.connectPorts, reading: { $0.connectPorts($1) },
                text: { ports in
                    switch ports {
                    case .any: "any"
                    case .ports(let ports):
                        "[\(ports.map(\.description).joined(separator: ", "))]"
                    }
                }),
            ConfigurationKey("destinations", \.self, table: destinations, isBlock: true),
            .choice("default", \.byDefault),
            listsKey,
            rulesKey,
        ])
    }

    private static var destinations: KeyTable<Self> {
        func list(
            _ name: String, _ place: WritableKeyPath<Self, DestinationList>
        ) -> ConfigurationKey<Self> {
            ConfigurationKey(
                name, place, reading: { $0.destinations($1) },
                text: { YAMLText.list($0.texts) })
        }
        return KeyTable(keys: [list("allow", \.allow), list("deny", \.deny)])
    }
}

extension SnapshotReader {
    /// The maximum number of entries in a list of networks, patterns or ports.
    static let maximumRules = 10_000

    /// Whether the configuration itself lists at least one network to serve.
    func hasExplicitClients(_ field: Field?) -> Bool {
        guard case .sequence(let networks)? = field?.node["clients"]?.content else { return false }
        return !networks.isEmpty
    }

    /// Reads `access`: which clients are served, and which destinations may be reached.
    func access(_ field: Field?) -> AccessConfiguration {
        read(field, by: AccessConfiguration.table, over: AccessConfiguration()).values
    }

    /// A network or an address of clients, or `unix` for those of Unix sockets.
    func clientNetwork(_ field: Field) -> IPNetwork? {
        if case .scalar(IPNetwork.unixWord, _) = field.node.content { return .unixClients }
        guard let network = network(field) else { return nil }
        guard network != .unixClients else {
            field.fail(
                "0.0.0.0 is no client's address",
                expected: "a network, an address, or unix for the clients of Unix sockets")
            return nil
        }
        return network
    }

    /// A network or an address.
    func network(_ field: Field) -> IPNetwork? {
        let expected = "a network or an address, such as 10.0.0.0/8, fc00::/7 or 192.0.2.1"
        guard let text = field.text(expected: expected) else { return nil }
        do {
            return try IPNetwork(parsing: text)
        } catch {
            switch error {
            case .hostBitsSet(let suggestion):
                field.fail(
                    "\(quoted(text)) has bits set after its prefix", expected: "\(suggestion)")
            case .badPrefixLength:
                field.fail("\(quoted(text)) has an invalid prefix length", expected: expected)
            case .badAddress:
                field.fail("\(quoted(text)) is not a network", expected: expected)
            }
        }
        return nil
    }

    fileprivate func connectPorts(_ field: Field) -> ConnectPorts? {
        switch field.node.content {
        case .scalar("any", _): return .any
        case .sequence:
            let ports = field.boundedList(of: "ports") ?? []
            return .ports(ports.compactMap { $0.integer(in: 1...65535).map { UInt16($0) } })
        case .null: break
        case .scalar(let text, _):
            field.fail("\(quoted(text)) is not a list", expected: "any, or a list of ports")
        case .mapping:
            field.fail("is a mapping", expected: "any, or a list of ports")
        }
        return nil
    }

    /// A list of networks, addresses and host patterns.
    func destinations(_ field: Field) -> DestinationList {
        var networks: [IPNetwork] = []
        var patterns: [HostPattern] = []
        for element in field.boundedList(of: "networks, addresses and host patterns") ?? [] {
            guard case .scalar(let text, _) = element.node.content else {
                _ = element.text(expected: "a network, an address or a host pattern")
                continue
            }
            if text.contains("/"), text.firstRange(of: "://") == nil {
                network(element).map { networks.append($0) }
            } else if let address = IPNetwork(text) {
                networks.append(address)
            } else {
                hostPattern(element).map { patterns.append($0) }
            }
        }
        return DestinationList(networks: networks, patterns: patterns)
    }

    /// A host pattern.
    func hostPattern(_ field: Field) -> HostPattern? {
        let expected = """
            a host name, *.name for one more label, **.name for any depth, or an address, each \
            optionally with a :port
            """
        guard let text = field.text(expected: expected) else { return nil }
        do {
            return try HostPattern(text)
        } catch {
            field.fail(
                "\(quoted(text)) is not a host pattern: \(error.problem)", expected: expected)
        }
        return nil
    }
}

extension Field {
    /// A list of at most ``SnapshotReader/maximumRules`` elements.
    func boundedList(of what: String) -> [Field]? {
        guard let elements = list(of: what) else { return nil }
        guard elements.count <= SnapshotReader.maximumRules else {
            fail(
                "has \(elements.count) entries",
                expected: "at most \(SnapshotReader.maximumRules) \(what)")
            return nil
        }
        return elements
    }
}
