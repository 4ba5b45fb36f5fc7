import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Values that mean the same")
struct FieldMeaningsTests {
    private func key(
        _ vary: String, for fields: [String], _ meanings: FieldMeanings = [],
        ignoring ignored: [String] = []
    ) throws(NotStoredReason) -> VaryKey {
        let request = Request(fields)
        let bytes = Array(vary.utf8)
        var names = VaryNames()
        names.add(ByteRange(from: 0, to: bytes.count), in: bytes.span)
        var options = PolicyOptions()
        options.route.meanings = meanings
        options.route.ignoredFields = ignored.map { Array($0.utf8) }
        return try names.key(
            in: bytes.span, for: request.head, in: request.bytes.span, options: options)
    }

    /// Whether a response stored for one request may answer another, by every way to find out.
    private func matches(
        _ vary: String, _ first: String, _ second: String, _ meanings: FieldMeanings
    ) throws -> Bool {
        let stored = try key(vary, for: [first], meanings)
        #expect(VaryKey(bytes: stored.bytes) == stored)
        let request = Request([second])
        let isMatch = stored.matches(request)
        #expect(try isMatch == (key(vary, for: [second], meanings) == stored))
        let named = VaryKey(names: stored.names, for: request.head, in: request.bytes.span)
        #expect(isMatch == (named == stored))
        return isMatch
    }

    @Test(
        arguments: [
            ("gzip, br", "br, gzip", true), ("gzip, deflate, br", "br,deflate,gzip", true),
            ("gzip, br", "gzip", false), ("gzip, br", "gzip, br;q=0.5", false),
            ("gzip;q=0.5, br", "br, gzip;q=0.5", false), ("GZIP, br", "br, gzip", true),
            ("gzip, deflate, br, zstd", "zstd, br, deflate, gzip", true),
            ("foo, gzip", "gzip, foo", true), ("gzip, gzip", "gzip", false),
            ("gzip,,br", "br , gzip", true),
        ])
    func `the order of members without weights makes no difference`(
        first: String, second: String, isSame: Bool
    ) throws {
        for name in ["Accept-Encoding", "Accept-Language"] {
            let result = try matches(name, "\(name): \(first)", "\(name): \(second)", [])
            #expect(result == isSame, "\(name)")
        }
    }

    @Test func `the order matters in other fields`() throws {
        #expect(try !matches("Accept", "Accept: a/b, c/d", "Accept: c/d, a/b", []))
    }

    @Test func `what browsers send is compared without being put in order`() throws {
        for value in ["gzip, deflate, br, zstd", "gzip, deflate, br", "gzip, deflate", "gzip"] {
            let stored = try key("Accept-Encoding", for: ["Accept-Encoding: \(value)"])
            #expect(text(stored.bytes).hasSuffix(value.replacing(", ", with: ",")))
        }
    }

    @Test(
        arguments: [
            ("gzip, br", "br;q=0.9, gzip;q=0.1", true), ("gzip", "gzip, identity", true),
            ("gzip", "gzip;q=0.5", true), ("gzip, br", "gzip", false),
            ("gzip, br;q=0", "gzip", true), ("x-gzip", "gzip", true),
            ("gzip, foo", "gzip", false), ("gzip, *", "gzip", false), ("*", "gzip", false),
            ("gzip, identity;q=0", "gzip", false), ("gzip;q=2", "gzip", false),
            ("gzip;x=1", "gzip", false), ("gzip, br", "br;q=1.000, gzip;q=0.001", true),
            ("gzip;q=1.001", "gzip", false), ("identity", "identity;q=0.1", true),
        ])
    func `a set of known codings is the same set whatever the weights`(
        first: String, second: String, isSame: Bool
    ) throws {
        let name = "Accept-Encoding"
        #expect(
            try matches(name, "\(name): \(first)", "\(name): \(second)", .acceptEncoding) == isSame)
    }

    @Test(
        arguments: [
            ("de-DE, de;q=0.9, en;q=0.8", "de-de,de;q=0.7,en;q=0.1", true),
            ("de, en;q=0.5", "en, de;q=0.5", false), ("de, en", "en, de", true),
            ("de, en", "de, en;q=0.5", false), ("de;q=0.5, en", "en, de;q=0.5", true),
            ("de, en;q=0", "de", false), ("de;q=0.8", "de", true), ("*", "*;q=0.5", true),
            ("de;q=x", "de", false),
        ])
    func `languages are the same if they are wanted in the same order`(
        first: String, second: String, isSame: Bool
    ) throws {
        let name = "Accept-Language"
        #expect(
            try matches(name, "\(name): \(first)", "\(name): \(second)", .acceptLanguage) == isSame)
    }

    @Test func `nobody can write what a value means`() throws {
        let name = "Accept-Language"
        for written in ["de>en", "de!en", "de<en", "<de", "!de", "de,>en"] {
            for meant in ["de, en;q=0.5", "de;q=0.5, en;q=0", "de", "de;q=0"] {
                #expect(
                    try key(name, for: ["\(name): \(meant)"], .acceptLanguage)
                        != key(name, for: ["\(name): \(written)"], .acceptLanguage))
            }
        }
    }

    @Test func `a long list is compared as it is`() throws {
        let name = "Accept-Encoding"
        let members = (0..<200).map { "x\($0)" }
        let (one, other) = (
            members.joined(separator: ","), members.reversed().joined(separator: ",")
        )
        for meanings in [[], FieldMeanings.acceptEncoding] {
            #expect(try matches(name, "\(name): \(one)", "\(name): \(one)", meanings))
            #expect(try !matches(name, "\(name): \(one)", "\(name): \(other)", meanings))
        }
        let stored = try key(name, for: ["\(name): br, gzip"])
        #expect(!stored.matches(Request(["\(name): \(one)"])))
    }

    @Test func `a key says by itself what it compares by meaning`() throws {
        let name = "Accept-Encoding"
        let stored = try key(name, for: ["\(name): gzip;q=0.5"], .acceptEncoding)
        #expect(stored.matches(Request(["\(name): gzip"])))
        #expect(!stored.matches(Request(["\(name): br"])))
        #expect(!stored.matches(Request()))
        let absent = try key(name, for: [], .acceptEncoding)
        #expect(absent.matches(Request()) && !absent.matches(Request(["\(name): gzip"])))
        // The other field is compared as it is written.
        let both = try key(
            "Accept-Encoding, Accept-Language",
            for: ["\(name): gzip", "Accept-Language: de;q=0.5"], .acceptEncoding)
        #expect(both.matches(Request(["\(name): gzip;q=0.1", "Accept-Language: de;q=0.5"])))
        #expect(!both.matches(Request(["\(name): gzip", "Accept-Language: de"])))
    }

    @Test func `a key with other fields alone has no such member`() throws {
        let plain = try key("Foo", for: ["Foo: 1"])
        #expect(try key("Foo", for: ["Foo: 1"], [.acceptEncoding, .acceptLanguage]) == plain)
    }

    @Test func `ignored fields are no part of the key`() throws {
        let stored = try key(
            "User-Agent, Foo", for: ["User-Agent: a", "Foo: 1"], ignoring: ["user-agent"])
        #expect(stored.matches(Request(["User-Agent: b", "Foo: 1"])))
        #expect(!stored.matches(Request(["User-Agent: a", "Foo: 2"])))
        #expect(try key("User-Agent", for: [], ignoring: ["user-agent"]) == .none)
    }

    @Test func `the variant of a QUERY with meanings matches by both`() throws {
        let name = "Accept-Encoding"
        let request = Request(
            ["\(name): gzip;q=0.1", "Content-Type: a/b", "Content-Length: 1"], method: "QUERY")
        let content = Array("x".utf8)
        let digest = ContentDigest(
            of: content.span, describedBy: request.head, in: request.bytes.span)
        let stored = try key(name, for: ["\(name): gzip"], .acceptEncoding)
            .of(content: #require(digest))
        let isMatch = try stored.matches(
            request.head, in: request.bytes.span, content: #require(digest))
        #expect(isMatch)
        #expect(!stored.matches(request))
    }
}
