import HTTPCore
import PinfoldConfiguration

/// An entry of `parents`.
extension ParentConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(
            keys: [
                ConfigurationKey(
                    "url", byDefault: "required",
                    readSection: { _, section, parent in
                        let expected = Self.expectedURL
                        guard let field = section?.required("url", expected: expected) else {
                            return
                        }
                        field.readURL(of: &parent)
                    },
                    text: { YAMLText.quoted($0.url) }),
                ConfigurationKey(
                    "user", \.user, byDefault: "none",
                    reading: { _, field in
                        let user: String? = field.parsed(
                            expected: "1 to 255 bytes without colons or control characters"
                        ) { Self.isUser($0) ? $0 : nil }
                        return user
                    }, text: { $0.map(YAMLText.quoted) }),
            ] + SecretSource.keys(of: "password", \.passwordSource) + [
                .choice("authorization", \.authorization),
                .choice("resolves", \.resolves).printed { $0.scheme != .socks5 },
                ConfigurationKey(
                    "probe", \.probeMilliseconds,
                    reading: { _, field in
                        if case .scalar("off", _) = field.node.content { return 0 }
                        return field.milliseconds(in: 100...86_400_000)
                    },
                    text: { $0 == 0 ? "off" : Quantity.text(milliseconds: $0) }),
            ])
    }

    private static func isUser(_ text: String) -> Bool {
        1...255 ~= text.utf8.count
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ":") }
    }

    static let expectedURL =
        "http://host:port, https://host:port, socks5://host:port or socks5h://host:port"
}

/// `ways`.
extension WaysConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "parents", \.parents, reading: { $0.wayNames($1, mayBeNone: true) },
                text: { text($0) }),
            ConfigurationKey(
                "noProxy", \.noProxy, reading: { $0.destinations($1) },
                text: { YAMLText.list($0.texts) }),
        ])
    }

    /// Ways as they are written.
    static func text(_ ways: [WayName]) -> String { YAMLText.list(ways.map(\.text)) }
}

extension Field {
    /// Reads the URL of a proxy, which has no credentials in it: it is printed.
    fileprivate func readURL(of parent: inout ParentConfiguration) {
        let expected = ParentConfiguration.expectedURL
        guard let text = text(expected: expected) else { return }
        guard !text.contains("@") else {
            return fail(
                "has a user name or a password in it",
                expected: "them in user, and in passwordFile or passwordVariable")
        }
        guard let mark = text.firstRange(of: "://"),
            let scheme = ParentConfiguration.Scheme(
                rawValue: text[..<mark.lowerBound].lowercasedASCII)
        else { return fail("\(quoted(text)) is not the URL of a proxy", expected: expected) }
        let rest = text[mark.upperBound...]
        // Without a port, each scheme has its own.
        guard let first = UpstreamOrigin(url: "http://" + rest),
            let second = UpstreamOrigin(url: "https://" + rest)
        else { return fail("\(quoted(text)) is not the URL of a proxy", expected: expected) }
        parent.scheme = scheme
        parent.host = first.host
        parent.port = first.port == second.port ? first.port : scheme.defaultPort
    }
}

extension SnapshotReader {
    /// The maximum number of parents, and of ways in a list.
    private static let maximumParents = 256
    private static let maximumWays = 16

    /// Reads `parents`: the other proxies by their names.
    func parents(_ field: Field?) -> [ParentConfiguration] {
        guard let field else { return [] }
        guard case .mapping(let entries) = field.node.content else {
            if case .null = field.node.content { return [] }
            field.fail("is \(field.node.content.name)", expected: "a mapping of names to proxies")
            return []
        }
        guard entries.count <= Self.maximumParents else {
            field.fail("has \(entries.count) proxies", expected: "at most \(Self.maximumParents)")
            return []
        }
        return Section.distinct(entries, in: field).map { entry in
            let path = Section.path(field.path, entry.key)
            if !isName(entry.key) || entry.key == WayName.direct.text {
                validation.report(
                    entry.keyOrigin, path, "is not a valid name of a proxy",
                    expected: "1 to \(maximumNameBytes) letters, digits, `.`, `_` and `-`, "
                        + "other than direct")
            }
            return parent(
                named: entry.key, Field(node: entry.value, path: path, validation: validation))
        }
    }

    /// Reads a proxy. One with errors stays, so that references to it do not cause further errors.
    private func parent(named name: String, _ field: Field) -> ParentConfiguration {
        let errorsBefore = validation.errors.count
        var (parent, section) = read(
            field, by: ParentConfiguration.table, over: ParentConfiguration(name: name))
        if section == nil, case .null = field.node.content {
            field.fail("is empty", expected: "a mapping with url")
        }
        guard let section, validation.errors.count == errorsBefore else { return parent }
        checkCredentials(of: &parent, section)
        if parent.authorization == .pass, !parent.scheme.isHTTP {
            section["authorization"]?.fail(
                "SOCKS5 has no fields to pass on", expected: "own, or an HTTP proxy")
        }
        if parent.scheme == .socks5, parent.resolves == .parent {
            section["resolves"]?.fail(
                "with socks5 the gateway resolves names",
                expected: "socks5h in url for names that the proxy resolves")
        }
        return parent
    }

    private func checkCredentials(of parent: inout ParentConfiguration, _ section: Section) {
        let sources = ["passwordFile", "passwordVariable"].compactMap { section[$0] }
        guard let user = parent.user else {
            if let first = sources.first {
                first.fail("belongs to no user", expected: "user, too")
            }
            return
        }
        guard parent.authorization == .own else {
            section["user"]?.fail(
                "is not sent where the client's credentials are passed on",
                expected: "user, or authorization: pass")
            return
        }
        guard let source = parent.passwordSource, sources.count == 1 else {
            section["user"]?.fail(
                sources.isEmpty ? "has no password" : "has two sources for the password",
                expected: "one of passwordFile, passwordVariable")
            return
        }
        guard let content = sources[0].secret(from: source, validation.environment.variables)
        else { return }
        do throws(SecretError) {
            // The same rules as for requests to servers (RFC 7617 §2).
            _ = try RequestAuthorization(.basic(user: user, source), secret: content)
            parent.password = try SecretText(password: content, of: source, for: parent.scheme)
        } catch {
            sources[0].fail(error.text, expected: error.expected)
        }
    }

    /// A list of ways.
    /// - Parameter mayBeNone: whether an empty list stands for direct connections.
    func wayNames(_ field: Field, mayBeNone: Bool = false) -> [WayName]? {
        guard let elements = field.boundedList(of: "names of parents") else { return nil }
        let least = mayBeNone ? 0 : 1
        guard least...Self.maximumWays ~= elements.count else {
            field.fail(
                elements.isEmpty ? "has no way" : "has \(elements.count) ways",
                expected: "\(least) to \(Self.maximumWays) names of parents, or direct")
            return nil
        }
        var ways: [WayName] = []
        for element in elements {
            guard let name = element.text(expected: "the name of a parent, or direct") else {
                continue
            }
            let way = name == WayName.direct.text ? WayName.direct : .parent(name)
            if ways.contains(way) {
                element.fail("\(quoted(name)) is listed twice", expected: "each way once")
            } else {
                ways.append(way)
            }
        }
        return ways
    }

    // MARK: Checks of several sections

    /// Checks that ways lead to parents that exist and may be used.
    func checkWays(_ top: Section?, _ snapshot: ConfigurationSnapshot) {
        let names = snapshot.parents.map(\.name)
        let lists =
            [top?[.ways]?.key("parents")]
            + (top?[.hosts]?.elements ?? []).map { $0.key("parents") }
            + (top?[.access]?.key("rules")?.elements ?? []).map { $0.key("parents") }
        var used: Set<String> = []
        for element in lists.compactMap({ $0?.elements }).joined() {
            guard case .scalar(let name, _) = element.node.content, name != WayName.direct.text
            else { continue }
            used.insert(name)
            guard !names.contains(name) else { continue }
            let hint = validation.hint(for: name, among: names)
            element.fail(
                "there is no parent \(quoted(name))\(hint)", expected: "a key of parents, or direct"
            )
        }
        for parent in snapshot.parents {
            guard let field = top?[.parents]?.key(parent.name) else { continue }
            if !used.contains(parent.name) {
                field.warn(
                    "no request goes through it: name it in ways.parents, in a host entry or in a "
                        + "rule")
            }
            check(parent, field, snapshot)
        }
    }

    private func check(
        _ parent: ParentConfiguration, _ field: Field, _ snapshot: ConfigurationSnapshot
    ) {
        guard !parent.host.isEmpty else { return }
        let url = field.key("url") ?? field
        let host = parent.host.utf8.span
        let entry = snapshot.hostEntry(host: host, port: parent.port)
        let approach: ServerApproach = parent.scheme == .https ? .verifiedTLS : .clearText
        if snapshot.pinBypass(host: host, entry: entry, by: approach) != nil {
            url.fail(
                "the host has pins, which would not be checked",
                expected: parent.scheme == .https
                    ? "pinsets in the entry for this port"
                    : "https, or clearText: allow in the entry of the host")
        }
        if isOwn(parent, snapshot) {
            url.fail("is a listener of this gateway", expected: "another proxy")
        }
        if parent.authorization == .pass,
            let asking = snapshot.listeners.first(where: { !$0.authentication.isEmpty })
        {
            field.key("authorization")?.fail(
                "the listener \(asking.name) asks clients for credentials of its own, which "
                    + "would be passed on",
                expected: "own, or listeners without authentication")
        }
    }
}

extension SnapshotReader {
    /// Whether a parent is a listener of the same configuration, as far as that can be said without
    /// asking for names and for the machine's addresses. The rest is found when it is connected to.
    private func isOwn(_ parent: ParentConfiguration, _ snapshot: ConfigurationSnapshot) -> Bool {
        let addresses: [IPAddress]
        if let literal = IPAddress(literal: parent.host.utf8.span) {
            addresses = [literal.unmapped]
        } else if parent.host == "localhost" || parent.host.hasSuffix(".localhost") {
            // RFC 6761 §6.3.
            addresses = [.v4(0x7F00_0001), .v6(0, 1)]
        } else {
            return false
        }
        let listening = snapshot.listeners.flatMap(\.endpoints) + snapshot.admin.endpoints
        return listening.contains { own in
            let listens = own.address.unmapped
            return own.port != 0 && own.port == parent.port
                && addresses.contains { address in
                    address == listens
                        || address.family == listens.family
                            && (address.scope == .unspecified
                                || listens.scope == .unspecified && address.scope == .loopback)
                }
        }
    }
}

extension SecretText {
    /// The password in the first line of a file or variable.
    init(
        password content: [UInt8], of source: SecretSource,
        for scheme: ParentConfiguration.Scheme
    ) throws(SecretError) {
        var secret = Array(content.prefix { $0 != 0x0A })
        if secret.count < content.count, secret.last == 0x0D { secret.removeLast() }
        guard scheme.isHTTP || secret.count <= 255 else {
            throw SecretError(
                text: "\(source.name) has a first line of \(secret.count) bytes",
                expected: "at most 255 for SOCKS5")
        }
        self.init(String(decoding: secret, as: UTF8.self))
    }
}
