import HTTPCore
import PinfoldConfiguration
import Trust

/// An element of `listeners`.
extension ListenerConfiguration {
    private enum KindName: String, CaseIterable {
        case forward
        case reverse
        case socks5
        case transparent
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
                            let (address, passed) = reader.address(
                                field, hasExplicitClients: hasExplicitClients)
                        else { return }
                        listener.address = address.endpoint ?? .unnamed
                        (listener.unix, listener.passed) = (address.unix, passed)
                    },
                    text: { YAMLText.quoted($0.addressText) }),
                ConfigurationKey(
                    "kind",
                    readSection: { _, section, listener in
                        switch section?["kind"].map({ $0.choice(KindName.self) }) ?? .forward {
                        case .forward:
                            refuse(reverseKeys, in: section, of: "forward", for: "reverse")
                            refuse(
                                transparentKeys, in: section, of: "forward", for: "transparent")
                        // A placeholder until the upstream is read.
                        case .reverse:
                            listener.kind = .reverse(
                                UpstreamOrigin(scheme: .http, host: "", port: 80))
                            refuse(
                                transparentKeys, in: section, of: "reverse", for: "transparent")
                        case .socks5:
                            listener.kind = .socks5
                            let others = (reverseKeys + transparentKeys).map(\.name)
                            for name in ["tls", "http2"] + others {
                                section?[name]?.fail(
                                    "does not apply to a socks5 listener", expected: "no \(name)")
                            }
                        case .transparent: readTransparent(section, &listener)
                        case nil: break
                        }
                    },
                    text: { $0.kindName.rawValue }),
                tlsKey,
                ConfigurationKey.choice("http2", \.http2).printed { $0.kind != .socks5 },
                authenticationKey,
                ConfigurationKey(
                    "proxyProtocol", \.proxyProtocol, table: ProxyProtocolConfiguration.table,
                    empty: ProxyProtocolConfiguration()),
            ] + unixSocketKeys + transparentKeys + reverseKeys)
    }

    /// Reports keys of listeners of another kind.
    private static func refuse(
        _ keys: [ConfigurationKey<Self>], in section: Section?, of kind: String,
        for other: String
    ) {
        for key in keys {
            section?[key.name]?.fail(
                "does not apply to a \(kind) listener",
                expected: "kind: \(other), or no \(key.name)")
        }
    }

    /// A transparent listener: its clients know of no proxy, and speak to other addresses.
    private static func readTransparent(_ section: Section?, _ listener: inout Self) {
        listener.kind = .transparent(TransparentConfiguration())
        for name in ["tls", "proxyProtocol"] + reverseKeys.map(\.name) {
            section?[name]?.fail(
                "does not apply to a transparent listener", expected: "no \(name)")
        }
        if listener.hasUnixSocket {
            section?["address"]?.fail(
                "is a Unix socket, to which no firewall leads connections",
                expected: "an address and a port")
        }
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

    private var kindName: KindName {
        switch kind {
        case .forward: .forward
        case .reverse, .balanced: .reverse
        case .socks5: .socks5
        case .transparent: .transparent
        }
    }

    private var isReverse: Bool { !kind.isForward }

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
                    guard let section, listener.isReverse else { return }
                    read(reader, section, &listener)
                },
                text: { $0.isReverse ? text($0) : nil })
        }
        var upstreams = key(
            "upstreams", byDefault: "none",
            // Read together with the one that it takes the place of.
            read: { _, _, _ in },
            text: { listener in
                guard case .balanced(let set) = listener.kind else { return nil }
                return UpstreamSet.table.flow(set)
            })
        upstreams.described = { _ in UpstreamSet.described.map { $0.within("upstreams") } }
        return [
            key(
                "upstream", byDefault: "required for reverse, or upstreams",
                read: { reader, section, listener in
                    listener.kind = reader.upstream(section) ?? .forward
                },
                text: { listener in
                    guard case .reverse(let origin) = listener.kind else { return nil }
                    return YAMLText.quoted(origin.url)
                }),
            upstreams,
            key(
                "sendProxyProtocol", byDefault: UpstreamProxyProtocol.none.rawValue,
                read: { _, section, listener in
                    guard let field = section["sendProxyProtocol"] else { return }
                    if case .balanced = listener.kind {
                        return field.fail(
                            "does not apply to several servers",
                            expected: "proxyProtocol in upstreams")
                    }
                    listener.sendsProxyProtocol = field.choice() ?? .none
                },
                text: { listener in
                    guard case .reverse = listener.kind else { return nil }
                    return listener.sendsProxyProtocol.rawValue
                }),
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
                    listener.forwarding.trustedProxies = networks.compactMap {
                        reader.clientNetwork($0)
                    }
                    let forwarding = listener.forwarding
                    if !forwarding.trustedProxies.isEmpty, forwarding.mode != .append {
                        field.fail(
                            "has no effect with forwarded: \(forwarding.mode.rawValue)",
                            expected: "forwarded: append, or no trustedProxies")
                    }
                },
                text: { YAMLText.list($0.forwarding.trustedProxies.map(\.clientDescription)) }),
        ]
    }

    private enum HostName: String, CaseIterable {
        case rewrite
        case keep
    }
}

extension SnapshotReader {
    /// The one server of a reverse listener, or several.
    fileprivate func upstream(_ section: Section) -> ListenerConfiguration.Kind? {
        let expected = UpstreamSet.Server.urlExpected
        if let field = section["upstreams"] {
            section["upstream"]?.fail(
                "cannot be together with upstreams", expected: "only one of the two")
            return upstreams(field).map { .balanced($0) }
        }
        let field = section.required("upstream", expected: expected + ", or upstreams")
        return field.flatMap { upstreamOrigin($0) }.map { .reverse($0) }
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
    ///   - admin: The administrative address; `nil` if it is a Unix socket.
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
        var paths = Set(admin.address.unix.map { [$0.path] } ?? [])
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
            let isPassedTwice = listener.passed.map { !passed.insert($0.name).inserted }
            let isPathTaken = listener.unix.map { !paths.insert($0.path).inserted }
            if isTaken || isPassedTwice ?? false || isPathTaken ?? false {
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
        case .reverse, .balanced: base = "reverse"
        case .socks5: base = "socks5"
        case .transparent: base = "transparent"
        }
        unnamed[base, default: 0] += 1
        let count = unnamed[base, default: 1]
        return count == 1 ? base : "\(base)-\(count)"
    }

    fileprivate func address(
        _ field: Field, hasExplicitClients: Bool
    ) -> (address: ListenAddress, passed: PassedAddress?)? {
        guard let (address, passed) = listenAddress(field) else { return nil }
        let endpoints = passed?.endpoints ?? [address.endpoint].compactMap { $0 }
        if let open = endpoints.first(where: { $0.address.scope != .loopback }),
            !hasExplicitClients
        {
            field.fail(
                "\(open) is not a loopback address and access.clients names no networks: "
                    + "this would be an open proxy",
                expected: "access.clients with the networks to serve, or a loopback address")
        }
        return (address, passed)
    }

    /// Warns of Unix sockets whose clients are not served.
    func warnOfUnservedSockets(_ listeners: Field?, _ snapshot: ConfigurationSnapshot) {
        let elements = listeners?.elements ?? []
        guard elements.count == snapshot.listeners.count,
            !snapshot.access.clients.contains(.unixClients)
        else { return }
        for (element, listener) in zip(elements, snapshot.listeners)
        where listener.hasUnixSocket && listener.proxyProtocol == nil {
            element.key("address")?.warn(
                "refuses everyone: access.clients does not name unix, for the clients of Unix "
                    + "sockets")
        }
    }
}
