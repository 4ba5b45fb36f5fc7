import CLinux
import HTTPCore
import TestSupport
import Testing

@testable import PinfoldResolver

@Suite("The hosts file's lines")
struct HostsTableTests {
    private func table(_ text: String) -> HostsTable { HostsTable(Array(text.utf8)) }

    private func find(_ name: String, in table: HostsTable) throws -> [String]? {
        table.addresses(of: try #require(DomainName(name)))?.map(\.description)
    }

    @Test func `a line is an address and its names, without comments, blanks and returns`() throws {
        let table = table(
            """
            # a comment
            127.0.0.1\tlocalhost
            10.0.0.1 one.example One  alias # two.example
               ::1   one.example\r

            10.0.0.2 one.example
            10.0.0.1 one.example
            10.0.0.3#none.example
            10.0.0.4
            10.0.0.5 last.example
            """)
        #expect(try find("one.example", in: table) == ["::1", "10.0.0.1", "10.0.0.2"])
        #expect(try find("ONE.example.", in: table) == ["::1", "10.0.0.1", "10.0.0.2"])
        #expect(try find("one", in: table) == ["10.0.0.1"])
        #expect(try find("alias", in: table) == ["10.0.0.1"])
        #expect(try find("two.example", in: table) == nil)
        #expect(try find("none.example", in: table) == nil)
        #expect(try find("last.example", in: table) == ["10.0.0.5"])
    }

    @Test func `malformed lines are skipped, the others stay`() throws {
        let table = table(
            """
            127.1 a.example
            fe80::1%lo0 a.example
            example a.example
            10.0.0.1 b_ü.example ok.example bad..name
            10.0.0.2
            """)
        #expect(try find("a.example", in: table) == nil)
        #expect(try find("ok.example", in: table) == ["10.0.0.1"])
        #expect(HostsTable([]) == HostsTable())
        #expect(HostsTable([0xff, 0, 0x0a, 0x20, 0xc3]) == HostsTable())
    }

    @Test func `a name keeps 64 addresses and no more`() throws {
        for count in [HostsTable.maximumAddresses, HostsTable.maximumAddresses + 1] {
            let text = (0..<count).map { "10.0.0.\($0) a.example" }.joined(separator: "\n")
            let found = try find("a.example", in: table(text))
            #expect(found?.count == HostsTable.maximumAddresses)
        }
    }

    @Test func `of a file beyond the limit the whole lines before it count`() throws {
        let line = "10.0.0.1 a.example\n"
        let filler = String(repeating: "#", count: HostsTable.maximumBytes - line.utf8.count - 1)
        let full = table("\(line)\(filler)\n")
        #expect(try find("a.example", in: full) == ["10.0.0.1"])
        let last = "10.0.0.2 b.example"
        let room = HostsTable.maximumBytes - line.utf8.count - last.utf8.count - 1
        let exact = table(line + String(repeating: "#", count: room) + "\n" + last)
        #expect(try find("b.example", in: exact) == ["10.0.0.2"])
        let over = table(line + String(repeating: "#", count: room) + "\n" + last + "x")
        #expect(try find("a.example", in: over) == ["10.0.0.1"])
        #expect(try find("b.example", in: over) == nil)
        #expect(try find("b.examplex", in: over) == nil)
    }
}

@Suite("A file that is watched")
struct WatchedFileTests {
    private func expect(
        _ file: inout WatchedFile, changed expected: Bool,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let changed = file.hasChanged()
        #expect(changed == expected, sourceLocation: sourceLocation)
    }

    @Test
    func `a change is seen once: content, another file in its place, removal, return`() throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/hosts"
        var file = WatchedFile(path: path)
        expect(&file, changed: false)
        #expect(file.read(maximumBytes: 10) == [])
        try folder.write("one", to: "hosts")
        expect(&file, changed: true)
        expect(&file, changed: false)
        #expect(file.read(maximumBytes: 10) == Array("one".utf8))
        try folder.write("three", to: "hosts")
        expect(&file, changed: true)
        try folder.write("other", to: "new")
        #expect(rename(folder.path + "/new", path) == 0)
        expect(&file, changed: true)
        #expect(file.read(maximumBytes: 10) == Array("other".utf8))
        #expect(unlink(path) == 0)
        expect(&file, changed: true)
        expect(&file, changed: false)
    }

    @Test
    func `a file is read up to the limit and one byte, so that more is seen to be there`() throws {
        let folder = TemporaryFolder()
        try folder.write("12345", to: "hosts")
        let file = WatchedFile(path: folder.path + "/hosts")
        #expect(file.read(maximumBytes: 5).count == 5)
        #expect(file.read(maximumBytes: 4).count == 5)
        #expect(file.read(maximumBytes: 3).count == 4)
    }
}
