import CacheTestSupport
import TestSupport
import Testing

@testable import CacheStore

/// The writer's operations on a real database, each in its own transaction; after one of them the
/// process is gone, and the next one opens what it has left.
@Suite("Rows, when the process ends between two operations")
struct RowWriterTests {
    /// What is done to a key before the writer continues with its queue.
    enum Step: String, CustomTestStringConvertible {
        /// Another body, in chunks.
        case put
        /// A 304: a new row takes over the chunks of the one before it.
        case confirm
        case invalidate
        /// Carries out what is queued.
        case write
        /// Carries out the next two operations.
        case writeTwo
        /// From here on there is no space for the writer.
        case fill
        /// There is space again.
        case free
        case startReading, stopReading

        var testDescription: String { rawValue }
    }

    private static let scripts: [[Step]] = [
        [.put, .confirm],
        [.put, .write, .confirm, .invalidate],
        [.put, .write, .confirm, .confirm, .invalidate],
        [.put, .write, .confirm, .confirm, .write, .invalidate],
        [.put, .write, .confirm, .put],
        [.put, .write, .confirm, .confirm, .put, .confirm, .invalidate],
        [.put, .write, .fill, .confirm],
        [.put, .write, .fill, .confirm, .confirm],
        [.put, .write, .fill, .confirm, .invalidate],
        [.put, .write, .startReading, .confirm, .invalidate, .stopReading],
        [.put, .write, .confirm, .write, .startReading, .confirm, .put, .stopReading],
        [.put, .write, .confirm, .invalidate, .put, .confirm],
        [.fill, .put, .writeTwo, .free],
        [.fill, .put, .writeTwo, .free, .confirm],
        [.fill, .put, .writeTwo, .free, .confirm, .confirm],
        [.fill, .put, .writeTwo, .free, .confirm, .invalidate],
        [.fill, .put, .writeTwo, .free, .put],
    ]

    @Test(arguments: scripts)
    func `no chunks stay that no row refers to, and what is found is whole`(
        _ script: [Step]
    ) throws {
        var operations = 0
        repeat {
            let folder = TemporaryFolder()
            let isOver = try play(script, in: folder, carryingOut: operations)
            try checkNextStart(in: folder, "\(script) after \(operations) operations")
            if isOver { break }
            operations += 1
        } while true
        #expect(operations > script.count)
    }

    private static let key = "http://a/"
    private static let bodyBytes = 5000

    private func options(_ folder: TemporaryFolder) -> CacheStoreOptions {
        var options = CacheStoreOptions.small(folder)
        options.memoryFileBytes = 500
        options.wholeBodyBytes = 2000
        options.inlineBodyBytes = 1000
        options.chunkBytes = 1000
        options.batchMilliseconds = 0
        return options
    }

    /// Returns whether the process was not cut short: `limit` operations were all there were.
    private func play(
        _ script: [Step], in folder: TemporaryFolder, carryingOut limit: Int
    ) throws -> Bool {
        let options = options(folder)
        let store = CacheStore(withoutThreads: options) { _ in }
        let opened = try WriterOpening(
            options: options, files: DatabaseFiles(folder: options.folder), onEvent: { _ in }
        ).open()
        let connection = opened.connection
        defer { connection.close() }
        store.disk.queue.open()
        #expect(store.disk.index.begin((consume opened).contents) != nil)
        let writer = RowWriter(store.disk)
        var pending: [DiskOperation] = []
        var (carriedOut, hasRoom, bodies) = (0, true, 0)
        var reader: LevelBody?

        /// Returns `false` if the process has ended.
        func write(atMost count: Int = .max) throws -> Bool {
            for _ in 0..<count {
                if case .operations(let taken) = store.disk.queue.take(until: 0) {
                    pending += taken
                }
                guard !pending.isEmpty else { break }
                guard carriedOut < limit else { return false }
                carriedOut += 1
                var batch = RowBatch()
                try connection.beginTransaction()
                try writer.carryOut(
                    pending.removeFirst(), hasRoom: hasRoom, connection, &batch)
                try connection.commitTransaction()
                writer.finish(&batch)
            }
            return true
        }
        for step in script {
            switch step {
            case .put:
                bodies += 1
                let put = store.put(Self.key, body(Self.bodyBytes, seed: bodies), tag: "\(bodies)")
                #expect(put.refusal == nil)
            case .confirm:
                let old = try #require(store.inMemory(Self.key).first)
                let fresh = head("\(bodies)", extra: "X-New: 1\r\n")
                _ = try fresh.withUnsafeBytes {
                    try store.update(
                        old, vary: .none, head: $0, metadata: metadata(fresh), policy: 0)
                }
            case .invalidate: store.drop(Self.key)
            case .fill: hasRoom = false
            case .free: hasRoom = true
            case .write: guard try write() else { return false }
            case .writeTwo: guard try write(atMost: 2) else { return false }
            case .startReading:
                let id = store.disk.index.state.withLock { $0.bodies.first ?? 1 }
                store.disk.index.pin(id)
                reader = store.disk.body(
                    id: id, count: UInt64(Self.bodyBytes), chunkBytes: options.chunkBytes)
            case .stopReading:
                guard try write() else { return false }
                reader = nil
            }
        }
        _ = reader
        return try write()
    }

    private func checkNextStart(in folder: TemporaryFolder, _ what: String) throws {
        let path = folder.database
        let store = CacheStore(options: options(folder)).ready()
        #expect(store.statistics().diskState == .ready)
        for found in store.loaded(Self.key) {
            let seed = [1, 2].first { [UInt8](found.head).starts(with: head("\($0)")) }
            let number = try #require(seed, "\(what)")
            #expect(store.bytes(found) == body(Self.bodyBytes, seed: number), "\(what)")
        }
        #expect(store.statistics().damagedEntries == 0, "\(what)")
        let isClean = eventually {
            query(path, "SELECT count(*) FROM incomplete") == 0
                && query(path, "SELECT count(*) FROM garbage") == 0
        }
        #expect(isClean, "\(what)")
        let lost = query(
            path,
            "SELECT count(*) FROM chunk WHERE id >> \(Schema.chunkBits) NOT IN "
                + "(SELECT body FROM entry)")
        #expect(lost == 0, "\(what)")
        store.close()
    }
}
