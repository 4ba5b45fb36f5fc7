import HTTPCore
import PinfoldConfiguration
import Trust

/// An element of `listeners`.
extension ListenerConfiguration {
    private enum KindName: String, CaseIterable {
        case forward
        case reverse
    }

    /// The table of keys.
    ///
    /// - Parameter hasExplicitClients: Whether the file itself lists the clients to serve.
    static func table(hasExplicitClients: Bool) -> KeyTable<Self> {
        KeyTable(
            keys: [
                ConfigurationKey(
                    "name", \.name, byDefault: "the kind, numbered",
                    reading: { $1.name() }, text: YAMLText.quoted),
                ConfigurationKey(
                    "address", byDefault: "required",
                    readSection: { reader, section, listener in
                        let expected = SnapshotReader.addressExpected
                        guard let field = section?.required("address", expected: expected),
                            let address = reader.address(
                                field, hasExplicitClients: hasExplicitClients)
                        else { return }
                        (listener.address, listener.passed) = (address.endpoint, address.passed)
                    },
                    text: { YAMLText.quoted($0.addressText) }),
                ConfigurationKey(
                    "kind",
                    readSection: { _, section, listener in
                        switch section?["kind"].map({ $0.choice(KindName.self) }) ?? .forward {
                        case .forward:
                            for key in reverseKeys {
                                section?[key.name]?.fail(
                                    "does not apply to a forward listener",
                                    expected: "kind: reverse, or no \(key.name)")
                            }
                        // A placeholder until the upstream is read.
                        case .reverse:
                            listener.kind = .reverse(
                                UpstreamOrigin(scheme: .http, host: "", port: 80))
                        case nil: break
                        }
                    },
                    text: { ($0.upstream == nil ? KindName.forward : .reverse).rawValue }),
                tlsKey,
                .choice("http2", \.http2),
                authenticationKey,
            ] + reverseKeys, later: ["proxyProtocol"])
    }

    /// `tls`, which is `nil` unless it is written.
    private static var tlsKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "tls",
            read: { reader, field, listener in
                listener.tls = field.flatMap { reader.listenerTLS($0) }
            },
            text: { $0.tls.flatMap(ListenerTLS.table.flow) })
        key.described = { _ in
            ListenerTLS.table.described(ListenerTLS()).map { $0.within("tls") }
        }
        return key
    }

    /// The server of a reverse listener, or `nil` for a forward listener.
    private var upstream: UpstreamOrigin? {
        if case .reverse(let upstream) = kind { upstream } else { nil }
    }

    /// The keys of reverse listeners. For other listeners they are neither read nor printed.
    private static var reverseKeys: [ConfigurationKey<Self>] {
        func key(
            _ name: String, byDefault: String,
            read: @escaping (SnapshotReader, Section, inout Self) -> Void,
            text: @escaping (Self) -> String?
        ) -> ConfigurationKey<Self> {
            ConfigurationKey(
                name, byDefault: byDefault,
                readSection: { reader, section, listener in
                    guard let section, listener.upstream != nil else { return }
                    read(reader, section, &listener)
                },
                text: { $0.upstream == nil ? nil : text($0) })
        }
        return [
            key(
                "upstream", byDefault: "required for reverse",
                read: { _, section, listener in
                    let expected = "http://host[:port] or https://host[:port], without a path"
                    let field = section.required("upstream", expected: expected)
                    let origin = field?.parsed(expected: expected) { UpstreamOrigin(url: $0) }
                    listener.kind = origin.map { .reverse($0) } ?? .forward
                },
                text: { $0.upstream.map { YAMLText.quoted($0.url) } }),
            key(
                "forwarded", byDefault: "set; append with trustedProxies",
                read: { _, section, listener in
                    // Trusted proxies are only useful if their fields are kept.
                    let byDefault: ForwardingConfiguration.Mode =
                        section["trustedProxies"]?.isFilledList == true ? .append : .set
                    listener.forwarding.mode = section["forwarded"]?.choice() ?? byDefault
                },
                text: { $0.forwarding.mode.rawValue }),
            key(
                "host", byDefault: HostName.rewrite.rawValue,
                read: { _, section, listener in
                    let name = section["host"]?.choice(HostName.self)
                    listener.forwarding.keepsHost = name == .keep
                },
                text: { ($0.forwarding.keepsHost ? HostName.keep : .rewrite).rawValue }),
            key(
                "trustedProxies", byDefault: "[]",
                read: { reader, section, listener in
                    guard let field = section["trustedProxies"] else { return }
                    let networks = field.boundedList(of: "networks") ?? []
                    listener.forwarding.trustedProxies = networks.compactMap { reader.network($0) }
                    let forwarding = listener.forwarding
                    if !forwarding.trustedProxies.isEmpty, forwarding.mode != .append {
                        field.fail(
                            "has no effect with forwarded: \(forwarding.mode.rawValue)",
                            expected: "forwarded: append, or no trustedProxies")
                    }
                },
                text: { YAMLText.list($0.forwarding.trustedProxies.map(\.description)) }),
        ]
    }

    private enum HostName: String, CaseIterable {
        case rewrite
        case keep
    }
}

extension Field {
    /// Whether the value is a nonempty list.
    fileprivate var isFilledList: Bool {
        if case .sequence(let nodes) = node.content { !nodes.isEmpty } else { false }
    }
}

/// `listeners`.
extension SnapshotReader {
    static let defaultListener = ListenerConfiguration(
        name: "proxy", address: Endpoint(address: .loopbackV4, port: 8080), kind: .forward)
    /// The maximum number of listeners.
    static let maximumListeners = 256

    /// Reads the listeners and checks that names and addresses are unique.
    ///
    /// - Parameters:
    ///   - admin: The administrative address.
    ///   - adminField: The section that contains the administrative address.
    func listeners(
        _ field: Field?, hasExplicitClients: Bool, admin: AdminConfiguration, adminField: Field?
    ) -> [ListenerConfiguration] {
        guard let elements = field?.list(of: "listeners") else {
            if admin.endpoints.contains(Self.defaultListener.address),
                let node = adminField?.node["address"]
            {
                validation.report(
                    node.origin, "admin.address",
                    "\(admin.addressText) is used by the default listener",
                    expected: "a different address, or listeners that do not use it")
            }
            return [Self.defaultListener]
        }
        guard (1...Self.maximumListeners).contains(elements.count) else {
            field?.fail(
                elements.isEmpty ? "has no listeners" : "has \(elements.count) listeners",
                expected: "1 to \(Self.maximumListeners) listeners")
            return []
        }
        var names = Set<String>()
        var addresses = Set(admin.endpoints.filter { $0.port != 0 })
        var passed = Set(admin.passed.map { [$0.name] } ?? [])
        var unnamed: [String: Int] = [:]
        let table = ListenerConfiguration.table(hasExplicitClients: hasExplicitClients)
        return elements.compactMap { element in
            guard let section = element.section(keys: table.names, later: table.later) else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with name, address, kind")
                }
                return nil
            }
            let unwritten = ListenerConfiguration(
                name: "", address: Endpoint(address: .loopbackV4, port: 0), kind: .forward)
            var listener = read(section, by: table, over: unwritten)
            if listener.name.isEmpty { listener.name = name(of: listener.kind, &unnamed) }
            if !names.insert(listener.name).inserted {
                (section["name"] ?? element).fail(
                    "another listener is named \(quoted(listener.name))",
                    expected: "a unique name")
            }
            let isTaken = listener.endpoints.contains {
                $0.port != 0 && !addresses.insert($0).inserted
            }
            if isTaken || listener.passed.map({ !passed.insert($0.name).inserted }) ?? false {
                (section["address"] ?? element).fail(
                    "\(listener.addressText) is used by another listener or by admin",
                    expected: "a different address")
            }
            return listener
        }
    }

    /// The name of a listener without one: its kind, with a number from the second one on.
    private func name(
        of kind: ListenerConfiguration.Kind, _ unnamed: inout [String: Int]
    ) -> String {
        let base: String
        switch kind {
        case .forward: base = "forward"
        case .reverse: base = "reverse"
        }
        unnamed[base, default: 0] += 1
        let count = unnamed[base, default: 1]
        return count == 1 ? base : "\(base)-\(count)"
    }

    fileprivate func address(_ field: Field, hasExplicitClients: Bool) -> WrittenAddress? {
        guard let address = writtenAddress(field) else { return nil }
        if let open = address.endpoints.first(where: { $0.address.scope != .loopback }),
            !hasExplicitClients
        {
            field.fail(
                "\(open) is not a loopback address and access.clients names no networks: "
                    + "this would be an open proxy",
                expected: "access.clients with the networks to serve, or a loopback address")
        }
        return address
    }
}
