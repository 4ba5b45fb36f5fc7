import CLinux
import CachePolicy
import CacheTestSupport
import Clocks
import Foundation
import TestSupport
import Testing

@testable import CacheStore

/// `kill -9` in the middle of a storm of stores, ten times on one database.
@Suite("A process that is killed")
struct KillTests {
    private static let variable = "PINFOLD_STORM_FOLDER"
    /// Set if the database is to be handed over and taken back meanwhile.
    private static let handoverVariable = "PINFOLD_STORM_HANDOVER"
    private static let keys = 400

    private static let pool = body(2 << 20)

    /// A body that identifies itself, and whose every byte is derived from that.
    private static func content(_ key: Int, _ version: Int) -> [UInt8] {
        let size = [0, 300, 5000, 16_384, 40_000, 150_000, 1_200_000][(key &* version) % 7]
        let start = (key * 1009 + version * 97) % (pool.count - size)
        return Array("\(key) \(version)\n".utf8) + pool[start..<start + size]
    }

    /// Whether these bytes are some version of this key's content.
    private static func isIntact(_ bytes: [UInt8], _ key: Int) -> Bool {
        guard let end = bytes.firstIndex(of: 10) else { return false }
        let words = String(decoding: bytes[..<end], as: UTF8.self).split(separator: " ")
        guard words.count == 2, Int(words[0]) == key, let version = Int(words[1]) else {
            return false
        }
        return bytes == content(key, version)
    }

    private static func options(_ folder: String) -> CacheStoreOptions {
        var options = CacheStoreOptions.small()
        options.memoryBytes = 1 << 20
        // Small enough for evictions, replacements and checkpoints to be under way.
        options.diskBytes = 24 << 20
        options.checkpointBytes = 2 << 20
        options.folder = folder
        return options
    }

    /// Run by the other process: stores until it is killed. In an ordinary test run it is disabled.
    @Test(.enabled(if: ProcessInfo.processInfo.environment[variable] != nil))
    func `the storm continues until its process is killed`() {
        guard let folder = ProcessInfo.processInfo.environment[Self.variable] else { return }
        let store = CacheStore(options: Self.options(folder)).ready()
        var version = Int(Clock.monotonicNanoseconds() / 1_000_000)
        let handsOver = ProcessInfo.processInfo.environment[Self.handoverVariable] != nil
        while true {
            version += 1
            for key in 0..<Self.keys {
                let name = "http://storm/\(key)"
                if (key + version) % 31 == 0 {
                    store.drop(name)
                } else {
                    store.put(name, Self.content(key, version), piece: 30_000)
                }
                if handsOver, key % 40 == 0 { Self.handOverAndTakeBack(store) }
                if key % 20 == 0 { _ = store.loaded("http://storm/\((key * 7) % Self.keys)") }
            }
        }
    }

    private static func handOverAndTakeBack(_ store: CacheStore) {
        let answer = Handover<Bool>()
        store.handOverDisk(keepingLock: true) { handover in
            if case .lock(let descriptor) = handover { close(descriptor) }
            store.takeBackDisk { answer.give($0) }
        }
        _ = answer.take()
    }

    /// The process of a storm in a folder, once it has begun to store.
    private static func storm(
        in folder: TemporaryFolder, handsOver: Bool = false
    ) throws -> Command {
        var environment = [variable: folder.path]
        if handsOver { environment[handoverVariable] = "1" }
        let process = try Command(
            OwnTests.program, OwnTests.arguments(filter: "KillTests/.*the storm continues"),
            environment: ProcessInfo.processInfo.environment.merging(environment) { $1 })
        // What is handed over has an empty log.
        let begun = eventually {
            size(folder.database + "-wal") > 1 << 20 || handsOver && size(folder.database) > 1 << 20
        }
        #expect(begun, "the storm does not store")
        return process
    }

    @Test(.timeLimit(.minutes(30)), arguments: [false, true])
    func `after each of ten kills it starts, and every body it serves is whole`(
        handsOver: Bool
    ) throws {
        let folder = TemporaryFolder()
        var roundsThatServed = 0
        var generator = SeededRandom(seed: UInt64(truncatingIfNeeded: Clock.monotonicNanoseconds()))
        for round in 0..<10 {
            let process = try Self.storm(in: folder, handsOver: handsOver)
            // At a random moment among batches, checkpoints and removals.
            usleep(UInt32.random(in: 0..<500_000, using: &generator))
            kill(process.processIdentifier, SIGKILL)
            _ = process.wait()

            let log = EventLog()
            let store = CacheStore(options: Self.options(folder.path), onEvent: log.record).ready()
            #expect(store.statistics().diskState == .ready, "round \(round)")
            let served = Self.checkAll(store, "round \(round)")
            if served > 0 { roundsThatServed += 1 }
            #expect(store.statistics().damagedEntries == 0)
            #expect(!log.contains { if case .setAside = $0 { true } else { false } })
            store.close()
        }
        // How much there is depends on how fast the machine stores.
        #expect(roundsThatServed > 5)
    }

    @Test(.timeLimit(.minutes(30)))
    func `every copy of its files, made at a random moment, opens and serves what is whole`()
        throws
    {
        let folder = TemporaryFolder()
        let process = try Self.storm(in: folder)
        defer {
            kill(process.processIdentifier, SIGKILL)
            _ = process.wait()
        }
        var generator = SeededRandom(seed: UInt64(truncatingIfNeeded: Clock.monotonicNanoseconds()))
        var served = 0
        for round in 0..<15 {
            usleep(UInt32.random(in: 0..<200_000, using: &generator))
            // While it stands still between two system calls, its files are those of a killed one.
            kill(process.processIdentifier, SIGSTOP)
            let hasStopped = eventually { Self.isStopped(process.processIdentifier) }
            #expect(hasStopped)
            let copy = TemporaryFolder()
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(
                    atPath: folder.database + suffix, toPath: copy.database + suffix)
            }
            kill(process.processIdentifier, SIGCONT)
            let log = EventLog()
            let store = CacheStore(options: Self.options(copy.path), onEvent: log.record).ready()
            #expect(store.statistics().diskState == .ready, "round \(round)")
            served += Self.checkAll(store, "round \(round)")
            #expect(store.statistics().damagedEntries == 0)
            #expect(!log.contains { if case .setAside = $0 { true } else { false } })
            store.close()
            let database = try Database(
                path: copy.database, create: false, busyMilliseconds: 5000)
            #expect(try database.text("PRAGMA integrity_check") == "ok")
            database.close()
        }
        #expect(served > 100)
    }

    /// Whether all threads of a process stand still.
    private static func isStopped(_ process: pid_t) -> Bool {
        let tasks = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return !threads.isEmpty
            && threads.allSatisfy { thread in
                let state = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8)
                return state?.contains(") T ") ?? true
            }
    }

    /// Checks whatever a store has; returns how much that is.
    private static func checkAll(_ store: CacheStore, _ what: String) -> Int {
        var served = 0
        for key in 0..<keys {
            for response in store.loaded("http://storm/\(key)") {
                guard let bytes = store.bytes(response) else {
                    Issue.record("a chunk is missing: \(what)")
                    continue
                }
                #expect([UInt8](response.head) == head())
                #expect(isIntact(bytes, key), "damaged: \(what)")
                served += 1
            }
        }
        return served
    }

    private static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
