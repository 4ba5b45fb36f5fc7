import CLinux
import CachePolicy
import CacheTestSupport
import Foundation
import Locking
import TestSupport
import Testing

@testable import CacheStore

/// A database passes from one store to the next while the first one still reads from it.
@Suite("A database that is handed over")
struct HandoverTests: HandsOver {
    let folder = TemporaryFolder()
    let log = EventLog()

    @Test(arguments: [false, true])
    func `the next store has what was stored, and the first one reads on`(_ isSent: Bool) throws {
        let first = open()
        for number in 0..<50 { first.put("http://a/\(number)", body(20_000, seed: number)) }
        first.put("http://a/large", body(3_000_000))
        first.flushNow()
        let large = try #require(first.loaded("http://a/large").first)
        // On its way to disk when it is handed over.
        first.put("http://a/last", body(100_000))
        let handover = handOver(first, keepingLock: isSent)
        #expect(isSent || handover == .released)
        #expect(first.statistics().diskState == .handedOver)

        let second = open(inheriting: isSent ? try lock(of: handover) : nil)
        #expect(second.statistics().diskState == .ready)
        #expect(log.contains { $0 == .sharing(true) })
        for store in [first, second] {
            for number in 0..<50 {
                #expect(has(store, "http://a/\(number)", body(20_000, seed: number)))
            }
            #expect(has(store, "http://a/last", body(100_000)))
        }
        // Only the next one writes.
        #expect(first.put("http://b/large", body(2_000_000)).refusal == .diskOff)
        second.put("http://b/large", body(2_000_000))
        second.flushNow()
        #expect(has(second, "http://b/large", body(2_000_000)))
        #expect(first.loaded("http://b/large").isEmpty)
        // What is read is kept, whatever becomes of its entry.
        second.put("http://a/large", body(2_500_000))
        second.flushNow()
        #expect(first.bytes(large) == body(3_000_000))
        #expect(has(second, "http://a/large", body(2_500_000)))

        first.close()
        #expect(eventually(isSole))
        #expect(has(second, "http://a/large", body(2_500_000)))
        #expect(!FileManager.default.fileExists(atPath: folder.database + "-shm"))
        // Nobody reads it any more.
        #expect(eventually { query(folder.database, "SELECT count(*) FROM incomplete") == 0 })
        let chunks = query(folder.database, "SELECT count(*) FROM chunk")
        #expect(eventually { query(folder.database, "SELECT count(*) FROM garbage") == 0 })
        let expected = [2_000_000, 2_500_000, 100_000].map { ($0 + 65_535) / 65_536 }
        #expect(
            eventually {
                query(folder.database, "SELECT count(*) FROM chunk")
                    == Int64(expected.reduce(0, +))
            }, "\(String(describing: chunks))")
        second.close()
        let third = open()
        #expect(third.statistics().damagedEntries == 0)
        #expect(has(third, "http://a/7", body(20_000, seed: 7)))
        third.close()
    }

    @Test func `a large body whose reading begins later is not promised, a small one is read`()
        throws
    {
        let first = open()
        first.put("http://a/large", body(3_000_000))
        first.put("http://a/small", body(300_000))
        first.flushNow()
        #expect(handOver(first) == .released)
        #expect(first.loaded("http://a/large").isEmpty)
        #expect(has(first, "http://a/small", body(300_000)))
        first.close()
    }

    @Test func `a body that is arriving is given up`() throws {
        let first = open()
        let ticket = try first.begin("http://a/", length: nil)
        let part = body(1_500_000)
        #expect(part.withUnsafeBytes { ticket.append($0) })
        #expect(handOver(first) == .released)
        #expect(!part.withUnsafeBytes { ticket.append($0) })
        #expect(ticket.refusal == .diskOff)
        let second = open()
        #expect(log.contains { $0 == .removedIncomplete(entries: 1) })
        #expect(second.loaded("http://a/").isEmpty)
        second.close()
        first.close()
    }

    @Test func `the lock is never free when it is sent`() throws {
        let first = open()
        let descriptor = try lock(of: handOver(first, keepingLock: true))
        let other = open()
        #expect(other.statistics().diskState == .off(.locked))
        let again = try lock(of: handOver(first, keepingLock: true))
        close(again)
        let second = open(inheriting: descriptor)
        #expect(second.statistics().diskState == .ready)
        first.close()
        #expect(eventually(isSole))
        #expect(other.statistics().diskState == .off(.locked))
        second.close()
        #expect(eventually { other.statistics().diskState == .ready })
        other.close()
    }

    @Test func `a store that waits for the lock has it at once`() {
        let first = open()
        first.put("http://a/", body(10))
        let second = open { $0.retrySeconds = 60 }
        #expect(second.statistics().diskState == .off(.locked))
        #expect(handOver(first) == .released)
        #expect(eventually { second.statistics().diskState == .ready })
        #expect(second.loaded("http://a/").count == 1)
        let attempts = log.all.count {
            if case .diskOff(.locked, _, _) = $0 { true } else { false }
        }
        #expect(attempts == 1)
        second.close()
        first.close()
    }

    @Test(arguments: [false, true])
    func `it is taken back as if nothing had happened`(_ isSent: Bool) throws {
        let first = open()
        for number in 0..<20 { first.put("http://a/\(number)", body(20_000, seed: number)) }
        first.put("http://a/large", body(3_000_000))
        first.flushNow()
        let large = try #require(first.loaded("http://a/large").first)
        let handover = handOver(first, keepingLock: isSent)
        first.put("http://a/memory", body(1000))
        first.drop("http://a/1")

        let second = open(inheriting: isSent ? try lock(of: handover) : nil)
        #expect(takeBack(first) == false)
        #expect(first.statistics().diskState == .handedOver)
        second.put("http://a/2", body(5000, seed: 99))
        second.put("http://a/large", body(2_000_000))
        second.drop("http://a/3")
        second.close()

        #expect(takeBack(first) == true)
        #expect(first.statistics().diskState == .ready)
        #expect(first.loaded("http://a/1").isEmpty)
        #expect(has(first, "http://a/2", body(5000, seed: 99)))
        #expect(first.loaded("http://a/3").isEmpty)
        #expect(has(first, "http://a/4", body(20_000, seed: 4)))
        #expect(first.bytes(large) == body(3_000_000))
        #expect(has(first, "http://a/large", body(2_000_000)))
        #expect(eventually(isSole))
        #expect(first.bytes(large) == body(3_000_000))
        first.put("http://a/new", body(100_000))
        first.flushNow()
        #expect(takeBack(first) == true)
        first.close()
        let third = open()
        #expect(has(third, "http://a/new", body(100_000)))
        // Stored while it was away.
        #expect(has(third, "http://a/memory", body(1000)))
        #expect(has(third, "http://a/4", body(20_000, seed: 4)))
        #expect(third.statistics().damagedEntries == 0)
        third.close()
    }

    @Test(arguments: [99, 1])
    func `a layout that is still read is neither set aside nor migrated`(_ version: Int) throws {
        let first = open()
        first.put("http://a/", body(300_000))
        first.flushNow()
        #expect(handOver(first) == .released)
        try execute(folder.database, "PRAGMA user_version=\(version)")
        let second = open()
        #expect(second.statistics().diskState == .off(.locked))
        #expect(has(first, "http://a/", body(300_000)))
        #expect(folder.names.filter { $0.contains("newer") }.isEmpty)
        // It fails: the first one goes on.
        second.close()
        try execute(folder.database, "PRAGMA user_version=\(Schema.steps.count)")
        #expect(takeBack(first) == true)
        #expect(has(first, "http://a/", body(300_000)))
        first.close()
    }

    @Test func `a newer layout is set aside as soon as nobody reads it`() throws {
        let first = open()
        #expect(handOver(first) == .released)
        try execute(folder.database, "PRAGMA user_version=99")
        let second = open()
        #expect(second.statistics().diskState == .off(.locked))
        first.close()
        #expect(eventually { second.statistics().diskState == .ready })
        #expect(log.contains { if case .setAside = $0 { true } else { false } })
        second.close()
    }

    @Test func `three stores in a row, of which all read`() throws {
        let first = open()
        first.put("http://a/1", body(3_000_000, seed: 1))
        first.flushNow()
        let one = try #require(first.loaded("http://a/1").first)
        #expect(handOver(first) == .released)
        let second = open()
        second.put("http://a/2", body(3_000_000, seed: 2))
        second.flushNow()
        let two = try #require(second.loaded("http://a/2").first)
        #expect(handOver(second) == .released)
        let third = open()
        third.put("http://a/1", body(10, seed: 3))
        third.put("http://a/2", body(10, seed: 4))
        third.flushNow()
        #expect(first.bytes(one) == body(3_000_000, seed: 1))
        #expect(second.bytes(two) == body(3_000_000, seed: 2))
        third.drop("http://a/2")
        #expect(second.inMemory("http://a/2").isEmpty)
        #expect(second.loaded("http://a/2").isEmpty)
        #expect(third.loaded("http://a/2").isEmpty)
        second.close()
        #expect(first.bytes(one) == body(3_000_000, seed: 1))
        first.close()
        #expect(eventually(isSole))
        #expect(eventually { query(folder.database, "SELECT count(*) FROM chunk") == 0 })
        third.close()
    }

    @Test func `what is off, closed or disabled is not handed over`() {
        let first = open()
        let second = open()
        #expect(handOver(second) == .nothing)
        #expect(takeBack(second) == false)
        first.close()
        #expect(handOver(first) == .nothing)
        #expect(takeBack(first) == false)
        #expect(eventually { takeBack(second) == true })
        second.close()
        let disabled = CacheStore(options: .small()).ready()
        #expect(handOver(disabled, keepingLock: true) == .nothing)
        disabled.close()
    }

    @Test func `a hundred times leave no descriptor and no row`() throws {
        var store = open()
        store.put("http://a/", body(300_000))
        store.put("http://a/large", body(2_000_000))
        store.flushNow()
        for round in 0..<100 {
            let large = store.loaded("http://a/large").first
            let descriptor = try lock(of: handOver(store, keepingLock: true))
            let next = open(inheriting: descriptor)
            #expect(large.flatMap { store.bytes($0) } == body(2_000_000), "round \(round)")
            store.close()
            store = next
            #expect(has(store, "http://a/", body(300_000)), "round \(round)")
        }
        #expect(eventually(isSole))
        #expect(eventually { query(folder.database, "SELECT count(*) FROM reading") == 0 })
        // The lock twice, the database of the writer and the readers, the log.
        let open = descriptors()
        #expect(open.count <= 7, "\(open)")
        #expect(query(folder.database, "SELECT count(*) FROM incomplete") == 0)
        store.close()
        #expect(descriptors().isEmpty, "\(descriptors())")
    }

    /// This process's descriptors of files in the folder.
    private func descriptors() -> [String] {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return numbers.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }.filter { $0.hasPrefix(folder.path) }
    }

    @Test func `stores and loads during it lose nothing`() throws {
        let first = open { $0.memoryBytes = 4 << 20 }
        for number in 0..<200 { first.put("http://a/\(number)", body(3000, seed: number)) }
        first.flushNow()
        let isOver = Locked(false)
        let wrong = Locked<[String]>([])
        let group = DispatchGroup()
        for seed in 0..<3 {
            group.enter()
            Thread.detachNewThread {
                var number = seed
                while !isOver.withLock({ $0 }) {
                    number += 1
                    let url = "http://a/\(number % 200)"
                    let found = first.loaded(url).first.flatMap { first.bytes($0) }
                    if found != body(3000, seed: number % 200) {
                        wrong.withLock { $0.append(url) }
                    }
                    first.put("http://b/\(number % 1000)", body(500))
                }
                group.leave()
            }
        }
        for _ in 0..<20 {
            _ = handOver(first)
            _ = takeBack(first)
        }
        isOver.withLock { $0 = true }
        group.wait()
        #expect(wrong.withLock { $0 }.isEmpty)
        first.close()
    }
}
