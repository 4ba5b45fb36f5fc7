import Addressing

/// `cache`, `resolver`, `activity`, `limits`, `timeouts` and `log`.
extension SnapshotReader {
    private static let day: Int64 = 86_400_000

    /// The two tiers of the cache.
    func cache(_ field: Field?) -> CacheConfiguration {
        let section = field?.section(
            keys: [
                "enabled", "memory", "disk", "entries", "variants", "path", "maximumObject",
                "bypassFields",
            ])
        let most = 1 << 50
        let diskBytes = disk(section?["disk"], most: most)
        let configuration = CacheConfiguration(
            isEnabled: section?["enabled"]?.boolean() ?? true,
            memoryBytes: section?["memory"]?.bytes(in: 0...most) ?? 64 << 20,
            diskBytes: diskBytes,
            diskEntries: entries(section?["entries"], diskBytes: diskBytes),
            variantsPerURL: section?["variants"]?.integer(in: 1...1024) ?? 64,
            path: section?["path"]?.filePath() ?? defaultCachePath(section),
            maximumObjectBytes: section?["maximumObject"]?.bytes(in: 1...most) ?? 256 << 20,
            bypassFields: section?["bypassFields"].flatMap { fieldNames($0) }
                ?? CacheConfiguration.defaultBypassFields)
        warnOfCachePath(configuration, section)
        return configuration
    }

    /// Without its folder the cache works in memory alone, so that this is no error.
    private func warnOfCachePath(_ cache: CacheConfiguration, _ section: Section?) {
        guard validation.environment.looksAtPaths, cache.isEnabled, cache.diskBytes > 0,
            let problem = PathAccess.problemMaking(folder: cache.path)
        else { return }
        validation.warn(
            section?["path"]?.node.origin ?? .builtIn, "cache.path",
            "\(quoted(cache.path)) \(problem): the cache keeps nothing on disk")
    }

    /// 0 is no disk tier; a tier has room for at least a few responses.
    private func disk(_ field: Field?, most: Int) -> Int {
        guard let field, let bytes = field.bytes(in: 0...most) else { return 1 << 30 }
        if bytes != 0, bytes < 64 << 10 {
            field.fail(
                "\(Quantity.text(bytes: bytes)) is too small",
                expected: "0 for no disk tier, or at least 64KiB")
        }
        return bytes
    }

    /// By default one response per 2 KiB of disk: smaller ones are rare, and each takes memory
    /// whether it is used or not. For the same reason there is an end to it.
    private func entries(_ field: Field?, diskBytes: Int) -> Int {
        let auto = min(max(diskBytes / 2048, 1_000), 2_000_000)
        let most = 50_000_000
        guard let field else { return auto }
        if case .scalar("auto", _) = field.node.content { return auto }
        let entries = field.parsed(expected: "auto, or a whole number from 1 to \(most)") {
            Int($0).flatMap { (1...most).contains($0) ? $0 : nil }
        }
        return entries ?? auto
    }

    /// The state folder of the XDG base directory specification: `XDG_STATE_HOME` if it is an
    /// absolute path, else `~/.local/state`.
    private func defaultCachePath(_ section: Section?) -> String {
        let environment = validation.environment
        if let state = environment.stateFolder, state.hasPrefix("/") {
            return Files.absolute("pinfold", in: state)
        }
        if let home = environment.homeFolder {
            return Files.absolute(".local/state/pinfold", in: home)
        }
        if section?["path"] == nil {
            validation.report(
                section?.field.node.origin ?? .builtIn, "cache.path",
                "has no default, since neither XDG_STATE_HOME nor HOME is set",
                expected: "the folder of cache.sqlite")
        }
        return "/"
    }

    /// Name resolution.
    func resolver(_ field: Field?) -> ResolverConfiguration {
        let section = field?.section(keys: ["servers", "minimumTTL", "maximumTTL"])
        let range: ClosedRange<Int64> = 0...604_800
        let minimum = section?["minimumTTL"]?.seconds(in: range) ?? 0
        let maximum = section?["maximumTTL"]?.seconds(in: range) ?? max(minimum, 3_600)
        if minimum > maximum {
            (section?["minimumTTL"] ?? section?["maximumTTL"])?.fail(
                "is more than maximumTTL (\(Quantity.text(milliseconds: maximum * 1_000)))",
                expected: "at most maximumTTL")
        }
        return ResolverConfiguration(
            servers: servers(section?["servers"]), minimumTTLSeconds: minimum,
            maximumTTLSeconds: maximum)
    }

    private func servers(_ field: Field?) -> ResolverConfiguration.Servers {
        let expected = "system, or a list of addresses, each optionally with a :port"
        guard let field else { return .system }
        switch field.node.content {
        case .scalar("system", _), .null: return .system
        case .sequence(let nodes) where (1...16).contains(nodes.count):
            let elements = field.list(of: "addresses") ?? []
            return .list(
                elements.compactMap { element in
                    element.parsed(expected: "an address, as in 192.0.2.53 or [2001:db8::53]:5353")
                    {
                        if let address = IPAddress($0) {
                            return Endpoint(address: address, port: 53)
                        }
                        return Endpoint($0).flatMap { $0.port == 0 ? nil : $0 }
                    }
                })
        case .sequence(let nodes):
            field.fail("has \(nodes.count) servers", expected: "system, or 1 to 16 addresses")
        case .scalar(let text, _): field.fail("\(quoted(text)) is not a list", expected: expected)
        case .mapping: field.fail("is a mapping", expected: expected)
        }
        return .system
    }

    /// The delays of the activity indicator.
    func activity(_ field: Field?) -> ActivityConfiguration {
        let section = field?.section(keys: ["activationDelay", "completionDelay"])
        let range: ClosedRange<Int64> = 0...3_600_000
        return ActivityConfiguration(
            activationDelayMilliseconds:
                section?["activationDelay"]?.milliseconds(in: range) ?? 1_000,
            completionDelayMilliseconds:
                section?["completionDelay"]?.milliseconds(in: range) ?? 170)
    }

    /// The sizes that nothing may exceed.
    func limits(_ field: Field?) -> LimitsConfiguration {
        let section = field?.section(
            keys: [
                "connections", "headBytes", "fields", "upstreamPerHost", "pending",
                "bufferBytes", "perClient",
            ])
        let connections = section?["connections"]?.integer(in: 1...1_000_000) ?? 20_000
        return LimitsConfiguration(
            connections: connections,
            headBytes: section?["headBytes"]?.bytes(in: 1 << 10...1 << 20) ?? 32 << 10,
            fields: section?["fields"]?.integer(in: 1...10_000) ?? 128,
            upstreamPerHost: section?["upstreamPerHost"]?.integer(in: 1...65_535) ?? 256,
            pending: section?["pending"]?.integer(in: 0...1_000_000) ?? 1_024,
            bufferBytes: section?["bufferBytes"]?.bytes(in: 1 << 20...1 << 50) ?? 64 << 20,
            perClient: perClient(section?["perClient"], connections: connections))
    }

    /// Generous by default, for many users may be behind one address: three quarters of all
    /// connections, and exchanges as many as half of them. Small limits are not divided.
    private func perClient(_ field: Field?, connections: Int) -> ClientLimits {
        let section = field?.section(keys: ["connections", "exchanges"])
        let least = 256
        return ClientLimits(
            connections: section?["connections"]?.integer(in: 1...1_000_000)
                ?? max(least, connections / 4 * 3),
            exchanges: section?["exchanges"]?.integer(in: 1...1_000_000)
                ?? max(least, connections / 2))
    }

    /// The times that nothing may exceed.
    func timeouts(_ field: Field?) -> TimeoutsConfiguration {
        let section = field?.section(
            keys: [
                "head", "idle", "connect", "firstByte", "body", "tunnel", "eventStream",
                "collapse", "drainDelay", "grace",
            ])
        func time(_ key: String, least: Int64 = 1, seconds: Int64) -> Int64 {
            section?[key]?.milliseconds(in: least...Self.day) ?? seconds * 1_000
        }
        return TimeoutsConfiguration(
            headMilliseconds: time("head", seconds: 10),
            idleMilliseconds: time("idle", seconds: 60),
            connectMilliseconds: time("connect", seconds: 5),
            firstByteMilliseconds: time("firstByte", seconds: 60),
            bodyMilliseconds: time("body", seconds: 60),
            tunnelMilliseconds: time("tunnel", seconds: 600),
            eventStreamMilliseconds: time("eventStream", seconds: 600),
            collapseMilliseconds: time("collapse", least: 0, seconds: 5),
            drainDelayMilliseconds: time("drainDelay", least: 0, seconds: 0),
            graceMilliseconds: time("grace", least: 0, seconds: 30))
    }

    /// The times of one host entry. `request.timeout` is the older name of `firstByte`.
    func hostTimeouts(_ field: Field?, request: Field?) -> HostTimeouts {
        let section = field?.section(
            keys: ["connect", "firstByte", "body", "tunnel", "eventStream"])
        func time(_ key: String) -> Int64? { section?[key]?.milliseconds(in: 1...Self.day) }
        var times = HostTimeouts()
        times.connectMilliseconds = time("connect")
        times.firstByteMilliseconds = time("firstByte")
        times.bodyMilliseconds = time("body")
        times.tunnelMilliseconds = time("tunnel")
        times.eventStreamMilliseconds = time("eventStream")
        if let request {
            let time = request.milliseconds(in: 1...Self.day)
            if section?["firstByte"] != nil {
                request.fail(
                    "says the same as timeouts.firstByte of this entry",
                    expected: "one of the two")
            }
            times.firstByteMilliseconds = times.firstByteMilliseconds ?? time
        }
        return times
    }

    /// What is logged.
    func log(_ field: Field?) -> LogConfiguration {
        let section = field?.section(keys: ["level", "access"])
        return LogConfiguration(
            level: section?["level"]?.choice() ?? .info, access: accessLog(section?["access"]))
    }

    private func accessLog(_ field: Field?) -> AccessLogConfiguration? {
        guard let field else { return nil }
        if case .scalar("none", _) = field.node.content { return nil }
        guard let section = field.section(keys: ["path", "format"]) else { return nil }
        let path = section.required("path", expected: "the path of the access log")?.filePath()
        if validation.environment.looksAtPaths, let path,
            let problem = PathAccess.problemAppending(to: path)
        {
            section["path"]?.fail(
                "\(quoted(path)) \(problem)", expected: "a file in a folder that can be written")
        }
        let format: AccessLogConfiguration.Format = section["format"]?.choice() ?? .json
        return path.map { AccessLogConfiguration(path: $0, format: format) }
    }
}
