import CLinux
import TestSupport
import Testing

@testable import Supervision

/// A folder with an executable file `program`, and a link `link` to it in a folder of its own.
private struct Place {
    let folder: TemporaryFolder
    var program: String { folder.path + "/files/program" }
    var link: String { folder.path + "/links/link" }

    init() throws {
        folder = TemporaryFolder()
        for name in ["files", "links"] {
            try #require(mkdir(folder.path + "/" + name, 0o755) == 0)
            try #require(chmod(folder.path + "/" + name, 0o755) == 0)
        }
        let descriptor = open_with_mode(program, O_CREAT | O_WRONLY, 0o755)
        try #require(descriptor >= 0)
        close(descriptor)
        try #require(chmod(program, 0o755) == 0)
        try #require(symlink("../files/program", link) == 0)
    }
}

@Suite("The file of the program")
struct ProgramFileTests {
    @Test func `a name with a slash is a path`() throws {
        let place = try Place()
        func path(_ name: String, in folder: String) -> String {
            ProgramFile(startedAs: name, in: folder, searchPath: "/nowhere", running: nil).path
        }
        #expect(path(place.program, in: "/") == place.program)
        #expect(path("files/program", in: place.folder.path) == place.program)
        #expect(path("./program", in: place.folder.path + "/files").hasSuffix("/files/./program"))
        // The link stays a link: it may lead elsewhere next time.
        #expect(path(place.link, in: "/") == place.link)
    }

    @Test func `a name without a slash is searched for`() throws {
        let place = try Place()
        let (files, links) = (place.folder.path + "/files", place.folder.path + "/links")
        func path(_ search: String?, in folder: String = "/") -> String {
            ProgramFile(startedAs: "program", in: folder, searchPath: search, running: "/run").path
        }
        #expect(path("/nowhere:\(links):\(files)") == place.program)
        #expect(path("files:/usr/bin", in: place.folder.path) == place.program)
        #expect(path(":/usr/bin", in: files) == files + "/./program")
        // Neither a folder nor a file that cannot be run.
        try #require(mkdir(links + "/program", 0o755) == 0)
        #expect(path("\(links):\(files)") == place.program)
        #expect(path(links) == "/run")
        #expect(path(nil) == "/run")
        #expect(
            ProgramFile(startedAs: "", in: "/", searchPath: nil, running: "/run").path == "/run")
    }

    @Test func `only root and our user may replace it`() throws {
        let place = try Place()
        let file = ProgramFile(path: place.link)
        try file.check()
        let (files, links) = (place.folder.path + "/files", place.folder.path + "/links")
        for path in [place.program, files, links] {
            try #require(chmod(path, 0o757) == 0)
            #expect(throws: ProgramFile.SafetyError.writable(path, by: "everyone")) {
                try file.check()
            }
            try #require(chmod(path, 0o755) == 0)
        }
        // In a folder such as /tmp, others may add files and not replace ours.
        try #require(chmod(links, 0o1777) == 0)
        try file.check()
        try #require(chmod(place.program, 0o644) == 0)
        #expect(throws: ProgramFile.SafetyError.notExecutable(place.program)) { try file.check() }
        unlink(place.program)
        #expect(throws: ProgramFile.SafetyError.missing(place.link, code: ENOENT)) {
            try file.check()
        }
        #expect(throws: ProgramFile.SafetyError.notExecutable(links)) {
            try ProgramFile(path: links).check()
        }
    }

    @Test func `another owner may replace it`() throws {
        try #require(geteuid() == 0, "the owner of a file is changed by root alone")
        let place = try Place()
        try #require(chown(place.program, 65534, 0) == 0)
        #expect(
            throws: ProgramFile.SafetyError.writable(place.program, by: "its owner, user 65534")
        ) { try ProgramFile(path: place.link).check() }
        try #require(chown(place.program, 0, 65534) == 0)
        try ProgramFile(path: place.link).check()
        try #require(chmod(place.program, 0o775) == 0)
        #expect(throws: ProgramFile.SafetyError.writable(place.program, by: "its group, 65534")) {
            try ProgramFile(path: place.link).check()
        }
    }
}
