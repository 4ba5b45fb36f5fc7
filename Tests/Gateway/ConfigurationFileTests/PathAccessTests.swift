import Foundation
import Testing

@testable import Gateway

/// Permissions are not tested: root has them all.
@Suite("Paths that will be written")
struct PathAccessTests {
    private var looking: ConfigurationEnvironment {
        var environment = testEnvironment
        environment.looksAtPaths = true
        return environment
    }

    @Test func `a log that cannot be written is an error with its key`() throws {
        try withTemporaryFolder { folder in
            func problems(_ path: String) -> [String] {
                errors(
                    of: "cache: { path: . }\nlog: { access: { path: \(path) } }", folder: folder,
                    environment: looking)
            }
            try write("", to: "file", in: folder)
            try makeFolder("folder", in: folder)
            #expect(problems("access.log") == [])
            #expect(problems("file") == [])
            #expect(problems("/dev/null") == [])
            let expected = "expected a file in a writable directory"
            #expect(
                problems("none/access.log") == [
                    "gateway.yaml:2: log.access.path: \"\(folder)/none\" does not exist; "
                        + expected
                ])
            #expect(
                problems("folder") == [
                    "gateway.yaml:2: log.access.path: \"\(folder)/folder\" is a directory; "
                        + expected
                ])
            #expect(problems("file/access.log").count == 1)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
                    == ["file", "folder"], "nothing was made")
        }
    }

    @Test func `a long path is shown whole, a long value is not`() {
        let path = "/missing/" + String(repeating: "x", count: 200) + "/ca.pem"
        let found = errors(of: "hosts: [{ match: [a.test], tls: { roots: [\(path)] } }]")
        #expect(found.count == 1)
        #expect(found.first?.contains("\"\(path)\" cannot be read: ") == true, "\(found)")
        #expect(quoted(String(repeating: "x", count: 81)).hasSuffix("x…\""))
    }

    @Test func `a cache that cannot be written is a warning`() throws {
        try withTemporaryFolder { folder in
            func warnings(_ text: String) throws -> [String] {
                try ConfigurationLoader(environment: looking)
                    .load(text: Array(text.utf8), name: folder + "/gateway.yaml").warnings
                    .map(\.description)
            }
            try write("", to: "file", in: folder)
            #expect(try warnings("cache: { path: a/b/c }") == [])
            #expect(
                try warnings("cache: { path: file }") == [
                    "\(folder)/gateway.yaml:1: cache.path: \"\(folder)/file\" is not a directory: "
                        + "nothing will be cached on disk"
                ])
            #expect(try warnings("cache: { path: file/a }").count == 1)
            #expect(try warnings("cache: { path: file, disk: 0 }") == [])
            try makeFolder("taken", in: folder)
            try makeFolder("taken/cache.sqlite", in: folder)
            #expect(
                try warnings("cache: { path: taken }") == [
                    "\(folder)/gateway.yaml:1: cache.path: \"\(folder)/taken/cache.sqlite\" "
                        + "is not a file: nothing will be cached on disk"
                ])
            #expect(try warnings("cache: { path: file, enabled: false }") == [])
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
                    == ["file", "taken"], "nothing was made")
        }
    }

    @Test func `a disk tier that is too large for its file system is a warning`() throws {
        try withTemporaryFolder { folder in
            func warnings(_ text: String) throws -> [String] {
                try ConfigurationLoader(environment: looking)
                    .load(text: Array(text.utf8), name: folder + "/gateway.yaml").warnings
                    .map(\.description)
            }
            #expect(try warnings("cache: { path: a/b, disk: 1MiB }") == [])
            let told = try warnings("cache: { path: a/b, disk: 1000TiB }")
            #expect(told.count == 1)
            let start = "\(folder)/gateway.yaml:1: cache.disk: a disk cache of 1000TiB exceeds the "
            #expect(told.first?.hasPrefix(start + "size of its file system, ") ?? false)
            #expect(try warnings("cache: { path: a/b, disk: 1000TiB, enabled: false }") == [])
        }
        // A file system without any space.
        #expect(PathAccess.room(inFolder: "/proc/none")?.total == 0)
    }

    @Test func `the size of the disk tier is compared with the total and the free space`() {
        let room = PathAccess.Room(total: 100 << 30, free: 10 << 30)
        #expect(SnapshotReader.problem(of: 10 << 30, in: room) == nil)
        #expect(
            SnapshotReader.problem(of: 11 << 30, in: room)
                == "exceeds the free space of its file system, 10GiB")
        #expect(
            SnapshotReader.problem(of: 101 << 30, in: room)
                == "exceeds the size of its file system, 100GiB")
    }
}
