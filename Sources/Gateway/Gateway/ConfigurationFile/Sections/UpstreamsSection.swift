import HTTPCore
import PinfoldConfiguration

/// `upstreams` of a reverse listener.
extension UpstreamSet {
    private static let hour: Int64 = 3_600_000

    static var table: KeyTable<Self> {
        KeyTable(
            keys: [
                serversKey,
                ConfigurationKey(
                    "balance", \.balance, reading: { $1.balance() }, text: { $0.text }),
                ConfigurationKey("health", \.health, table: HealthCheck.table)
                    .printed { $0.health.path != nil },
                ConfigurationKey("ejection", \.ejection, table: Ejection.table),
                ConfigurationKey("retries", \.retries, table: Retries.table),
                .milliseconds("slowStart", \.slowStartMilliseconds, in: 0...hour),
                ConfigurationKey("sticky", \.self, table: stickyTable)
                    .printed { $0.stickyCookie != nil },
                .choice("proxyProtocol", \.proxyProtocol),
            ])
    }

    /// The keys as documented.
    static var described: [DescribedKey] { table.described(UpstreamSet()) }

    private static var serversKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "servers",
            readSection: { reader, section, set in
                let expected = "a list of servers with url"
                guard let field = section?.required("servers", expected: expected) else { return }
                set.servers = reader.servers(field)
            },
            text: { set in
                let servers = set.servers.map { Server.table.flow($0) ?? "{}" }
                return "[\(servers.joined(separator: ", "))]"
            })
        key.described = { _ in
            let unwritten = Server(origin: UpstreamOrigin(scheme: .http, host: "", port: 80))
            return Server.table.described(unwritten).map { $0.within("servers") }
        }
        return key
    }

    private static var stickyTable: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "cookie", \.stickyCookie, byDefault: "none",
                reading: { _, field in
                    let name: String? = field.parsed(
                        expected: "the name of a cookie, at most 64 characters"
                    ) { isToken($0) && $0.utf8.count <= 64 ? $0 : nil }
                    return name
                }, text: { $0.map(YAMLText.quoted) })
        ])
    }
}

/// An element of `upstreams.servers`.
extension UpstreamSet.Server {
    static let urlExpected =
        "http://host[:port] or https://host[:port], without a path, or unix: and the path of a "
        + "Unix socket"

    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .required(
                "url", \.origin, expected: urlExpected,
                reading: { $0.upstreamOrigin($1) }, text: { YAMLText.quoted($0.url) }),
            .integer("weight", \.weight, in: 0...maximumWeight),
            .boolean("backup", \.isBackup),
            ConfigurationKey(
                "maxConnections", \.maxConnections, byDefault: "limits.upstreamPerHost",
                reading: { $1.integer(in: 1...65_535) }, text: { $0?.description }),
        ])
    }
}

extension UpstreamSet.HealthCheck {
    static var table: KeyTable<Self> {
        let day: Int64 = 86_400_000
        return KeyTable(keys: [
            ConfigurationKey(
                "path", \.path, byDefault: "none: no checks",
                reading: { _, field in
                    let path: String? = field.parsed(
                        expected: "a path that begins with /, without a fragment"
                    ) { Self.isPath($0) ? $0 : nil }
                    return path
                }, text: { $0.map(YAMLText.quoted) }),
            .milliseconds("interval", \.intervalMilliseconds, in: 100...day),
            .milliseconds("timeout", \.timeoutMilliseconds, in: 10...day),
            ConfigurationKey(
                "statusCodes", \.statusCodes, reading: { $1.statusCodes() },
                text: ResponseRules.statusTexts),
            .integer("rise", \.rise, in: 1...100),
            .integer("fall", \.fall, in: 1...100),
        ])
    }

    /// Whether a text is a path, and perhaps a query, in the characters of a URI.
    private static func isPath(_ text: String) -> Bool {
        text.hasPrefix("/") && text.utf8.count <= 1024
            && text.utf8.allSatisfy { 0x21...0x7E ~= $0 && !"\"#<>\\^`{|}".utf8.contains($0) }
    }
}

extension UpstreamSet.Ejection {
    static var table: KeyTable<Self> {
        let day: Int64 = 86_400_000
        return KeyTable(keys: [
            .integer("failures", \.failures, in: 0...1_000),
            .milliseconds("window", \.windowMilliseconds, in: 1...day),
            .milliseconds("period", \.periodMilliseconds, in: 1...day),
            .percent("share", \.sharePercent),
        ])
    }
}

extension UpstreamSet.Retries {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .integer("attempts", \.attempts, in: 0...10),
            .percent("budget", \.budgetPercent),
        ])
    }
}

extension UpstreamSet.Balance {
    fileprivate enum Word: String, CaseIterable {
        case roundRobin
        case leastRequests
    }

    fileprivate enum HashedWord: String, CaseIterable {
        case client
        case path
    }

    /// As in a configuration.
    package var text: String {
        switch self {
        case .roundRobin: Word.roundRobin.rawValue
        case .leastRequests: Word.leastRequests.rawValue
        case .hash(.client): "{ hash: \(HashedWord.client.rawValue) }"
        case .hash(.path): "{ hash: \(HashedWord.path.rawValue) }"
        case .hash(.field(let name)): "{ hash: { field: \(YAMLText.quoted(name)) } }"
        }
    }
}

extension Field {
    fileprivate func balance() -> UpstreamSet.Balance? {
        guard case .mapping = node.content else {
            switch choice(UpstreamSet.Balance.Word.self) {
            case .roundRobin: return .roundRobin
            case .leastRequests: return .leastRequests
            case nil: return nil
            }
        }
        let expected = "client, path, or a mapping with field"
        guard let hash = section(keys: ["hash"])?.required("hash", expected: expected) else {
            return nil
        }
        guard case .mapping = hash.node.content else {
            switch hash.choice(UpstreamSet.Balance.HashedWord.self) {
            case .client: return .hash(.client)
            case .path: return .hash(.path)
            case nil: return nil
            }
        }
        let name = "the name of a request header field"
        let field = hash.section(keys: ["field"])?.required("field", expected: name)
        return field?.parsed(expected: name) { text in
            isToken(text) && text.utf8.count <= 128 ? .hash(.field(text.lowercasedASCII)) : nil
        }
    }

    /// A share of a hundred, such as `20%`.
    fileprivate func percent() -> Int? {
        func number(_ text: some StringProtocol) -> Int? {
            guard !text.isEmpty, text.utf8.count <= 3,
                text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
                let value = Int(text), value <= 100
            else { return nil }
            return value
        }
        return parsed(
            expected: "a whole number from 0 to 100 and %, such as 20%",
            meant: { text in number(text).map { "\($0)%" } },
            { $0.hasSuffix("%") ? number($0.dropLast()) : nil })
    }
}

extension ConfigurationKey {
    /// A share of a hundred.
    fileprivate static func percent(
        _ name: String, _ place: WritableKeyPath<Values, Int>
    ) -> Self {
        Self(name, place, reading: { $1.percent() }, text: { "\($0)%" })
    }
}

extension SnapshotReader {
    /// The servers of a set, at least one; none after an error.
    fileprivate func servers(_ field: Field) -> [UpstreamSet.Server] {
        let most = UpstreamSet.maximumServers
        guard let elements = field.list(of: "servers") else {
            if case .null = field.node.content {
                field.fail("is empty", expected: "a list of servers with url")
            }
            return []
        }
        guard (1...most).contains(elements.count) else {
            field.fail(
                elements.isEmpty ? "has no servers" : "has \(elements.count) servers",
                expected: "1 to \(most) servers")
            return []
        }
        let errorsBefore = validation.errors.count
        var servers: [UpstreamSet.Server] = []
        for element in elements {
            let unwritten = UpstreamSet.Server(
                origin: UpstreamOrigin(scheme: .http, host: "", port: 80))
            let (server, section) = read(element, by: UpstreamSet.Server.table, over: unwritten)
            guard let section else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with url")
                }
                continue
            }
            guard !server.origin.host.isEmpty else { continue }
            let place = section["url"] ?? element
            if let first = servers.first, first.origin.scheme != server.origin.scheme {
                place.fail(
                    "is \(server.origin.scheme.rawValue), and the first server is "
                        + "\(first.origin.scheme.rawValue): a route's requests are all sent in "
                        + "clear text, or all over TLS",
                    expected: "\(first.origin.scheme.rawValue)://")
            }
            if servers.contains(where: { $0.origin == server.origin }) {
                place.fail(
                    "\(server.origin.url) is listed twice",
                    expected: "each server once, with a weight")
            }
            servers.append(server)
        }
        guard validation.errors.count == errorsBefore else { return [] }
        if servers.allSatisfy(\.isBackup) {
            field.fail("has only backups", expected: "a server without backup: true")
        } else if servers.allSatisfy({ $0.isBackup || $0.weight == 0 }) {
            field.warn(
                "has no weight above 0 but of backups: only clients that a cookie binds to a "
                    + "server are served by the others")
        }
        return servers
    }

    /// Reads `upstreams`; `nil` after an error.
    func upstreams(_ field: Field) -> UpstreamSet? {
        let errorsBefore = validation.errors.count
        let (set, section) = read(field, by: UpstreamSet.table, over: UpstreamSet())
        guard let section else {
            if case .null = field.node.content {
                field.fail("is empty", expected: "a mapping with servers")
            }
            return nil
        }
        let health = set.health
        let interval = Quantity.text(milliseconds: health.intervalMilliseconds)
        if health.path != nil, health.timeoutMilliseconds > health.intervalMilliseconds {
            (section["health"]?.key("timeout") ?? section["health"])?.fail(
                "is longer than the interval, \(interval)",
                expected: "at most the interval: the next check begins then")
        }
        if let written = section["health"], case .mapping = written.node.content,
            written.key("path") == nil
        {
            written.fail(
                "has no path, so that nothing is checked", expected: "path, such as /health")
        }
        if let written = section["sticky"], case .mapping = written.node.content,
            written.key("cookie") == nil
        {
            written.fail("names no cookie", expected: "cookie, such as route")
        }
        return validation.errors.count == errorsBefore ? set : nil
    }
}
