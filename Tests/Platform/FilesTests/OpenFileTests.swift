import CLinux
import TestSupport
import Testing

@testable import Files

@Suite("A file that is read as a whole")
struct OpenFileTests {
    private let folder = TemporaryFolder()

    /// The error number, or 0 for none.
    private func code(_ path: String, followsLinks: Bool = true) -> Int32 {
        do throws(FileError) {
            _ = try OpenFile(path, followsLinks: followsLinks).contents(most: 100)
            return 0
        } catch {
            #expect(error.path == path)
            return error.code
        }
    }

    @Test(arguments: [0, 1, 4095, 4096, 4097, 300_000])
    func `is read to its end, but not further than asked`(count: Int) throws {
        let text = String(repeating: "x", count: count)
        try folder.write(text, to: "a")
        for most in [0, 1, count - 1, count, count + 1, 1 << 20] where most >= 0 {
            let bytes = try OpenFile(folder.file("a")).contents(most: most)
            #expect(bytes == Array(text.utf8.prefix(most + 1)))
        }
    }

    @Test func `may say that it has no bytes and have some`() throws {
        let file = try OpenFile("/proc/self/stat")
        #expect(file.status.st_size == 0)
        #expect(try file.contents(most: 1 << 16).starts(with: "\(getpid()) (".utf8))
        #expect(try OpenFile("/proc/self/stat").contents(most: 3).count == 4)
    }

    /// The kernel's tables arrive in parts, none of which is as long as the room for it.
    @Test func `may arrive in parts`() throws {
        let whole = try OpenFile("/proc/self/maps").contents(most: 1 << 24)
        #expect(whole.count > 4096)
        #expect(whole.last == UInt8(ascii: "\n"))
    }

    @Test func `is reported as missing, as a folder or as a link`() throws {
        try folder.write("text", to: "a")
        symlink(folder.file("a"), folder.file("link"))
        symlink(folder.file("none"), folder.file("dangling"))
        mkdir(folder.file("inner"), 0o700)
        #expect(code(folder.file("a")) == 0)
        #expect(code(folder.file("none")) == ENOENT)
        #expect(code(folder.file("a/b")) == ENOTDIR)
        #expect(code(folder.file("link")) == 0)
        #expect(code(folder.file("link"), followsLinks: false) == ELOOP)
        #expect(code(folder.file("dangling")) == ENOENT)
        #expect(code(folder.file("inner")) == EISDIR)
        #expect(try OpenFile(folder.file("a")).kind == S_IFREG)
        #expect(try OpenFile(folder.file("inner")).kind == S_IFDIR)
        #expect(try OpenFile("/dev/null").kind == S_IFCHR)
    }

    @Test func `is not waited for if it is a pipe`() throws {
        let path = folder.file("pipe")
        mkfifo(path, 0o600)
        #expect(try OpenFile(path).kind == S_IFIFO)
        // Nobody has it open for writing, so it is at its end; with a writer, it is empty.
        #expect(try OpenFile(path).contents(most: 1).isEmpty)
        let writer = open_with_mode(path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0)
        defer { close(writer) }
        #expect(code(path) == EAGAIN)
    }

    @Test func `is closed at the end`() throws {
        try folder.write("text", to: "a")
        let descriptor = try OpenFile(folder.file("a")).descriptor
        #expect(fcntl_int(descriptor, F_GETFD, 0) < 0 || !isOpen(descriptor, folder.file("a")))
    }

    /// Another test may have been given the number in the meantime.
    private func isOpen(_ descriptor: Int32, _ path: String) -> Bool {
        var (opened, named) = (stat(), stat())
        return fstat(descriptor, &opened) == 0 && stat(path, &named) == 0
            && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev
    }
}

@Suite("A system call")
struct UninterruptedTests {
    /// A call that fails with these error numbers in turn, then returns 7.
    private func result(after codes: [Int32]) -> (result: Int, calls: Int) {
        var calls = 0
        let result = uninterrupted { () -> Int in
            defer { calls += 1 }
            guard calls < codes.count else { return 7 }
            __errno_location().pointee = codes[calls]
            return -1
        }
        return (result, calls)
    }

    @Test func `is made again until no signal interrupts it`() {
        #expect(result(after: []) == (7, 1))
        #expect(result(after: [EINTR]) == (7, 2))
        #expect(result(after: [EINTR, EINTR, EINTR]) == (7, 4))
        #expect(result(after: [EAGAIN]) == (-Int(EAGAIN), 1))
        #expect(result(after: [EINTR, EIO, EINTR]) == (-Int(EIO), 2))
    }

    @Test func `is not made again if it returns nothing`() {
        var calls = 0
        let none = uninterrupted { () -> Int32 in
            calls += 1
            __errno_location().pointee = EINTR
            return 0
        }
        #expect(none == 0)
        #expect(calls == 1)
    }

    @Test(arguments: [0, 1, 65_535, 300_000])
    func `writes all bytes, however few the system takes`(count: Int) async throws {
        var ends: [Int32] = [-1, -1]
        #expect(pipe2(&ends, O_CLOEXEC) == 0)
        let (reader, writer) = (ends[0], ends[1])
        let sent = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        async let received = Self.contents(of: reader)
        #expect(writeAll(sent[...], to: writer) == 0)
        close(writer)
        #expect(await received == sent)
        close(reader)
        #expect(writeAll([1], to: -1) == EBADF)
        #expect(writeAll([], to: -1) == 0)
    }

    private static func contents(of descriptor: Int32) async -> [UInt8] {
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 1000)
        while true {
            let count = uninterrupted { read(descriptor, &part, part.count) }
            guard count > 0 else { return bytes }
            bytes += part[..<count]
        }
    }

    @Test func `that fails in the middle is reported`() {
        var ends: [Int32] = [-1, -1]
        #expect(pipe2(&ends, O_CLOEXEC | O_NONBLOCK) == 0)
        #expect(writeAll([UInt8](repeating: 1, count: 1 << 20)[...], to: ends[1]) == EAGAIN)
        for end in ends { close(end) }
    }
}
