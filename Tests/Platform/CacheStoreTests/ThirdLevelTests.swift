import CachePolicy
import CacheTestSupport
import Locking
import TestSupport
import Testing

@testable import CacheStore

/// A third level is an addition: `RemoteLevel` below memory and disk, slow, full, stopped and away.
@Suite("A third level of the cache")
struct ThirdLevelTests {
    private let folder = TemporaryFolder()
    private let server = RemoteServer()

    /// A store with memory, a disk and the third level, or without the disk.
    private func open(
        hasDisk: Bool = true, _ change: (inout CacheStoreOptions) -> Void = { _ in }
    ) -> (store: CacheStore, remote: RemoteLevel) {
        var options = CacheStoreOptions.small(hasDisk ? folder : nil)
        change(&options)
        let remote = RemoteLevel(server)
        return (CacheStore(options: options, below: [remote]).ready(), remote)
    }

    /// Asks the levels below memory for a key in any variant; the answer comes later.
    private func ask(_ store: CacheStore, _ url: String) -> Handover<LoadResult> {
        let answer = Handover<LoadResult>()
        #expect(store.key(url) { store.load($0, policy: PolicyOptions()) { answer.give($0) } })
        return answer
    }

    @Test func `is asked only for what neither memory nor the disk has`() throws {
        let first = open().store
        first.put("http://a/", body(10))
        first.flushNow()
        var answered = server.answered
        #expect(first.foundBodies("http://a/") == [body(10)])
        #expect(server.answered == answered)
        first.close()
        // From the disk.
        let second = open().store
        answered = server.answered
        #expect(second.foundBodies("http://a/") == [body(10)])
        #expect(server.answered == answered)
        second.close()
        // From the third, once; then memory has it.
        let other = open(hasDisk: false).store
        #expect(other.foundBodies("http://a/") == [body(10)])
        answered = server.answered
        #expect(other.foundBodies("http://a/") == [body(10)])
        #expect(server.answered == answered)
        let levels = other.statistics().levels
        #expect(levels.map(\.name) == ["disk", "remote"])
        #expect(levels.map(\.state) == [.off, .ready])
        #expect(levels.map(\.hits) == [0, 1])
        other.close()
    }

    @Test func `passes to the disk what leaves memory`() {
        let first = open(hasDisk: false).store
        for number in 0..<10 { first.put("http://a/\(number)", body(20_000, seed: number)) }
        first.close()
        let store = open { $0.memoryBytes = 170_000 }.store
        for number in 0..<10 {
            #expect(store.foundBodies("http://a/\(number)") == [body(20_000, seed: number)])
        }
        #expect(store.inMemory("http://a/0").isEmpty)
        store.flushNow()
        #expect(store.key("http://a/0") { store.diskMayHold($0) })
        store.close()
    }

    @Test func `that is stopped holds nobody up`() {
        let store = open().store
        store.put("http://old/", body(10))
        store.flushNow()
        server.stop()
        // None of these calls waits for it.
        for number in 0..<50 {
            store.put("http://a/\(number)", body(1000, seed: number))
            #expect(store.foundBodies("http://a/\(number)") == [body(1000, seed: number)])
        }
        store.put("http://large/", body(400_000))
        store.drop("http://a/7")
        store.drop("http://old/")
        let answer = ask(store, "http://old/")
        _ = store.statistics()
        server.goOn()
        // It answers in the end, after the invalidation.
        guard case .nothing? = answer.take() else {
            Issue.record("found what was invalidated")
            return
        }
        store.flushNow()
        #expect(server.counts.values == 50)
        store.close()
    }

    @Test(arguments: ["invalidated", "replaced", "purged"])
    func `whose answer is overtaken by a change publishes nothing`(_ change: String) {
        let first = open(hasDisk: false).store
        first.put("http://a/", body(10, seed: 1))
        first.close()
        let store = open(hasDisk: false).store
        server.stop()
        let answer = ask(store, "http://a/")
        switch change {
        case "invalidated": store.drop("http://a/")
        case "replaced": store.put("http://a/", body(10, seed: 2))
        default: store.purgeAll()
        }
        server.goOn()
        guard case .nothing? = answer.take() else {
            Issue.record("published")
            return
        }
        let expected = change == "replaced" ? [body(10, seed: 2)] : []
        #expect(store.inMemory("http://a/").map { store.bytes($0) } == expected)
        #expect(store.foundBodies("http://a/") == expected)
        store.close()
    }

    @Test func `that is full is passed over, and forgets what it would have replaced`() {
        let remote = RemoteLevel(server, queueBytes: 50_000)
        let store = CacheStore(options: .small(), below: [remote])
        store.put("http://a/0", body(100))
        store.flushNow()
        server.stop()
        for number in 0..<10 {
            #expect(store.put("http://a/\(number)", body(20_000, seed: number)).refusal == nil)
        }
        // Two in the queue, and one that is being carried out.
        #expect(remote.statistics().skipped >= 7)
        server.goOn()
        store.flushNow()
        let next = open(hasDisk: false).store
        for number in 0..<10 {
            let found = next.foundBodies("http://a/\(number)")
            #expect(found == [] || found == [body(20_000, seed: number)])
        }
        next.close()
        store.close()
    }

    @Test func `that is away costs hits and no store, and brings nothing outdated back`() throws {
        let (store, remote) = open(hasDisk: false) { $0.memoryBytes = 400_000 }
        store.put("http://a/", body(10, seed: 1))
        store.put("http://b/", body(10, seed: 1))
        store.flushNow()
        server.stop()
        let answers = (0..<3).map { _ in ask(store, "http://c/") }
        remote.fail()
        server.goOn()
        // Every load is answered.
        for answer in answers {
            guard case .nothing? = answer.take() else {
                Issue.record("found")
                return
            }
        }
        #expect(remote.state == .off)
        #expect(store.foundBodies("http://a/") == [body(10, seed: 1)])
        store.put("http://a/", body(10, seed: 2))
        store.drop("http://b/")
        #expect(store.foundBodies("http://a/") == [body(10, seed: 2)])
        #expect(store.found("http://b/").isEmpty)
        // Too large for memory, and there is nothing else.
        #expect(store.put("http://large/", body(300_000)).refusal == .diskOff)
        remote.recover()
        store.flushNow()
        let next = open(hasDisk: false).store
        #expect(next.found("http://a/").isEmpty)
        #expect(next.found("http://b/").isEmpty)
        #expect(store.put("http://large/", body(300_000)).refusal == nil)
        #expect(store.foundBodies("http://large/") == [body(300_000)])
        next.close()
        store.close()
    }

    @Test(arguments: [false, true])
    func `receives a large body, beside the disk or alone`(hasDisk: Bool) {
        let store = open(hasDisk: hasDisk) {
            $0.memoryBytes = 0
            $0.wholeBodyBytes = 100_000
        }.store
        #expect(store.put("http://a/", body(700_000), piece: 50_000).refusal == nil)
        store.flushNow()
        #expect(server.counts == (1, 1))
        #expect(store.statistics().diskEntries == (hasDisk ? 1 : 0))
        #expect(store.foundBodies("http://a/") == [body(700_000)])
        let other = open(hasDisk: false).store
        #expect(other.foundBodies("http://a/") == [body(700_000)])
        other.close()
        store.drop("http://a/")
        store.flushNow()
        #expect(server.counts == (0, 0))
        store.close()
    }

    @Test(arguments: [300_000, 700_000])
    func `has nothing left of a body that was cut off, given up or refused`(
        _ size: Int
    ) throws {
        let store = open {
            $0.memoryBytes = 0
            $0.wholeBodyBytes = 100_000
        }.store
        for number in 0..<4 {
            let ticket = try store.begin("http://a/", length: UInt64(size))
            let part = body(number < 2 ? size - 1 : size)
            #expect(part.withUnsafeBytes { ticket.append($0) })
            switch number {
            case 0: ticket.abandon()
            case 1: #expect(ticket.finish().refusal == .lengthMismatch)
            case 2:
                store.drop("http://a/")
                #expect(ticket.finish().refusal == .invalidated)
            default: break
            }
        }
        store.flushNow()
        #expect(server.counts == (0, 0))
        #expect(store.statistics().diskEntries == 0)
        #expect(store.statistics().queueBytes == 0)
        store.close()
    }

    @Test func `that has no room for a large body leaves it to the disk`() {
        let remote = RemoteLevel(server, queueBytes: 50_000)
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 0
        options.wholeBodyBytes = 100_000
        let store = CacheStore(options: options, below: [remote]).ready()
        #expect(store.put("http://a/", body(700_000)).refusal == nil)
        store.flushNow()
        #expect(server.counts == (0, 0))
        #expect(store.foundBodies("http://a/") == [body(700_000)])
        store.close()
    }

    @Test func `confirms a body that it has, and forgets one that only the disk has`() throws {
        for hasDisk in [true, false] {
            let store = open(hasDisk: hasDisk) {
                $0.memoryBytes = 0
                $0.wholeBodyBytes = 100_000
            }.store
            store.put("http://a/", body(400_000))
            store.flushNow()
            let old = try #require(store.found("http://a/").first)
            let current = try store.confirm(old, policy: 3)
            #expect(store.bytes(current) == body(400_000))
            store.flushNow()
            #expect(server.counts.values == (hasDisk ? 0 : 1))
            store.close()
            let again = open(hasDisk: hasDisk).store
            #expect(again.found("http://a/").map(\.policy) == [3])
            #expect(again.foundBodies("http://a/") == [body(400_000)])
            again.close()
        }
    }

    @Test func `does what is left to do in order, after the lock`() {
        let done = Locked<[Int]>([])
        var work = LevelWork()
        work.perform()
        for number in 0..<4 { work.add { done.withLock { $0.append(number) } } }
        #expect(done.withLock { $0 } == [])
        work.perform()
        #expect(done.withLock { $0 } == [0, 1, 2, 3])
    }
}
