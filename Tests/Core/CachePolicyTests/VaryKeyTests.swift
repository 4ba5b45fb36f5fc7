import HTTPCore
import Testing

@testable import CachePolicy

@Suite("The secondary key, by RFC 9111 §4.1")
struct VaryKeyTests {
    private func key(_ vary: [String], for fields: [String]) throws(NotStoredReason) -> VaryKey {
        let request = Request(fields)
        let bytes = Array(vary.joined(separator: "\n").utf8)
        var names = VaryNames()
        var start = 0
        for line in vary {
            names.add(ByteRange(from: start, to: start + line.utf8.count), in: bytes.span)
            start += line.utf8.count + 1
        }
        return try names.key(
            in: bytes.span, for: request.head, in: request.bytes.span, options: PolicyOptions())
    }

    /// Whether a response stored for one request may answer another.
    private func matches(_ vary: String, _ first: [String], _ second: [String]) throws -> Bool {
        let stored = try key([vary], for: first)
        let again = VaryKey(bytes: stored.bytes)
        #expect(again == stored)
        let request = Request(second)
        let isMatch = stored.matches(request)
        // The match and a newly computed key must agree, or one response would be stored twice.
        #expect(try isMatch == (key([vary], for: second) == stored))
        // And so must a key computed from the names alone.
        let named = VaryKey(names: stored.names, for: request.head, in: request.bytes.span)
        #expect(isMatch == (named == stored))
        return isMatch
    }

    @Test(
        arguments: [
            ("Foo", ["Foo: 1"], ["Foo: 1"], true), ("Foo", ["Foo: 1"], ["Foo: 2"], false),
            ("Foo", ["Foo: 1"], [], false), ("Foo", [], ["Foo: 1"], false), ("Foo", [], [], true),
            ("Foo", ["Foo: 1"], ["foo: 1"], true), ("FOO", ["Foo: 1"], ["foo: 1"], true),
            ("Foo", ["Foo: 1", "Other: 2"], ["Foo: 1", "Other: 3"], true),
            ("Foo", ["Foo:"], [], false), ("Foo", ["Foo:"], ["Foo: "], true),
            ("Foo", ["Foo: 1"], ["Foo: 12"], false), ("Foo", ["Foo: 12"], ["Foo: 1"], false),
            ("Foo, Bar", ["Foo: 1", "Bar: a"], ["Bar: a", "Foo: 1"], true),
            ("Foo, Bar", ["Foo: 1", "Bar: a"], ["Foo: 2", "Bar: a"], false),
            ("Foo, Bar", ["Foo: 1", "Bar: a"], ["Foo: a", "Bar: 1"], false),
            ("Foo, Bar", ["Foo: 1"], [], false),
            ("Foo, Bar, Baz", ["Foo: 1", "Baz: 7"], ["Foo: 1", "Baz: 7"], true),
            (
                "Foo, Bar, Baz", ["Foo: 1", "Bar: 4", "Baz: 7"], ["Foo: 1", "Bar: 5", "Baz: 7"],
                false
            ),
            ("Foo, Bar, Baz", ["Foo: 1", "Baz: 7"], ["Foo: 1", "Bar: 7"], false),
            ("Foo", ["Foo: A"], ["Foo: a"], false),
        ] as [(String, [String], [String], Bool)])
    func `a request matches if every nominated field has the same value, or is absent in both`(
        vary: String, first: [String], second: [String], expected: Bool
    ) throws {
        #expect(try matches(vary, first, second) == expected)
    }

    @Test(
        arguments: [
            ("Foo", ["Foo: 1", "Connection: foo"], ["Foo: 1"], false),
            ("Foo", ["Foo: 1"], ["Foo: 1", "Connection: Foo"], false),
            ("Foo", ["Foo: 1", "Connection: foo"], [], true),
            ("Foo", [], ["Connection: close, foo", "Foo: 1"], true),
            ("Foo", ["Foo: 1", "Connection: foo"], ["Foo: 2", "Connection: foo"], true),
            ("Cookie", ["Cookie: 1", "Connection: cookie"], ["Cookie: 1"], false),
            ("Cookie", ["Cookie: 1", "Connection: cookie"], [], true),
        ] as [(String, [String], [String], Bool)])
    func `a field that Connection names is absent: the origin does not see it`(
        vary: String, first: [String], second: [String], expected: Bool
    ) throws {
        #expect(try matches(vary, first, second) == expected)
    }

    @Test(
        arguments: [
            ("Foo", ["Foo: 1, 2"], ["Foo: 1,2"], true),
            ("Foo", ["Foo: 1,2"], ["Foo:   1 ,\t2  "], true),
            ("Foo", ["Foo: 1, 2"], ["Foo: 1", "Foo: 2"], true),
            ("Foo", ["Foo: 1", "Foo: 2"], ["Foo: 2", "Foo: 1"], false),
            ("Foo", ["Foo: 1,,2"], ["Foo: 1, 2"], true), ("Foo", ["Foo: ,1,"], ["Foo: 1"], true),
            ("Foo", ["Foo: 1", "Foo:", "Foo: 2"], ["Foo: 1, 2"], true),
            ("Foo", ["Foo: 1 2"], ["Foo: 12"], false), ("Foo", ["Foo: 1 2"], ["Foo: 1  2"], false),
            ("Foo", ["Foo: \"1, 2\""], ["Foo: \"1,2\""], false),
            ("Foo", ["Foo: \"1\\\", 2\", 3"], ["Foo: \"1\\\", 2\",3"], true),
            ("Foo", ["Foo: \"1\\\", 2\""], ["Foo: \"1\\\",2\""], false),
            ("Foo", ["Foo: 1,2"], ["Foo: 12"], false),
            ("Accept-Encoding", ["Accept-Encoding: gzip, BR"], ["Accept-Encoding: GZIP,br"], true),
            ("Accept-Encoding", ["Accept-Encoding: gzip;q=0.5"], ["Accept-Encoding: gzip"], false),
            ("Accept-Language", ["Accept-Language: en, de"], ["Accept-Language: EN,DE"], true),
            ("Accept-Language", ["Accept-Language: en, de"], ["Accept-Language: de, en"], true),
            ("Accept-Charset", ["Accept-Charset: a, b"], ["Accept-Charset: b, a"], false),
            ("Accept", ["Accept: a/b, c/d"], ["Accept: a/b,c/d"], true),
        ] as [(String, [String], [String], Bool)])
    func `values are compared after joining lines and dropping whitespace around commas`(
        vary: String, first: [String], second: [String], expected: Bool
    ) throws {
        #expect(try matches(vary, first, second) == expected)
    }

    @Test(
        arguments: [
            ("User-Agent", ["User-Agent: a, b"], ["User-Agent: a,b"], false),
            ("User-Agent", ["User-Agent: a, b"], ["User-Agent: a, b"], true),
            ("Cookie", ["Cookie: a=1", "Cookie: b=2"], ["Cookie: a=1", "Cookie: b=2"], true),
            ("Cookie", ["Cookie: a=1", "Cookie: b=2"], ["Cookie: a=1,b=2"], false),
            ("Cookie", ["Cookie: a=1", "Cookie: b=2"], ["Cookie: a=1b=2"], false),
            ("Authorization", ["Authorization: B x"], ["Authorization: B X"], false),
        ] as [(String, [String], [String], Bool)])
    func `fields that are no lists are compared as they are`(
        vary: String, first: [String], second: [String], expected: Bool
    ) throws {
        #expect(try matches(vary, first, second) == expected)
    }

    @Test func `the order, case and repetition of the names in Vary make no other key`() throws {
        let fields = ["Foo: 1", "Bar: 2"]
        let key = try key(["Foo, Bar"], for: fields)
        #expect(try self.key(["bar,foo"], for: fields) == key)
        #expect(try self.key(["Bar", "Foo, bar"], for: fields) == key)
        #expect(try self.key(["Foo"], for: fields) != key)
    }

    @Test func `a response without Vary, or with an empty one, matches every request`() throws {
        let request = Request(["Foo: 1"])
        #expect(VaryKey.none.matches(request))
        #expect(try key([], for: ["Foo: 1"]) == .none)
        #expect(try key(["", " , ,"], for: ["Foo: 1"]) == .none)
        #expect(VaryKey(bytes: []) == VaryKey.none)
    }

    @Test func `a name may be as long as the limit, and no longer`() {
        let name = String(repeating: "n", count: VaryKey.maximumNameBytes)
        #expect(throws: Never.self) { try key([name], for: []) }
        #expect(throws: NotStoredReason.varyAny) { try key([name + "n"], for: []) }
    }

    @Test func `the serialised form is as documented`() throws {
        let key = try key(["Foo, Bar"], for: ["Foo: x, y"])
        #expect(key.bytes == [1, 3] + "bar".utf8 + [0, 3] + "foo".utf8 + [1, 0, 3] + "x,y".utf8)
    }

    @Test(
        arguments: [
            [1], [2, 1, 0x61, 0], [1, 0, 0], [1, 1], [1, 1, 0x61], [1, 1, 0x61, 2],
            [1, 1, 0x61, 1], [1, 1, 0x61, 1, 0], [1, 1, 0x61, 1, 0, 1], [1, 1, 0x61, 0, 5],
            [1, 1, 0x61, 1, 0xFF, 0xFF, 0x61], [1, 0xFF, 0x61, 0],
        ] as [[UInt8]])
    func `bytes that are no serialised key are refused`(bytes: [UInt8]) {
        #expect(VaryKey(bytes: bytes) == nil)
    }

    @Test
    func `every prefix of a serialised key is a key or refused, and can then be matched`() throws {
        let request = Request(["Foo: 1, 2", "Bar: \"q\""])
        let bytes = try key(["Foo, Bar, Baz"], for: ["Foo: 1, 2", "Bar: \"q\""]).bytes
        for count in 0...bytes.count {
            if let key = VaryKey(bytes: Array(bytes[..<count])) {
                #expect(key.matches(request))
            }
        }
    }
}
