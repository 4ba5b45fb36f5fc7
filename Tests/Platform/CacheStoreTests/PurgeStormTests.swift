import CachePolicy
import CacheTestSupport
import Foundation
import HTTPCore
import Locking
import Synchronization
import TestSupport
import Testing

@testable import CacheStore

/// Purges while others store, confirm and look up the same: what a purge was about is found by
/// nothing that begins after it has returned.
@Suite("Purges among stores, confirmations and lookups")
struct PurgeStormTests {
    private static let keys = 24
    private static func url(_ key: Int) -> String { "http://h/p/\(key)" }

    /// What the threads share.
    private final class Storm: Sendable {
        let versions = Atomic<Int>(0)
        let isOver = Atomic<Bool>(false)
        let writers = DispatchGroup()

        var version: Int { versions.load(ordering: .sequentiallyConsistent) }
    }

    /// The version that the tag in a response's head says.
    private static func version(_ response: CachedResponse) -> Int {
        let head = String(decoding: response.head, as: UTF8.self)
        return head.split(separator: "\"").dropFirst().first.flatMap { Int($0) } ?? -1
    }

    /// Stores, and confirms what it has stored, until it is over.
    /// - Parameter confirms: `false` if what is found as stale must not become fresh again.
    private static func write(
        _ store: CacheStore, _ storm: Storm, seed: UInt64, confirms: Bool
    ) {
        var generator = SeededRandom(seed: seed)
        while !storm.isOver.load(ordering: .relaxed) {
            let key = Int.random(in: 0..<keys, using: &generator)
            let name = url(key)
            // In this order: of a version that a purge may not leave, the request was sent before.
            let flight = store.flight(name)
            let version = storm.versions.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
            let found = store.inMemory(name).first
            let head = head("\(version)", extra: "Cache-Tag: a, t\(key % 3)\r\n")
            head.withUnsafeBytes { bytes in
                if confirms, let found, key % 4 == 0 {
                    // Confirms with the version that is confirmed.
                    let old = [UInt8](found.head)
                    old.withUnsafeBytes {
                        _ = try? store.update(
                            found, vary: .none, head: $0, metadata: metadata(old), policy: 0)
                    }
                    return store.endFlight(flight)
                }
                let content = body([30, 40_000, 90_000][key % 3])
                let ticket = store.key(name) { view in
                    try? store.beginStore(
                        key: view, vary: .none, head: bytes, metadata: metadata(head),
                        expectedLength: UInt64(content.count), flight: flight)
                }
                _ = content.withUnsafeBytes { ticket?.append($0) }
                _ = ticket?.finish()
            }
        }
    }

    private static let scopes: [Purge.Scope] = [
        .tag(Array("a".utf8)), .prefix(Array("http://h/p/".utf8)),
        .keys((0..<keys).map { CacheKey(bytes: Array(url($0).utf8)) }), .everything,
    ]

    @Test(.timeLimit(.minutes(30)), arguments: [false, true], [false, true])
    func `leave nothing of before, in no tier`(onDisk: Bool, isSoft: Bool) throws {
        let folder = TemporaryFolder()
        var options = CacheStoreOptions.small(onDisk ? folder : nil)
        // So that responses come and go between the tiers.
        options.memoryBytes = 300_000
        options.memoryShards = 4
        let store = CacheStore(options: options).ready()
        defer { store.close() }
        let storm = Storm()
        for number in 1...2 {
            storm.writers.enter()
            Thread.detachNewThread {
                Self.write(store, storm, seed: UInt64(number), confirms: !isSoft)
                storm.writers.leave()
            }
        }
        var seen = 0
        for round in 0..<60 {
            let before = storm.version
            let now = testTimes.responseTime + Int64(round)
            let purge = Purge(Self.scopes[round % 4], isSoft: isSoft)
            _ = try store.purge(purge, now: now)
            // At once, and when others have been stored.
            for isLater in [false, true] {
                if isLater {
                    let goesOn = eventually { storm.version > before + 20 }
                    #expect(goesOn)
                }
                for key in 0..<Self.keys {
                    let found = store.inMemory(Self.url(key)) + store.loaded(Self.url(key))
                    seen += found.count
                    for response in found where Self.version(response) <= before {
                        let isAllowed = isSoft && !response.metadata.isFresh(at: now)
                        #expect(isAllowed, "\(round): \(Self.version(response)) after \(before)")
                    }
                }
            }
        }
        storm.isOver.store(true, ordering: .relaxed)
        storm.writers.wait()
        #expect(seen > 0)
        store.flushNow()
        #expect(store.memory.flightCount == 0)
        // Nothing holds a ban for ever.
        let isDone = eventually { !store.bans.isInForce }
        #expect(isDone || !onDisk)
    }

    @Test func `much in memory is hidden at once, and removed by and by`() throws {
        var options = CacheStoreOptions.small()
        options.memoryBytes = 64 << 20
        let store = CacheStore(options: options)
        defer { store.close() }
        let count = 8000
        for number in 0..<count {
            store.put("http://a/\(number)", body(10), lines: "Cache-Tag: t\(number % 2)\r\n")
        }
        let receipt = try store.purge(Purge(.tag(Array("t1".utf8))), now: 1)
        for number in 0..<count {
            #expect(store.inMemory("http://a/\(number)").count == (number + 1) % 2)
        }
        let isComplete = eventually { store.purgeProgress(receipt.id)?.isComplete == true }
        #expect(isComplete)
        #expect(store.purgeProgress(receipt.id)?.memoryEntries == count / 2)
        #expect(store.statistics().memoryEntries == count / 2)
        let isDone = eventually { store.disk.attention.load(ordering: .relaxed) == 0 }
        #expect(isDone)
    }

    @Test func `slices of what was purged are not those of what is stored after it`() throws {
        let store = CacheStore(options: .small())
        defer { store.close() }
        let key = CacheKey(bytes: Array("http://a/film".utf8))
        let head = head(extra: "Cache-Tag: red\r\n")
        let times = StoredTimes(requestTime: 0, responseTime: 0, initialAge: 0)
        func publish(_ parts: PartsBody, _ flight: StoreFlight?) throws {
            try store.key("http://a/film") { view in
                try head.withUnsafeBytes {
                    try store.publish(
                        parts, key: view, vary: .none, head: $0, metadata: metadata(head),
                        policy: 0, flight: flight)
                }
            }
        }
        let parts = PartsBody(sliceBytes: 100)
        try publish(parts, nil)
        let ticket = store.beginParts(
            parts, of: key, range: 0..<250, run: nil, times: times, options: PolicyOptions())
        body(250).withUnsafeBytes { ticket.append($0) }
        ticket.close(isComplete: true)
        func hasSlice(_ offset: UInt64) -> Bool {
            if case .inMemory = store.slice(of: parts, key: key, at: offset) { true } else { false }
        }
        #expect([0, 100, 200].allSatisfy(hasSlice))
        let stored = try #require(store.inMemory("http://a/film").first)
        #expect(store.isCurrent(stored))
        let flight = store.flight("http://a/film")
        _ = try store.purge(Purge(.tag(Array("red".utf8))), now: 1)
        // Whoever would go on with its set, or has asked before, may not.
        #expect(!store.isCurrent(stored))
        #expect(throws: StoreRefusalReason.invalidated) { try publish(parts, flight) }
        #expect(store.inMemory("http://a/film").isEmpty)
        _ = try store.purge(Purge(.prefix(Array("http://a/f".utf8))), now: 1)
        #expect(![0, 100, 200].contains(where: hasSlice))
    }
}
