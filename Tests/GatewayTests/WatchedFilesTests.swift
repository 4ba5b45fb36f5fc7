import Foundation
import TestSupport
import Testing

@testable import Gateway

@Suite("Files that are watched")
struct WatchedFilesTests {
    private static func put(_ text: String, at path: String) throws {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    /// Two files, as `watched` has them, and what looks at them find.
    private static func looking(
        _ body: (_ paths: [String], _ watched: inout WatchedFiles) throws -> Void
    ) throws {
        let folder = TemporaryFolder()
        try withExtendedLifetime(folder) {
            let paths = ["a", "b"].map { "\(folder.path)/\($0)" }
            for path in paths { try put("one", at: path) }
            var watched = WatchedFiles()
            watched.watch(paths)
            try body(paths, &watched)
        }
    }

    @Test func `nothing watched has never changed`() {
        var watched = WatchedFiles()
        #expect(watched.isEmpty)
        for _ in 0..<2 {
            let change = watched.change()
            #expect(change == nil)
        }
    }

    @Test func `files have changed when two looks find them alike and unlike before`() throws {
        try Self.looking { paths, watched in
            func look(_ watched: inout WatchedFiles) -> [String]? {
                guard let change = watched.change() else { return nil }
                watched.takeUp(except: [])
                return change.paths
            }
            // What they were like when they were read is not known.
            #expect(look(&watched) == nil)
            #expect(look(&watched) == paths)
            #expect(look(&watched) == nil)
            try Self.put("two", at: paths[0])
            #expect(look(&watched) == nil)
            // The second file is written later than the first.
            try Self.put("two", at: paths[1])
            #expect(look(&watched) == nil)
            #expect(look(&watched) == paths)
            #expect(look(&watched) == nil)
            try FileManager.default.removeItem(atPath: paths[0])
            #expect(look(&watched) == nil)
            #expect(look(&watched) == [paths[0]])
            #expect(look(&watched) == nil)
        }
    }

    @Test func `what was not taken up is told again until it is`() throws {
        try Self.looking { paths, watched in
            #expect(watched.change() == nil)
            #expect(watched.change() == .init(paths: paths, isRetry: false))
            watched.takeUp(except: [paths[1]])
            // Nothing has changed on disk: reading it may have failed for another reason.
            for _ in 0..<2 {
                #expect(watched.change() == .init(paths: [paths[1]], isRetry: true))
                watched.takeUp(except: [paths[1]])
            }
            try Self.put("two", at: paths[1])
            #expect(watched.change() == nil)
            #expect(watched.change() == .init(paths: [paths[1]], isRetry: false))
            watched.takeUp(except: [])
            #expect(watched.change() == nil)
        }
    }

    @Test func `a file that is again as it was taken up is read once more`() throws {
        try Self.looking { paths, watched in
            let target = paths[0] + ".target"
            try FileManager.default.moveItem(atPath: paths[0], toPath: target)
            let link = { (to: String) in
                try FileManager.default.createSymbolicLink(
                    atPath: paths[0], withDestinationPath: to)
            }
            try link(target)
            #expect(watched.change() == nil)
            #expect(watched.change() != nil)
            watched.takeUp(except: [])
            try FileManager.default.removeItem(atPath: paths[0])
            #expect(watched.change() == nil)
            #expect(watched.change() == .init(paths: [paths[0]], isRetry: false))
            watched.takeUp(except: [paths[0]])
            try link(target)
            #expect(watched.change() == nil)
            #expect(watched.change() == .init(paths: [paths[0]], isRetry: false))
        }
    }
}
