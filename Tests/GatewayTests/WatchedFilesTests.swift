import Foundation
import TestSupport
import Testing

@testable import Gateway

@Suite("Files that are watched")
struct WatchedFilesTests {
    private static func put(_ text: String, at path: String) throws {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    @Test func `nothing watched has never changed`() {
        var watched = WatchedFiles()
        #expect(watched.isEmpty)
        let changed = watched.haveChanged()
        #expect(!changed)
    }

    @Test func `files have changed when two looks find them alike and unlike before`() throws {
        let folder = TemporaryFolder()
        try withExtendedLifetime(folder) {
            let paths = ["a", "b"].map { "\(folder.path)/\($0)" }
            for path in paths { try Self.put("one", at: path) }
            var watched = WatchedFiles()
            watched.watch(paths)
            func look() -> Bool { watched.haveChanged() }
            // What they were like when they were read is not known.
            #expect(!look())
            #expect(look())
            #expect(!look())
            try Self.put("two", at: paths[0])
            #expect(!look())
            // The second file is written later than the first.
            try Self.put("two", at: paths[1])
            #expect(!look())
            #expect(look())
            #expect(!look())
            try FileManager.default.removeItem(atPath: paths[0])
            #expect(!look())
            #expect(look())
            #expect(!look())
        }
    }
}
