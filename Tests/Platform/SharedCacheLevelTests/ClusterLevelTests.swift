import CacheStore
import CacheTestSupport
import RedisProtocol
import SharedCacheLevel
import TestSupport
import Testing

/// Real clusters of three masters.
@Suite("A cluster of engines", .serialized)
struct ClusterLevelTests {
    /// What is stored under a URL is found.
    private func has(_ store: CacheStore, _ url: String, _ count: Int) -> Bool {
        store.foundBodies(url) == [body(count)]
    }

    @Test func `keeps each rule of the contract`() throws {
        let cluster = try EngineCluster()
        let server = try cluster.server()
        for rule in LevelRule.allCases {
            let bench = LevelBench(
                hasMemory: false, isPermanent: true, knowsItsEntries: false,
                bodiesApart: { cluster.engines.reduce(0) { $0 + $1.chunks.count } },
                open: { options in
                    do {
                        let level = try cluster.engines[0].level {
                            $0.server = server
                            $0.wholeBodyBytes = UInt64(options.wholeBodyBytes)
                        }
                        #expect(eventually { level.figures().usedNodes == 3 })
                        return CacheStore(options: options, below: [level])
                    } catch {
                        Issue.record(error)
                        return CacheStore(options: options)
                    }
                })
            try rule.check(bench)
            for engine in cluster.engines { try engine.ask("FLUSHALL") }
        }
    }

    @Test func `has responses on all of its masters, for all gateways`() throws {
        let cluster = try EngineCluster()
        let (store, level) = try cluster.gateway()
        let (other, _) = try cluster.gateway()
        let urls = (0..<3).flatMap { cluster.urls(of: $0, count: 4) }
        for (number, url) in urls.enumerated() { store.put(url, body(number + 1)) }
        store.flushNow()
        for (number, url) in urls.enumerated() { #expect(has(other, url, number + 1)) }
        for engine in cluster.engines { #expect(engine.hashes.count == 4) }
        // One that is removed is removed for all, and no other one.
        for number in 0..<3 { other.drop(urls[4 * number]) }
        other.flushNow()
        for (number, url) in urls.enumerated() {
            #expect(has(store, url, number + 1) == (number % 4 != 0))
        }
        #expect(level.figures().connections == 3 && level.figures().moved == 0)
        #expect(level.figures().knownNodes == 3)
        store.close()
        other.close()
    }

    @Test func `has the chunks of a large body where its head is`() throws {
        let cluster = try EngineCluster()
        let (store, _) = try cluster.gateway(wholeBodyBytes: 100_000)
        for number in 0..<3 {
            let url = cluster.urls(of: number, count: 1)[0]
            store.put(url, body(700_000))
            store.flushNow()
            #expect(has(store, url, 700_000))
            #expect(cluster.engines[number].chunks.count == 11)
        }
        store.close()
    }

    @Test func `is purged as a whole, whatever was on its way`() throws {
        let cluster = try EngineCluster()
        let (store, _) = try cluster.gateway()
        let urls = (0..<3).flatMap { cluster.urls(of: $0, count: 5) }
        for round in 1...10 {
            for url in urls { store.put(url, body(round)) }
            _ = try store.purge([Purge(.everything)], now: 1)
            // The purge is on another connection than most lookups.
            for url in urls { #expect(store.found(url).isEmpty) }
        }
        store.close()
    }

    @Test func `tells where a slot is that has moved`() throws {
        let cluster = try EngineCluster()
        let (store, level) = try cluster.gateway()
        let (from, to) = (cluster.others[0], cluster.others[1])
        let url = cluster.urls(of: from, count: 1)[0]
        store.put(url, body(10))
        store.flushNow()
        try cluster.move(EngineCluster.slot(of: url), from: from, to: to)
        // What has moved is not used: its new node may have had something else before.
        #expect(store.found(url).isEmpty)
        #expect(eventually { level.figures().moved > 0 })
        store.put(url, body(20))
        let isBack = eventually {
            if !has(store, url, 20) { store.put(url, body(20)) }
            store.flushNow()
            return has(store, url, 20)
        }
        #expect(isBack, "\(level.figures())")
        #expect(level.state == .ready && level.figures().connections == 3)
        #expect(cluster.engines[from].hashes.isEmpty)
        store.close()
    }

    @Test func `removes from a slot that has moved what was removed before that was known`()
        throws
    {
        let cluster = try EngineCluster()
        let (store, level) = try cluster.gateway()
        let (from, to) = (cluster.others[0], cluster.others[1])
        let url = cluster.urls(of: from, count: 1)[0]
        let slot = EngineCluster.slot(of: url)
        // There and back: what returns is what its node has stored.
        store.put(url, body(10))
        store.flushNow()
        try cluster.move(slot, from: from, to: to)
        store.drop(url)
        #expect(
            eventually { cluster.engines[to].fields(hash(cluster, to)).map(\.name) == [[0x69]] })
        try cluster.move(slot, from: to, to: from)
        #expect(eventually { store.found(url).isEmpty && level.figures().moved > 1 })
        #expect(level.figures().lostKeys == 0)
        store.close()
    }

    private func hash(_ cluster: EngineCluster, _ number: Int) -> [UInt8] {
        cluster.engines[number].hashes.first ?? []
    }

    @Test func `finds nothing of a slot that is moving, and removes it in the end`() throws {
        let cluster = try EngineCluster()
        let (store, level) = try cluster.gateway()
        let (from, to) = (cluster.others[0], cluster.others[1])
        let url = cluster.urls(of: from, count: 1)[0]
        let slot = EngineCluster.slot(of: url)
        store.put(url, body(10))
        store.flushNow()
        try cluster.beginMoving(slot, from: from, to: to)
        #expect(has(store, url, 10))
        try cluster.moveKeys(of: slot, from: from, to: to)
        #expect(store.found(url).isEmpty)
        #expect(level.figures().asked > 0)
        store.drop(url)
        #expect(eventually { level.figures().lostKeys == 1 })
        #expect(cluster.engines[to].hashes.count == 1)
        try cluster.endMoving(slot, from: from, to: to)
        #expect(eventually { level.figures().lostKeys == 0 }, "\(level.figures())")
        #expect(
            eventually { cluster.engines[to].fields(hash(cluster, to)).map(\.name) == [[0x69]] })
        store.put(url, body(30))
        store.flushNow()
        #expect(has(store, url, 30))
        store.close()
    }

    @Test func `goes on without a master, and removes what it had when it is back`() throws {
        let cluster = try EngineCluster()
        let (store, level) = try cluster.gateway { $0.stallMilliseconds = 300 }
        let urls = (0..<3).map { cluster.urls(of: $0, count: 2) }
        for url in urls.joined() { store.put(url, body(10)) }
        store.flushNow()
        let (gone, left) = (cluster.others[0], cluster.others[1])
        cluster.engines[gone].pause()
        store.drop(urls[gone][0])
        #expect(eventually { level.figures().usedNodes == 2 }, "\(level.figures())")
        #expect(level.state == .ready)
        #expect(level.figures().lostKeys == 1)
        for url in urls[left] + urls[cluster.home] { #expect(has(store, url, 10)) }
        for url in urls[gone] { #expect(store.found(url).isEmpty) }
        store.drop(urls[gone][0])
        cluster.engines[gone].goOn()
        #expect(eventually { level.figures().usedNodes == 3 }, "\(level.figures())")
        #expect(eventually { level.figures().lostKeys == 0 })
        #expect(store.found(urls[gone][0]).isEmpty)
        #expect(has(store, urls[gone][1], 10))
        store.close()
    }

    @Test func `does not believe a master that was started again with what it had saved`() throws {
        let cluster = try EngineCluster()
        let (store, level) = try cluster.gateway()
        let urls = (0..<3).map { cluster.urls(of: $0, count: 1)[0] }
        for url in urls { store.put(url, body(10)) }
        store.flushNow()
        let gone = cluster.others[0]
        try cluster.engines[gone].ask("SAVE")
        store.drop(urls[gone])
        store.flushNow()
        cluster.engines[gone].end()
        #expect(eventually { level.figures().usedNodes == 2 })
        try cluster.engines[gone].start()
        #expect(eventually { level.figures().usedNodes == 3 }, "\(level.figures())")
        #expect(cluster.engines[gone].hashes.count == 1)
        #expect(store.found(urls[gone]).isEmpty)
        #expect(has(store, urls[cluster.others[1]], 10))
        // A master that has begun again takes no writes for two seconds.
        let isBack = eventually {
            store.put(urls[gone], body(20))
            store.flushNow()
            return has(store, urls[gone], 20)
        }
        #expect(isBack, "\(level.figures())")
        store.close()
    }

    @Test func `has a replica take the place of a master, and of the one with the streams`() throws
    {
        let cluster = try EngineCluster(replicas: 3)
        let (store, level) = try cluster.gateway()
        let urls = (0..<3).map { cluster.urls(of: $0, count: 1)[0] }
        for url in urls { store.put(url, body(10)) }
        store.flushNow()
        let gone = cluster.others[0]
        cluster.engines[gone].end()
        #expect(cluster.awaitMaster(3 + gone))
        #expect(eventually { level.figures().usedNodes == 3 }, "\(level.figures())")
        #expect(level.state == .ready)
        // What only the old master may have confirmed is not used.
        #expect(store.found(urls[gone]).isEmpty)
        #expect(has(store, urls[cluster.others[1]], 10))
        for url in urls { store.put(url, body(20)) }
        store.flushNow()
        for url in urls { #expect(has(store, url, 20)) }
        cluster.engines[cluster.home].end()
        #expect(cluster.awaitMaster(3 + cluster.home))
        #expect(eventually { level.state == .ready && level.figures().usedNodes == 3 })
        for url in urls { store.put(url, body(30)) }
        store.flushNow()
        for url in urls { #expect(has(store, url, 30)) }
        store.close()
    }

    @Test func `is found by any node, and not by what is none`() throws {
        let cluster = try EngineCluster()
        let alone = try LoopbackPlace.drawn()
        let engine = try EngineProcess(["--bind", alone.host, "--port", "\(alone.port)"])
        func options(_ places: [LoopbackPlace]) throws -> SharedLevelOptions {
            var options = try cluster.engines[0].options()
            options.server = .cluster(
                SharedLevelOptions.Cluster(
                    places.compactMap {
                        RedisNode(host: Array($0.host.utf8), port: Int64($0.port))
                    }))
            return options
        }
        for place in cluster.places {
            let level = try SharedLevel(try options([try LoopbackPlace.drawn(), place]))
            level.begin(EngineProcess.duties)
            #expect(eventually { level.state == .ready && level.figures().usedNodes == 3 })
            level.close()
        }
        let level = try SharedLevel(try options([alone]))
        level.begin(EngineProcess.duties)
        #expect(eventually { level.figures().detail.contains("cluster support disabled") })
        #expect(level.state == .off)
        level.close()
        engine.end()
    }
}
