import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// Another program holds the database's lock for a while: the files are kept, and opened again.
/// What was removed meanwhile must not be found then.
@Suite("While the disk is away, and when it is back")
struct DiskAwayTests {
    private let folder = TemporaryFolder()
    private let log = EventLog()

    private func open(below further: [any CacheLevel] = []) -> CacheStore {
        var options = CacheStoreOptions.small(folder)
        options.busyMilliseconds = 50
        options.retrySeconds = 1
        let store = CacheStore(options: options, below: further, onEvent: log.record).ready()
        store.put("http://first/", body(10))
        return store
    }

    /// Calls `change` while the disk is off, and returns when it is back.
    /// - Parameter keepsFiles: whether the files must be those of before. They are not if a removal
    ///   reaches the queue just before it is emptied.
    private func awayAndBack(
        _ store: CacheStore, keepsFiles: Bool = true, _ change: () throws -> Void
    ) throws {
        // When it is back, the index has other slots for what is there.
        store.drop("http://first/")
        store.flushNow()
        let other = try Database(path: folder.database, create: false, busyMilliseconds: 1000)
        try other.execute("BEGIN IMMEDIATE")
        store.put("http://written/", body(10))
        #expect(eventually { store.statistics().diskState == .off(.locked) })
        try change()
        try other.execute("COMMIT")
        other.close()
        #expect(eventually { store.statistics().diskState == .ready })
        let isDiscarded = log.contains { if case .discarded = $0 { true } else { false } }
        #expect(!keepsFiles || !isDiscarded)
    }

    /// The variants that the disk has of a key.
    private func onDisk(_ store: CacheStore, _ url: String) -> [VaryKey] {
        store.flushNow()
        return store.loaded(url).map(\.varyKey)
    }

    @Test(arguments: [false, true])
    func `a response that was removed is not found`(isBack: Bool) throws {
        let store = open()
        let old = try #require(store.put("http://a/", body(10), vary: vary("de")).response)
        store.put("http://a/", body(11), vary: vary("fr"))
        try awayAndBack(store) { if !isBack { store.remove(old) } }
        if isBack { store.remove(old) }
        #expect(onDisk(store, "http://a/") == [vary("fr")])
        store.close()
    }

    @Test func `a response that was replaced before is removed alone`() throws {
        let store = open()
        let old = try #require(store.put("http://a/", body(10, seed: 1)).response)
        store.put("http://a/", body(10, seed: 2))
        try awayAndBack(store) {}
        store.remove(old)
        store.flushNow()
        #expect(store.loaded("http://a/").map { store.bytes($0) } == [body(10, seed: 2)])
        store.close()
    }

    @Test(arguments: [false, true])
    func `a response that a 304 made another variant is not found as the old one`(
        isBack: Bool
    ) throws {
        let store = open()
        let old = try #require(store.put("http://a/", body(10), vary: vary("de")).response)
        try awayAndBack(store) {
            if !isBack { _ = try store.confirm(old, vary: vary("it")) }
        }
        if isBack { _ = try store.confirm(old, vary: vary("it")) }
        #expect(!onDisk(store, "http://a/").contains(vary("de")))
        #expect(store.inMemory("http://a/").map(\.varyKey) == [vary("it")])
        store.close()
    }

    @Test(arguments: [false, true])
    func `a response that another level had is removed from the disk as well`(
        isBack: Bool
    ) throws {
        let server = RemoteServer()
        do {
            let store = open(below: [RemoteLevel(server)])
            store.put("http://a/", body(10))
            store.close()
        }
        let store = open(below: [RemoteLevel(server)])
        var found: [CachedResponse] = []
        try awayAndBack(store) {
            found = store.found("http://a/")
            #expect(found.count == 1)
            if !isBack { found.forEach(store.remove) }
        }
        if isBack { found.forEach(store.remove) }
        #expect(store.found("http://a/").isEmpty)
        #expect(server.counts.values == 1)
        store.close()
    }

    @Test(arguments: ["invalidated", "replaced", "removed"])
    func `what was removed at the moment in which it went is not found`(_ change: String) throws {
        let store = open()
        let old = try #require(store.put("http://a/", body(10, seed: 1)).response)
        store.flushNow()
        let other = response(body(10, seed: 2))
        // The index has changed, and what is to be queued comes too late.
        var work = LevelWork()
        switch change {
        case "invalidated": store.key("http://a/") { store.disk.remove($0, &work) }
        case "replaced": _ = store.disk.store(other, isInMemory: true, &work)
        default: store.disk.remove(old, &work)
        }
        try awayAndBack(store, keepsFiles: false) { work.perform() }
        #expect(onDisk(store, "http://a/").isEmpty)
        #expect(store.statistics().queueBytes == 0)
        store.close()
    }

    /// A response that no level has.
    private func response(_ body: [UInt8]) -> CachedResponse {
        let store = CacheStore(options: .small())
        defer { store.close() }
        guard let response = store.put("http://a/", body).response else {
            fatalError("not stored")
        }
        return response
    }
}
