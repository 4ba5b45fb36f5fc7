import Addressing
import Notation
import Pinning

/// `listeners` and `admin`.
extension SnapshotReader {
    static let defaultListener = ListenerConfiguration(
        name: "proxy", address: Endpoint(address: .loopbackV4, port: 8080), kind: .forward)
    static let defaultAdmin = Endpoint(address: .loopbackV4, port: 9090)
    /// The most listeners that may be written.
    static let maximumListeners = 256

    private static let addressExpected = """
        an address and a port, as in 127.0.0.1:8080 or [::1]:8080 (port 0 lets the system choose)
        """

    /// The listeners, all checks between them included. `admin` is the administrative address, and
    /// `adminField` the section that it is written in.
    func listeners(
        _ field: Field?, hasExplicitClients: Bool, admin: Endpoint, adminField: Field?
    ) -> [ListenerConfiguration] {
        guard let elements = field?.list(of: "listeners") else {
            if admin == Self.defaultListener.address, let node = adminField?.node["address"] {
                validation.report(
                    node.origin, "admin.address", "\(admin) is taken by the default listener",
                    expected: "an address of its own, or listeners that leave it free")
            }
            return [Self.defaultListener]
        }
        guard (1...Self.maximumListeners).contains(elements.count) else {
            field?.fail(
                elements.isEmpty ? "has no listener" : "has \(elements.count) listeners",
                expected: "1 to \(Self.maximumListeners) listeners")
            return []
        }
        var names = Set<String>()
        var addresses: Set<Endpoint> = admin.port == 0 ? [] : [admin]
        var unnamed: [String: Int] = [:]
        return elements.compactMap { element in
            guard
                let section = element.section(
                    keys: [
                        "name", "address", "kind", "upstream", "forwarded", "host",
                        "trustedProxies",
                    ],
                    later: ["tls", "credentials", "proxyProtocol"])
            else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with name, address, kind")
                }
                return nil
            }
            let kind = kind(section)
            let address = self.address(section, hasExplicitClients: hasExplicitClients)
            let name = name(section, kind: kind, unnamed: &unnamed)
            if !names.insert(name).inserted {
                (section["name"] ?? element).fail(
                    "another listener is named \(quoted(name))", expected: "a name of its own")
            }
            if let address, address.port != 0, !addresses.insert(address).inserted {
                (section["address"] ?? element).fail(
                    "\(address) is taken by another listener or by admin",
                    expected: "an address of its own")
            }
            return ListenerConfiguration(
                name: name, address: address ?? Self.defaultListener.address, kind: kind,
                forwarding: isReverse(kind) ? forwarding(section) : ForwardingConfiguration())
        }
    }

    private func name(
        _ section: Section, kind: ListenerConfiguration.Kind, unnamed: inout [String: Int]
    ) -> String {
        let expected = "1 to \(maximumNameBytes) letters, digits, `.`, `_` and `-`"
        let written = section["name"]?.parsed(expected: expected) { isName($0) ? $0 : nil }
        if let written { return written }
        let base: String
        switch kind {
        case .forward: base = "forward"
        case .reverse: base = "reverse"
        }
        unnamed[base, default: 0] += 1
        let count = unnamed[base, default: 1]
        return count == 1 ? base : "\(base)-\(count)"
    }

    private func address(_ section: Section, hasExplicitClients: Bool) -> Endpoint? {
        guard
            let field = section.required("address", expected: Self.addressExpected),
            let address = endpoint(field)
        else { return nil }
        if address.address.scope != .loopback, !hasExplicitClients {
            field.fail(
                "\(address) is not a loopback address and access.clients names no networks: "
                    + "this would be an open proxy",
                expected: "access.clients with the networks to serve, or a loopback address")
        }
        return address
    }

    /// An address to listen on; `localhost` is 127.0.0.1.
    private func endpoint(_ field: Field) -> Endpoint? {
        field.parsed(expected: Self.addressExpected) { text in
            if text.hasPrefix("localhost:") {
                return Endpoint("127.0.0.1" + text.dropFirst("localhost".count))
            }
            return Endpoint(text)
        }
    }

    private enum KindName: String, CaseIterable {
        case forward
        case reverse
    }

    private func kind(_ section: Section) -> ListenerConfiguration.Kind {
        let kind = section["kind"].map { $0.choice(KindName.self) } ?? .forward
        switch kind {
        case .forward:
            for key in ["upstream", "forwarded", "host", "trustedProxies"] {
                section[key]?.fail(
                    "stands at a forward listener", expected: "kind: reverse, or no \(key)")
            }
            return .forward
        case .reverse:
            let expected = "http://host[:port] or https://host[:port], without a path"
            let field = section.required("upstream", expected: expected)
            let origin = field?.parsed(expected: expected) { UpstreamOrigin(url: $0) }
            return origin.map { .reverse($0) } ?? .forward
        case nil:
            return .forward
        }
    }

    private func isReverse(_ kind: ListenerConfiguration.Kind) -> Bool {
        if case .reverse = kind { true } else { false }
    }

    private enum HostName: String, CaseIterable {
        case rewrite
        case keep
    }

    /// What a reverse listener tells its upstream. Who names trusted proxies wants what they say
    /// to be kept.
    private func forwarding(_ section: Section) -> ForwardingConfiguration {
        var forwarding = ForwardingConfiguration()
        let proxies = section["trustedProxies"]
        forwarding.trustedProxies =
            proxies?.boundedList(of: "networks")?.compactMap { network($0) } ?? []
        let byDefault: ForwardingConfiguration.Mode =
            forwarding.trustedProxies.isEmpty ? .set : .append
        forwarding.mode = section["forwarded"]?.choice() ?? byDefault
        forwarding.keepsHost = section["host"]?.choice(HostName.self) == .keep
        if !forwarding.trustedProxies.isEmpty, forwarding.mode != .append {
            proxies?.fail(
                "is of no use with forwarded: \(forwarding.mode.rawValue)",
                expected: "forwarded: append, or no trustedProxies")
        }
        return forwarding
    }

    /// The administrative listener.
    func admin(_ field: Field?) -> AdminConfiguration {
        let section = field?.section(keys: ["address", "tokenFile", "metrics", "hosts"])
        let addressField = section?["address"]
        let address = addressField.flatMap { endpoint($0) } ?? Self.defaultAdmin
        let tokenField = section?["tokenFile"]
        let token = tokenField.flatMap { adminToken($0) }
        let isLoopback = address.address.scope == .loopback
        let metrics: AdminConfiguration.Metrics =
            section?["metrics"]?.choice() ?? (isLoopback ? .open : .token)
        if metrics == .token, tokenField == nil {
            if isLoopback {
                section?["metrics"]?.fail(
                    "wants a token and admin.tokenFile is missing", expected: "admin.tokenFile")
            } else {
                addressField?.fail(
                    "\(address) is not a loopback address and admin.tokenFile is missing",
                    expected: "admin.tokenFile, admin.metrics: open, or a loopback address")
            }
        }
        let hosts = section?["hosts"]?.boundedList(of: "host patterns") ?? []
        return AdminConfiguration(
            address: address, token: token, metrics: metrics,
            hosts: hosts.compactMap { hostPattern($0) })
    }

    private func adminToken(_ field: Field) -> AdminToken? {
        guard let path = field.filePath(), let content = field.contents(ofFile: path) else {
            return nil
        }
        func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0D ~= byte }
        let bytes = Array(
            content.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
        // RFC 6750 §2.1: a bearer token is of visible ASCII characters.
        guard !bytes.isEmpty, bytes.count <= 4096, bytes.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            field.fail(
                bytes.isEmpty ? "\(quoted(path)) is empty" : "\(quoted(path)) holds no token",
                expected: "a file with one token of visible ASCII characters")
            return nil
        }
        return AdminToken(path: path, bytes: bytes)
    }
}

extension UpstreamOrigin {
    /// Reads `http(s)://host[:port][/]`; nil for anything more, userinfo included.
    init?(url text: String) {
        let scheme: Scheme
        let rest: Substring
        if text.lowercasedASCII.hasPrefix("http://") {
            scheme = .http
            rest = text.dropFirst("http://".count)
        } else if text.lowercasedASCII.hasPrefix("https://") {
            scheme = .https
            rest = text.dropFirst("https://".count)
        } else {
            return nil
        }
        let authority = rest.hasSuffix("/") ? rest.dropLast() : rest
        // A pattern without wildcard is the same grammar: a name or an address, maybe a port.
        guard !authority.contains("*"), let pattern = try? HostPattern(String(authority)) else {
            return nil
        }
        // Without brackets, an IPv6 address and its port cannot be told apart.
        guard authority.hasPrefix("[") || authority.filter({ $0 == ":" }).count <= 1 else {
            return nil
        }
        let named = pattern.port.map { authority.dropLast("\($0)".utf8.count + 1) } ?? authority
        var host = String(named).lowercasedASCII
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if host.hasSuffix(".") { host.removeLast() }
        self.init(scheme: scheme, host: host, port: pattern.port ?? scheme.defaultPort)
    }
}
