import CLinux
import CachePolicy
import CacheTestSupport
import Foundation
import TestSupport
import Testing

@testable import CacheStore

/// The database's files: how large they become, and what happens when they are removed.
@Suite("The database's files")
struct DiskFilesTests {
    private let folder = TemporaryFolder()
    private let log = EventLog()

    private func open(_ change: (inout CacheStoreOptions) -> Void = { _ in }) -> CacheStore {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        change(&options)
        return CacheStore(options: options, onEvent: log.record).ready()
    }

    private func size(_ name: String) -> Int64? {
        var status = stat()
        return stat(folder.database + name, &status) == 0 ? Int64(status.st_size) : nil
    }

    private var filesSize: Int64 { ["", "-wal", "-shm"].reduce(0) { $0 + (size($1) ?? 0) } }

    @Test(arguments: [100, 2000, 60_000])
    func `database and log stay within the limit and its allowance, whatever is stored and evicted`(
        _ bytes: Int
    ) throws {
        let limit: Int64 = 4 << 20
        let store = open {
            $0.diskBytes = limit
            $0.checkpointBytes = 1 << 20
        }
        // The log up to the size at which it is copied, half as much again, and the batch that
        // exceeds it.
        let allowance: Int64 = (1 << 20) * 3 / 2 + 4 << 20
        var generator = SeededRandom(seed: 7)
        var largest: Int64 = 0
        let count = 5 * Int(limit) / (bytes + 600)
        for number in 0..<count {
            store.put("http://a/\(number)", body(bytes, seed: number))
            // Uses in random order: what is evicted is scattered over the file.
            if number % 4 == 0 {
                _ = store.loaded("http://a/\(Int.random(in: 0...number, using: &generator))")
            }
            largest = max(largest, filesSize)
        }
        store.flushNow()
        largest = max(largest, filesSize)
        #expect(store.statistics().diskEvictions.bytes > 0)
        #expect(largest <= limit + allowance)
        #expect(size("").map { $0 <= limit } == true)
        #expect(store.statistics().refusals.reduce(0, +) == 0)
        store.close()
    }

    @Test func `the defaults keep the log within the 16 MiB that are documented`() {
        let options = CacheStoreOptions()
        let largestOperation = 2 * EntryRecord.maximumBytes + options.wholeBodyBytes
        let log = options.checkpointBytes * 3 / 2
        #expect(log + options.batchPages * (Schema.pageBytes + 24) <= 16 << 20)
        #expect(log + largestOperation <= 16 << 20)
    }

    @Test
    func `when nothing more is written the log's space is returned, and the statistics show it`() {
        let store = open()
        for number in 0..<100 { store.put("http://a/\(number)", body(10_000, seed: number)) }
        store.flushNow()
        #expect(store.statistics().diskLogBytes > 0)
        #expect(eventually { size("-wal") == 0 })
        #expect(eventually { store.statistics().diskLogBytes == 0 })
        #expect(eventually { store.statistics().diskFileBytes == size("") })
        store.close()
    }

    @Test
    func `no file is mapped that could be truncated: the log's index is in the heap`() throws {
        // Left behind by an earlier release.
        try Data(count: 32_768).write(to: URL(fileURLWithPath: folder.database + "-shm"))
        let store = open()
        store.put("http://a/", body(10_000))
        store.flushNow()
        #expect(store.loaded("http://a/").count == 1)
        #expect(size("-shm") == nil)
        let maps = try String(contentsOfFile: "/proc/self/maps", encoding: .utf8)
        #expect(!maps.contains(folder.path))
        store.close()
    }

    @Test(
        arguments: [
            "rm cache.sqlite", "rm cache.sqlite-wal", "rm cache.sqlite*", "rm -r ../$F",
            "truncate -s 0 cache.sqlite", "truncate -s 20000 cache.sqlite",
            "truncate -s 0 cache.sqlite-wal", "truncate -s 9000 cache.sqlite-wal",
            "cp cache.sqlite x; mv x cache.sqlite", "rm cache.sqlite.lock",
        ])
    func `deleted or truncated files are noticed, and a new database is created`(_ command: String)
        throws
    {
        let store = open { $0.retrySeconds = 1 }
        for number in 0..<50 { store.put("http://a/\(number)", body(20_000, seed: number)) }
        store.flushNow()
        // So that there is something in the database file, and then in the log.
        #expect(eventually { size("-wal") == 0 })
        for number in 50..<60 { store.put("http://a/\(number)", body(20_000, seed: number)) }
        store.flushNow()
        let name = URL(fileURLWithPath: folder.path).lastPathComponent
        let shell = try Command(
            "/bin/sh", ["-c", command], environment: ["PATH": "/usr/bin:/bin", "F": name],
            in: folder.path)
        #expect(shell.wait().status == 0)
        store.put("http://b/", body(500))
        if command.hasSuffix(".lock") {
            #expect(
                eventually {
                    store.put("http://b/", body(500))
                    store.flushNow()
                    return folder.names.contains("cache.sqlite.lock")
                })
        } else {
            #expect(eventually { log.contains(Self.reportsChange) })
            #expect(eventually { store.statistics().diskRestarts > 0 })
        }
        // It continues to store, and the next start finds what it stores.
        let isKept = eventually {
            guard store.statistics().diskState == .ready else { return false }
            store.put("http://c/", body(700))
            store.flushNow()
            return isFound("http://c/", store)
        }
        #expect(isKept)
        // Whatever is served is what was stored.
        for number in 0..<60 {
            for response in store.loaded("http://a/\(number)") {
                guard let bytes = store.bytes(response) else { continue }
                let isRight = bytes == body(20_000, seed: number)
                #expect(isRight)
            }
        }
        store.close()
        #expect(folder.names.contains("cache.sqlite.lock"))
        let next = open()
        let isRight = next.loaded("http://c/").first.flatMap { next.bytes($0) } == body(700)
        #expect(isRight)
        next.close()
    }

    private static func reportsChange(_ event: StoreEvent) -> Bool {
        switch event {
        // What a read discovers before the writer checks counts too.
        case .filesChanged, .setAside: true
        default: false
        }
    }

    /// Whether it is in the files under the database's name, and not only in files without a name.
    private func isFound(_ text: String, _ store: CacheStore) -> Bool {
        guard store.loaded(text).count == 1 else { return false }
        var there = stat()
        guard stat(folder.database, &there) == 0 else { return false }
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return open.contains { name in
            var status = stat()
            return stat("/proc/self/fd/\(name)", &status) == 0 && status.st_ino == there.st_ino
                && status.st_dev == there.st_dev
        }
    }

    @Test
    func `while what is being read fills the disk nothing is stored, and that is counted`() throws {
        let store = open { $0.diskBytes = 8 << 20 }
        var held: [CachedResponse] = []
        for name in ["http://a/", "http://b/"] {
            store.put(name, body(3_600_000))
            store.flushNow()
            held += store.loaded(name)
            store.drop(name)
        }
        #expect(held.count == 2)
        for number in 0..<40 { store.put("http://c/\(number)", body(60_000, seed: number)) }
        store.put("http://d/", body(3_600_000))
        store.flushNow()
        #expect(size("").map { $0 <= 8 << 20 } == true)
        let noRoom = StoreRefusalReason.allCases.firstIndex(of: .noRoom) ?? 0
        #expect(store.statistics().refusals[noRoom] > 0)
        #expect(store.loaded("http://d/").isEmpty)
        #expect(store.bytes(held[0]) == body(3_600_000))
        held = []
        #expect(eventually { query(folder.database, "SELECT count(*) FROM garbage") == 0 })
        store.put("http://d/", body(3_600_000))
        store.flushNow()
        #expect(store.loaded("http://d/").first.flatMap { store.bytes($0) } == body(3_600_000))
        store.close()
    }

    @Test
    func `what was to be removed when the database failed does not come back with it`() throws {
        let store = open {
            $0.busyMilliseconds = 50
            $0.retrySeconds = 1
        }
        store.put("http://a/", body(10))
        store.flushNow()
        let other = try Database(path: folder.database, create: false, busyMilliseconds: 1000)
        try other.execute("BEGIN IMMEDIATE")
        store.drop("http://a/")
        #expect(eventually { store.statistics().diskState == .off(.locked) })
        try other.execute("COMMIT")
        other.close()
        #expect(eventually { store.statistics().diskState == .ready })
        #expect(store.loaded("http://a/").isEmpty)
        store.close()
        let next = open()
        #expect(next.loaded("http://a/").isEmpty)
        next.close()
    }

    @Test func `what is served from a file with overwritten pages is right, or nothing`() throws {
        let store = open { $0.retrySeconds = 1 }
        for number in 0..<100 { store.put("http://a/\(number)", body(20_000, seed: number)) }
        store.flushNow()
        #expect(eventually { size("-wal") == 0 })
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: folder.database))
        for page in stride(from: UInt64(3), to: 250, by: 3) {
            try file.seek(toOffset: page * UInt64(Schema.pageBytes) + 50)
            try file.write(contentsOf: Data(body(3000, seed: Int(page))))
        }
        // This process's locks on the file would be released with its descriptor, so it stays open.
        defer { withExtendedLifetime(file) {} }
        for number in 0..<100 {
            for response in store.loaded("http://a/\(number)") {
                guard let bytes = store.bytes(response) else { continue }
                let isRight = bytes == body(20_000, seed: number)
                #expect(isRight)
            }
        }
        #expect(
            eventually {
                store.put("http://b/", body(5000))
                store.flushNow()
                return store.loaded("http://b/").first.flatMap { store.bytes($0) } == body(5000)
            })
        #expect(store.statistics().damagedEntries + store.statistics().diskRestarts > 0)
        store.close()
    }

    @Test(.enabled(if: getuid() == 0))
    func `a read-only file system turns the disk off, and is reported`() throws {
        let mount = try Command(
            "/bin/mount", ["-t", "tmpfs", "-o", "ro,size=3m", "tmpfs", folder.path])
        // Root may not mount everywhere.
        guard mount.wait().status == 0 else { return }
        defer {
            _ = try? Command("/bin/umount", ["-l", folder.path]).wait()
        }
        let store = open()
        #expect(store.statistics().diskState == .off(.readOnly))
        store.put("http://b/", body(10))
        store.close()
    }
}
