import CachePolicy
import CacheTestSupport
import Foundation
import HTTPCore
import TestSupport
import Testing

@testable import CacheStore

@Suite("A purge")
struct PurgeTests {
    private let folder = TemporaryFolder()
    private static let now = testTimes.responseTime + 100

    private func open(
        onDisk: Bool = true, _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> CacheStore {
        var options = CacheStoreOptions.small(onDisk ? folder : nil)
        change(&options)
        return CacheStore(options: options).ready()
    }

    /// A response with these further lines in its head.
    private func put(_ store: CacheStore, _ url: String, _ lines: String = "", tag: String = "1") {
        let head = head(tag, extra: lines)
        store.key(url) { key in
            head.withUnsafeBytes { bytes in
                let ticket = try? store.beginStore(
                    key: key, vary: .none, head: bytes, metadata: metadata(head),
                    expectedLength: 3)
                _ = body(3).withUnsafeBytes { ticket?.append($0) }
                #expect(ticket?.finish().response != nil)
            }
        }
    }

    private func found(_ store: CacheStore, _ url: String) -> [CachedResponse] {
        let inMemory = store.inMemory(url)
        return inMemory.isEmpty ? store.loaded(url) : inMemory
    }

    private func has(_ store: CacheStore, _ url: String) -> Bool { !found(store, url).isEmpty }

    private func purge(
        _ store: CacheStore, _ scope: Purge.Scope, isSoft: Bool = false
    ) throws -> PurgeReceipt {
        try store.purge(Purge(scope, isSoft: isSoft), now: Self.now)
    }

    private func key(_ url: String) -> CacheKey { CacheKey(bytes: Array(url.utf8)) }

    /// Scopes that are about `http://a/x/1`, and not about `http://b/`.
    static let scopes: [Purge.Scope] = [
        .keys([CacheKey(bytes: Array("http://a/x/1".utf8))]), .prefix(Array("http://a/x".utf8)),
        .tag(Array("red".utf8)), .tag(Array("red".utf8), origin: Array("http://a".utf8)),
    ]

    @Test(arguments: [true, false], scopes.indices)
    func `removes what it is about from memory and disk, and nothing else`(
        onDisk: Bool, _ scope: Int
    ) throws {
        let store = open(onDisk: onDisk)
        defer { store.close() }
        put(store, "http://a/x/1", "Cache-Tag: red\r\n")
        put(store, "http://b/", "Cache-Tag: blue\r\n")
        store.flushNow()
        let receipt = try purge(store, Self.scopes[scope])
        #expect(receipt.memoryEntries == 1)
        #expect(!has(store, "http://a/x/1"))
        #expect(has(store, "http://b/"))
        let isComplete = eventually { store.purgeProgress(receipt.id)?.isComplete == true }
        #expect(isComplete)
        if onDisk { #expect(store.purgeProgress(receipt.id)?.diskEntries == 1) }
        // What is stored from now on is there, also while others are purged.
        put(store, "http://a/x/1", "Cache-Tag: red\r\n", tag: "2")
        _ = try purge(store, .prefix(Array("http://c/".utf8)))
        #expect(has(store, "http://a/x/1") && has(store, "http://b/"))
        store.flushNow()
        #expect(has(store, "http://a/x/1") && has(store, "http://b/"))
    }

    @Test func `finds what is only on disk, and what is everywhere`() throws {
        let store = open { $0.memoryBytes = 0 }
        defer { store.close() }
        for number in 0..<40 {
            put(store, "http://a/\(number)", "Surrogate-Key: n\(number % 2)\r\n")
        }
        store.flushNow()
        let receipt = try purge(store, .tag(Array("n1".utf8)))
        for number in 0..<40 { #expect(has(store, "http://a/\(number)") == (number % 2 == 0)) }
        let isComplete = eventually { store.purgeProgress(receipt.id)?.isComplete == true }
        #expect(isComplete)
        #expect(store.purgeProgress(receipt.id)?.diskEntries == 20)
        _ = try purge(store, .everything)
        for number in 0..<40 { #expect(!has(store, "http://a/\(number)")) }
    }

    @Test(arguments: scopes.indices)
    func `holds after the process was killed before anything was removed`(_ scope: Int) throws {
        var copy = TemporaryFolder()
        var isCarriedOut = true
        for _ in 0..<20 where isCarriedOut {
            copy = TemporaryFolder()
            let store = open { $0.batchMilliseconds = 1 }
            put(store, "http://a/x/1", "Cache-Tag: red\r\n")
            put(store, "http://b/", "Cache-Tag: blue\r\n")
            store.flushNow()
            // The database as a killed process would leave it: from before the purge.
            try copyFile("cache.sqlite", to: copy)
            try copyFile("cache.sqlite-wal", to: copy)
            let receipt = try purge(store, Self.scopes[scope])
            try copyFile("cache.sqlite.purges", to: copy)
            // Otherwise the copy is of two moments.
            isCarriedOut = store.purgeProgress(receipt.id)?.isComplete == true
            store.close()
        }
        #expect(!isCarriedOut)
        var options = CacheStoreOptions.small(copy)
        options.memoryBytes = 1 << 20
        let store = CacheStore(options: options).ready()
        defer { store.close() }
        #expect(store.statistics().diskState == .ready)
        #expect(!has(store, "http://a/x/1"))
        #expect(has(store, "http://b/"))
        put(store, "http://a/x/1", "Cache-Tag: red\r\n")
        store.flushNow()
        let isDone = eventually { !store.bans.isInForce }
        #expect(isDone)
        #expect(has(store, "http://a/x/1"))
        #expect(store.statistics().diskEntries == 2)
    }

    private func copyFile(_ name: String, to copy: TemporaryFolder) throws {
        try FileManager.default.copyItem(atPath: folder.file(name), toPath: copy.file(name))
    }

    @Test func `without a readable journal everything on disk counts as purged`() throws {
        do {
            let store = open()
            put(store, "http://a/")
            store.close()
        }
        try folder.write("nonsense that is no journal", to: "cache.sqlite.purges")
        let store = open()
        defer { store.close() }
        #expect(!has(store, "http://a/"))
        put(store, "http://a/")
        #expect(has(store, "http://a/"))
    }

    @Test func `refuses to store what was asked for before it, and nothing else`() throws {
        let store = open()
        defer { store.close() }
        let flights = (
            red: store.flight("http://a/"), blue: store.flight("http://b/"),
            begun: store.flight("http://c/")
        )
        let head = head(extra: "Cache-Tag: red\r\n")
        func begin(_ url: String, _ flight: StoreFlight, _ head: [UInt8]) throws -> StoreTicket {
            try store.key(url) { key in
                try head.withUnsafeBytes {
                    try store.beginStore(
                        key: key, vary: .none, head: $0, metadata: metadata(head),
                        expectedLength: 3, flight: flight)
                }
            }
        }
        let begun = try begin("http://c/", flights.begun, head)
        #expect(begun.isCurrent)
        _ = try purge(store, .tag(Array("red".utf8)))
        #expect(!begun.isCurrent)
        #expect(begun.share() == nil)
        _ = body(3).withUnsafeBytes { begun.append($0) }
        #expect(begun.finish().refusal == .invalidated)
        #expect(throws: StoreRefusalReason.invalidated) {
            try begin("http://a/", flights.red, head)
        }
        let blue = try begin("http://b/", flights.blue, CacheTestSupport.head())
        _ = body(3).withUnsafeBytes { blue.append($0) }
        #expect(blue.finish().refusal == nil)
        let later = try begin("http://a/", store.flight("http://a/"), head)
        _ = body(3).withUnsafeBytes { later.append($0) }
        #expect(later.finish().refusal == nil)
        #expect(has(store, "http://a/") && has(store, "http://b/") && !has(store, "http://c/"))
        #expect(store.memory.flightCount == 0)
        #expect(store.memory.firstSuspicion == nil)
    }

    @Test(arguments: [true, false])
    func `a confirmation that was asked for before it confirms nothing`(isSoft: Bool) throws {
        let store = open()
        defer { store.close() }
        put(store, "http://a/", "Cache-Tag: red\r\n")
        let old = try #require(found(store, "http://a/").first)
        _ = try purge(store, .tag(Array("red".utf8)), isSoft: isSoft)
        let head = head("1", extra: "Cache-Tag: red\r\n")
        func confirm(_ response: CachedResponse) throws -> CachedResponse {
            try head.withUnsafeBytes {
                try store.update(
                    response, vary: .none, head: $0, metadata: metadata(head), policy: 0)
            }
        }
        #expect(throws: StoreRefusalReason.superseded) { try confirm(old) }
        #expect(!store.isCurrent(old))
        let isDone = eventually { store.bans.memoryTarget == nil && store.bans.diskTarget == nil }
        #expect(isDone)
        #expect(throws: StoreRefusalReason.superseded) { try confirm(old) }
        guard isSoft else { return #expect(!has(store, "http://a/")) }
        // What was found after it is stale, and can be confirmed.
        let stale = try #require(found(store, "http://a/").first)
        #expect(!stale.metadata.isFresh(at: Self.now))
        let fresh = try confirm(stale)
        #expect(fresh.metadata.isFresh(at: Self.now))
        #expect(found(store, "http://a/").first?.metadata.isFresh(at: Self.now) == true)
        store.flushNow()
        #expect(store.loaded("http://a/").first?.metadata.isFresh(at: Self.now) == true)
    }

    @Test(arguments: [0, 1 << 20], scopes.indices)
    func `a soft one makes stale from then on, in every tier and after a restart`(
        memoryBytes: Int, _ scope: Int
    ) throws {
        do {
            let store = open { $0.memoryBytes = memoryBytes }
            put(store, "http://a/x/1", "Cache-Tag: red\r\n")
            put(store, "http://b/")
            store.flushNow()
            #expect(found(store, "http://a/x/1").first?.metadata.isFresh(at: Self.now) == true)
            _ = try purge(store, Self.scopes[scope], isSoft: true)
            let stale = try #require(found(store, "http://a/x/1").first)
            #expect(!stale.metadata.isFresh(at: Self.now))
            #expect(stale.metadata.isFresh(at: Self.now - 1))
            #expect(stale.staleSince == Self.now)
            #expect(store.bytes(stale) == body(3))
            let isDone = eventually { !store.bans.isInForce }
            #expect(isDone)
            #expect(found(store, "http://a/x/1").first?.staleSince == Self.now)
            store.close()
        }
        let store = open { $0.memoryBytes = memoryBytes }
        defer { store.close() }
        #expect(found(store, "http://a/x/1").first?.staleSince == Self.now)
        #expect(found(store, "http://b/").first?.metadata.isFresh(at: Self.now) == true)
        put(store, "http://a/x/1", tag: "2")
        #expect(found(store, "http://a/x/1").first?.metadata.isFresh(at: Self.now) == true)
    }

    @Test(arguments: [3, 3_000_000])
    func `what was stale where it was stored before is so here, and after a restart`(
        size: Int
    ) throws {
        let head = head("1")
        for round in 0..<2 {
            let store = open()
            defer { store.close() }
            if round == 0 {
                let ticket = try store.key("http://a/") { key in
                    try head.withUnsafeBytes { bytes in
                        try store.beginStore(
                            key: key, vary: .none, head: bytes, metadata: metadata(head),
                            staleSince: Self.now, expectedLength: UInt64(size))
                    }
                }
                #expect(body(size).withUnsafeBytes { ticket.append($0) })
                _ = ticket.finish()
                store.flushNow()
            }
            let stale = try #require(found(store, "http://a/").first)
            #expect(stale.staleSince == Self.now)
            #expect(!stale.metadata.isFresh(at: Self.now))
            #expect(store.bytes(stale) == body(size))
        }
    }

    @Test(arguments: [0, 1 << 20])
    func `further fields may have tags, also of what was stored before they were named`(
        memoryBytes: Int
    ) throws {
        let store = open { $0.memoryBytes = memoryBytes }
        defer { store.close() }
        put(store, "http://a/", "X-Tags: one, two three\r\n")
        put(store, "http://b/", "Cache-Tag: three four\r\n")
        store.flushNow()
        let before = try purge(store, .tag(Array("three".utf8)))
        let isDone = eventually { store.purgeProgress(before.id)?.isComplete == true }
        #expect(isDone)
        #expect(has(store, "http://a/") && has(store, "http://b/"))
        store.addTagFields(["X-Tags", "Cache-Tag"])
        let receipt = try purge(store, .tag(Array("three".utf8)))
        #expect(!has(store, "http://a/") && has(store, "http://b/"))
        let isComplete = eventually { store.purgeProgress(receipt.id)?.isComplete == true }
        #expect(isComplete)
        #expect(!has(store, "http://a/"))
        #expect(store.statistics().diskEntries == 1)
    }

    @Test func `a key has its QUERYs and variants`() throws {
        let store = open()
        defer { store.close() }
        for language in ["de", "fr"] {
            _ = store.put("http://a/", body(3), vary: vary(language))
            _ = store.put("query:http://a/", body(3), vary: vary(language))
        }
        let receipt = try purge(store, .keys([key("http://a/")]))
        #expect(receipt.memoryEntries == 4)
        #expect(!has(store, "http://a/") && !has(store, "query:http://a/"))
    }

    @Test(arguments: [true, false])
    func `one of a key during the sweep for another is complete, and so are those after it`(
        onDisk: Bool
    ) throws {
        let store = open(onDisk: onDisk)
        defer { store.close() }
        for number in 0..<200 { put(store, "http://a/\(number)", "Cache-Tag: red\r\n") }
        store.flushNow()
        var ids: [UInt64] = []
        for number in 0..<5 {
            ids.append(try purge(store, .tag(Array("red".utf8))).id)
            ids.append(try purge(store, .keys([key("http://a/\(number)")])).id)
        }
        for number in 0..<5 { ids.append(try purge(store, .keys([key("http://b/\(number)")])).id) }
        let isComplete = eventually {
            ids.allSatisfy { store.purgeProgress($0)?.isComplete == true }
        }
        #expect(isComplete)
        let isDone = eventually { !store.bans.isInForce && store.bans.unfinished.bans.isEmpty }
        #expect(isDone)
    }

    @Test func `one of a key is complete while a request under way holds the ban of a pattern`()
        throws
    {
        let store = open()
        defer { store.close() }
        put(store, "http://a/")
        store.flushNow()
        let flight = store.flight("http://z/")
        _ = try purge(store, .tag(Array("red".utf8)))
        let receipt = try purge(store, .keys([key("http://a/")]))
        let isComplete = eventually { store.purgeProgress(receipt.id)?.isComplete == true }
        #expect(isComplete)
        #expect(store.bans.isInForce)
        store.endFlight(flight)
        let isDone = eventually { !store.bans.isInForce }
        #expect(isDone)
    }

    @Test func `many keys of many routes are as many patterns as URIs`() throws {
        let store = open()
        defer { store.close() }
        put(store, "http://kept/")
        let keys = (0..<400).flatMap { number in
            CacheRoute.all.map { key("http://a/\(number)").along($0) }
        }
        for number in 0..<400 { put(store, "http://a/\(number)") }
        _ = try purge(store, .keys(keys), isSoft: true)
        #expect(store.statistics().purges.joined == 0)
        #expect(found(store, "http://kept/").map(\.staleSince) == [0])
        #expect(found(store, "http://a/399").map(\.staleSince) == [Self.now])
        _ = try purge(store, .keys(keys))
        #expect(store.bans.unfinished.bans.count <= 800)
        #expect(!has(store, "http://a/0") && has(store, "http://kept/"))
    }

    @Test func `its serials go on after a restart`() throws {
        var last: UInt64 = 0
        for _ in 0..<3 {
            let store = open()
            let receipt = try purge(store, .prefix(Array("http://a/".utf8)))
            #expect(receipt.id > last)
            last = receipt.id
            store.close()
        }
    }

    @Test func `is refused when it is too large, and when the store is closed`() throws {
        let store = open()
        let long = [UInt8](repeating: 65, count: Purge.maximumPatternBytes + 1)
        #expect(throws: PurgeError.tooLarge) { try purge(store, .prefix(long)) }
        #expect(throws: PurgeError.tooLarge) { try purge(store, .tag(long)) }
        #expect(throws: PurgeError.tooLarge) {
            try purge(store, .tag([65], origin: long))
        }
        let keys = [CacheKey](repeating: key("http://a/"), count: Purge.maximumKeys + 1)
        #expect(throws: PurgeError.tooLarge) { try purge(store, .keys(keys)) }
        store.close()
        #expect(throws: PurgeError.closed) { try purge(store, .everything) }
    }

    @Test func `is not acknowledged if it cannot be written down, and holds in the process`() throws
    {
        let store = open()
        defer { store.close() }
        put(store, "http://a/", "Cache-Tag: red\r\n")
        // A folder in its place can be neither opened nor replaced.
        let path = folder.file("cache.sqlite.purges")
        try FileManager.default.createDirectory(
            atPath: path + "/inside", withIntermediateDirectories: true)
        var reason: PurgeError?
        do { _ = try store.purge(Purge(.tag(Array("red".utf8))), now: Self.now) } catch {
            reason = error
        }
        guard case .notDurable? = reason else {
            Issue.record("\(String(describing: reason))")
            return
        }
        #expect(!has(store, "http://a/"))
    }
}
