import HTTPCore
import PinfoldConfiguration
import RedisProtocol
import SharedCache

/// `cache.shared` as written.
struct WrittenSharedCache: Equatable {
    var url: RedisURL?
    var sentinels: [RedisURL] = []
    var master: String?
    var sentinelUser: String?
    var sentinelPassword: SecretSource?
    var cluster: [RedisURL] = []
    var rest = SharedCacheConfiguration()

    init() {}

    /// As it is printed, without secrets.
    init(_ shared: SharedCacheConfiguration) {
        rest = shared
        switch shared.place {
        case .url(let url): self.url = url
        case .sentinels(let named):
            sentinels = named.nodes.compactMap { RedisURL($0, isSecure: named.isSecure) }
            master = named.master
            sentinelUser = named.user
            sentinelPassword = named.passwordSource
        case .cluster(let named):
            cluster = named.nodes.compactMap { RedisURL($0, isSecure: named.isSecure) }
        case nil: break
        }
    }

    static var table: KeyTable<Self> {
        KeyTable(
            keys: [
                ConfigurationKey(
                    "url", \.url, byDefault: "required without sentinels or cluster",
                    reading: { $1.engine() }, text: { $0.map { YAMLText.quoted("\($0)") } }),
                ConfigurationKey(
                    "sentinels", \.sentinels, byDefault: "none",
                    reading: {
                        $1.servers(
                            "Sentinels", atMost: SentinelSearch.maximumSentinels,
                            port: SharedCacheSentinels.defaultPort)
                    },
                    text: { $0.isEmpty ? nil : YAMLText.list($0.map(\.description)) }),
                ConfigurationKey(
                    "master", \.master, byDefault: "required with sentinels",
                    reading: { $1.engineWord() }, text: { $0.map(YAMLText.quoted) }),
                ConfigurationKey(
                    "cluster", \.cluster, byDefault: "none",
                    reading: {
                        $1.servers(
                            "nodes", atMost: SharedCacheCluster.maximumNodes,
                            port: SharedCacheCluster.defaultPort)
                    },
                    text: { $0.isEmpty ? nil : YAMLText.list($0.map(\.description)) }),
                ConfigurationKey(
                    "user", \.rest.user, byDefault: "that of url, or none",
                    reading: { $1.engineWord() }, text: { $0.map(YAMLText.quoted) }),
            ] + SecretSource.keys(of: "password", \.rest.passwordSource) + [
                ConfigurationKey(
                    "sentinelUser", \.sentinelUser, byDefault: "none",
                    reading: { $1.engineWord() }, text: { $0.map(YAMLText.quoted) })
            ] + SecretSource.keys(of: "sentinelPassword", \.sentinelPassword) + [
                ConfigurationKey(
                    "keyFile", \.rest.keys, byDefault: "required, but for a Unix socket",
                    reading: { $1.fleetKeys() },
                    text: { $0.map { YAMLText.quoted($0.path) } }),
                .milliseconds("timeout", \.rest.timeoutMilliseconds, in: 1...10_000),
                .milliseconds("wait", \.rest.waitMilliseconds, in: 0...60_000),
                .bytes("maximumObject", \.rest.maximumObjectBytes, in: 1...1 << 30),
                ConfigurationKey(
                    "prefix", \.rest.prefix, reading: { $1.enginePrefix() },
                    text: YAMLText.quoted),
                ConfigurationKey(
                    "name", \.rest.name, byDefault: "the machine's name",
                    reading: { $1.name() }, text: { $0.map(YAMLText.quoted) }),
                .milliseconds("grace", \.rest.graceMilliseconds, in: 1_000...86_400_000),
            ])
    }
}

extension CacheConfiguration {
    /// `shared`, which is `nil` unless it is written.
    static var sharedKey: ConfigurationKey<Self> {
        let table = WrittenSharedCache.table
        var key = ConfigurationKey<Self>(
            "shared",
            read: { reader, field, cache in
                guard let field else { return }
                let (written, section) = reader.read(field, by: table, over: WrittenSharedCache())
                if section == nil, case .null = field.node.content {
                    field.fail("is empty", expected: "a mapping with url")
                }
                guard let section else { return }
                cache.shared = reader.sharedCache(written, section)
            },
            text: { $0.shared.flatMap { table.flow(WrittenSharedCache($0)) } })
        key.described = { _ in
            table.described(WrittenSharedCache()).map { $0.within("shared") }
        }
        return key
    }
}

extension SnapshotReader {
    /// The section with what its keys mean together.
    fileprivate func sharedCache(
        _ written: WrittenSharedCache, _ section: Section
    ) -> SharedCacheConfiguration {
        var shared = written.rest
        let names = ["url", "sentinels", "cluster"]
        let places = names.filter { section[$0] != nil }
        if places.count > 1 {
            section[places[1]]?.fail(
                "is given beside \(places[0])",
                expected: "one of \(names.joined(separator: ", "))")
        } else if let field = section["sentinels"] {
            shared.place = sentinels(written, field, section).map { .sentinels($0) }
        } else if let field = section["cluster"] {
            shared.place = cluster(written, field).map { .cluster($0) }
        } else if section["url"] != nil {
            shared.place = written.url.map { .url($0) }
        } else {
            section.field.fail(
                "says no engine",
                expected: "url, cluster, or sentinels and the name of their master")
        }
        if !places.isEmpty, !places.contains("sentinels") {
            for name in ["master", "sentinelUser"] + Self.sources("sentinelPassword") {
                section[name]?.fail("is for sentinels only", expected: "sentinels, too")
            }
        }
        if let place = section["url"], let name = written.url?.user, let user = section["user"],
            written.rest.user != name
        {
            user.fail("is another user than that of \(place.path)", expected: "one of them")
        }
        shared.password = password(
            of: "password", written.rest.passwordSource, section,
            belongsToUser: shared.userInForce != nil)
        checkKeys(shared, section)
        warnOfClearText(shared, section)
        return shared
    }

    private static func sources(_ secret: String) -> [String] {
        [secret + "File", secret + "Variable"]
    }

    private func sentinels(
        _ written: WrittenSharedCache, _ field: Field, _ section: Section
    ) -> SharedCacheSentinels? {
        var sentinels = SharedCacheSentinels()
        sentinels.isSecure = areSecure(written.sentinels, field)
        sentinels.nodes = written.sentinels.compactMap(\.node)
        _ = section.required("master", expected: "the name of the master")
        sentinels.master = written.master ?? ""
        sentinels.user = written.sentinelUser
        sentinels.passwordSource = written.sentinelPassword
        sentinels.password = password(
            of: "sentinelPassword", written.sentinelPassword, section,
            belongsToUser: written.sentinelUser != nil)
        return sentinels.nodes.isEmpty ? nil : sentinels
    }

    private func cluster(_ written: WrittenSharedCache, _ field: Field) -> SharedCacheCluster? {
        let isSecure = areSecure(written.cluster, field)
        let nodes = written.cluster.compactMap(\.node)
        return nodes.isEmpty ? nil : SharedCacheCluster(nodes, isSecure: isSecure)
    }

    /// Whether servers are reached by TLS: all of them or none.
    private func areSecure(_ servers: [RedisURL], _ field: Field) -> Bool {
        let secure = Set(servers.map(\.isSecure))
        if secure.count > 1 {
            field.fail("has both redis and rediss", expected: "one of them for all")
        }
        return secure == [true]
    }

    /// The first line of a file or variable. A user without a password cannot be authenticated.
    private func password(
        of secret: String, _ source: SecretSource?, _ section: Section, belongsToUser: Bool
    ) -> SecretText? {
        let places = Self.sources(secret).compactMap { section[$0] }
        guard places.count <= 1 else {
            places[1].fail("is a second source of the password", expected: "one")
            return nil
        }
        guard let place = places.first else {
            if belongsToUser {
                section.field.fail(
                    "has a user without a password",
                    expected: "one of \(Self.sources(secret).joined(separator: ", "))")
            }
            return nil
        }
        guard let source, let content = place.secret(from: source, validation.environment.variables)
        else { return nil }
        let line = content.firstLine
        guard (1...Self.maximumPasswordBytes).contains(line.count),
            let text = String(validating: line, as: UTF8.self)
        else {
            place.fail(
                line.isEmpty ? "\(source.name) is empty" : "\(source.name) has no valid password",
                expected: "UTF-8 text of at most \(Self.maximumPasswordBytes) bytes in its first "
                    + "line")
            return nil
        }
        return SecretText(text)
    }

    private static let maximumPasswordBytes = 512

    private func checkKeys(_ shared: SharedCacheConfiguration, _ section: Section) {
        guard section["keyFile"] == nil else { return }
        if case .url(let url) = shared.place, case .unix = url.server { return }
        guard shared.place != nil else { return }
        section.field.fail(
            "has no keyFile, by which this fleet's gateways know what they have written themselves",
            expected: "keyFile, or the Unix socket of an engine that only this fleet reaches")
    }

    private func warnOfClearText(_ shared: SharedCacheConfiguration, _ section: Section) {
        let hosts: [String]
        switch shared.place {
        case .url(let url):
            guard case .tcp(let host, _, false) = url.server else { return }
            hosts = [host]
        case .sentinels(let sentinels) where !sentinels.isSecure:
            hosts = sentinels.nodes.map(\.host)
        case .cluster(let cluster) where !cluster.isSecure: hosts = cluster.nodes.map(\.host)
        case .sentinels, .cluster, nil: return
        }
        guard !hosts.allSatisfy(Self.isOnThisMachine) else { return }
        (section["url"] ?? section["sentinels"] ?? section["cluster"])?.warn(
            "reaches the engine in clear text: anyone on the network path can read what is stored, "
                + "and the password; use rediss")
    }

    private static func isOnThisMachine(_ host: String) -> Bool {
        if let address = IPAddress(literal: host.utf8.span) {
            return address.unmapped.scope == .loopback
        }
        return host == "localhost" || host.hasSuffix(".localhost")
    }
}

extension RedisURL {
    fileprivate init?(_ node: RedisNode, isSecure: Bool) {
        guard let url = try? RedisURL((isSecure ? "rediss://" : "redis://") + "\(node)") else {
            return nil
        }
        self = url
    }

    fileprivate var isSecure: Bool {
        if case .tcp(_, _, true) = server { true } else { false }
    }

    fileprivate var node: RedisNode? {
        guard case .tcp(let host, let port, _) = server else { return nil }
        return RedisNode(host: Array(host.utf8), port: Int64(port))
    }
}

extension Substring {
    /// Whether a port follows a host.
    fileprivate var hasPort: Bool {
        (first == "[" ? drop { $0 != "]" } : self).contains(":")
    }
}

extension [UInt8] {
    /// Without its line break.
    fileprivate var firstLine: ArraySlice<UInt8> {
        let line = prefix { $0 != 0x0A }
        return line.count < count && line.last == 0x0D ? line.dropLast() : line
    }
}

extension Field {
    private static let expectedEngine =
        "redis://HOST:PORT, rediss://HOST:PORT (with /DATABASE), or unix:/PATH"

    /// Where an engine is.
    fileprivate func engine() -> RedisURL? {
        guard let text = text(expected: Self.expectedEngine) else { return nil }
        // As addresses of listeners are written.
        let isShort = text.hasPrefix("unix:/") && !text.hasPrefix("unix://")
        return redis(isShort ? "unix://" + text.dropFirst("unix:".utf8.count) : text)
    }

    private func redis(
        _ text: String, expected: String = Field.expectedEngine
    ) -> RedisURL? {
        do throws(RedisURLError) {
            return try RedisURL(text)
        } catch {
            // What may be a password is not printed.
            fail(
                error == .hasPassword
                    ? "has a password in it"
                    : "\(quoted(text)) cannot be used: \(error)",
                expected: error == .hasPassword
                    ? "it in passwordFile or passwordVariable" : expected)
            return nil
        }
    }

    /// `HOST:PORT`, or the same with a scheme before it.
    /// - Parameters:
    ///   - kind: what they are, for errors.
    ///   - port: that of one which is written without any.
    fileprivate func servers(
        _ kind: String, atMost limit: Int, port defaultPort: UInt16
    ) -> [RedisURL]? {
        let expected = "1 to \(limit) of HOST, HOST:PORT or rediss://HOST:PORT"
        guard let elements = boundedList(of: kind) else { return nil }
        guard (1...limit).contains(elements.count) else {
            fail(elements.isEmpty ? "has none" : "has \(elements.count)", expected: expected)
            return nil
        }
        return elements.compactMap { element in
            guard let text = element.text(expected: expected) else { return nil }
            let place = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? text[...]
            guard !place.contains("@"), !place.contains("/") else {
                element.fail("\(quoted(text)) has more than a host and a port", expected: expected)
                return nil
            }
            let port = place.hasPort ? "" : ":\(defaultPort)"
            let scheme = text.contains("://") ? "" : "redis://"
            guard let url = element.redis(scheme + text + port, expected: expected) else {
                return nil
            }
            return url
        }
    }

    /// The name of a user, or of a master: what may stand in a command without being quoted.
    fileprivate func engineWord() -> String? {
        parsed(expected: "1 to 128 visible ASCII characters") { text in
            (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
                ? text : nil
        }
    }

    fileprivate func enginePrefix() -> String? {
        parsed(
            expected: "at most \(SharedName.maximumPrefixBytes) visible ASCII characters without "
                + "braces"
        ) { text in
            guard text.utf8.allSatisfy({ 0x21...0x7E ~= $0 }),
                SharedName(prefix: Array(text.utf8)) != nil
            else { return nil }
            return text
        }
    }

    /// The secrets in a file, one of each line.
    fileprivate func fleetKeys() -> SharedCacheKeys? {
        let bytes = SharedSecret.byteCounts
        let expected =
            "1 to \(SharedKeyring.maximumSecrets) lines, each with a secret of \(bytes.lowerBound) "
            + "to \(bytes.upperBound) visible ASCII characters, as `openssl rand -hex 32` prints it"
        guard let path = filePath(), let content = contents(ofFile: path, isKey: true) else {
            return nil
        }
        let name = quoted(path: path)
        let lines = content.split(separator: 0x0A).map { line in
            Array(line.last == 0x0D ? line.dropLast() : line)
        }.filter { !$0.isEmpty }
        guard (1...SharedKeyring.maximumSecrets).contains(lines.count) else {
            fail(
                lines.isEmpty ? "\(name) is empty" : "\(name) has \(lines.count) secrets",
                expected: expected)
            return nil
        }
        for (index, line) in lines.enumerated() {
            let place = "line \(index + 1) of \(name)"
            if !line.allSatisfy({ 0x21...0x7E ~= $0 }) {
                fail("\(place) has other characters than visible ASCII ones", expected: expected)
                return nil
            }
            if !bytes.contains(line.count) {
                fail(
                    "\(place) is too \(line.count < bytes.lowerBound ? "short" : "long") "
                        + "(\(line.count) characters)", expected: expected)
                return nil
            }
            if lines[..<index].contains(line) {
                fail("\(place) is there twice", expected: "each secret once")
                return nil
            }
        }
        return SharedCacheKeys(
            path: path, secrets: lines.map { SecretText(String(decoding: $0, as: UTF8.self)) })
    }
}
