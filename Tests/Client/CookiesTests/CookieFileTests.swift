import Foundation
import Testing

@testable import PinfoldClient

private let now: Int64 = 1_700_000_000

@Suite("The file of cookies")
struct CookieFileTests {
    private func jar(_ text: String) throws(CookieFileError) -> CookieJar {
        try CookieFile.jar(Array(text.utf8), path: "c.txt", limits: CookieJar.Limits(), at: now)
    }

    private func withFolder(_ body: (String) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("pinfold-cookies-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder.path)
    }

    private var filled: CookieJar {
        var jar = CookieJar()
        let secure = CookieRequest(host: "www.x.test", path: "/a/b", isSecure: true)
        for (index, field) in [
            "session=1", "a=1; Max-Age=100", "b=; Max-Age=100; Domain=x.test; Secure; HttpOnly",
            "nameless; Max-Age=100; SameSite=Strict", "#HttpOnly_c=# 1; Max-Age=100; Path=/",
        ].enumerated() {
            jar.store(setCookie: field, from: secure, at: now + Int64(index))
        }
        return jar
    }

    @Test func `keeps session cookies on request`() throws {
        try withFolder { folder in
            let path = folder + "/cookies.txt"
            try CookieFile.write(filled, to: path, at: now + 9, includesSession: true)
            let read = try #require(try CookieFile.read(path, at: now + 9))
            #expect(read.cookies == filled.cookies)
            // Written again long after, when some have expired.
            try CookieFile.write(read, to: path, at: now + 9999, includesSession: true)
            #expect(try CookieFile.read(path, at: now + 9999)?.cookies.map(\.name) == ["session"])
        }
    }

    @Test func `keeps what outlasts the session`() throws {
        try withFolder { folder in
            let path = folder + "/cookies.txt"
            #expect(try CookieFile.read(path, at: now) == nil)
            try CookieFile.write(filled, to: path, at: now + 9)
            var read = try #require(try CookieFile.read(path, at: now + 9))
            #expect(read.cookies == filled.cookies.filter { $0.expires != nil })
            #expect(read.cookies.count == 4)
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
            #expect(mode as? Int == 0o600)
            // Overwritten, with nothing else left in the folder.
            read.removeAll { $0.name != "a" }
            try CookieFile.write(read, to: path, at: now + 9)
            #expect(try CookieFile.read(path, at: now + 9)?.cookies.map(\.name) == ["a"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["cookies.txt"])
        }
    }

    @Test func `keeps which cookies were used last`() throws {
        var jar = filled
        _ = jar.field(
            for: CookieRequest(host: "www.x.test", path: "/a", isSecure: true), at: now + 50)
        let text = String(decoding: CookieFile.bytes(of: jar, at: now + 50), as: UTF8.self)
        let read = try self.jar(text)
        #expect(read.entries.map(\.accessed) == jar.entries.dropFirst().map(\.accessed))
    }

    @Test(arguments: ["\u{301}", "\u{20E3}x", "\u{FE0F}"])
    func `keeps a path whose slash combines with what follows it`(rest: String) throws {
        var jar = CookieJar()
        let request = CookieRequest(host: "x.test", isSecure: true)
        let field = "a=b; Max-Age=100; Path=/\(rest)"
        #expect(jar.store(setCookie: field, from: request, at: now) == .stored)
        let read = try self.jar(String(decoding: CookieFile.bytes(of: jar, at: now), as: UTF8.self))
        #expect(read.cookies == jar.cookies)
        #expect(read.cookies.map(\.path) == ["/\(rest)"])
    }

    @Test func `has the columns that curl reads`() {
        let text = String(decoding: CookieFile.bytes(of: filled, at: now + 9), as: UTF8.self)
        let lines = text.split(separator: "\n")
        #expect(lines.first == "# Netscape HTTP Cookie File")
        #expect(
            lines.contains(
                "#HttpOnly_.x.test\tTRUE\t/a\tTRUE\t1700000102\tb\t"))
        #expect(lines.contains("www.x.test\tFALSE\t/a\tFALSE\t1700000101\ta\t1"))
    }

    @Test func `is read as curl writes it`() throws {
        let jar = try jar(
            """
            # Netscape HTTP Cookie File
            # https://curl.se/docs/http-cookies.html

            .x.test\tTRUE\t/\tTRUE\t1900000000\ta\t1\r
            #HttpOnly_y.test\tFALSE\t/p\tfalse\t0\tb\tc d
            y.test\tFALSE\t/\tFALSE\t1900000000\tempty
            y.test\tFALSE\t/\tFALSE\t1600000000\tpast\t1

            """)
        #expect(
            jar.cookies == [
                Cookie(
                    name: "a", value: "1", domain: "x.test", isHostOnly: false,
                    isSecureOnly: true, expires: 1_900_000_000, created: now),
                Cookie(
                    name: "b", value: "c d", domain: "y.test", path: "/p", isHTTPOnly: true,
                    created: now),
                Cookie(
                    name: "empty", value: "", domain: "y.test", expires: 1_900_000_000,
                    created: now),
            ])
    }

    @Test(
        arguments: [
            ("x.test\tTRUE\t/\tTRUE", "4 tab-separated columns; expected 7"),
            ("x\tTRUE\t/\tTRUE\t1\ta\tb\tc", "8 tab-separated columns; expected 7"),
            ("\tTRUE\t/\tTRUE\t1\ta\tb", "the domain is empty"),
            ("x\tyes\t/\tTRUE\t1\ta\tb", "the second column is neither TRUE nor FALSE"),
            ("x\tTRUE\t/\t1\t1\ta\tb", "the fourth column is neither TRUE nor FALSE"),
            ("x\tTRUE\tp\tTRUE\t1\ta\tb", "the path does not begin with /"),
            ("x\tTRUE\t/\tTRUE\tsoon\ta\tb", "the expiry time is not a number of seconds"),
            ("x\tTRUE\t/\tTRUE\t-1\ta\tb", "the expiry time is not a number of seconds"),
        ])
    func `shows which line is damaged, and how`(line: String, text: String) {
        #expect(throws: CookieFileError(path: "c.txt", reason: .line(3, text))) {
            try jar("# a comment\n\n\(line)\n")
        }
    }

    @Test func `has its path and the line`() {
        let error = #expect(throws: CookieFileError.self) { try jar("\nx\n") }
        #expect(
            error.map { "\($0)" } == "c.txt:2: 1 tab-separated columns; expected 7")
    }

    @Test func `keeps names and values that are not UTF-8`() throws {
        // As curl writes them, including comments.
        let latin: [UInt8] = Array("# caf".utf8) + [0xE9, 0x0A]
        let columns = "x.test\tFALSE\t/\tFALSE\t1900000000\tn"
        let line = Array(columns.utf8) + [0xFF, 0x09, 0xE9, 0x0A]
        let read = try CookieFile.jar(
            latin + line, path: "c.txt", limits: CookieJar.Limits(), at: now)
        #expect(read.cookies.map(\.nameBytes) == [[0x6E, 0xFF]])
        #expect(read.cookies.map(\.valueBytes) == [[0xE9]])
        let written = CookieFile.bytes(of: read, at: now)
        #expect(written.suffix(line.count) == line[...])
    }

    @Test func `has the system's message`() throws {
        try withFolder { folder in
            let error = CookieFileError(path: folder, reason: .system(EISDIR))
            #expect("\(error)" == "\(folder): Is a directory")
            #expect(throws: error) { try CookieFile.read(folder, at: now) }
            #expect(throws: error) { try CookieFile.write(CookieJar(), to: folder, at: now) }
            #expect(throws: CookieFileError.self) {
                try CookieFile.write(CookieJar(), to: folder + "/none/c.txt", at: now)
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: folder)
            #expect(left.isEmpty)
        }
    }

    /// A file that is not a regular file is left unchanged.
    private func mode(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    @Test func `may be a null device, and stays one`() throws {
        try withFolder { folder in
            let path = folder + "/null"
            // Only root may create a device; for others, a link to one does no harm.
            let isRoot = geteuid() == 0
            let made = isRoot ? mknod(path, S_IFCHR | 0o666, 0x103) : symlink("/dev/null", path)
            try #require(made == 0)
            #expect(try CookieFile.read(path, at: now) == nil)
            try CookieFile.write(filled, to: path, at: now + 9)
            #expect(mode(path) == (isRoot ? S_IFCHR : S_IFLNK))
            #expect(try CookieFile.read(path, at: now) == nil)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["null"])
        }
    }

    @Test func `is not a pipe, which is left unchanged and not waited for`() throws {
        try withFolder { folder in
            let path = folder + "/pipe"
            try #require(mkfifo(path, 0o600) == 0)
            let error = CookieFileError(path: path, reason: .kind("a pipe"))
            #expect("\(error)" == "\(path): a pipe; expected a regular file")
            #expect(throws: error) { try CookieFile.write(filled, to: path, at: now) }
            #expect(mode(path) == S_IFIFO)
            #expect(throws: error) { try CookieFile.read(path, at: now) }
        }
    }

    @Test(arguments: [true, false])
    func `is the target of a link, which stays a link`(isThere: Bool) throws {
        try withFolder { folder in
            try FileManager.default.createDirectory(
                atPath: folder + "/real", withIntermediateDirectories: false)
            let (path, target) = (folder + "/link", folder + "/real/jar")
            try #require(symlink("next", path) == 0 && symlink("real/jar", folder + "/next") == 0)
            if isThere { try Data("# mine\n".utf8).write(to: URL(fileURLWithPath: target)) }
            try CookieFile.write(filled, to: path, at: now + 9)
            #expect(mode(path) == S_IFLNK)
            #expect(mode(target) == S_IFREG)
            #expect(try CookieFile.read(path, at: now + 9)?.count == 4)
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder + "/real") == ["jar"])
        }
    }
}
