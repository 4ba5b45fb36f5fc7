import CLinux
import TestSupport
import Testing

@testable import PinfoldClient

@Suite("The partial file of a download")
struct PartialFileTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.file("a.part") }

    private func data(
        received: Int64 = 0, durable: Int64 = 0, boot: String = FilePaths.boot
    ) -> ResumeData {
        ResumeData(
            url: "http://a/", responseURL: "http://a/", fields: [:], validator: .entityTag("\"1\""),
            receivedBytes: received, durableBytes: durable, expectedBytes: 100, partialFile: path,
            boot: boot)
    }

    private func open(
        _ fits: Bool = true
    ) throws(DownloadError.Reason) -> PartialFile { try PartialFile(path) { _ in fits } }

    private func lay(_ count: Int, _ data: ResumeData?) throws {
        folder.write([UInt8](repeating: 7, count: count), to: "a.part")
        if let data { try folder.write(data.text, to: "a.part.resume") }
    }

    @Test func `continues after its last byte, whatever its resume data`() throws {
        try lay(60, data(received: 10))
        let file = try open()
        defer { file.close() }
        #expect(file.length == 60)
        #expect(file.resume?.validator == .entityTag("\"1\""))
    }

    @Test(arguments: ["another", ""])
    func `continues after the synced bytes if the machine was restarted`(
        boot: String
    ) throws {
        try lay(60, data(received: 50, durable: 40, boot: boot))
        let file = try open()
        defer { file.close() }
        #expect(file.length == 40)
    }

    @Test func `cannot be resumed if anything does not match`() throws {
        // Longer than the whole; for another request; without bytes; damaged; a note.
        try lay(101, data())
        try expectNothing()
        try lay(60, data())
        try expectNothing(fits: false)
        try lay(0, data(received: 10))
        try expectNothing()
        try lay(60, nil)
        for text in [String(data().text.dropLast()), "{\"pinfoldPartialFile\":1}", ""] {
            try folder.write(text, to: "a.part.resume")
            try expectNothing()
        }
    }

    @Test func `is resumed whatever path its resume data has`() throws {
        try lay(60, data())
        try folder.write(
            data().text.replacing("a.part", with: "x/../a.part"), to: "a.part.resume")
        let file = try open()
        defer { file.close() }
        #expect(file.length == 60)
        #expect(file.resume?.partialFile == path)
    }

    @Test(arguments: [nil, "{\"mine\":1}"])
    func `is not written to if it is not known to be of a download`(beside: String?) throws {
        try lay(60, nil)
        if let beside { try folder.write(beside, to: "a.part.resume") }
        let names = folder.names
        #expect(throws: DownloadError.Reason.partialFileUnknown(path)) { try open() }
        #expect(folder.bytes(of: "a.part") == [UInt8](repeating: 7, count: 60))
        #expect(folder.names == names)
        // Unless it may be replaced, and even then only when there is something to write.
        for resets in [false, true] {
            var file = try PartialFile(path, replaces: true) { _ in true }
            #expect(file.resume == nil && file.length == 0)
            if resets { try file.reset(nil) }
            #expect(folder.bytes(of: "a.part")?.count == (resets ? 0 : 60))
            #expect(file.leave(keeping: false) == nil)
            file.close()
            #expect(folder.names == (resets ? [] : names))
        }
    }

    /// The next process starts from the beginning after one that was killed at this point.
    private func expectMayBegin(_ file: PartialFile) throws {
        file.close()
        let next = try open(false)
        #expect(next.length == 0)
        next.close()
    }

    @Test(arguments: [false, true])
    func `is recognized as a partial download wherever its process was killed`(resumes: Bool) throws
    {
        // With nothing there, and with what another download has left.
        for lies in [false, true] {
            if lies { try lay(60, data()) }
            try expectMayBegin(try open(false))
            var file = try open(false)
            try file.reset(resumes ? data() : nil)
            try expectMayBegin(file)
            file = try open(false)
            try file.reset(resumes ? data() : nil)
            try file.write([[1]], isLast: true)
            #expect(folder.bytes(of: "a.part") == [1])
            #expect(PartialFile.resumeData(beside: path) == nil)
            try expectMayBegin(file)
            file = try open(false)
            try file.reset(nil)
            #expect(file.leave(keeping: false) == nil)
            file.close()
            #expect(folder.names == [])
        }
    }

    @Test func `is finished only while its name refers to it`() throws {
        for isReplaced in [false, true] {
            var file = try open()
            try file.reset(data())
            try file.write([[1, 2]], isLast: false)
            unlink(path)
            if isReplaced { folder.write([9, 9], to: "a.part") }
            #expect(throws: DownloadError.Reason.partialFileLost(path)) {
                try file.finish(at: folder.file("a"), replaces: true)
            }
            #expect(file.leave(keeping: true) == nil)
            file.close()
            // What has its name stays, without resume data beside it.
            #expect(folder.names == (isReplaced ? ["a.part"] : []))
            #expect(folder.bytes(of: "a.part") == (isReplaced ? [9, 9] : nil))
        }
    }

    @Test(arguments: [false, true])
    func `reports nothing as kept when it was moved away`(keeps: Bool) throws {
        var file = try open()
        try file.reset(data())
        try file.write([[1, 2]], isLast: false)
        #expect(rename(path, folder.file("b")) == 0)
        // Another download, with its own resume data.
        var other = try open()
        #expect(throws: DownloadError.Reason.partialFileLost(path)) { try file.reset(data()) }
        try other.reset(data())
        try other.write([[3]], isLast: false)
        #expect(file.leave(keeping: keeps) == nil)
        #expect(folder.bytes(of: "a.part") == [3])
        #expect(PartialFile.resumeData(beside: path)?.receivedBytes == 1)
        #expect(other.leave(keeping: true)?.receivedBytes == 1)
        #expect(folder.bytes(of: "b") == [1, 2])
        file.close()
        other.close()
    }

    private func expectNothing(fits: Bool = true) throws {
        let file = try open(fits)
        #expect(file.resume == nil)
        #expect(file.length == 0)
        file.close()
    }

    @Test func `does not touch what another download has left`() throws {
        try lay(60, data())
        var file = try open(false)
        #expect(file.leave(keeping: false) == nil)
        file.close()
        #expect(folder.names == ["a.part", "a.part.resume"])
        #expect(folder.bytes(of: "a.part")?.count == 60)
    }

    @Test func `is written by one at a time`() throws {
        let first = try open()
        #expect(throws: DownloadError.Reason.busy(path)) { try open() }
        first.close()
        try open().close()
    }

    @Test func `is not a link, a folder or a pipe`() throws {
        symlink("/etc/hosts", path)
        #expect(throws: DownloadError.Reason.partialFileUnsafe(path)) { try open() }
        unlink(path)
        mkfifo(path, 0o600)
        #expect(throws: DownloadError.Reason.partialFileUnsafe(path)) { try open() }
        unlink(path)
        mkdir(path, 0o700)
        #expect(throws: DownloadError.Reason.self) { try open() }
    }

    @Test func `removes a name that is a second one of another file`() throws {
        folder.write([1, 2, 3], to: "other")
        link(folder.file("other"), path)
        var file = try open()
        try file.reset(nil)
        file.close()
        #expect(folder.bytes(of: "other") == [1, 2, 3])
        #expect(folder.bytes(of: "a.part") == [])
    }

    @Test func `has its resume data from the first bytes on`() throws {
        var file = try open()
        defer { file.close() }
        try file.reset(data())
        #expect(PartialFile.resumeData(beside: path) == nil)
        try file.write([[1, 2], [3]], isLast: false)
        #expect(folder.bytes(of: "a.part") == [1, 2, 3])
        #expect(PartialFile.resumeData(beside: path)?.receivedBytes == 3)
        var mode = stat()
        stat(folder.file("a.part.resume"), &mode)
        #expect(mode.st_mode & 0o777 == 0o600)
    }

    @Test func `has no resume data of other content while it is restarted`() throws {
        try lay(60, data())
        var file = try open(false)
        defer { file.close() }
        try file.reset(nil)
        #expect(PartialFile.resumeData(beside: path) == nil)
        try file.write([[1]], isLast: false)
        #expect(PartialFile.resumeData(beside: path) == nil)
        #expect(folder.bytes(of: "a.part") == [1])
    }

    @Test func `stays if it can be resumed, and is removed if not`() throws {
        var file = try open()
        try file.reset(data())
        try file.write([[1, 2]], isLast: true)
        let left = file.leave(keeping: true)
        #expect(left?.receivedBytes == 2)
        #expect(left?.durableBytes == 2)
        #expect(PartialFile.resumeData(beside: path) == left)
        file.close()
        var again = try open()
        #expect(again.leave(keeping: false) == nil)
        again.close()
        #expect(folder.names == [])
        var other = try open()
        try other.reset(nil)
        try other.write([[1]], isLast: true)
        #expect(other.leave(keeping: true) == nil)
        other.close()
        #expect(folder.names == [])
    }

    @Test func `replaces a file only if it may`() throws {
        var file = try open()
        defer { file.close() }
        try file.reset(data())
        try file.write([[1, 2]], isLast: false)
        let destination = folder.file("a")
        folder.write([9], to: "a")
        #expect(throws: DownloadError.Reason.destinationExists(destination)) {
            try file.finish(at: destination, replaces: false)
        }
        #expect(folder.bytes(of: "a") == [9])
        try file.finish(at: destination, replaces: true)
        #expect(folder.bytes(of: "a") == [1, 2])
        #expect(folder.names == ["a"])
    }

    @Test func `becomes the file of a name that was free`() throws {
        var file = try open()
        try file.reset(data())
        try file.write([[1, 2]], isLast: true)
        try file.finish(at: folder.file("a"), replaces: false)
        #expect(file.leave(keeping: false) == nil)
        file.close()
        #expect(folder.names == ["a"])
    }

    @Test func `a destination is checked before anything is written`() throws {
        folder.write([1], to: "a")
        mkdir(folder.file("folder"), 0o700)
        symlink("nowhere", folder.file("link"))
        func problem(_ path: String, replaces: Bool = false) -> DownloadError.Reason? {
            do throws(DownloadError.Reason) {
                try FilePaths.check(destination: path, replaces: replaces, partialIn: nil)
                return nil
            } catch {
                return error
            }
        }
        #expect(problem(folder.file("b")) == nil)
        #expect(problem(folder.file("a")) == .destinationExists(folder.file("a")))
        #expect(problem(folder.file("a"), replaces: true) == nil)
        for path in [folder.file("folder"), folder.file("b/"), "/dev/null", "/"] {
            guard case .destinationInvalid(path, _) = problem(path, replaces: true) else {
                Issue.record("\(path)")
                continue
            }
        }
        let missing = FileOperationError(operation: .open, path: folder.file("none"), code: ENOENT)
        #expect(problem(folder.file("none/b")) == .file(missing))
    }
}
