import CLinux
import TestSupport
import Testing

@testable import Files

/// `nil` if there is no file.
private func contents(of path: String) -> [UInt8]? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes.prefix(count))
}

private func mode(of path: String) -> mode_t {
    var status = stat()
    return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
}

/// The error, or `nil` for none.
private func failure(_ work: () throws -> Void) -> FileError? {
    do {
        try work()
        return nil
    } catch {
        return error as? FileError
    }
}

@Suite("A file that is replaced")
struct ReplacedFileTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.file("a") }

    @Test(arguments: [0, 1, 300_000])
    func `has the new bytes, and no other file is left in the folder`(count: Int) throws {
        try folder.write("old", to: "a")
        let bytes = [UInt8](repeating: 7, count: count)
        try DurableFile.replace(path, by: bytes, mode: 0o600)
        #expect(contents(of: path) == bytes)
        #expect(folder.names == ["a"])
    }

    @Test(arguments: [0o600, 0o400] as [mode_t])
    func `has the mode that is asked for, whatever it had`(mode asked: mode_t) throws {
        try folder.write("old", to: "a")
        chmod(path, 0o644)
        try DurableFile.replace(path, by: [1], mode: asked)
        #expect(mode(of: path) == asked)
    }

    @Test func `is created if it does not exist`() throws {
        try DurableFile.replace(path, by: [1, 2], mode: 0o600)
        #expect(contents(of: path) == [1, 2])
    }

    @Test func `takes the place of a link, and leaves alone what the link led to`() throws {
        try folder.write("other", to: "b")
        symlink(folder.file("b"), path)
        try DurableFile.replace(path, by: [1], mode: 0o600)
        #expect(contents(of: path) == [1])
        #expect(contents(of: folder.file("b")) == Array("other".utf8))
    }

    @Test func `is unchanged if there is a folder in its place, or none around it`() {
        mkdir(path, 0o700)
        let error = failure { try DurableFile.replace(path, by: [1], mode: 0o600) }
        #expect(error == FileError(.rename, path, EISDIR))
        #expect(folder.names == ["a"])
        let missing = failure {
            try DurableFile.replace("\(path)/none/b", by: [1], mode: 0o600)
        }
        #expect(missing?.operation == .open)
        #expect(missing?.code == ENOENT)
    }

    @Test(arguments: [false, true])
    func `replaces whatever is at a given temporary path`(
        link: Bool
    ) throws {
        try folder.write("other", to: "b")
        let temporary = folder.file("a.new")
        if link {
            symlink(folder.file("b"), temporary)
        } else {
            try folder.write("longer than what is written", to: "a.new")
        }
        try DurableFile.replace(path, by: [1], mode: 0o600, temporaryPath: temporary)
        #expect(contents(of: path) == [1])
        #expect(folder.names == ["a", "b"])
        #expect(contents(of: folder.file("b")) == Array("other".utf8))
    }

    /// A process limit stands in for a full disk: the first write is a short one.
    @Test func `is unchanged if the disk is full, and so is the folder`() async throws {
        try folder.write("old", to: "a")
        let path = path
        await #expect(processExitsWith: .exitCode(17)) { [path = path as String] in
            // SIG_IGN, which is a cast in C.
            signal(SIGXFSZ, unsafeBitCast(1, to: __sighandler_t.self))
            var limit = rlimit(rlim_cur: 1000, rlim_max: 1000)
            setrlimit(Int32(RLIMIT_FSIZE.rawValue), &limit)
            let bytes = [UInt8](repeating: 7, count: 3000)
            let replaced = failure { try DurableFile.replace(path, by: bytes, mode: 0o600) }
            let made = failure { try DurableFile.create(path + "2", of: bytes, mode: 0o600) }
            let begun = failure {
                _ = try UnfinishedFile(bytes, for: path, mode: 0o600)
            }
            let areRight = [replaced, made, begun].allSatisfy {
                $0?.operation == .write && $0?.code == EFBIG
            }
            exit(areRight ? 17 : 1)
        }
        #expect(contents(of: path) == Array("old".utf8))
        #expect(folder.names == ["a"])
    }
}

@Suite("A file that is created")
struct CreatedFileTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.file("a") }

    @Test func `has its bytes and its mode`() throws {
        try DurableFile.create(path, of: [1, 2], mode: 0o600)
        #expect(contents(of: path) == [1, 2])
        #expect(mode(of: path) == 0o600)
        #expect(folder.names == ["a"])
    }

    @Test func `replaces nothing, not even a dangling link`() throws {
        try folder.write("old", to: "a")
        let there = failure { try DurableFile.create(path, of: [1], mode: 0o600) }
        #expect(there == FileError(.open, path, EEXIST))
        #expect(contents(of: path) == Array("old".utf8))
        let link = folder.file("link")
        symlink(folder.file("nowhere"), link)
        let linked = failure { try DurableFile.create(link, of: [1], mode: 0o600) }
        #expect(linked == FileError(.open, link, EEXIST))
        #expect(folder.names == ["a", "link"])
    }
}

@Suite("A file that is finished later")
struct UnfinishedFileTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.file("a") }

    @Test func `has a different name until then`() throws {
        try folder.write("old", to: "a")
        let file = try UnfinishedFile([1, 2], for: path, mode: 0o640)
        #expect(contents(of: path) == Array("old".utf8))
        #expect(contents(of: file.unfinishedPath) == [1, 2])
        let names = folder.names
        #expect(names.compactMap { UnfinishedFile.finishedName(of: $0) } == ["a"])
        try file.finish()
        #expect(contents(of: path) == [1, 2])
        #expect(folder.names == ["a"])
    }

    @Test func `is finished with others, whose names are one sync of the folder`() throws {
        let files = try (0..<3).map {
            try UnfinishedFile([UInt8($0)], for: folder.file("\($0)"), mode: 0o644)
        }
        for file in files { try file.rename() }
        try Folder.sync(folder.path)
        #expect(folder.names == ["0", "1", "2"])
    }

    @Test func `is found by the next process, which finishes or discards it`() throws {
        for name in ["b", "c"] { try folder.write("whole", to: name) }
        try UnfinishedFile(found: folder.file("b"), for: path).finish()
        UnfinishedFile(found: folder.file("c"), for: path).discard()
        #expect(folder.names == ["a"])
        let gone = failure { try UnfinishedFile(found: folder.file("d"), for: path).finish() }
        #expect(gone == FileError(.open, folder.file("d"), ENOENT))
        symlink(path, folder.file("link"))
        let link = folder.file("link")
        let linked = failure { try UnfinishedFile(found: link, for: folder.file("e")).finish() }
        #expect(linked == FileError(.open, link, ELOOP))
    }

    @Test(
        arguments: [
            ("a.0123456789abcdef.unfinished", "a"), ("a.b.0123456789ABCDEF.unfinished", "a.b"),
            ("a.unfinished", nil), ("a.12.unfinished", nil), ("0123456789abcdef.unfinished", nil),
            ("a.0123456789abcdeg.unfinished", nil), ("a.0123456789abcdef", nil), ("", nil),
        ] as [(String, String?)])
    func `is recognised by its name`(name: String, finished: String?) {
        #expect(UnfinishedFile.finishedName(of: name) == finished)
    }

    @Test func `reports what failed as the system does`() {
        #expect("\(FileError(.write, "/x", ENOSPC))" == "/x: No space left on device")
    }

    @Test(
        arguments: [
            ("/a/b", "/a"), ("/a", "/"), ("a", "."), ("a/b", "a"), ("./a", "."),
            // A slash with a combining mark is one character.
            ("a/\u{301}b", "a"),
        ])
    func `is in the folder of its path`(path: String, folder: String) {
        #expect(Folder.of(path) == folder)
    }
}

@Suite("A folder that is made")
struct MadeFolderTests {
    private let folder = TemporaryFolder()

    private func code(_ path: String) -> Int32 { failure { try Folder.make(path) }?.code ?? 0 }

    @Test func `is made with those above it, for its owner only`() {
        let path = folder.file("a/b//c")
        #expect(code(path) == 0)
        for made in ["a", "a/b", "a/b/c"] { #expect(mode(of: folder.file(made)) == 0o700) }
        #expect(code(path) == 0)
        #expect(code(folder.file("d/")) == 0)
        #expect(folder.names == ["a", "d"])
    }

    @Test func `may exist, above it or itself, in any form`() throws {
        mkdir(folder.file("a"), 0o755)
        symlink(folder.file("a"), folder.file("link"))
        #expect(code(folder.file("link/b")) == 0)
        #expect(mode(of: folder.file("a")) == 0o755)
        #expect(mode(of: folder.file("a/b")) == 0o700)
        for path in ["/", ".", ""] { #expect(code(path) == 0) }
        // What is there is found out by whoever uses it.
        try folder.write("text", to: "file")
        #expect(code(folder.file("file")) == 0)
    }

    @Test func `is not made below what is not a folder`() throws {
        try folder.write("text", to: "file")
        let below = failure { try Folder.make(folder.file("file/b/c")) }
        #expect(below == FileError(.open, folder.file("file/b"), ENOTDIR))
        #expect(code("/proc/none") == ENOENT)
    }
}
