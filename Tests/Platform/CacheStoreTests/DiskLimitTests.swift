import CachePolicy
import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// The disk's limits: bytes, entries, and the size of the file.
@Suite("The disk's limits")
struct DiskLimitTests {
    private let folder = TemporaryFolder()

    private func options(_ bytes: Int64) -> CacheStoreOptions {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        options.diskBytes = bytes
        options.checkpointBytes = 1 << 20
        return options
    }

    @Test(arguments: [100, 3000, 5000, 16_384, 70_000, 300_000])
    func `the file stays within about its limit, whatever the sizes of what is stored`(_ size: Int)
        throws
    {
        let limit: Int64 = 4 << 20
        let store = CacheStore(options: options(limit)).ready()
        let count = 3 * Int(limit) / (size + 600)
        for number in 0..<count {
            // Keys recur, so that rows are replaced as well as evicted.
            let key = number % 3 == 0 ? number / 2 : number
            _ = store.put("http://a/\(key)", [UInt8](repeating: UInt8(number & 255), count: size))
            if number % 50 == 0 { store.flushNow() }
        }
        store.flushNow()
        #expect(eventually { query(folder.database, "SELECT count(*) FROM garbage") == 0 })
        // An entry leaves the index before its rows leave the file, and the writer may still be
        // making room: they agree once it is idle.
        #expect(
            eventually {
                query(folder.database, "SELECT count(*) FROM entry")
                    == Int64(store.statistics().diskEntries)
            })
        let figures = store.statistics()
        #expect(figures.diskEvictions.total > 0)
        #expect(figures.diskBytes <= limit)
        #expect(figures.diskFileBytes - figures.diskLogBytes <= limit)
        // And the limit is used.
        let used = Int64(figures.diskEntries) * Int64(size + 200)
        #expect(used > limit / 2)
        store.close()
    }

    @Test func `the least recently used entry is removed first, and a load is a use`() throws {
        var options = options(32 << 20)
        options.diskEntries = 10
        let store = CacheStore(options: options).ready()
        for number in 0..<10 { store.put("http://a/\(number)", body(100)) }
        store.flushNow()
        #expect(store.loaded("http://a/0").count == 1)
        store.put("http://a/10", body(100))
        store.flushNow()
        #expect(store.statistics().diskEntries == 10)
        #expect(store.key("http://a/0") { store.diskMayHold($0) })
        #expect(!store.key("http://a/1") { store.diskMayHold($0) })
        #expect(store.key("http://a/2") { store.diskMayHold($0) })
        store.close()
    }

    @Test func `an entry that is in use in memory is not the first to leave the disk`() throws {
        var options = options(32 << 20)
        options.memoryBytes = 1 << 20
        options.diskEntries = 10
        let store = CacheStore(options: options).ready()
        store.put("http://a/0", body(100))
        store.flushNow()
        store.close()
        let again = CacheStore(options: options).ready()
        #expect(again.loaded("http://a/0").count == 1)
        // These are too large for memory, and many times what the disk can hold.
        for number in 1..<50 {
            again.put("http://a/\(number)", body(150_000))
            again.flushNow()
        }
        #expect(again.key("http://a/0") { again.diskMayHold($0) })
        #expect(again.statistics().diskEntries == 10)
        again.close()
    }

    @Test func `a body of half the disk is taken, one page more is not`() throws {
        var options = options(8 << 20)
        options.queueBytes = 32 << 20
        let store = CacheStore(options: options).ready()
        let chunks =
            (4 << 20)
            / Int(
                Schema.footprint(
                    recordBytes: 0, inlineBytes: 0, chunked: 65_536, chunkBytes: 65_536))
        guard case .storedOnDisk = store.put("http://a/", body((chunks - 2) * 65_536)) else {
            Issue.record("not taken")
            return
        }
        store.flushNow()
        #expect(store.loaded("http://a/").count == 1)
        #expect(store.put("http://b/", body(4 << 20)).refusal != nil)
        #expect(store.put("http://c/", body((4 << 20) + 1)).refusal == .tooLarge)
        #expect(store.put("http://c/", body((4 << 20) + 1), announced: false).refusal == .tooLarge)
        #expect(store.loaded("http://b/").isEmpty)
        store.close()
    }

    @Test func `a body that finds no more space is given up, and nothing of it is kept`() throws {
        var options = options(8 << 20)
        options.chunkBytes = 1000
        options.batchMilliseconds = 0
        let tier = DiskTier(options: options) { _ in }
        let opened = try WriterOpening(
            options: options, files: DatabaseFiles(folder: options.folder), onEvent: { _ in }
        ).open()
        let connection = opened.connection
        defer { connection.close() }
        tier.queue.open()
        #expect(tier.index.begin((consume opened).contents) != nil)
        let writer = RowWriter(tier)
        func write(hasRoom: Bool) throws {
            guard case .operations(let taken) = tier.queue.take(until: 0) else { return }
            var batch = RowBatch()
            try connection.beginTransaction()
            for operation in taken {
                try writer.carryOut(operation, hasRoom: hasRoom, connection, &batch)
            }
            try connection.commitTransaction()
            writer.finish(&batch)
        }

        let stream = try DiskStream(tier, textBytes: 100)
        var refusal: StoreRefusalReason?
        var appended = 0
        while refusal == nil, appended < 100 {
            let piece = body(1000, seed: appended)
            refusal = piece.withUnsafeBytes { bytes in
                do throws(StoreRefusalReason) {
                    try stream.append(bytes)
                    return nil
                } catch {
                    return error
                }
            }
            appended += 1
            try write(hasRoom: appended < 4)
        }
        #expect(refusal == .noRoom)
        // The fourth was dropped, which the fifth finds out.
        #expect(appended == 5)
        #expect(stream.received() == nil)
        try write(hasRoom: false)
        #expect(tier.budget.bytes == 0)
        #expect(query(folder.database, "SELECT count(*) FROM incomplete") == 0)
    }

    @Test func `a smaller limit takes effect at the next start, on the file too`() throws {
        let large = CacheStore(options: options(16 << 20)).ready()
        for number in 0..<600 { _ = large.put("http://a/\(number)", body(20_000, seed: number)) }
        large.close()
        #expect(large.statistics().diskEvictions.total == 0)
        let store = CacheStore(options: options(3 << 20)).ready()
        #expect(eventually { store.statistics().diskBytes <= 3 << 20 })
        #expect(eventually { store.statistics().diskFileBytes <= 3 << 20 })
        #expect(store.loaded("http://a/599").map { store.bytes($0) } == [body(20_000, seed: 599)])
        #expect(store.loaded("http://a/0").isEmpty)
        store.close()
    }
}
