import CLinux
import CachePolicy
import CacheTestSupport
import Foundation
import Locking
import TestSupport
import Testing

@testable import CacheStore

@Suite("The disk tier")
struct DiskTierTests {
    private let folder = TemporaryFolder()

    @Test(
        arguments: [0, 1, 1000, 32_768, 65_536, 65_537, 300_000, 1 << 20, (1 << 20) + 1, 3_000_000])
    func `a response survives a restart whole`(_ count: Int) throws {
        let content = body(count)
        let first = CacheStore(options: .small(folder)).ready()
        let outcome = first.put(
            "http://a/x?y", content, vary: vary("de"), announced: false, piece: 10_000, policy: 9)
        #expect(outcome.refusal == nil)
        first.close()

        let second = CacheStore(options: .small(folder)).ready()
        #expect(second.inMemory("http://a/x?y").isEmpty)
        #expect(second.key("http://a/x?y") { second.diskMayHold($0) })
        #expect(!second.key("http://a/x") { second.diskMayHold($0) })
        let response = try #require(second.loaded("http://a/x?y").first)
        #expect([UInt8](response.head) == head())
        #expect(String(decoding: response.key, as: UTF8.self) == "http://a/x?y")
        #expect(response.varyKey == vary("de"))
        #expect(response.policy == 9)
        #expect(response.metadata.times == testTimes)
        #expect(response.bodyCount == UInt64(count))
        #expect(second.bytes(response) == content)
        switch response.body {
        case .contiguous: #expect(count < 32_768)
        case .file: #expect(count >= 32_768 && count <= 1 << 20)
        case .disk: #expect(count > 1 << 20)
        case .heap, .arriving, .parts: Issue.record("elsewhere")
        }
        #expect(second.statistics().diskHits == 1)
    }

    @Test func `what a load finds is put into memory, if it fits there`() throws {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 1 << 20
        let store = CacheStore(options: options).ready()
        store.put("http://a/small", body(5000))
        store.put("http://a/large", body(200_000))
        #expect(store.inMemory("http://a/large").isEmpty)
        store.flushNow()
        store.close()
        let second = CacheStore(options: options).ready()
        let loaded = try #require(second.loaded("http://a/small").first)
        let found = try #require(second.inMemory("http://a/small").first)
        #expect(found === loaded)
        // A second load returns the existing one.
        #expect(second.loaded("http://a/small").first === found)
        #expect(second.loaded("http://a/large").first.flatMap { second.bytes($0) } == body(200_000))
        #expect(second.inMemory("http://a/large").isEmpty)
    }

    @Test func `all variants of a key are loaded`() throws {
        let first = CacheStore(options: .small(folder)).ready()
        for number in 0..<5 {
            first.put("http://a/", body(100, seed: number), vary: vary("l\(number)"))
        }
        first.put("http://a/", body(100, seed: 9), vary: vary("l3"))
        first.close()
        let second = CacheStore(options: .small(folder)).ready()
        let found = second.loaded("http://a/")
        #expect(found.count == 5)
        for number in 0..<5 {
            let one = try #require(found.first { $0.varyKey == vary("l\(number)") })
            #expect(second.bytes(one) == body(100, seed: number == 3 ? 9 : number))
        }
        #expect(second.inMemory("http://a/").count == 5)
    }

    @Test func `what is evicted from memory before its rows are written is still found`() throws {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 100_000
        options.batchMilliseconds = 60_000
        let store = CacheStore(options: options).ready()
        for number in 0..<20 { store.put("http://a/\(number)", body(12_000, seed: number)) }
        #expect(store.inMemory("http://a/0").isEmpty)
        let response = try #require(store.loaded("http://a/0").first)
        #expect(store.bytes(response) == body(12_000, seed: 0))
        #expect(store.statistics().diskWrites == 0)
    }

    @Test
    func `a truncated or abandoned store is never visible, not after a restart either`() throws {
        let log = EventLog()
        do {
            let store = CacheStore(options: .small(folder)).ready()
            store.put("http://a/1", body(2_000_000, seed: 1))
            for number in 1...3 {
                let ticket = try store.begin(
                    "http://a/\(number)", length: number == 3 ? nil : 5_000_000)
                #expect(body(4_000_000).withUnsafeBytes { ticket.append($0) })
                switch number {
                case 1: #expect(ticket.finish().refusal == .lengthMismatch)
                case 2: ticket.abandon()
                default: break
                }
            }
            #expect(store.loaded("http://a/2").isEmpty)
            #expect(store.loaded("http://a/3").isEmpty)
            store.close()
        }
        let store = CacheStore(options: .small(folder), onEvent: log.record).ready()
        let kept = try #require(store.loaded("http://a/1").first)
        #expect(store.bytes(kept) == body(2_000_000, seed: 1))
        #expect(store.loaded("http://a/2").isEmpty)
        #expect(store.loaded("http://a/3").isEmpty)
        #expect(store.statistics().diskEntries == 1)
        // The chunks are removed too, gradually.
        let path = folder.database
        #expect(
            eventually {
                query(path, "SELECT count(*) FROM chunk") == 31
                    && query(path, "SELECT count(*) FROM garbage") == 0
                    && query(path, "SELECT count(*) FROM incomplete") == 0
            })
    }

    @Test func `what a process left behind half received is removed at the next start`() throws {
        let log = EventLog()
        do {
            let store = CacheStore(options: .small(folder)).ready()
            store.put("http://a/", body(10))
            store.close()
        }
        try execute(
            folder.database,
            """
            INSERT INTO incomplete VALUES(500);
            INSERT INTO chunk VALUES(500 << 20, 1, zeroblob(65536));
            INSERT INTO chunk VALUES((500 << 20) + 1, 1, zeroblob(65536));
            """)
        let store = CacheStore(options: .small(folder), onEvent: log.record).ready()
        #expect(log.all.contains(.removedIncomplete(entries: 1)))
        let path = folder.database
        #expect(eventually { query(path, "SELECT count(*) FROM chunk") == 0 })
        // Their id is not assigned again.
        store.put("http://b/", body(10))
        store.flushNow()
        #expect(query(path, "SELECT max(id) FROM entry") == 501)
    }

    @Test func `a 64 MiB body is written and read in pieces, with bounded memory`() throws {
        var options = CacheStoreOptions.small(folder)
        options.diskBytes = 256 << 20
        options.queueBytes = 8 << 20
        let store = CacheStore(options: options).ready()
        let piece = body(100_003)
        let total = 64 << 20
        let ticket = try store.begin("http://a/", length: UInt64(total))
        var sent = 0
        var most = 0
        while sent < total {
            if ticket.isCongested {
                let drained = Handover<Bool>()
                store.whenStoresDrain { drained.give(true) }
                _ = drained.take()
            }
            let count = min(piece.count, total - sent)
            let taken = piece.withUnsafeBytes {
                ticket.append(UnsafeRawBufferPointer(rebasing: $0[..<count]))
            }
            guard taken else {
                Issue.record("refused: \(String(describing: ticket.refusal))")
                return
            }
            sent += count
            most = max(most, store.statistics().queueBytes)
        }
        guard case .storedOnDisk = ticket.finish() else {
            Issue.record("not stored")
            return
        }
        #expect(most <= options.queueBytes)
        store.flushNow()
        #expect(store.statistics().queueBytes == 0)
        #expect(store.statistics().memoryBytes == 0)
        let response = try #require(store.loaded("http://a/").first)
        guard case .disk(let disk) = response.body else {
            Issue.record("not streamed")
            return
        }
        #expect(disk.count == UInt64(total))
        #expect(disk.chunkCount == 1024)
        var offset = 0
        var isRight = true
        for index in 0..<disk.chunkCount {
            let handover = Handover<ChunkResult>()
            #expect(store.readChunk(disk, index) { handover.give($0) })
            guard case .chunk(let chunk)? = handover.take() else {
                Issue.record("no chunk \(index)")
                return
            }
            for byte in chunk.bytes {
                isRight = isRight && byte == piece[offset % piece.count]
                offset += 1
            }
        }
        #expect(isRight)
        #expect(offset == total)
    }

    @Test func `a load of what has just been streamed waits for its rows`() throws {
        var options = CacheStoreOptions.small(folder)
        options.batchMilliseconds = 60_000
        let store = CacheStore(options: options).ready()
        guard case .storedOnDisk = store.put("http://a/", body(1_500_000)) else {
            Issue.record("not streamed")
            return
        }
        let response = try #require(store.loaded("http://a/").first)
        #expect(store.bytes(response) == body(1_500_000))
    }

    @Test func `a medium body that was streamed is also kept in memory`() throws {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 32 << 20
        options.wholeBodyBytes = 100_000
        let store = CacheStore(options: options).ready()
        for announced in [true, false] {
            let content = body(500_000, seed: announced ? 1 : 2)
            let outcome = store.put("http://a/", content, announced: announced, piece: 7001)
            let response = try #require(outcome.response)
            #expect(store.inMemory("http://a/").first === response)
            #expect(store.bytes(response) == content)
            store.flushNow()
            let loaded = try #require(store.loaded("http://a/").first)
            #expect(store.bytes(loaded) == content)
        }
        #expect(store.statistics().diskEntries == 1)
    }

    @Test func `when too many large bodies are gathered, the next goes to disk alone`() throws {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 32 << 20
        options.wholeBodyBytes = 100_000
        options.stagingBytes = 1_000_000
        let store = CacheStore(options: options).ready()
        let first = try store.begin("http://a/", length: 900_000)
        #expect(body(900_000, seed: 1).withUnsafeBytes { first.append($0) })
        #expect(store.statistics().stagingBytes >= 900_000)
        guard case .storedOnDisk = store.put("http://b/", body(900_000, seed: 2)) else {
            Issue.record("not on disk alone")
            return
        }
        guard case .stored = first.finish() else {
            Issue.record("not stored")
            return
        }
        #expect(store.statistics().stagingBytes == 0)
        store.flushNow()
        #expect(store.statistics().queueBytes == 0)
        let other = try #require(store.loaded("http://b/").first)
        #expect(store.bytes(other) == body(900_000, seed: 2))
        // Without a disk it is refused.
        store.close()
        let held = try store.begin("http://a/", length: 900_000)
        #expect(body(900_000).withUnsafeBytes { held.append($0) })
        #expect(store.put("http://c/", body(900_000)).refusal == .queueFull)
        held.abandon()
        #expect(store.put("http://c/", body(900_000)).response != nil)
        #expect(store.statistics().stagingBytes == 0)
    }

    @Test
    func `the last reference may be dropped by a completion, on any of the store's threads`() {
        for onWriter in [true, false] {
            let done = Handover<Bool>()
            do {
                let store = CacheStore(options: .small(folder)).ready()
                store.put("http://a/", body(10))
                store.flushNow()
                final class Holder: Sendable {
                    let store: Locked<CacheStore?>
                    init(_ store: CacheStore) { self.store = Locked(store) }
                }
                let holder = Holder(store)
                let drop: @Sendable () -> Void = {
                    holder.store.withLock { $0 = nil }
                    done.give(true)
                }
                if onWriter {
                    store.flush { drop() }
                } else {
                    #expect(
                        store.key("http://a/") {
                            store.load($0, policy: PolicyOptions()) { _ in drop() }
                        })
                }
            }
            #expect(done.take() == true)
            let path = folder.path
            // The lock is free again: its threads have ended.
            #expect(
                eventually {
                    var lock = FolderLock(path: DatabaseFiles(folder: path).lock)
                    defer { lock.closeAll() }
                    return (try? lock.take()) != nil
                })
        }
    }

    @Test func `chunks being read outlast the replacement of their entry, and then go`() throws {
        let store = CacheStore(options: .small(folder)).ready()
        let path = folder.database
        store.put("http://a/", body(2_000_000, seed: 1))
        store.flushNow()
        var old = store.loaded("http://a/").first
        store.put("http://a/", body(10, seed: 2))
        store.flushNow()
        #expect(old.flatMap { store.bytes($0) } == body(2_000_000, seed: 1))
        #expect(query(path, "SELECT count(*) FROM incomplete") == 1)
        #expect(store.inMemory("http://a/").map { store.bytes($0) } == [body(10, seed: 2)])
        old = nil
        #expect(eventually { query(path, "SELECT count(*) FROM chunk") == 0 })
        #expect(query(path, "SELECT count(*) FROM incomplete") == 0)
    }

    @Test func `last uses are saved, and decide after a restart what is evicted first`() throws {
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        let path = folder.database
        do {
            let store = CacheStore(options: options).ready()
            for number in 0..<4 { store.put("http://a/\(number)", body(100_000, seed: number)) }
            store.close()
        }
        try execute(path, "UPDATE entry SET accessed = 1000 + id")
        do {
            let store = CacheStore(options: options).ready()
            #expect(!store.loaded("http://a/0").isEmpty)
            store.close()
        }
        let oldest = query(path, "SELECT id FROM entry ORDER BY accessed LIMIT 1")
        #expect(oldest == query(path, "SELECT min(id) + 1 FROM entry"))
        options.diskEntries = 2
        let store = CacheStore(options: options).ready()
        #expect(eventually { store.statistics().diskEntries == 2 })
        #expect(store.loaded("http://a/1").isEmpty)
        #expect(store.loaded("http://a/2").isEmpty)
        #expect(!store.loaded("http://a/3").isEmpty)
        #expect(!store.loaded("http://a/0").isEmpty)
    }

    @Test func `with the disk switched off the store is a memory cache and no file is made`() {
        var options = CacheStoreOptions.small(folder)
        options.diskBytes = 0
        let store = CacheStore(options: options)
        #expect(store.waitUntilDiskSettled(milliseconds: 0) == .off(.disabled))
        #expect(store.put("http://a/", body(10)).response != nil)
        #expect(!store.key("http://a/") { store.diskMayHold($0) })
        store.flushNow()
        store.close()
        #expect(folder.names.isEmpty)
    }

    @Test func `after close memory continues to answer, and nothing hangs`() {
        let store = CacheStore(options: .small(folder)).ready()
        store.put("http://a/", body(10))
        store.close()
        store.close()
        #expect(store.statistics().diskState == .off(.closed))
        #expect(store.inMemory("http://a/").count == 1)
        #expect(store.put("http://b/", body(10)).response != nil)
        #expect(store.put("http://c/", body(2_000_000)).refusal == .diskOff)
        #expect(!store.key("http://a/") { store.load($0, policy: PolicyOptions()) { _ in } })
        store.drop("http://a/")
        store.purgeAll()
        store.flushNow()
    }

    @Test func `the folder is made, for its owner alone`() throws {
        var options = CacheStoreOptions.small(folder)
        options.folder = folder.path + "/a/b"
        let store = CacheStore(options: options).ready()
        #expect(store.statistics().diskState == .ready)
        let attributes = try FileManager.default.attributesOfItem(atPath: options.folder)
        #expect(attributes[.posixPermissions] as? Int == 0o700)
        let file = try FileManager.default.attributesOfItem(
            atPath: options.folder + "/cache.sqlite")
        #expect(file[.posixPermissions] as? Int == 0o600)
        store.close()
    }
}
