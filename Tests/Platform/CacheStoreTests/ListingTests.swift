import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

@Suite("Looking into the cache")
struct ListingTests {
    private let folder = TemporaryFolder()

    private func open(
        onDisk: Bool = true, _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> CacheStore {
        var options = CacheStoreOptions.small(onDisk ? folder : nil)
        change(&options)
        return CacheStore(options: options).ready()
    }

    /// All entries, page by page.
    private func all(_ store: CacheStore, limit: Int = 7) -> [StoredEntryInfo] {
        var entries: [StoredEntryInfo] = []
        do throws(CacheListingError) {
            try store.visitPages(limit: limit) { page in
                #expect(page.entries.count <= limit)
                #expect(page.next == page.next.flatMap { EntryCursor($0.description) })
                entries += page.entries
            }
        } catch {
            Issue.record("\(error)")
        }
        return entries
    }

    private func entries(_ store: CacheStore, _ url: String) -> [StoredEntryInfo] {
        do throws(CacheListingError) {
            return try store.listed(url)
        } catch {
            Issue.record("\(error)")
            return []
        }
    }

    @Test(arguments: [true, false])
    func `lists each response once, page by page`(onDisk: Bool) {
        let store = open(onDisk: onDisk)
        defer { store.close() }
        let urls = (0..<50).map { "http://a/\($0)" }
        for url in urls { store.put(url, body(10)) }
        store.flushNow()
        let found = all(store)
        #expect(found.map(\.url).sorted() == urls.sorted())
        #expect(found.allSatisfy { $0.isInMemory && $0.isOnDisk == onDisk && $0.head == nil })
        #expect(all(store, limit: 5000).count == 50)
    }

    @Test func `what is written while a list is made is listed once`() throws {
        let store = open { $0.batchMilliseconds = 60_000 }
        defer { store.close() }
        for number in 0..<5 { store.put("http://a/\(number)", body(10)) }
        store.flushNow()
        // These have no rows when all rows have been listed, and have them when memory is.
        for number in 5..<20 { store.put("http://a/\(number)", body(10)) }
        var found = try store.page(limit: 10).entries.map(\.url)
        #expect(found.count == 5)
        var cursor = try store.page(limit: 10).next
        store.flushNow()
        while let next = cursor {
            let page = try store.page(after: next, limit: 10)
            found += page.entries.map(\.url)
            cursor = page.next
        }
        #expect(Set(found).count == 20 && found.count == 20)
    }

    @Test func `lists what is on disk only, and in memory only`() {
        let store = open { $0.memoryBytes = 0 }
        store.put("http://a/", body(10))
        store.close()
        let next = open { $0.memoryObjectBytes = 100_000 }
        defer { next.close() }
        #expect(all(next).map(\.isOnDisk) == [true])
        #expect(all(next).map(\.isInMemory) == [false])
    }

    @Test func `says of a response what is known of it`() throws {
        let store = open()
        defer { store.close() }
        let head = head(
            extra: "Content-Type: text/html; charset=utf-8\r\nSurrogate-Key: one two\r\n"
                + "Vary: Accept-Language\r\n")
        store.key("reverse3:https://a:81/x?y") { key in
            head.withUnsafeBytes { bytes in
                let ticket = try? store.beginStore(
                    key: key, vary: vary("de"), head: bytes, metadata: metadata(head), policy: 77,
                    expectedLength: 5)
                _ = body(5).withUnsafeBytes { ticket?.append($0) }
                _ = ticket?.finish()
            }
        }
        store.describe(policy: 77, as: "verified")
        store.flushNow()
        let url = "reverse3:https://a:81/x?y"
        for expected in 0..<3 {
            let info = try #require(entries(store, url).first)
            #expect(info.url == "https://a:81/x?y" && info.route == "reverse3")
            #expect(info.status == 200 && info.bytes == 5 && info.hits == UInt64(expected))
            #expect(info.contentType == Array("text/html; charset=utf-8".utf8))
            #expect(info.tags == [Array("one".utf8), Array("two".utf8)])
            #expect(info.varyNames == [15] + Array("accept-language".utf8))
            #expect(info.policy == 77 && info.trust == "verified")
            #expect(info.stored == testTimes.responseTime)
            #expect(info.freshUntil == metadata(head).freshUntil && info.staleSince == nil)
            #expect(info.isInMemory && info.isOnDisk && !info.isOfParts && !info.isSlice)
            #expect(info.head == head)
            #expect(store.inMemory(url).count == 1)
        }
    }

    @Test func `uses are counted, in memory and on disk, and survive a restart`() throws {
        do {
            let store = open()
            store.put("http://a/", body(10))
            store.flushNow()
            for _ in 0..<1000 { #expect(store.inMemory("http://a/").count == 1) }
            #expect(entries(store, "http://a/").first?.hits == 1000)
            store.close()
        }
        let store = open()
        defer { store.close() }
        #expect(entries(store, "http://a/").first?.hits == 1000)
        #expect(store.loaded("http://a/").count == 1)
        #expect(store.inMemory("http://a/").count == 1)
        #expect(entries(store, "http://a/").first?.hits == 1002)
    }

    @Test func `a confirmation does not begin the count of uses anew`() throws {
        let store = open()
        defer { store.close() }
        store.put("http://a/", body(10))
        store.flushNow()
        for _ in 0..<5 { _ = store.inMemory("http://a/") }
        let old = try #require(store.inMemory("http://a/").first)
        let head = head("1", extra: "Age: 0\r\n")
        let new = try head.withUnsafeBytes {
            try store.update(old, vary: .none, head: $0, metadata: metadata(head), policy: 0)
        }
        #expect(new !== old)
        store.flushNow()
        #expect(store.inMemory("http://a/").count == 1)
        #expect(entries(store, "http://a/").map(\.hits) == [7])
    }

    @Test func `what a fingerprint means survives a restart`() {
        do {
            let store = open()
            store.describe(policy: .max, as: "pinned: a")
            store.describe(policy: .max, as: "pinned: b")
            store.flushNow()
            store.close()
        }
        let store = open()
        defer { store.close() }
        #expect(store.description(ofPolicy: .max) == "pinned: b")
        #expect(store.description(ofPolicy: 1) == nil)
    }

    @Test func `the meanings of fingerprints are bounded`() {
        let store = open(onDisk: false)
        for policy in 0..<10_000 { store.describe(policy: UInt64(policy), as: "x") }
        #expect(store.trust.all.count == TrustNames.limit)
        store.describe(policy: 0, as: String(repeating: "y", count: 5000))
        #expect(store.description(ofPolicy: 0)?.utf8.count == TrustNames.maximumBytes)
    }

    @Test func `what was purged is not listed, and what is stale is so since then`() throws {
        let store = open()
        defer { store.close() }
        for number in 0..<10 { store.put("http://a/\(number)", body(10)) }
        store.flushNow()
        _ = try store.purge(Purge(.prefix(Array("http://a/1".utf8))), now: 5)
        _ = try store.purge(
            Purge(.prefix(Array("http://a/2".utf8)), isSoft: true), now: testTimes.responseTime + 9)
        #expect(entries(store, "http://a/1").isEmpty)
        #expect(entries(store, "http://a/2").first?.staleSince == testTimes.responseTime + 9)
        #expect(entries(store, "http://a/2").first?.freshUntil == testTimes.responseTime + 9)
        #expect(all(store).count == 9)
    }

    @Test func `a dry run counts what a purge would be about, and removes nothing`() {
        let store = open()
        defer { store.close() }
        for number in 0..<30 { store.put("http://a\(number % 3)/\(number)", body(10)) }
        store.flushNow()
        func count(_ scope: Purge.Scope) -> PurgeProgress? { try? store.counted(scope) }
        for scope in [
            Purge.Scope.prefix(Array("http://a1/".utf8)),
            (try? PurgeHost("a1")).map { .host($0) } ?? .everything,
        ] {
            let counted = count(scope)
            #expect(counted?.memoryEntries == 10 && counted?.diskEntries == 10)
        }
        let key = CacheKey(bytes: Array("http://a0/0".utf8))
        #expect(count(.keys([key]))?.diskEntries == 1)
        #expect(all(store).count == 30)
    }

    @Test(
        arguments: [
            "", "d", "d1", "d-1.0", "dx.0", "d1.", "d1.+1", "d1.2.3", "m1", "m1.2", "m1.2.3",
            "m1.2..4", "m1.2.3.x", "m1.2.3.4.5", "x1.0", "m-1.0.0.0", "m0.-1.0.0", "m0.0.-1.0",
            "d1.10000000000000000",
        ])
    func `a text that is no cursor is none`(_ text: String) { #expect(EntryCursor(text) == nil) }
}
