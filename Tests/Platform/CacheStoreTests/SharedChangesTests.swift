import CLinux
import CachePolicy
import CacheTestSupport
import Dispatch
import Foundation
import Locking
import TestSupport
import Testing

@testable import CacheStore

/// What is invalidated in one of two stores that use a folder together is found in neither.
@Suite("Changes that stores of one folder share")
struct SharedChangesTests: HandsOver {
    let folder = TemporaryFolder()
    let log = EventLog()

    @Test func `what is invalidated in one is invalidated in the other`() throws {
        let first = open { $0.memoryBytes = 4 << 20 }
        for number in 0..<6 { first.put("http://a/\(number)", body(2000, seed: number)) }
        #expect(handOver(first) == .released)
        // Before there is another.
        first.drop("http://a/0")
        #expect(first.loaded("http://a/0").isEmpty)
        let second = open { $0.memoryBytes = 4 << 20 }
        #expect(second.loaded("http://a/0").isEmpty)
        #expect(second.loaded("http://a/1").count == 1)
        #expect(second.inMemory("http://a/1").count == 1)
        let flight = second.flight("http://a/1")
        first.drop("http://a/1")
        #expect(second.inMemory("http://a/1").isEmpty)
        #expect(second.loaded("http://a/1").isEmpty)
        // A response to an earlier request is not stored.
        #expect(throws: StoreRefusalReason.invalidated) {
            _ = try second.begin("http://a/1", length: 10, flight: flight)
        }
        second.drop("http://a/2")
        #expect(first.inMemory("http://a/2").isEmpty)
        #expect(first.loaded("http://a/2").isEmpty)
        let response = try #require(first.inMemory("http://a/3").first)
        first.remove(response)
        #expect(second.inMemory("http://a/3").isEmpty)
        #expect(second.loaded("http://a/3").isEmpty)
        // Replaced by what will not be on disk.
        first.put("http://a/4", body(2000, seed: 44))
        #expect(second.inMemory("http://a/4").isEmpty)
        #expect(second.loaded("http://a/4").isEmpty)
        #expect(second.loaded("http://a/5").count == 1)
        first.purgeAll()
        #expect(second.inMemory("http://a/5").isEmpty)
        #expect(second.loaded("http://a/5").isEmpty)
        second.put("http://b/", body(10))
        #expect(second.loaded("http://b/").count == 1)
        first.close()
        #expect(eventually(isSole))
        second.close()
        let third = open()
        #expect(third.loaded("http://b/").count == 1)
        #expect(third.statistics().diskEntries == 1)
        third.close()
    }

    @Test func `what is invalidated when nobody else is there stays so`() {
        let first = open()
        first.put("http://a/", body(10))
        first.put("http://b/", body(10))
        #expect(handOver(first) == .released)
        first.drop("http://a/")
        first.close()
        let second = open()
        #expect(second.loaded("http://a/").isEmpty)
        #expect(second.loaded("http://b/").count == 1)
        #expect(!FileManager.default.fileExists(atPath: changes))
        second.close()
    }

    @Test func `a successor that is killed takes no invalidation with it`() throws {
        let first = open { $0.memoryBytes = 4 << 20 }
        for number in 0..<3 { first.put("http://a/\(number)", body(2000, seed: number)) }
        first.flushNow()
        #expect(handOver(first) == .released)
        // What a successor appends that is killed before its rows are written.
        let log = try #require(ChangeLog.open(changes, process: 1))
        log.append(Array("http://a/0".utf8))
        #expect(first.inMemory("http://a/0").isEmpty)
        #expect(first.loaded("http://a/0").isEmpty)
        first.drop("http://a/1")
        #expect(takeBack(first) == true)
        // Its rows are still there when the index is read again.
        #expect(first.loaded("http://a/0").isEmpty)
        #expect(first.loaded("http://a/1").isEmpty)
        #expect(first.loaded("http://a/2").count == 1)
        #expect(eventually(isSole))
        #expect(!FileManager.default.fileExists(atPath: changes))
        first.close()
        let second = open()
        #expect(second.loaded("http://a/0").isEmpty)
        #expect(second.loaded("http://a/1").isEmpty)
        #expect(second.loaded("http://a/2").count == 1)
        second.close()
    }

    @Test(arguments: ["truncated", "removed", "overwritten"])
    func `a log of changes that somebody has damaged stands for all changes`(_ how: String) throws {
        let first = open { $0.memoryBytes = 4 << 20 }
        first.put("http://a/", body(2000))
        #expect(handOver(first) == .released)
        switch how {
        case "truncated": #expect(truncate(changes, 3) == 0)
        case "removed": #expect(unlink(changes) == 0)
        default: try Data(repeating: 7, count: 1000).write(to: URL(fileURLWithPath: changes))
        }
        let second = open { $0.memoryBytes = 4 << 20 }
        #expect(second.statistics().diskState == .ready)
        #expect(second.loaded("http://a/").isEmpty)
        second.put("http://b/", body(2000))
        #expect(second.inMemory("http://b/").count == 1)
        if how != "removed" {
            first.drop("http://b/")
            #expect(second.inMemory("http://b/").isEmpty)
        }
        first.close()
        #expect(eventually(isSole))
        second.close()
    }

    @Test func `without a log of changes the database is not handed over`() throws {
        let first = open()
        first.put("http://a/", body(2000))
        first.flushNow()
        try FileManager.default.createDirectory(atPath: changes, withIntermediateDirectories: false)
        #expect(handOver(first, keepingLock: true) == .nothing)
        #expect(first.statistics().diskState == .ready)
        #expect(first.loaded("http://a/").count == 1)
        rmdir(changes)
        first.close()
    }

    @Test func `a hand-over that fails half way leaves no log when it is taken back`() {
        let first = open()
        first.put("http://a/", body(2000))
        first.flushNow()
        // It can be written, and cannot be opened again.
        #expect(rename(folder.database, folder.database + ".moved") == 0)
        #expect(mkdir(folder.database, 0o700) == 0)
        #expect(handOver(first, keepingLock: true) == .nothing)
        #expect(rmdir(folder.database) == 0)
        #expect(takeBack(first) == true)
        #expect(eventually { !FileManager.default.fileExists(atPath: changes) })
        first.put("http://b/", body(2000))
        first.flushNow()
        #expect(first.loaded("http://b/").count == 1)
        first.close()
    }

    @Test func `a store that only waits for the database leaves the log alone`() throws {
        let first = open()
        first.put("http://a/", body(2000))
        first.flushNow()
        let descriptor = try lock(of: handOver(first, keepingLock: true))
        let waiting = open { $0.retrySeconds = 60 }
        #expect(waiting.statistics().diskState == .off(.locked))
        #expect(handOver(waiting) == .nothing)
        waiting.close()
        first.drop("http://a/")
        let second = open(inheriting: descriptor)
        #expect(second.loaded("http://a/").isEmpty)
        first.close()
        second.close()
    }

    /// Each store hands over as soon as the one before has ended, perhaps while it takes the
    /// database for itself.
    @Test func `nothing that is dropped at any moment of many hand-overs comes back`() throws {
        let count = 200
        var store = open { $0.memoryBytes = 4 << 20 }
        for number in 0..<count { store.put("http://a/\(number)", body(500, seed: number)) }
        store.flushNow()
        var dropped = 0
        for round in 0..<12 {
            let dropping = store
            let range = round * 15..<(round + 1) * 15
            let group = DispatchGroup()
            DispatchQueue.global().async(group: group) {
                for number in range {
                    dropping.drop("http://a/\(number)")
                    usleep(useconds_t(round * 50))
                }
            }
            let descriptor = try lock(of: handOver(store, keepingLock: true))
            let next = open(inheriting: descriptor) { $0.memoryBytes = 4 << 20 }
            group.wait()
            dropped = range.upperBound
            for number in 0..<dropped where !next.loaded("http://a/\(number)").isEmpty {
                Issue.record("round \(round): \(number) is back")
            }
            store.close()
            if round % 3 == 2 { #expect(eventually(isSole)) }
            store = next
        }
        store.close()
        let last = open()
        for number in 0..<count {
            #expect(last.loaded("http://a/\(number)").isEmpty == (number < dropped))
        }
        last.close()
    }
}
