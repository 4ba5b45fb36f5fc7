import CLinux
import CachePolicy
import CacheTestSupport
import Clocks
import Foundation
import TestSupport
import Testing

@testable import CacheStore

/// `kill -9` while purges, stores, confirmations and slices are under way: nothing that was purged
/// comes back.
///
/// The process that is killed writes down, before and after each purge, which version its tag or
/// prefix has. Whatever the next one finds must be of a later version than the last purge that was
/// acknowledged.
@Suite("A process that is killed while it purges")
struct PurgeKillTests {
    private static let variable = "PINFOLD_PURGES_FOLDER"
    /// How often it is killed: more in `deploy/crash`.
    private static let roundsVariable = "PINFOLD_PURGES_ROUNDS"
    private static let groups = 8
    private static let keys = 12

    private static func options(_ folder: String) -> CacheStoreOptions {
        var options = CacheStoreOptions.small()
        options.memoryBytes = 512 << 10
        options.diskBytes = 32 << 20
        options.checkpointBytes = 1 << 20
        options.folder = folder
        return options
    }

    private static func url(_ group: Int, _ key: Int) -> String { "http://g\(group)/k\(key)" }

    /// Purges by tag, prefix, host and key in turn.
    private static func scope(_ group: Int, _ number: Int) -> Purge.Scope {
        switch number % 4 {
        case 0: .tag(Array("t\(group)".utf8))
        case 1: .prefix(Array("http://g\(group)/".utf8))
        case 2: (try? PurgeHost("g\(group)")).map { .host($0) } ?? .everything
        default: .keys((0..<keys).map { CacheKey(bytes: Array(url(group, $0).utf8)) })
        }
    }

    /// The path of a file of the versions that were purged with acknowledgement, 8 bytes for each
    /// group.
    private static func ledger(_ folder: String) -> String { folder + "/acknowledged" }

    /// Run by the other process, until it is killed.
    @Test(.enabled(if: ProcessInfo.processInfo.environment[variable] != nil))
    func `the purges continue until their process is killed`() throws {
        guard let folder = ProcessInfo.processInfo.environment[Self.variable] else { return }
        let store = CacheStore(options: Self.options(folder)).ready()
        let file = open_with_mode(Self.ledger(folder), O_RDWR | O_CREAT, 0o600)
        // Later than all of those before.
        var version = Int(Clock.monotonicNanoseconds() / 1000)
        while true {
            for group in 0..<Self.groups {
                version += 1
                let flight = store.flight(Self.url(group, 0))
                for key in 0..<Self.keys { Self.put(store, group, key, version) }
                Self.confirm(store, group, version)
                if version % 3 == 0 {
                    let scope = Self.scope(group, version / 3)
                    _ = try store.purge(Purge(scope), now: 1)
                    var acknowledged = Int64(version)
                    pwrite(file, &acknowledged, 8, off_t(group * 8))
                }
                // It was asked for before.
                Self.put(store, group, 0, version, flight)
            }
        }
    }

    private static func head(_ group: Int, _ version: Int) -> [UInt8] {
        CacheTestSupport.head("\(version)", extra: "Cache-Tag: all, t\(group)\r\n")
    }

    private static func put(
        _ store: CacheStore, _ group: Int, _ key: Int, _ version: Int, _ flight: StoreFlight? = nil
    ) {
        let head = head(group, version)
        // In its row, in chunks, and streamed.
        let content = body([200, 90_000, 1_200_000][key % 7 == 6 ? 2 : key % 5 == 4 ? 1 : 0])
        store.key(url(group, key)) { view in
            head.withUnsafeBytes { bytes in
                let ticket = try? store.beginStore(
                    key: view, vary: .none, head: bytes, metadata: metadata(head),
                    expectedLength: UInt64(content.count), flight: flight)
                _ = content.withUnsafeBytes { ticket?.append($0) }
                _ = ticket?.finish()
            }
        }
    }

    private static func confirm(_ store: CacheStore, _ group: Int, _ version: Int) {
        for response in store.inMemory(url(group, 1)) {
            let head = head(group, version)
            head.withUnsafeBytes {
                _ = try? store.update(
                    response, vary: .none, head: $0, metadata: metadata(head), policy: 0)
            }
        }
    }

    @Test(.timeLimit(.minutes(30)))
    func `nothing that was purged comes back`() throws {
        let rounds = ProcessInfo.processInfo.environment[Self.roundsVariable].flatMap(Int.init) ?? 8
        let folder = TemporaryFolder()
        var generator = SeededRandom(seed: UInt64(truncatingIfNeeded: Clock.monotonicNanoseconds()))
        var served = 0
        for round in 0..<rounds {
            let process = try Command(
                OwnTests.program,
                OwnTests.arguments(filter: "PurgeKillTests/.*the purges continue"),
                environment: ProcessInfo.processInfo.environment.merging(
                    [Self.variable: folder.path]
                ) { $1 })
            let before = Self.acknowledged(folder.path)
            let hasBegun = eventually { Self.acknowledged(folder.path) != before }
            #expect(hasBegun, "it purges nothing")
            usleep(UInt32.random(in: 0..<300_000, using: &generator))
            kill(process.processIdentifier, SIGKILL)
            _ = process.wait()
            let purged = Self.acknowledged(folder.path)
            let store = CacheStore(options: Self.options(folder.path)).ready()
            #expect(store.statistics().diskState == .ready, "round \(round)")
            for group in 0..<Self.groups {
                for key in 0..<Self.keys {
                    for response in store.loaded(Self.url(group, key)) {
                        let version = Self.version(response)
                        // Stored after it, or at least not purged by it.
                        #expect(version > purged[group], "round \(round): \(group) \(key)")
                        served += 1
                    }
                }
            }
            store.close()
        }
        #expect(served > 0)
    }

    private static func acknowledged(_ folder: String) -> [Int64] {
        var versions = [Int64](repeating: 0, count: groups)
        let file = open_with_mode(ledger(folder), O_RDONLY, 0)
        guard file >= 0 else { return versions }
        defer { close(file) }
        _ = pread(file, &versions, groups * 8, 0)
        return versions
    }

    private static func version(_ response: CachedResponse) -> Int64 {
        let head = String(decoding: response.head, as: UTF8.self)
        let tag = head.split(separator: "\"").dropFirst().first
        return tag.flatMap { Int64($0) } ?? 0
    }
}
