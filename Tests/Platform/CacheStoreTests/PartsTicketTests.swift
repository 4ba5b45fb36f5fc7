import CachePolicy
import CacheTestSupport
import HTTPCore
import Locking
import TestSupport
import Testing

@testable import CacheStore

@Suite("Parts of a body, stored in slices")
struct PartsTicketTests {
    private let folder = TemporaryFolder()
    private let key = CacheKey(bytes: Array("http://a/film".utf8))
    private let times = StoredTimes(requestTime: 0, responseTime: 0, initialAge: 0)

    private func ticket(
        _ store: CacheStore, _ parts: PartsBody, _ range: Range<Int>, run: PartsUnderWay? = nil
    ) -> PartsTicket {
        store.beginParts(
            parts, of: key, range: UInt64(range.lowerBound)..<UInt64(range.upperBound), run: run,
            times: times, options: PolicyOptions())
    }

    private func store(
        _ content: [UInt8], _ range: Range<Int>, upTo end: Int? = nil, _ parts: PartsBody,
        in store: CacheStore, portion: Int = 777
    ) {
        let ticket = ticket(store, parts, range)
        var start = range.lowerBound
        while start < end ?? range.upperBound {
            let next = min(start + portion, end ?? range.upperBound)
            content[start..<next].withUnsafeBytes { ticket.append($0) }
            start = next
        }
        ticket.close(isComplete: end == nil)
    }

    /// The runs of bytes that are there, which must be those of the content.
    private func runs(
        of content: [UInt8], _ parts: PartsBody, in store: CacheStore
    ) -> [Range<Int>] {
        var found: [Range<Int>] = []
        for start in stride(from: 0, to: content.count, by: Int(parts.sliceBytes)) {
            var slice: StoredSlice?
            switch store.slice(of: parts, key: key, at: UInt64(start)) {
            case .inMemory(let stored): slice = stored
            case .inLevel:
                slice = load(parts, at: UInt64(start), in: store)
            case .nothing: break
            }
            guard let slice, let bytes = store.bytes(slice.response) else { continue }
            let range = Int(slice.range.lowerBound)..<Int(slice.range.upperBound)
            #expect(bytes == Array(content[range]))
            if let last = found.last, last.upperBound == range.lowerBound {
                found[found.count - 1] = last.lowerBound..<range.upperBound
            } else {
                found.append(range)
            }
        }
        return found
    }

    private func load(_ parts: PartsBody, at offset: UInt64, in store: CacheStore) -> StoredSlice? {
        let answer = Monitor<LoadResult?>(nil)
        let isAccepted = store.loadSlice(
            of: parts, key: key, at: offset, policy: PolicyOptions()
        ) { result in
            answer.withLock { $0 = result }
            answer.broadcast()
        }
        guard isAccepted else { return nil }
        let result = answer.wait { $0.map { .done($0) } ?? .signal }
        guard case .found(let found, _) = result else { return nil }
        return found.first.flatMap { StoredSlice($0) }
    }

    @Test func `from elsewhere, slices have a size as they are stored here`() {
        for bytes in [4096, 64 << 10, 1 << 40] {
            #expect(PartsBody.isSound(PartsBody(sliceBytes: bytes).bytes))
        }
        for bytes in [1, 256, 4095, 1 << 40 + 1, .max] {
            #expect(!PartsBody.isSound(PartsBody(sliceBytes: bytes).bytes))
        }
        #expect(!PartsBody.isSound([]))
        #expect(!PartsBody.isSound(PartsBody(sliceBytes: 4096).bytes + [0]))
    }

    @Test func `from elsewhere, the head of a slice is exactly as it is stored here`() {
        for first: UInt64 in [0, 7, .max] {
            let head = StoredSlice.head(from: first)
            #expect(StoredSlice.isHead(head))
            #expect(!StoredSlice.isHead(Array(head.dropLast())))
            #expect(!StoredSlice.isHead(head + Array("Content-Length: 1\r\n".utf8)))
        }
        for first in ["", "x", "01", "18446744073709551616", "1-2"] {
            let head = "HTTP/1.1 200 OK\r\nRange: bytes=\(first)-\r\n"
            #expect(!StoredSlice.isHead(Array(head.utf8)))
        }
    }

    @Test func `the key of a slice says of which response and set it is`() throws {
        let parts = PartsBody(sliceBytes: 1000)
        let slice = try #require(SliceKey(parts.key(of: key, at: 258_999).bytes))
        #expect(slice.response == key.bytes)
        #expect(slice.set == parts.set)
        #expect(slice.number == 258)
        #expect(SliceKey(key.bytes) == nil)
        #expect(SliceKey(Array("http://a/0123456789abcdef".utf8)) == nil)
    }

    @Test(arguments: [100, 1000, 65_536], [1, 777, 100_000])
    func `what arrives is there, in runs`(sliceBytes: Int, portion: Int) {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let content = body(5000, seed: 1)
        let parts = PartsBody(sliceBytes: sliceBytes)
        self.store(content, 1200..<3700, parts, in: store, portion: portion)
        #expect(runs(of: content, parts, in: store) == [1200..<3700])
        self.store(content, 3700..<5000, parts, in: store, portion: portion)
        #expect(runs(of: content, parts, in: store) == [1200..<5000])
        self.store(content, 0..<5000, parts, in: store, portion: portion)
        #expect(runs(of: content, parts, in: store) == [0..<5000])
        // Nothing is lost by what is there already.
        self.store(content, 1000..<2000, parts, in: store, portion: portion)
        #expect(runs(of: content, parts, in: store) == [0..<5000])
    }

    @Test func `what broke off is kept as far as it came`() {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let content = body(5000, seed: 2)
        let parts = PartsBody(sliceBytes: 1000)
        self.store(content, 500..<5000, upTo: 2250, parts, in: store)
        #expect(runs(of: content, parts, in: store) == [500..<2250])
        self.store(content, 2250..<5000, parts, in: store)
        #expect(runs(of: content, parts, in: store) == [500..<5000])
    }

    @Test func `more than was announced is not stored`() {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let content = body(3000, seed: 3)
        let parts = PartsBody(sliceBytes: 1000)
        let ticket = ticket(store, parts, 100..<1500)
        content[100..<3000].withUnsafeBytes { ticket.append($0) }
        ticket.close(isComplete: true)
        #expect(runs(of: content, parts, in: store) == [100..<1500])
    }

    @Test func `runs in any order leave no wrong byte`() {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        for seed in 0..<40 as Range<UInt64> {
            var random = SeededRandom(seed: seed)
            let content = body(4000, seed: Int(seed))
            let parts = PartsBody(sliceBytes: 1 + random.below(1500))
            for _ in 0..<12 {
                let start = random.below(4000)
                let end = start + 1 + random.below(4000 - start)
                let stop = random.below(3) == 0 ? start + random.below(end - start) : nil
                self.store(content, start..<end, upTo: stop, parts, in: store)
                _ = runs(of: content, parts, in: store)
                // Whatever was stored last is there.
                let last = start..<(stop ?? end)
                if stop == nil {
                    #expect(
                        runs(of: content, parts, in: store).contains {
                            $0.lowerBound <= last.lowerBound && $0.upperBound >= last.upperBound
                        })
                }
            }
        }
    }

    @Test func `slices survive in the database, and sets are apart`() {
        let content = body(300_000, seed: 4)
        let parts = PartsBody(sliceBytes: 100_000)
        var store = CacheStore(options: .small(folder)).ready()
        self.store(content, 50_000..<300_000, parts, in: store)
        store.flushNow()
        store.close()
        store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        #expect(runs(of: content, parts, in: store) == [50_000..<300_000])
        #expect(runs(of: content, PartsBody(sliceBytes: 100_000), in: store) == [])
    }

    @Test func `a run is joined near its end, and only while it lasts`() {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let parts = PartsBody(sliceBytes: 1 << 20)
        func join(_ offset: UInt64) -> (run: PartsUnderWay, isNew: Bool) {
            store.joinRun(of: parts, at: offset) { offset..<(20 << 20) }
        }
        let first = join(1000)
        #expect(first.isNew && first.run.range.lowerBound == 1000)
        #expect(join(1000).run === first.run && join(2000).run === first.run)
        // What was before it, and what comes much later, is asked for.
        let before = join(999)
        let later = join(6 << 20)
        #expect(before.isNew && later.isNew)
        store.abandonRun(before.run)
        store.abandonRun(later.run)
        let content = body(12 << 20, seed: 5)
        let ticket = ticket(store, parts, 1000..<(20 << 20), run: first.run)
        content.withUnsafeBytes { ticket.append($0) }
        // The beginning is no longer in memory.
        let again = join(1000)
        #expect(again.isNew)
        store.abandonRun(again.run)
        #expect(join(11 << 20).run === first.run)
        ticket.close(isComplete: false)
        let last = join(11 << 20)
        #expect(last.isNew)
        store.abandonRun(last.run)
    }

    @Test func `whoever receives a run waits for those who read it`() {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let body = BodyUnderWay(expectedCount: nil, budget: StoreBudget(limit: 64 << 20))
        let wakes = Locked(0)
        func isAhead() -> Bool {
            body.isAhead(by: 6 << 20) { wakes.withLock { $0 += 1 } }
        }
        func append(_ count: Int) {
            [UInt8](repeating: 1, count: count).withUnsafeBytes { body.append($0, from: nil) }
        }
        append(7 << 20)
        #expect(!isAhead(), "nobody reads it")
        body.join()
        #expect(isAhead())
        _ = body.part(at: 4 << 20) {}
        #expect(wakes.withLock { $0 } == 0)
        _ = body.part(at: 6 << 20) {}
        #expect(wakes.withLock { $0 } == 1)
        #expect(!isAhead())
        append(6 << 20)
        #expect(isAhead())
        body.leave()
        #expect(wakes.withLock { $0 } == 2)
    }

    @Test func `what describes the parts is read as it was written, or is a set of its own`() {
        let parts = PartsBody(sliceBytes: 12_345)
        #expect(parts.bytes.withUnsafeBytes { PartsBody($0) } == parts)
        let tiny = PartsBody(sliceBytes: 1).bytes
        let huge = PartsBody(sliceBytes: .max).bytes
        for bytes in [[], [1], [UInt8](repeating: 0, count: 16), parts.bytes + [0], tiny, huge] {
            let read = bytes.withUnsafeBytes { PartsBody($0) }
            #expect(read != parts && read.sliceBytes == 1 << 20 && read.set != 0)
        }
        #expect(parts.slice(at: 12_344) == 0..<12_345)
        #expect(parts.slice(at: 12_345) == 12_345..<24_690)
        #expect(parts.slice(at: .max).upperBound == .max)
    }
}
