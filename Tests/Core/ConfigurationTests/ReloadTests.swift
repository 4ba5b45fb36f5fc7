import HTTPCore
import PinfoldConfiguration
import Testing
import Trust

/// What differs between the configuration before a reload and the one after it.
@Suite("What a reload changes")
struct ReloadTests {
    private static func pinset(_ name: String, mode: PinningMode = .publicKey) -> PinsetEntry {
        PinsetEntry(pinset: Pinset(name: name, mode: mode))
    }

    private static func host(_ patterns: String...) throws -> HostEntry {
        var entry = HostEntry()
        entry.match = try patterns.map { try HostPattern($0) }
        return entry
    }

    private func full() throws -> ConfigurationSnapshot {
        var snapshot = testSnapshot(listeners: ["a", "b"])
        snapshot.hosts = HostTable(
            entries: [
                try Self.host("x.example", "y.example"), try Self.host("z.example"),
            ])
        snapshot.pinsets = [Self.pinset("p")]
        return snapshot
    }

    @Test(
        arguments: [
            { $0.access.connectPorts = .any },
            { $0.access.clients = [] },
            { $0.access.allow = DestinationList(patterns: [try HostPattern("a")]) },
            { $0.hosts = HostTable(entries: Array($0.hosts.entries.reversed())) },
            { $0.hosts = HostTable(entries: [try host("x.example"), try host("z.example")]) },
            { $0.pinsets = [pinset("p", mode: .certificate)] },
            { $0.pinsets = [] },
            { $0.tls.minimum = .tls13 },
            { $0.tls.roots = [] },
        ] as [@Sendable (inout ConfigurationSnapshot) throws -> Void])
    func `a change of trust is another policy`(
        change: @Sendable (inout ConfigurationSnapshot) throws -> Void
    ) throws {
        let old = try full()
        var new = old
        #expect(new.hasSamePolicy(as: old))
        try change(&new)
        #expect(!new.hasSamePolicy(as: old))
    }

    @Test func `a list of logs that is only younger, or is not asked for, is the same policy`()
        throws
    {
        let bytes = [UInt8](repeating: 1, count: 32)
        let digest = SHA256Digest(bytes.span)
        let id = try #require(digest)
        func policy(_ minimum: Int, _ made: Int64, _ logs: Int) throws -> ConfigurationSnapshot {
            let log = TransparencyLog(name: "log", id: id, key: [1], state: .usable)
            var new = try full()
            new.tls.transparency.minimumSCTs = minimum
            new.tls.transparency.list = LogListFile(
                path: "/\(made)",
                list: TransparencyLogList(
                    timestamp: made, logs: Array(repeating: log, count: logs)))
            return new
        }
        let asked = try policy(1, 1, 1)
        #expect(try policy(1, 2, 1).hasSamePolicy(as: asked))
        #expect(try !policy(1, 1, 2).hasSamePolicy(as: asked))
        #expect(try !policy(2, 1, 1).hasSamePolicy(as: asked))
        #expect(try policy(0, 1, 1).hasSamePolicy(as: policy(0, 1, 2)))
        #expect(try policy(0, 1, 1).hasSamePolicy(as: full()))
    }

    @Test func `a change of the rest is the same policy`() throws {
        let old = try full()
        var new = old
        new.workers = .fixed(2)
        new.listeners = []
        new.admin.hosts = [try HostPattern("a")]
        new.cache.memoryBytes = 0
        new.resolver.maximumTTLSeconds = 1
        new.activity.activationDelayMilliseconds = 1
        new.limits.connections = 1
        new.timeouts.headMilliseconds = 1
        new.log.level = .debug
        new.pinsets[0].reportTo = ReportDestination(
            origin: UpstreamOrigin(scheme: .https, host: "a.example", port: 443), path: "/")
        #expect(new != old)
        #expect(new.hasSamePolicy(as: old))
    }

    @Test func `the cache stays open unless more than its policy changes`() {
        let old = CacheConfiguration()
        var new = old
        new.bypassFields = []
        #expect(new.hasSameStore(as: old))
        new.memoryBytes += 1
        #expect(!new.hasSameStore(as: old))
    }

    @Test func `what was removed is named`() throws {
        let old = try full()
        #expect(ConfigurationRemoval.all(from: old, to: old) == [])
        let new = testSnapshot(listeners: ["b"])
        let removals = ConfigurationRemoval.all(from: old, to: new)
        #expect(removals.map(\.section) == ["listeners", "pinsets", "hosts"])
        #expect(removals.map(\.names) == [["a"], ["p"], ["x.example y.example", "z.example"]])
        #expect(ConfigurationRemoval.all(from: new, to: old) == [])
    }
}
