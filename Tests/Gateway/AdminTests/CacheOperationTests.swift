import HTTPCore
import Testing

@testable import Gateway

@Suite("A query of the administrative API")
struct AdminQueryTests {
    @Test func `names and values are decoded`() {
        let query = AdminQuery(target: "/x?a=1&b=x%20y+z&c&a=2&d=%zz&=e&%61%62=%3D%26")
        #expect(query["a"] == "2")
        #expect(query.all("a") == ["1", "2"])
        #expect(query["b"] == "x y z")
        #expect(query["c"] == "")
        #expect(query["d"] == "%zz")
        #expect(query["ab"] == "=&")
        #expect(query["e"] == nil)
        #expect(AdminQuery(target: "/x")["a"] == nil)
    }

    @Test func `names that are not known are found`() {
        let query = AdminQuery(target: "/x?a=1&b=2")
        #expect(query.unknown(besides: ["a", "b"]) == nil)
        #expect(query.unknown(besides: ["a"]) == "b")
    }
}

@Suite("What an operator wants purged")
struct PurgeCommandTests {
    private func read(_ text: String) throws -> PurgeCommand {
        try PurgeCommand(Array(text.utf8))
    }

    @Test func `each member is read`() throws {
        let command = try read(
            """
            {"urls": ["http://a.test/"], "prefixes": ["http://a.test/x"], "hosts": ["*.a.test"],
             "tags": ["t"], "everything": true, "soft": true, "dryRun": true}
            """)
        #expect(command.urls == ["http://a.test/"])
        #expect(command.prefixes == ["http://a.test/x"])
        #expect(command.hosts == ["*.a.test"])
        #expect(command.tags == ["t"])
        #expect(command.everything && command.isSoft && command.isDryRun)
        #expect(try !read(#"{"tags": ["t"]}"#).isSoft)
    }

    @Test(arguments: [
        "", "[]", "{}", "{", #"{"urls": []}"#, #"{"urls": "x"}"#, #"{"urls": [1]}"#,
        #"{"tags": [""]}"#, #"{"everything": false}"#, #"{"everything": "true"}"#,
        #"{"soft": true}"#, #"{"tag": ["t"]}"#, #"{"tags": ["t"], "soft": 1}"#,
    ])
    func `what says nothing clear purges nothing`(text: String) {
        #expect(throws: PurgeCommand.PurgeCommandError.self) { try read(text) }
    }

    @Test func `the number of targets is bounded`() throws {
        func command(_ count: Int) -> String {
            #"{"tags": ["# + (0..<count).map { "\"\($0)\"" }.joined(separator: ",") + "]}"
        }
        #expect(
            try read(command(PurgeCommand.maximumTargets)).tags.count
                == PurgeCommand.maximumTargets)
        #expect(throws: PurgeCommand.PurgeCommandError.self) {
            try read(command(PurgeCommand.maximumTargets + 1))
        }
    }
}

@Suite("The URL of a stored response")
struct StoredURLTests {
    static let keys: [(String, route: String?, isQuery: Bool, text: String, host: String, UInt16)] =
        [
            ("http://a.test/x?y", nil, false, "http://a.test/x?y", "a.test", 80),
            ("https://a.test:8443/", nil, false, "https://a.test:8443/", "a.test", 8443),
            ("https://[::1]/", nil, false, "https://[::1]/", "::1", 443),
            ("https://[::1]:81/", nil, false, "https://[::1]:81/", "::1", 81),
            ("query:http://a.test/", nil, true, "http://a.test/", "a.test", 80),
            ("reverse1:http://a.test/", "reverse1", false, "http://a.test/", "a.test", 80),
            (
                "ways2-reverse1-query:https://a.test/", "ways2-reverse1", true, "https://a.test/",
                "a.test", 443
            ),
            ("http://a.test/x\u{0}0123456789abcdef", nil, false, "http://a.test/x", "a.test", 80),
        ]

    @Test(arguments: keys)
    func `its parts are those of the key`(
        key: String, route: String?, isQuery: Bool, text: String, host: String, port: UInt16
    ) {
        let url = StoredURL(key: Array(key.utf8))
        #expect(url.route == route)
        #expect(url.isQuery == isQuery)
        #expect(url.text == text)
        #expect(url.host == host)
        #expect(url.port == port)
    }
}

@Suite("An archive of stored responses")
struct CacheArchiveTests {
    private let entry = ArchivedEntry(
        policy: 0xFEDC_BA98_7654_3210, requestTime: 1, responseTime: 2, initialAge: 3,
        staleSince: 4, bytes: 1 << 40, key: Array("http://a.test/".utf8), vary: [1, 2],
        head: [0, 255])

    private var archive: [UInt8] {
        var archive = CacheArchive.magic
        CacheArchive.append(.entry, entry.record, to: &archive)
        CacheArchive.append(.content, Array("abc".utf8), to: &archive)
        CacheArchive.append(.entryEnd, [0, 0, 0, 0, 0, 0, 0, 1], to: &archive)
        CacheArchive.append(.archiveEnd, [0, 0, 0, 0, 0, 0, 0, 1], to: &archive)
        return archive
    }

    /// The records, read in pieces of a size.
    private func records(_ bytes: [UInt8], by size: Int) throws -> [String] {
        var reader = ArchiveReader()
        var found: [String] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = bytes[start..<min(start + size, bytes.count)]
            try reader.read(piece) { (record) throws(ArchiveError) in
                found.append("\(record.kind) \(record.bytes.count)")
            }
        }
        if !reader.isComplete { found.append("incomplete") }
        return found
    }

    @Test(arguments: [1, 2, 7, 1000])
    func `records are found whatever the pieces`(size: Int) throws {
        #expect(
            try records(archive, by: size) == [
                "entry \(entry.record.count)", "content 3", "entryEnd 8", "archiveEnd 8",
            ])
    }

    @Test func `an archive that is cut is incomplete`() throws {
        for length in 0..<archive.count {
            #expect(try records(Array(archive[..<length]), by: 1000).last == "incomplete")
        }
    }

    @Test func `nothing is kept of what follows the last record`() throws {
        var reader = ArchiveReader()
        var found = 0
        for piece in [archive + archive] + [[UInt8]](repeating: archive, count: 5) {
            try reader.read(piece) { (_) throws(ArchiveError) in found += 1 }
            #expect(reader.isComplete && reader.held.isEmpty)
        }
        #expect(found == 4)
    }

    @Test func `something else is refused`() {
        for text in ["GIF89a", "PINFOLD-CACHEx2\nxxxxxx", "X"] {
            #expect(throws: ArchiveError.otherFormat) { try records(Array(text.utf8), by: 3) }
        }
        for text in ["PINFOLD-CACHE-0\n", "PINFOLD-CACHE-3\n", "PINFOLD-CACHE-10"] {
            #expect(throws: ArchiveError.otherVersion) { try records(Array(text.utf8), by: 3) }
        }
        #expect(throws: ArchiveError.malformed) {
            try records(CacheArchive.magic + [9, 0, 0, 0, 0], by: 1000)
        }
        #expect(throws: ArchiveError.malformed) {
            try records(CacheArchive.magic + [2, 255, 255, 255, 255], by: 1000)
        }
    }

    @Test func `an entry is read as it was written`() {
        #expect(ArchivedEntry(entry.record[...]) == entry)
        for length in 0..<entry.record.count {
            #expect(ArchivedEntry(entry.record[..<length]) == nil)
        }
        #expect(ArchivedEntry((entry.record + [0])[...]) == nil)
    }

    /// The record of the same entry in version 1, which has no `staleSince`.
    private var firstRecord: [UInt8] {
        Array(entry.record[..<32] + entry.record[40...])
    }

    @Test func `an archive of the first version has no slices, and nothing of it is stale`()
        throws
    {
        var known = entry
        known.staleSince = 0
        #expect(ArchivedEntry(firstRecord[...], version: 1) == known)
        #expect(ArchivedEntry(firstRecord[...]) == nil)
        var first = Array("PINFOLD-CACHE-1\n".utf8)
        CacheArchive.append(.entry, firstRecord, to: &first)
        var reader = ArchiveReader()
        try reader.read(first) { (record) throws(ArchiveError) in
            #expect(record.version == 1)
        }
        CacheArchive.append(.slice, firstRecord, to: &first)
        #expect(throws: ArchiveError.malformed) { try records(first, by: 1000) }
    }

    @Test func `a time since when it is stale that can be none is refused`() {
        var record = entry.record
        record[32] = 0x80
        #expect(ArchivedEntry(record[...]) == nil)
    }

    @Test func `the hash does not depend on the pieces`() {
        var whole = ArchiveHash()
        whole.add(Array("abcdef".utf8))
        var parts = ArchiveHash()
        parts.add(Array("abc".utf8))
        parts.add(Array("def".utf8))
        #expect(whole == parts)
        // Of the reference (draft-eastlake-fnv): "foobar".
        var known = ArchiveHash()
        known.add(Array("foobar".utf8))
        #expect(known.value == 0x8594_4171_F739_67E8)
    }
}
