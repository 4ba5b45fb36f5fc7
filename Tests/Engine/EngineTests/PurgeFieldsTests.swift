import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("The fields of a PURGE")
struct PurgeFieldsTests {
    private func read(_ lines: String...) throws(PurgeRequestError) -> PurgeFields {
        let text = "PURGE http://a.test/x HTTP/1.1\r\nHost: a.test\r\n"
        let bytes = Array((text + lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8)
        var parser = RequestHeadParser(limits: HeadLimits())
        var head = RequestHead()
        guard (try? parser.parse(bytes.span, into: &head)) == .complete(headBytes: bytes.count)
        else {
            Issue.record("not a head: \(lines)")
            throw .busy
        }
        return try PurgeFields(of: head, in: bytes.span)
    }

    private func texts(_ tags: [[UInt8]]) -> [String] {
        tags.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `without any of them the URL is meant`() throws {
        let fields = try read("Accept: */*")
        #expect(fields.tags.isEmpty)
        #expect(fields.groups.isEmpty)
        #expect(!fields.isSoft)
        #expect(!fields.isDryRun)
    }

    @Test func `tags are separated by what their field separates them by`() throws {
        #expect(
            texts(try read("Surrogate-Key: a  b,c", "surrogate-key: d").tags)
                == ["a", "b,c", "d"])
        #expect(texts(try read("Cache-Tag: a b ,, c").tags) == ["a b", "c"])
        #expect(texts(try read("Cache-Tag: a", "Surrogate-Key: b").tags) == ["a", "b"])
    }

    @Test(arguments: [
        (#""a""#, ["a"]), (#""a", "b c""#, ["a", "b c"]),
        (#" "a\"b" ,"c\\d" "#, [#"a"b"#, #"c\d"#]),
    ])
    func `groups are strings of a structured list`(value: String, groups: [String]) throws {
        #expect(texts(try read("Cache-Groups: \(value)").groups) == groups)
    }

    @Test(arguments: [
        "a", #""a"#, #""a","#, #","#, #""a" "b""#, #""a\b""#, #"("a")"#, #""ä""#,
    ])
    func `what is no list of strings is refused`(value: String) {
        let error = #expect(throws: PurgeRequestError.self) {
            try read("Cache-Groups: \(value)")
        }
        #expect(error?.reason == .malformed)
    }

    @Test(arguments: ["Surrogate-Key:", "Cache-Tag: ,", "Cache-Tag:  , ,", "Cache-Groups:"])
    func `a field without a tag does not stand for the URL`(line: String) {
        let error = #expect(throws: PurgeRequestError.self) { try read(line) }
        #expect(error?.reason == .malformed)
    }

    @Test func `the number and the length of tags are bounded`() throws {
        let most = (0..<PurgeFields.maximumTags).map { "\($0)" }.joined(separator: " ")
        #expect(try read("Surrogate-Key: \(most)").tags.count == PurgeFields.maximumTags)
        let long = String(repeating: "x", count: PurgeFields.maximumTagBytes + 1)
        for line in ["Surrogate-Key: \(most) one", "Cache-Tag: \(long)"] {
            let error = #expect(throws: PurgeRequestError.self) { try read(line) }
            #expect(error?.reason == .malformed)
        }
        #expect(throws: PurgeRequestError.self) {
            try read("Surrogate-Key: \(most)", #"Cache-Groups: "g""#)
        }
    }

    @Test(arguments: [("1", true), ("?1", true), ("True", true), ("0", false), ("?0", false)])
    func `flags are set by 1 and not by 0`(value: String, isSet: Bool) throws {
        #expect(try read("Soft-Purge: \(value)").isSoft == isSet)
        #expect(try read("Fastly-Soft-Purge: \(value)").isSoft == isSet)
        #expect(try read("Purge-Dry-Run: \(value)").isDryRun == isSet)
    }

    @Test(arguments: ["", "yes", "2", "1, 1", "on"])
    func `a flag with another value is refused`(value: String) {
        for name in ["Soft-Purge", "Fastly-Soft-Purge", "Purge-Dry-Run"] {
            let error = #expect(throws: PurgeRequestError.self) { try read("\(name): \(value)") }
            #expect(error == .malformed(field: name, expected: "1 or 0"))
        }
    }
}
