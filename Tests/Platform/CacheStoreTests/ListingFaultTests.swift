import CacheTestSupport
import Foundation
import TestSupport
import Testing

@testable import CacheStore

/// What is on disk and cannot be read is never taken for something that is not there.
@Suite("Looking into a cache whose disk fails")
struct ListingFaultTests: HandsOver {
    let folder = TemporaryFolder()
    let log = EventLog()

    /// A store that has the database in its file, and nothing of it in memory.
    private func filled(
        _ count: Int = 400, _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> CacheStore {
        let all: (inout CacheStoreOptions) -> Void = { options in
            options.memoryBytes = 0
            change(&options)
        }
        let store = open(all)
        for number in 0..<count { store.put("http://a/\(number)", body(1000, seed: number)) }
        store.close()
        return open(all)
    }

    /// Overwrites a part of the database that is open, behind its back, with what are no pages.
    /// - Parameter start: which part of the file is left as it is.
    private func damage(after start: Double) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: folder.database))
        let size = try file.seekToEnd()
        let page = UInt64(Schema.pageBytes)
        // The first page has the schema.
        let first = max(page, UInt64(Double(size) * start) / page * page)
        try file.seek(toOffset: first)
        try file.write(contentsOf: Data(repeating: 0xFF, count: Int(size - first)))
        try file.close()
    }

    /// What every question is answered with.
    private func expect(
        _ error: CacheListingError, of store: CacheStore,
        _ location: SourceLocation = #_sourceLocation
    ) {
        #expect(throws: error, sourceLocation: location) { try store.page() }
        #expect(throws: error, sourceLocation: location) { try store.listed("http://a/1") }
        #expect(throws: error, sourceLocation: location) { try store.counted(.everything) }
        #expect(throws: error, sourceLocation: location) { try store.looked(at: "http://a/1") }
    }

    private func isReadFailure(_ error: CacheListingError?) -> Bool {
        if case .readFailed(let detail) = error { !detail.isEmpty } else { false }
    }

    @Test func `a read that fails is an error, and the tier finds out`() throws {
        let store = filled()
        defer { store.close() }
        try damage(after: 0)
        #expect(isReadFailure(#expect(throws: CacheListingError.self) { try store.page() }))
        #expect(eventually { log.contains { if case .setAside = $0 { true } else { false } } })
        #expect(eventually { store.statistics().diskState == .ready })
        // It was replaced by an empty one.
        #expect(try store.page().entries.isEmpty)
    }

    @Test(arguments: 0..<3)
    func `no other question is answered from what cannot be read either`(question: Int) throws {
        let store = filled()
        defer { store.close() }
        try damage(after: 0)
        let error = #expect(throws: CacheListingError.self) {
            switch question {
            case 0: _ = try store.listed("http://a/1")
            case 1: _ = try store.counted(.everything)
            default: _ = try store.looked(at: "http://a/1")
            }
        }
        #expect(isReadFailure(error))
    }

    @Test func `a chunk that cannot be read is a failure, and not a body that is gone`() throws {
        let store = filled(0)
        store.put("http://large/", body(3_000_000))
        store.close()
        let next = open { $0.memoryBytes = 0 }
        defer { next.close() }
        let response = try #require(try next.looked(at: "http://large/").first?.response)
        guard case .disk(let large) = response.body else {
            Issue.record("not on disk")
            return
        }
        try damage(after: 0)
        let answer = Handover<ChunkResult>()
        // The reader knows the beginning of the file, and no more.
        #expect(next.readChunk(large, large.chunkCount - 1) { answer.give($0) })
        guard case .failed(let error)? = answer.take() else {
            Issue.record("no failure")
            return
        }
        #expect(isReadFailure(error))
    }

    @Test func `a list whose later rows cannot be read does not end before them`() throws {
        let store = filled()
        defer { store.close() }
        try damage(after: 0.75)
        var count = 0
        let error = #expect(throws: CacheListingError.self) {
            try store.visitPages { count += $0.entries.count }
        }
        #expect(isReadFailure(error))
        #expect(count > 0 && count < 400)
    }

    @Test func `a disk that is off because of a fault is an error that says why`() throws {
        let store = filled(10) { $0.busyMilliseconds = 50 }
        defer { store.close() }
        let other = try Database(path: folder.database, create: false, busyMilliseconds: 1000)
        try other.execute("BEGIN IMMEDIATE")
        store.put("http://b/", body(10))
        #expect(eventually { store.statistics().diskState == .off(.locked) })
        expect(.diskOff(.locked), of: store)
        #expect("\(CacheListingError.diskOff(.locked))".contains("another process"))
        try other.execute("COMMIT")
        other.close()
        #expect(eventually { store.statistics().diskState == .ready })
        #expect(try store.page(limit: 100).entries.count >= 10)
    }

    @Test func `a folder that cannot be made is a fault, and no disk at all is none`() throws {
        try Data().write(to: URL(fileURLWithPath: folder.file("file")))
        let store = open { options in options.folder = folder.file("file") }
        store.put("http://a/1", body(10))
        expect(.diskOff(.folder), of: store)
        store.close()
        let without = CacheStore(options: .small()).ready()
        without.put("http://a/1", body(10))
        #expect(try without.page().entries.count == 1)
        #expect(try without.listed("http://a/1").count == 1)
        #expect(try without.counted(.everything) == .init(memoryEntries: 1, isComplete: true))
        without.close()
    }

    @Test func `what is in memory can be listed whatever the disk does`() throws {
        try Data().write(to: URL(fileURLWithPath: folder.file("file")))
        let store = open { options in options.folder = folder.file("file") }
        defer { store.close() }
        for number in 0..<20 { store.put("http://a/\(number)", body(10)) }
        var listed: [StoredEntryInfo] = []
        try store.visitPages(inMemoryOnly: true) { listed += $0.entries }
        #expect(Set(listed.map(\.url)).count == 20 && listed.count == 20)
        #expect(listed.allSatisfy { $0.isInMemory && !$0.isOnDisk })
    }

    @Test func `of what is in memory, a list without the disk says what is on disk as well`() throws
    {
        let store = open()
        defer { store.close() }
        store.put("http://a/", body(10))
        store.flushNow()
        let page = try store.page(inMemoryOnly: true)
        #expect(page.entries.map(\.isOnDisk) == [true])
        #expect(page.entries.map(\.isInMemory) == [true])
    }

    @Test func `nobody knows what is in a database that is still being opened`() {
        let store = CacheStore(withoutThreads: .small(folder)) { _ in }
        store.put("http://a/1", body(10))
        expect(.diskOpening, of: store)
        store.close()
    }

    @Test func `the process that has handed the database over does not list it`() throws {
        let first = open()
        for number in 0..<10 { first.put("http://a/\(number)", body(10)) }
        first.flushNow()
        let cursor = try first.page(limit: 3).next
        #expect(handOver(first) == .released)
        expect(.handedOver, of: first)
        let second = open()
        #expect(try second.page(limit: 100).entries.count == 10)
        // A list that the other process has begun has no end here.
        #expect(throws: CacheListingError.outdated) { try second.page(after: cursor) }
        second.close()
        first.close()
    }

    @Test func `a list does not go on in another database`() throws {
        let store = filled(10) { $0.busyMilliseconds = 50 }
        defer { store.close() }
        let cursor = try store.page(limit: 3).next
        #expect(try store.page(after: cursor, limit: 3).entries.count == 3)
        let other = try Database(path: folder.database, create: false, busyMilliseconds: 1000)
        try other.execute("BEGIN IMMEDIATE")
        store.put("http://b/", body(10))
        #expect(eventually { store.statistics().diskState == .off(.locked) })
        try other.execute("COMMIT")
        other.close()
        #expect(eventually { store.statistics().diskState == .ready })
        #expect(throws: CacheListingError.outdated) { try store.page(after: cursor) }
    }

    @Test func `a list of memory does not go on in another process`() throws {
        let store = CacheStore(options: .small()).ready()
        for number in 0..<20 { store.put("http://a/\(number)", body(10)) }
        let cursor = try store.page(inMemoryOnly: true).next
        #expect(try store.page(after: cursor, inMemoryOnly: true).entries.count == 7)
        let other = CacheStore(options: .small()).ready()
        #expect(throws: CacheListingError.outdated) {
            try other.page(after: cursor, inMemoryOnly: true)
        }
        store.close()
        other.close()
    }

    @Test func `too many questions are refused, and the others answered`() throws {
        let store = open()
        defer { store.close() }
        let mayGoOn = DispatchSemaphore(value: 0)
        store.entries(after: nil, limit: 1) { _ in mayGoOn.wait() }
        let answers = (0..<70).map { _ in
            let answer = Handover<Result<StoredEntryPage, CacheListingError>>()
            store.entries(after: nil, limit: 1) { answer.give($0) }
            return answer
        }
        mayGoOn.signal()
        let results = answers.map { $0.take() }
        #expect(results.first == .success(StoredEntryPage(entries: [], next: nil)))
        #expect(results.last == .failure(.busy))
        #expect(results.allSatisfy { $0 != nil })
    }

    @Test func `a store that is closed says so`() {
        let store = open()
        store.close()
        expect(.closed, of: store)
    }
}
