import CachePolicy
import CacheTestSupport
import Foundation
import Locking
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

/// Many threads on few keys, and the one promise: a lookup never finds anything older than what was
/// already correct when it began.
@Suite("Many threads on few keys")
struct StressTests {
    private static let keys = 12

    /// The oldest version of each key that may still be found, and whether all went well.
    private final class Floors: Sendable {
        private let floors = Locked([Int](repeating: 0, count: StressTests.keys))
        private let problems = Locked<[String]>([])
        func floor(_ key: Int) -> Int { floors.withLock { $0[key] } }
        func raise(_ key: Int, to version: Int) { floors.withLock { $0[key] = version } }
        func report(_ problem: String) { problems.withLock { $0.append(problem) } }
        var found: [String] { problems.withLock { $0 } }
    }

    private static func content(_ key: Int, _ version: Int) -> [UInt8] {
        let sizes = [40, 3000, 33_000, 90_000, 300_000]
        let text = Array("\(key) \(version)\n".utf8)
        return text + [UInt8](repeating: UInt8(version & 255), count: sizes[(key + version) % 5])
    }

    private static func check(
        _ store: CacheStore, _ response: CachedResponse, _ key: Int, atLeast floor: Int,
        _ floors: Floors, _ from: String
    ) {
        // A body on disk may be gone by the time it is read, if the disk was given up: here it is
        // not.
        guard let bytes = store.bytes(response), let end = bytes.firstIndex(of: 10) else {
            return floors.report("\(from): no body")
        }
        let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
        guard words.count == 2, Int(words[0]) == key, let version = Int(words[1]) else {
            return floors.report("\(from): another key's body")
        }
        if bytes != content(key, version) { floors.report("\(from): damaged body") }
        if version < floor { floors.report("\(from): version \(version) after \(floor)") }
    }

    /// Stores, updates and invalidates this thread's keys.
    private static func write(
        _ store: CacheStore, _ floors: Floors, thread: Int, of threads: Int, rounds: Int
    ) {
        var generator = SeededRandom(seed: UInt64(thread))
        for version in 1...rounds {
            for key in stride(from: thread, to: keys, by: threads) {
                let name = "http://a/\(key)"
                if Int.random(in: 0..<6, using: &generator) == 0 {
                    store.drop(name)
                    floors.raise(key, to: version + 1)
                    continue
                }
                let outcome = store.put(name, content(key, version), piece: 20_000)
                switch outcome {
                case .stored, .storedOnDisk: floors.raise(key, to: version)
                case .refused(.queueFull):
                    // What was there before stays.
                    store.flushNow()
                case .refused(.invalidated):
                    // Another key with the same counter was invalidated. What was there stays.
                    break
                case .refused(let reason): floors.report("refused: \(reason)")
                }
            }
        }
    }

    /// Looks up everything there is.
    private static func read(
        _ store: CacheStore, _ floors: Floors, thread: Int, until isOver: borrowing Atomic<Bool>
    ) {
        var generator = SeededRandom(seed: UInt64(1000 + thread))
        while !isOver.load(ordering: .relaxed) {
            let key = Int.random(in: 0..<keys, using: &generator)
            let name = "http://a/\(key)"
            let floor = floors.floor(key)
            let found = store.inMemory(name)
            for response in found {
                check(store, response, key, atLeast: floor, floors, "memory")
            }
            guard found.isEmpty else { continue }
            let before = floors.floor(key)
            for response in store.loaded(name) {
                check(store, response, key, atLeast: before, floors, "below memory")
            }
        }
    }

    @Test(arguments: [false, true])
    func `nothing that was replaced or invalidated is found again, by any thread`(
        hasThirdLevel: Bool
    ) {
        let folder = TemporaryFolder()
        var options = CacheStoreOptions.small(folder)
        options.memoryBytes = 1 << 20
        options.memoryShards = 4
        options.wholeBodyBytes = 100_000
        options.diskBytes = 2 << 20
        options.checkpointBytes = 1 << 20
        let server = RemoteServer(delayMicroseconds: 20)
        func open() -> CacheStore {
            CacheStore(options: options, below: hasThirdLevel ? [RemoteLevel(server)] : []).ready()
        }
        let store = open()
        let floors = Floors()
        final class Flag: Sendable { let isOver = Atomic<Bool>(false) }
        let flag = Flag()
        let writers = DispatchGroup()
        let readers = DispatchGroup()
        for thread in 0..<2 {
            Thread.detach(in: writers) {
                Self.write(store, floors, thread: thread, of: 2, rounds: 150)
            }
        }
        for thread in 0..<3 {
            Thread.detach(in: readers) {
                Self.read(store, floors, thread: thread, until: flag.isOver)
            }
        }
        Thread.detach(in: readers) {
            while !flag.isOver.load(ordering: .relaxed) {
                _ = store.statistics()
                usleep(1000)
            }
        }
        writers.wait()
        flag.isOver.store(true, ordering: .relaxed)
        readers.wait()
        #expect(floors.found == [])
        // And the same is true of what the next process finds.
        store.close()
        let again = open()
        for key in 0..<Self.keys {
            for response in again.loaded("http://a/\(key)") {
                Self.check(again, response, key, atLeast: floors.floor(key), floors, "restart")
            }
        }
        #expect(floors.found == [])
        #expect(again.statistics().damagedEntries == 0)
        again.close()
    }

    @Test func `opening, using, purging and closing at the same time ends well`() {
        let folder = TemporaryFolder()
        for round in 0..<8 {
            let store = CacheStore(options: .small(folder))
            let group = DispatchGroup()
            for thread in 0..<3 {
                Thread.detach(in: group) {
                    for number in 0..<40 {
                        store.put("http://a/\(number)", body(3000, seed: number))
                        _ = store.inMemory("http://a/\(number - 5)")
                        _ = store.loaded("http://a/\(number - 9)")
                        if thread == 1, number % 13 == 0 { store.purgeAll() }
                        if thread == 2, number == 20 + round { store.close() }
                    }
                }
            }
            group.wait()
            #expect(store.statistics().diskState == .off(.closed))
            #expect(store.statistics().queueBytes == 0)
        }
    }
}

extension Thread {
    /// Runs `body` on a separate thread, as a member of `group`.
    fileprivate static func detach(in group: DispatchGroup, _ body: @escaping @Sendable () -> Void)
    {
        group.enter()
        detachNewThread {
            body()
            group.leave()
        }
    }
}
