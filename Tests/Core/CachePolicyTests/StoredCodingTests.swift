import HTTPCore
import Testing

@testable import CachePolicy

@Suite("The coding of stored content")
struct StoredCodingTests {
    private func flags(
        _ fields: [String], status: Int, compressing types: [String]
    ) -> StoredFlags {
        var options = PolicyOptions()
        options.route.compressedTypes = CompressedTypes(types)
        return Stored(fields, status: status, options: options).metadata.flags
            .intersection(.dependsOnCoding)
    }

    @Test(
        arguments: [
            (["Content-Encoding: gzip"], 200, StoredFlags.encoded),
            (["Content-Encoding: zstd"], 200, .encoded),
            (["Content-Encoding: br", "Vary: Accept-Language"], 200, .encoded),
            (["Content-Encoding: gzip"], 404, .encoded),
            (["Content-Encoding: gzip", "Vary: Accept-Encoding"], 200, []),
            (["Content-Encoding: gzip", "Vary: foo , ACCEPT-ENCODING"], 200, []),
            (["Content-Encoding: gzip", "Vary: a", "Vary: Accept-Encoding"], 200, []),
            (["Content-Encoding: gzip", "Cache-Control: max-age=9, no-transform"], 200, []),
            (["Content-Encoding: gzip", "Cache-Control: no-transform"], 404, []),
            (["Content-Encoding: gzip"], 204, []),
            (["Content-Type: text/html", "Content-Encoding: gzip"], 200, .encoded),
            (["Content-Type: text/html"], 200, .compressible),
            (["Content-Type: TEXT/Plain; charset=utf-8"], 200, .compressible),
            (["Content-Type: application/json"], 200, .compressible),
            (["Content-Type: text/html", "Vary: Accept-Encoding"], 200, .compressible),
            (["Content-Type: text/html"], 404, []),
            (["Content-Type: image/png"], 200, []),
            (["Content-Type: application/json+x"], 200, []),
            (["Content-Type: textual/html"], 200, []),
            (["Content-Type: text/html;,image/png"], 200, []),
            (["Content-Type: text/html", "Content-Type: text/html"], 200, []),
            ([], 200, []),
            (["Content-Type: text/html", "Cache-Control: no-transform"], 200, []),
            (["Content-Type: text/html", "Cache-Control: private"], 200, []),
            (["Content-Type: text/html", "Set-Cookie: a=b", "Cache-Control: public"], 200, []),
        ] as [([String], Int, StoredFlags)])
    func `a stored head shows whether the content may be sent in another coding`(
        fields: [String], status: Int, expected: StoredFlags
    ) {
        let types = ["text/*", "application/json"]
        #expect(flags(fields, status: status, compressing: types) == expected)
        // Without the route's wish, nothing is compressed.
        #expect(
            flags(fields, status: status, compressing: [])
                == expected.subtracting(.compressible))
    }

    @Test func `where the field does not count, no response is selected by its coding`() {
        let fields = ["Content-Encoding: gzip", "Vary: Accept-Encoding"]
        var options = PolicyOptions()
        options.route.ignoredFields = [Array("accept".utf8)]
        #expect(!Stored(fields, options: options).metadata.flags.contains(.encoded))
        options.route.ignoredFields = [Array("accept-encoding".utf8)]
        #expect(Stored(fields, options: options).metadata.flags.contains(.encoded))
    }

    @Test func `a directive that a targeted field replaces still forbids a change`() {
        var options = PolicyOptions()
        options.route.targetedFields = [PolicyOptions.cdnCacheControl]
        options.route.compressedTypes = CompressedTypes(["*/*"])
        for forbidding in ["Cache-Control: no-transform", "Cache-Control: private"] {
            let fields = ["Content-Type: text/html", "CDN-Cache-Control: max-age=9", forbidding]
            let flags = Stored(fields, options: options).metadata.flags
            #expect(flags.isDisjoint(with: .dependsOnCoding))
        }
    }

    @Test(
        arguments: [
            (["Content-Encoding: gzip", "Vary: Accept-Encoding"], 200, true),
            (["Content-Encoding: gzip"], 404, true),
            (["Vary: Accept-Encoding"], 200, false),
            (["Content-Encoding: gzip", "Cache-Control: no-transform"], 200, false),
            (["Content-Encoding: gzip"], 204, false),
        ] as [([String], Int, Bool)])
    func `a variant that was selected by its coding may be decoded unless it is forbidden`(
        fields: [String], status: Int, expected: Bool
    ) {
        let stored = Stored(fields, status: status)
        let mayBe = StoredCoding.mayBeDecoded(stored.head.span)
        #expect(mayBe == expected)
    }

    @Test func `the keys of other requests are those that they would have`() {
        let names: [UInt8] = [15] + Array("accept-encoding".utf8) + [1] + Array("b".utf8)
        let request = Request(["B: 1"])
        let own = VaryKey(names: names, for: request.head, in: request.bytes.span)
        for (index, value) in VaryKey.commonCodings.enumerated() {
            let text = String(decoding: value, as: UTF8.self)
            let other = Request(["Accept-Encoding: \(text)", "B: 1"])
            let expected = VaryKey(names: names, for: other.head, in: other.bytes.span)
            #expect(own?.ofOtherCoding(index) == expected, "\(text)")
        }
        #expect(VaryKey.none.ofOtherCoding(0) == nil)
    }

    @Test(
        arguments: [
            ([], true), (["accept"], true), (["accept-encoding", "user-agent"], true),
            (["cookie"], false), (["accept", "x-tenant"], false), (["authorization"], false),
            (["accept-"], false),
        ] as [([String], Bool)])
    func `what is selected by who asks is not for everyone`(
        fields: [String], expected: Bool
    ) {
        let names = fields.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        for request in [Request(), Request(fields.map { "\($0): a" })] {
            let key = VaryKey(names: names, for: request.head, in: request.bytes.span)
            #expect(key?.isForEveryone == expected)
        }
    }

    @Test func `a date is no strong validator of content in another coding`() {
        let fields = ["Date: \(date())", "Last-Modified: \(date(-1000))", "ETag: \"a\""]
        let stored = Stored(fields).metadata
        #expect(stored.flags.contains(.strongLastModified))
        let other = stored.inOtherCoding(count: 7)
        #expect(!other.flags.contains(.strongLastModified))
        #expect(other.bodyBytes == 7)
        #expect(other.lastModifiedTime == stored.lastModifiedTime)
    }

    @Test(
        arguments: [
            (["Accept-Encoding: gzip"], [], true),
            (["Accept-Encoding: gzip"], ["Accept-Encoding: br"], true),
            (["Accept-Encoding: gzip", "A: 1"], ["A: 1"], true),
            (["Accept-Encoding: gzip", "A: 1"], ["A: 2"], false),
            (["A: 1"], ["Accept-Encoding: gzip", "A: 1"], true),
        ] as [([String], [String], Bool)])
    func `a variant may differ from what a request selects in its coding alone`(
        first: [String], second: [String], expected: Bool
    ) throws {
        let request = Request(first)
        let names: [UInt8] = [1] + Array("a".utf8) + [15] + Array("accept-encoding".utf8)
        let stored = VaryKey(names: names, for: request.head, in: request.bytes.span)
        let others = try #require(stored?.ignoring("accept-encoding"))
        #expect(VaryKey(bytes: others.bytes) == others)
        let other = Request(second)
        #expect(others.matches(other) == expected)
        #expect(others.ignoring("accept-encoding") == nil)
        #expect(VaryKey.none.ignoring("accept-encoding") == nil)
        #expect(others.ignoring("a") == VaryKey.none)
    }
}
