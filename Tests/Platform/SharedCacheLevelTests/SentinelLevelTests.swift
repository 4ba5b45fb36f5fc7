import CacheStore
import CacheTestSupport
import Clocks
import RedisProtocol
import SharedCacheLevel
import TestSupport
import Testing

/// A real Sentinel over two real servers.
@Suite("An engine that Sentinels name", .serialized)
struct SentinelLevelTests {
    /// A level that is not taken into use, and why.
    private func refusal(
        _ engines: WatchedEngines, _ server: SharedLevelOptions.Server,
        until isSaid: (SharedLevelStatistics) -> Bool
    ) throws {
        var options = try engines.first.options()
        options.server = server
        let level = try SharedLevel(options)
        level.begin(EngineProcess.duties)
        defer { level.close() }
        #expect(eventually { isSaid(level.figures()) }, "\(level.figures())")
        #expect(level.state == .off)
    }

    @Test func `is found, whatever those say that are asked first`() throws {
        let engines = try WatchedEngines()
        // Nobody is at the first place, and no Sentinel at the second.
        let server = try engines.server(after: [LoopbackPlace.drawn(), engines.places[1]])
        let (store, level) = try engines.first.gateway(memoryBytes: 0) { $0.server = server }
        store.put("http://a/", body(10))
        #expect(store.foundBodies("http://a/") == [body(10)])
        #expect(level.figures().connections == 1)
        store.close()
        #expect(engines.first.hashes.count == 1)
    }

    @Test func `is found after a Sentinel that takes connections and says nothing`() throws {
        let engines = try WatchedEngines()
        let place = try LoopbackPlace.drawn()
        let silent = try EngineProcess(["--bind", place.host, "--port", "\(place.port)"])
        silent.pause()
        defer { silent.goOn() }
        let started = Clock.monotonicMilliseconds()
        let server = try engines.server(after: [place])
        let level = try engines.first.level { $0.server = server }
        // It has had its time, and no more.
        #expect((200...5000).contains(Clock.monotonicMilliseconds() - started))
        level.close()
    }

    @Test func `is followed when another one becomes it`() throws {
        let engines = try WatchedEngines()
        #expect(engines.awaitReplica())
        let server = try engines.server()
        let (store, level) = try engines.first.gateway(memoryBytes: 0) { $0.server = server }
        store.put("http://a/", body(10))
        store.flushNow()
        #expect(store.foundBodies("http://a/") == [body(10)])
        engines.first.end()
        #expect(eventually { level.state == .off })
        // Down for half a second, an election, and what the level takes to notice.
        let isBack = eventually {
            store.put("http://b/", body(20))
            store.flushNow()
            return store.foundBodies("http://b/") == [body(20)]
        }
        #expect(isBack, "\(level.figures())")
        #expect(try RedisRole(engines.second.ask("ROLE")) == .master)
        // The old one comes back, still a master, and nothing goes to it.
        try engines.first.start()
        store.put("http://c/", body(30))
        #expect(store.foundBodies("http://b/") == [body(20)])
        #expect(store.foundBodies("http://c/") == [body(30)])
        #expect(engines.first.hashes.isEmpty && !engines.second.hashes.isEmpty)
        store.close()
    }

    @Test func `is left when another one is made it, although it goes on`() throws {
        let engines = try WatchedEngines()
        #expect(engines.awaitReplica())
        let server = try engines.server()
        let (store, level) = try engines.first.gateway(memoryBytes: 0) { $0.server = server }
        store.put("http://a/", body(10))
        store.flushNow()
        let sentinel = engines.sentinelPlace
        let arguments = [
            "-h", sentinel.host, "-p", "\(sentinel.port)", "sentinel", "failover",
            WatchedEngines.master,
        ]
        // It does so once it has asked the replica how it is.
        let isAccepted = eventually {
            let command = try? Command("redis-cli", arguments, keepsOutput: true)
            return command?.wait().output.hasPrefix("OK") ?? false
        }
        #expect(isAccepted)
        // The old one is made a replica much later.
        #expect(eventually { level.figures().connections > 1 && level.state == .ready })
        #expect(try RedisRole(engines.second.ask("ROLE")) == .master)
        store.put("http://b/", body(20))
        #expect(store.foundBodies("http://b/") == [body(20)])
        #expect(!engines.first.hashes.isEmpty && !engines.second.hashes.isEmpty)
        store.close()
    }

    @Test func `is kept when the Sentinels have gone, and not found without them`() throws {
        let engines = try WatchedEngines()
        let server = try engines.server()
        let (store, level) = try engines.first.gateway(memoryBytes: 0) { $0.server = server }
        engines.endSentinel()
        store.put("http://a/", body(10))
        #expect(store.foundBodies("http://a/") == [body(10)])
        engines.first.end()
        #expect(eventually { level.figures().detail.contains("Sentinel \(place(engines))") })
        #expect(level.figures().reason == .unreachable)
        try engines.first.start()
        try engines.startSentinel()
        #expect(eventually { level.state == .ready })
        store.close()
    }

    private func place(_ engines: WatchedEngines) -> String {
        "\(engines.sentinelPlace.host):\(engines.sentinelPlace.port)"
    }

    @Test func `is not found under another name`() throws {
        let engines = try WatchedEngines()
        let server = try engines.server(name: "other")
        try refusal(engines, server) {
            $0.reason == .refused && $0.detail.contains("does not know a master of this name")
                && $0.detail.contains(place(engines))
        }
    }

    @Test func `is not asked for at what is no Sentinel`() throws {
        let engines = try WatchedEngines()
        let sentinels = SharedLevelOptions.Sentinels(
            [try engines.node(engines.places[0])], master: WatchedEngines.master)
        try refusal(engines, .sentinels(sentinels, tls: nil)) {
            $0.reason == .refused && $0.detail.contains("unknown command")
        }
    }

    @Test func `is found with the password of the Sentinels, and not without it`() throws {
        let engines = try WatchedEngines("requirepass right")
        for (password, reason) in [
            (nil, SharedLevelReason.passwordRequired), ("wrong", .wrongPassword),
        ] {
            let server = try engines.server(password: password)
            try refusal(engines, server) { $0.reason == reason }
        }
        let server = try engines.server(password: "right")
        let level = try engines.first.level { $0.server = server }
        level.close()
    }

    @Test func `is found with a user of the Sentinels`() throws {
        let engines = try WatchedEngines(
            "user default off", "user watch on >right +auth +sentinel|get-master-addr-by-name")
        var sentinels = SharedLevelOptions.Sentinels(
            [try engines.node(engines.sentinelPlace)], master: WatchedEngines.master)
        sentinels.user = Array("watch".utf8)
        sentinels.password = Array("right".utf8)
        let right = sentinels
        let level = try engines.first.level { $0.server = .sentinels(right, tls: nil) }
        level.close()
        sentinels.user = Array("other".utf8)
        try refusal(engines, .sentinels(sentinels, tls: nil)) { $0.reason == .wrongPassword }
    }

    @Test func `is found by TLS`() throws {
        let authority = try TestAuthority()
        let place = try LoopbackPlace.drawn()
        let certificate = try authority.issue(for: "IP:\(place.host)")
        let engines = try WatchedEngines(
            "bind \(place.host)", "port 0", "tls-port \(place.port)",
            "tls-cert-file \(certificate.certificatePath)",
            "tls-key-file \(certificate.keyPath)", "tls-ca-cert-file \(authority.rootPath)",
            "tls-auth-clients no", program: "redis-server")
        var sentinels = SharedLevelOptions.Sentinels(
            [try engines.node(place)], master: WatchedEngines.master)
        sentinels.timeoutMilliseconds = 5000
        sentinels.tls = try authority.context()
        let trusted = sentinels
        let level = try engines.first.level { $0.server = .sentinels(trusted, tls: nil) }
        level.close()
        sentinels.tls = try TestAuthority().context()
        try refusal(engines, .sentinels(sentinels, tls: nil)) {
            $0.reason == .tls && $0.detail.contains("Sentinel \(place.host)")
                && $0.detail.contains("is not a trust anchor")
        }
    }

    @Test func `is not used while the Sentinels name a replica`() throws {
        let engines = try WatchedEngines()
        // A Sentinel of its own, that takes the replica for the master.
        #expect(engines.awaitReplica())
        let replica = try FixedSentinel(naming: engines.places[1])
        defer { replica.end() }
        var sentinels = SharedLevelOptions.Sentinels(
            [try engines.node(replica.place)], master: WatchedEngines.master)
        try refusal(engines, .sentinels(sentinels, tls: nil)) { $0.reason == .readOnly }
        // Another one is asked next, although the first one always answers.
        sentinels.nodes.append(try engines.node(engines.sentinelPlace))
        let both = sentinels
        let level = try engines.first.level { $0.server = .sentinels(both, tls: nil) }
        level.close()
    }
}
