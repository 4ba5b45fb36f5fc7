import Foundation
import TestSupport
import Testing

@testable import Gateway

@Suite("Files that are watched")
struct WatchedFilesTests {
    private static func put(_ text: String, at path: String) throws {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    /// A set of two files that belong together, and a set of one.
    private static func looking(
        _ body: (_ sets: [[String]], _ looks: Looks) throws -> Void
    ) throws {
        let folder = TemporaryFolder()
        try withExtendedLifetime(folder) {
            let paths = ["a", "b", "c"].map { "\(folder.path)/\($0)" }
            for path in paths { try put("one", at: path) }
            let sets = [[paths[0], paths[1]], [paths[2]]]
            let looks = Looks()
            looks.watched.watch(sets)
            try body(sets, looks)
        }
    }

    /// Checks files, one second after the other.
    private final class Looks {
        var watched = WatchedFiles()
        var now: Int64 = 0
        /// The error of a set, by its first file.
        var faults: [String: [String]] = [:]
        var turns: [WatchedFiles.Turn] = []

        func change() -> WatchedFiles.Change? {
            now += Int64(WatchedFiles.intervalMilliseconds)
            return watched.change(at: now)
        }

        /// The sets that were read at the next check.
        func look() -> [[String]] {
            guard let change = change() else { return [] }
            let faults = faults
            turns += watched.note(change, at: now) { paths in
                faults[paths[0]].map { .unusable($0) } ?? .current
            }
            return change.sets
        }
    }

    @Test func `nothing watched has never changed`() {
        var watched = WatchedFiles()
        #expect(watched.isEmpty && watched.areUsable && watched.outcomes.isEmpty)
        for now in 0..<2 {
            let change = watched.change(at: Int64(now))
            #expect(change == nil)
        }
    }

    @Test func `files have changed when two looks find them alike and unlike before`() throws {
        try Self.looking { sets, looks in
            // Their state when they were read is unknown.
            #expect(looks.look() == [])
            #expect(looks.look() == sets)
            #expect(looks.look() == [])
            try Self.put("two", at: sets[0][0])
            #expect(looks.look() == [])
            // Its key is written later than the certificate.
            try Self.put("two", at: sets[0][1])
            #expect(looks.look() == [])
            #expect(looks.look() == [sets[0]])
            #expect(looks.look() == [])
            try FileManager.default.removeItem(atPath: sets[1][0])
            #expect(looks.look() == [])
            #expect(looks.look() == [sets[1]])
            #expect(looks.look() == [])
        }
    }

    @Test func `a file that keeps changing does not keep others from being read`() throws {
        try Self.looking { sets, looks in
            for _ in 0..<2 { _ = looks.look() }
            try Self.put("two", at: sets[1][0])
            var read: [[[String]]] = []
            for turn in 0..<4 {
                try Self.put("\(turn)", at: sets[0][0])
                read.append(looks.look())
            }
            #expect(read == [[], [sets[1]], [], []])
            #expect(looks.look() == [sets[0]])
        }
    }

    @Test func `a file that changes all the time is still read at intervals`() throws {
        try Self.looking { sets, looks in
            for _ in 0..<2 { _ = looks.look() }
            var read: [Int] = []
            for turn in 1...25 {
                try Self.put("\(turn)", at: sets[1][0])
                if looks.look() == [sets[1]] { read.append(turn) }
            }
            #expect(read == [10, 20])
            #expect(looks.look() == [sets[1]])
        }
    }

    @Test func `unusable files are retried less and less often`() throws {
        try Self.looking { sets, looks in
            looks.faults = [sets[1][0]: ["broken"]]
            #expect(looks.look() == [])
            #expect(looks.look() == sets)
            var pauses: [Int64] = []
            var last = looks.now
            while pauses.count < 9 {
                let read = looks.look()
                if read.isEmpty { continue }
                #expect(read == [sets[1]])
                pauses.append((looks.now - last) / 1000)
                last = looks.now
            }
            #expect(pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60])
            // It is reported once, and counted once.
            #expect(
                looks.turns == [
                    WatchedFiles.Turn(paths: sets[1], reasons: ["broken"], isRestored: false)
                ])
            #expect(looks.watched.unusableCount == 1)
            // Changed files are read at once, and their delays start over.
            try Self.put("two", at: sets[1][0])
            #expect(looks.look() == [])
            #expect(looks.look() == [sets[1]])
            #expect(looks.look() == [sets[1]])
            #expect(looks.look() == [])
            #expect(looks.look() == [sets[1]])
            #expect(looks.watched.unusableCount == 2)
            #expect(looks.turns.count == 1)
        }
    }

    @Test func `files that are reread unchanged are marked as a retry`() throws {
        try Self.looking { sets, looks in
            #expect(looks.change() == nil)
            let first = try #require(looks.change())
            #expect(first == .init(sets: sets, isRetry: false))
            _ = looks.watched.note(first, at: looks.now) { _ in .unusable(["broken"]) }
            #expect(looks.change() == .init(sets: sets, isRetry: true))
            try Self.put("two", at: sets[0][0])
            #expect(looks.change() == .init(sets: [sets[1]], isRetry: true))
            #expect(looks.change() == .init(sets: sets, isRetry: false))
        }
    }

    @Test func `each change of the error is reported once`() throws {
        try Self.looking { sets, looks in
            func turn(_ reasons: [String]) -> WatchedFiles.Turn {
                .init(paths: sets[1], reasons: reasons, isRestored: reasons.isEmpty)
            }
            for _ in 0..<2 { _ = looks.look() }
            #expect(looks.turns.isEmpty)
            let found = [["broken"], ["broken", "worse"], ["worse"], [], ["broken"], []]
            for (number, faults) in found.enumerated() {
                looks.faults = faults.isEmpty ? [:] : [sets[1][0]: faults]
                try Self.put("\(number)", at: sets[1][0])
                for _ in 0..<4 { _ = looks.look() }
                #expect(looks.watched.areUsable == faults.isEmpty)
            }
            #expect(
                looks.turns == [
                    turn(["broken"]), turn(["worse"]), turn([]), turn(["broken"]), turn([]),
                ])
        }
    }

    @Test func `a file in several sets is reported with the worst outcome`() throws {
        let folder = TemporaryFolder()
        try withExtendedLifetime(folder) {
            let paths = ["a", "b", "c"].map { "\(folder.path)/\($0)" }
            var watched = WatchedFiles()
            watched.watch([[paths[0], paths[1]], [paths[0], paths[2]], [paths[2]]])
            _ = watched.change(at: 1000)
            let second = watched.change(at: 2000)
            let change = try #require(second)
            _ = watched.note(change, at: 2000) { paths in
                paths.count == 1 ? .outdated : paths[1].hasSuffix("c") ? .unusable(["x"]) : .current
            }
            #expect(watched.outcomes.map(\.path) == paths)
            let outcomes = watched.outcomes.map(\.outcome)
            #expect(outcomes == [.unusable(["x"]), .current, .unusable(["x"])])
        }
    }

    @Test func `a file that is again as it was loaded is read once more`() throws {
        try Self.looking { sets, looks in
            let path = sets[1][0]
            let target = path + ".target"
            try FileManager.default.moveItem(atPath: path, toPath: target)
            let link = { (to: String) in
                try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: to)
            }
            try link(target)
            #expect(looks.look() == [])
            #expect(looks.look() == sets)
            try FileManager.default.removeItem(atPath: path)
            looks.faults = [path: ["gone"]]
            #expect(looks.look() == [])
            #expect(looks.look() == [sets[1]])
            looks.faults = [:]
            try link(target)
            #expect(looks.look() == [])
            #expect(looks.look() == [sets[1]])
            #expect(looks.turns.map(\.isRestored) == [false, true])
        }
    }
}
