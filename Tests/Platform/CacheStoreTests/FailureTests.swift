import CLinux
import CachePolicy
import CacheTestSupport
import Foundation
import TestSupport
import Testing

@testable import CacheStore

/// Whatever happens to the disk, the store continues, and nothing damaged is served.
@Suite("A disk that fails")
struct FailureTests {
    private let folder = TemporaryFolder()
    private let log = EventLog()

    private func open(_ options: CacheStoreOptions) -> CacheStore {
        CacheStore(options: options, onEvent: log.record).ready()
    }

    private func filled(_ count: Int = 60) -> CacheStoreOptions {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        let store = CacheStore(options: options).ready()
        for number in 0..<count {
            store.put("http://a/\(number)", body(number * 1999, seed: number))
        }
        store.close()
        return options
    }

    private var asides: [String] {
        folder.names.filter {
            $0.hasPrefix("cache.sqlite.corrupt-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
        }
    }

    private func off(_ store: CacheStore) -> DiskOffReason? {
        if case .off(let reason) = store.statistics().diskState { return reason }
        return nil
    }

    @Test(arguments: [100, 512, 4096, 100_000])
    func `a file that is no database is set aside, and a fresh one begins`(_ count: Int) throws {
        for name in ["", "-wal", "-shm"] {
            try Data(body(count, seed: count)).write(
                to: URL(fileURLWithPath: folder.database + name))
        }
        let store = open(.small(folder))
        #expect(store.statistics().diskState == .ready)
        #expect(asides.count == 1)
        #expect(log.contains { if case .setAside = $0 { true } else { false } })
        let aside = try #require(asides.first)
        #expect(
            try Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + aside)).count == count)
        store.put("http://a/", body(10))
        store.flushNow()
        #expect(store.loaded("http://a/").count == 1)
        store.close()
    }

    @Test func `of databases set aside the newest two are kept`() throws {
        for number in 0..<5 {
            try Data(body(1000, seed: number)).write(
                to: URL(fileURLWithPath: folder.database))
            let store = open(.small(folder))
            #expect(store.statistics().diskState == .ready)
            store.close()
        }
        #expect(asides.count == 2)
    }

    @Test(arguments: 0..<12)
    func `with bytes flipped anywhere in the file, what is served is right or not served`(
        _ seed: Int
    ) throws {
        let options = filled()
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.database))
        var generator = SeededRandom(seed: UInt64(seed))
        // From a single byte to one in every page.
        for _ in 0..<(1 << seed) {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            bytes[place] ^= UInt8.random(in: 1...255, using: &generator)
        }
        try bytes.write(to: URL(fileURLWithPath: folder.database))
        let store = open(options)
        var right = 0
        for number in 0..<60 {
            for response in store.loaded("http://a/\(number)") {
                guard let content = store.bytes(response) else { continue }
                #expect([UInt8](response.head) == head())
                let expected = body(number * 1999, seed: number)
                #expect(content == expected, "damaged body served")
                right += content == expected ? 1 : 0
            }
        }
        if seed == 0 { #expect(right >= 40) }
        // And it still accepts new responses.
        #expect(
            eventually {
                store.put("http://new/", body(5000))
                store.flushNow()
                return store.loaded("http://new/").first.flatMap { store.bytes($0) } == body(5000)
                    || off(store) != nil
            })
        store.close()
    }

    @Test(
        arguments: [
            "UPDATE content SET body = zeroblob(length(body)) WHERE id = 12",
            "UPDATE content SET body = substr(body, 2) WHERE id = 12",
            "UPDATE content SET record = zeroblob(length(record)) WHERE id = 12",
            "UPDATE content SET sum = sum + 1 WHERE id = 12",
            "UPDATE content SET sum = (SELECT sum FROM content WHERE id = 14), "
                + "record = (SELECT record FROM content WHERE id = 14), "
                + "body = (SELECT body FROM content WHERE id = 14) WHERE id = 12",
        ])
    func `a row that is not what was written is dropped, not served`(_ damage: String) throws {
        let options = filled(10)
        try execute(folder.database, damage)
        let store = open(options)
        #expect(store.loaded("http://a/5").isEmpty)
        #expect(log.all.contains(.damagedEntry(id: 6)))
        #expect(store.statistics().damagedEntries == 1)
        #expect(!store.key("http://a/5") { store.diskMayHold($0) })
        #expect(store.loaded("http://a/6").count == 1)
        store.flushNow()
        #expect(query(folder.database, "SELECT count(*) FROM content WHERE id = 12") == 0)
        #expect(store.statistics().diskState == .ready)
        store.close()
    }

    @Test(
        arguments: [
            "UPDATE chunk SET data = zeroblob(length(data)) WHERE (id & 1048575) = 3",
            "UPDATE chunk SET data = (SELECT data FROM chunk WHERE (id & 1048575) = 2) "
                + "WHERE (id & 1048575) = 3",
            "UPDATE chunk SET data = substr(data, 2) WHERE (id & 1048575) = 3",
        ])
    func `a chunk that is not what was written is not served, and its entry is dropped`(
        _ damage: String
    ) throws {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        do {
            let store = CacheStore(options: options).ready()
            store.put("http://streamed/", body(2_000_000))
            store.put("http://whole/", body(700_000))
            store.close()
        }
        try execute(folder.database, damage)
        let store = open(options)
        let response = try #require(store.loaded("http://streamed/").first)
        #expect(store.bytes(response) == nil)
        #expect(!store.key("http://streamed/") { store.diskMayHold($0) })
        #expect(store.loaded("http://whole/").isEmpty)
        #expect(store.statistics().damagedEntries == 2)
        #expect(store.statistics().diskState == .ready)
        store.close()
    }

    @Test func `another application's database is left alone`() throws {
        try execute(folder.database, "CREATE TABLE theirs(a); INSERT INTO theirs VALUES(42)")
        let store = open(.small(folder))
        #expect(off(store) == .foreign)
        #expect(store.put("http://a/", body(10)).response != nil)
        store.close()
        #expect(query(folder.database, "SELECT a FROM theirs") == 42)
    }

    @Test func `a database of a newer release is set aside`() throws {
        let options = filled(3)
        try execute(folder.database, "PRAGMA user_version = 99")
        let store = open(options)
        #expect(store.statistics().diskState == .ready)
        #expect(store.statistics().diskEntries == 0)
        #expect(folder.names.contains { $0.hasPrefix("cache.sqlite.newer-") })
        store.close()
    }

    @Test func `a file of ours in which tables are missing is set aside`() throws {
        let options = filled(3)
        try execute(folder.database, "DROP TABLE garbage")
        let store = open(options)
        #expect(store.statistics().diskState == .ready)
        #expect(asides.count == 1)
        store.close()
    }

    @Test func `an older layout is brought up to date with what it holds`() throws {
        let options = filled(5)
        let path = folder.database
        do {
            let database = try Database(path: path, create: false, busyMilliseconds: 1000)
            let steps = Schema.steps + ["CREATE TABLE later(a)", "INSERT INTO later VALUES(7)"]
            #expect(
                try Schema.prepare(database, steps: steps)
                    == .ready(migratedFrom: Schema.steps.count))
            #expect(try database.integer("SELECT a FROM later") == 7)
            #expect(try Schema.prepare(database, steps: steps) == .ready(migratedFrom: nil))
            #expect(try database.integer("PRAGMA user_version") == Int64(steps.count))
            #expect(try database.integer("SELECT count(*) FROM entry") == 5)
            #expect(try Schema.prepare(database) == .newer(steps.count))
            // A step that fails leaves the version unchanged.
            #expect(throws: DatabaseError.self) {
                try Schema.prepare(database, steps: steps + ["CREATE TABLE later(a)"])
            }
            database.close()
        }
        #expect(query(path, "PRAGMA user_version") == Int64(Schema.steps.count + 2))
        try execute(path, "DROP TABLE later; PRAGMA user_version = \(Schema.steps.count)")
        let store = open(options)
        #expect(store.statistics().diskEntries == 5)
        #expect(store.loaded("http://a/4").count == 1)
        store.close()
    }

    @Test func `a folder that cannot be made turns the disk off, not the store`() throws {
        try Data().write(to: URL(fileURLWithPath: folder.path + "/file"))
        for path in [folder.path + "/file", folder.path + "/file/below", "/proc/none/here"] {
            var options = CacheStoreOptions.small(folder)
            options.folder = path
            let store = open(options)
            #expect(off(store) == .folder)
            #expect(store.put("http://a/", body(10)).response != nil)
            #expect(store.inMemory("http://a/").count == 1)
            store.close()
        }
    }

    @Test func `a second process gets the database when the first has ended`() throws {
        var options = CacheStoreOptions.small(folder)
        let first = CacheStore(options: options).ready()
        first.put("http://a/kept", body(10, seed: 1))
        first.put("http://a/changed", body(10, seed: 2))
        options.retrySeconds = 1
        let second = open(options)
        #expect(off(second) == .locked)
        #expect(second.put("http://a/mine", body(10)).response != nil)
        second.drop("http://a/changed")
        #expect(first.statistics().diskState == .ready)
        first.close()
        #expect(eventually { second.statistics().diskState == .ready })
        #expect(second.loaded("http://a/kept").count == 1)
        // What changed in the meantime is not forgotten.
        #expect(second.loaded("http://a/changed").isEmpty)
        second.close()
    }

    @Test func `another program holding the write lock turns the disk off in time`() throws {
        var options = CacheStoreOptions.small(folder)
        options.busyMilliseconds = 50
        options.retrySeconds = 1
        let store = open(options)
        store.put("http://a/", body(10))
        store.flushNow()
        let other = try Database(path: folder.database, create: false, busyMilliseconds: 1000)
        try other.execute("BEGIN IMMEDIATE")
        store.put("http://b/", body(10))
        #expect(eventually { off(store) == .locked })
        #expect(store.inMemory("http://b/").count == 1)
        try other.execute("COMMIT")
        other.close()
        #expect(eventually { store.statistics().diskState == .ready })
        #expect(store.loaded("http://a/").count == 1)
        #expect(store.statistics().queueBytes == 0)
        store.close()
    }

    @Test func `a full disk turns the disk off, gives back its space, and is tried again`() throws {
        var options = CacheStoreOptions.small(folder)
        options.maximumPages = 40
        options.retrySeconds = 1
        let store = open(options)
        for number in 0..<40 where off(store) == nil {
            #expect(store.put("http://a/\(number)", body(20_000)).response != nil)
            store.flushNow()
        }
        #expect(off(store) == .full)
        #expect(eventually { log.all.contains(.discarded(reason: .full)) })
        #expect(
            !FileManager.default.fileExists(atPath: folder.database)
                || store.statistics().diskState == .ready)
        #expect(store.put("http://b/", body(10)).response != nil)
        #expect(store.inMemory("http://b/").count == 1)
        #expect(eventually { store.statistics().queueBytes == 0 })
        #expect(eventually { store.statistics().diskState == .ready })
        #expect(store.statistics().diskEntries <= 1)
        store.close()
    }

    @Test(.enabled(if: getuid() == 0))
    func `a file system without space turns the disk off`() throws {
        let mount = try Command(
            "/bin/mount", ["-t", "tmpfs", "-o", "size=3m", "tmpfs", folder.path])
        // Root may not mount everywhere; the case above has the same code path.
        guard mount.wait().status == 0 else { return }
        defer {
            _ = try? Command("/bin/umount", ["-l", folder.path]).wait()
        }
        let store = open(.small(folder))
        for number in 0..<200 where off(store) == nil {
            store.put("http://a/\(number)", body(30_000, seed: number))
            store.flushNow()
        }
        #expect(off(store) == .full || off(store) == .inputOutput)
        #expect(eventually { log.contains { if case .discarded = $0 { true } else { false } } })
        #expect(store.put("http://b/", body(10)).response != nil)
        #expect(folder.names == ["cache.sqlite.lock"])
        store.close()
    }

    @Test
    func `what memory does not take is refused when the queue is full, until it has drained`()
        throws
    {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        options.queueBytes = 200_000
        options.batchMilliseconds = 60_000
        let store = open(options)
        var refused: StoreRefusalReason?
        for number in 0..<20 where refused == nil {
            refused = store.put("http://a/\(number)", body(30_000)).refusal
        }
        #expect(refused == .queueFull)
        #expect(store.statistics().queueBytes <= 200_000)
        #expect(store.statistics().queueDepth == 6)
        #expect(throws: StoreRefusalReason.queueFull) {
            try store.begin("http://a/", length: 30_000)
        }
        store.flushNow()
        #expect(store.statistics().queueBytes == 0)
        #expect(store.put("http://b/", body(30_000)).refusal == nil)
        // One that is streaming when it finds the queue full.
        let ticket = try store.begin("http://c/", length: 10_000_000)
        var taken = 0
        while taken < 100, body(100_000).withUnsafeBytes({ ticket.append($0) }) { taken += 1 }
        #expect(taken < 100)
        #expect(ticket.refusal == .queueFull)
        store.flushNow()
        #expect(store.statistics().queueBytes == 0)
        #expect(store.loaded("http://c/").isEmpty)
        store.close()
    }

    @Test func `with too many reads waiting the next is refused at once`() {
        var options = CacheStoreOptions.small(folder)
        options.pendingReads = 0
        let store = open(options)
        #expect(!store.key("http://a/") { store.load($0, policy: PolicyOptions()) { _ in } })
        store.close()
    }
}
