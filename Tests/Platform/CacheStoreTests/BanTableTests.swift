import TestSupport
import Testing

@testable import CacheStore

@Suite("The table of bans")
struct BanTableTests {
    private func table(_ patterns: [BanPattern], isSoft: Bool = false) -> BanTable {
        var table = BanTable()
        for (number, pattern) in patterns.enumerated() {
            let mark = BanMark(serial: UInt64(number + 1), through: 100, time: 50)
            _ = table.add(Ban(pattern: pattern, isSoft: isSoft, mark: mark))
        }
        return table
    }

    private func isBanned(
        _ table: BanTable, _ key: String, head: String = "", _ age: BanAge = .born(0)
    ) -> Bool {
        !verdict(table, key, head: head, age).isNone
    }

    private func verdict(
        _ table: BanTable, _ key: String, head: String = "", _ age: BanAge = .born(0)
    ) -> BanVerdict {
        Array(key.utf8).withUnsafeBytes { key in
            Array("HTTP/1.1 200 OK\r\n\(head)".utf8).withUnsafeBytes { head in
                table.verdict(key: key, head: head, age)
            }
        }
    }

    private func host(_ text: String) throws -> BanPattern { .host(try PurgeHost(text)) }

    @Test(
        arguments: [
            ("a.example", "http://a.example/x", true), ("a.example", "https://a.example/", true),
            ("a.example", "http://a.example:8080/", true), ("A.Example", "http://a.example/", true),
            ("a.example", "http://b.example/a.example", false),
            ("a.example", "http://x.a.example/", false),
            ("a.example:80", "http://a.example/", true),
            ("a.example:80", "https://a.example/", false),
            ("a.example:443", "https://a.example/", true),
            ("a.example:8080", "http://a.example:8080/", true),
            ("*.a.example", "http://x.a.example/", true),
            ("*.a.example", "http://x.y.a.example/", false),
            ("*.a.example", "http://a.example/", false),
            ("**.a.example", "http://a.example/", true),
            ("**.a.example", "http://x.y.a.example:81/", true),
            ("**.a.example:81", "http://x.y.a.example/", false),
            ("**.a.example", "http://ba.example/", false),
            ("[::1]", "http://[::1]/", true), ("[::1]:8080", "http://[::1]:8080/", true),
            ("[::1]", "http://[::2]/", false),
            ("a.example", "upgraded:https://a.example/", true),
            ("a.example", "ways1f-reverse3:http://a.example/", true),
            ("a.example", "query:http://a.example/", true),
        ])
    func `a host is found by its name, label and port`(
        _ pattern: String, _ key: String, _ expected: Bool
    ) throws {
        #expect(isBanned(table([try host(pattern)]), key) == expected)
    }

    @Test(
        arguments: [
            ("", PurgeHostError.empty), ("a:0", .port), ("a:65536", .port), ("a:x", .port),
            ("a/b", .malformed), ("a.*.b", .malformed), ("*", .malformed), ("*.", .empty),
            ("a b", .malformed), ("*.[::1]", .malformed), ("[::1", .malformed),
        ])
    func `what names no host is refused`(_ text: String, _ expected: PurgeHostError) {
        #expect(throws: expected) { try PurgeHost(text) }
    }

    @Test(
        arguments: [
            ("http://a/x/", "http://a/x/y", true), ("http://a/x/", "http://a/x/", true),
            ("http://a/x/", "http://a/x", false), ("http://a/x", "http://a/xy?q", true),
            ("http://a/", "http://ab/", false), ("http://a", "http://ab/", true),
            ("http://a/", "reverse0:http://a/x", true), ("http://a/", "https://a/x", false),
            ("http://a/x", "query:http://a/x", true), ("http:", "reverse0:http://a/", true),
        ])
    func `a prefix is one of the URI, whatever the route`(
        _ prefix: String, _ key: String, _ expected: Bool
    ) {
        #expect(isBanned(table([.prefix(Array(prefix.utf8))]), key) == expected)
    }

    @Test func `among many prefixes exactly those that the URI begins with are found`() {
        var generator = SeededRandom(seed: 7)
        func text(_ count: Int) -> String {
            "http://a/" + String((0..<count).map { _ in "ab/".randomElement(using: &generator)! })
        }
        for _ in 0..<200 {
            let prefixes = (0..<40).map { _ in text(Int.random(in: 0..<8, using: &generator)) }
            let table = table(prefixes.map { .prefix(Array($0.utf8)) })
            for _ in 0..<50 {
                let key = text(Int.random(in: 0..<10, using: &generator))
                let expected = prefixes.contains { key.utf8.starts(with: $0.utf8) }
                #expect(isBanned(table, key) == expected, "\(prefixes) \(key)")
            }
        }
    }

    @Test func `prefixes that come and go leave the others as they are`() {
        var generator = SeededRandom(seed: 11)
        var table = PrefixTable<Int>()
        var known: [[UInt8]: Int] = [:]
        func text() -> [UInt8] {
            (0..<Int.random(in: 0..<6, using: &generator)).map { _ in
                UInt8.random(in: 97...98, using: &generator)
            }
        }
        for number in 0..<3000 {
            let prefix = text()
            switch number % 7 {
            case 0...3:
                table[prefix] = number
                known[prefix] = number
            case 4:
                table[prefix] = nil
                known[prefix] = nil
            case 5 where number % 49 == 5:
                table.removeAll { $0.first == 97 }
                known = known.filter { $0.key.first != 97 }
            default: break
            }
            var found: [Int] = []
            let bytes = text() + text()
            bytes.withUnsafeBytes { table.visit($0) { found.append($0) } }
            let expected = known.filter { bytes.starts(with: $0.key) }
                .sorted { $0.key.count > $1.key.count }.map(\.value)
            #expect(found == expected)
        }
    }

    @Test(
        arguments: [
            ("Surrogate-Key: one two", "two", true), ("Surrogate-Key: one two", "on", false),
            ("surrogate-key:one", "one", true), ("Cache-Tag: one, two three", "two three", true),
            ("Cache-Tag: one,two", "two", true), ("Cache-Tag: one,two", "one,two", false),
            ("Cache-Groups: \"one\", \"tw,o\"", "tw,o", true),
            ("Cache-Groups: \"one\";a=\"two\", \"three\"", "two", false),
            ("Cache-Groups: \"one\";a=\"two\", \"three\"", "three", true),
            ("Cache-Groups: \"a\\\"b\"", "a\"b", true), ("Cache-Groups: one", "one", false),
            ("X-Surrogate-Key: one", "one", false), ("Cache-Tags: one", "one", false),
            ("Surrogate-Key: One", "one", false),
        ])
    func `tags are members of three fields`(_ line: String, _ tag: String, _ expected: Bool) {
        let table = table([.tag(Array(tag.utf8), origin: nil)])
        let head = "Date: x\r\n\(line)\r\nETag: \"1\"\r\n"
        #expect(isBanned(table, "http://a/", head: head) == expected)
    }

    @Test func `a tag of an origin is not that of another`() {
        let table = table([.tag(Array("g".utf8), origin: Array("https://a:81".utf8))])
        let head = "Cache-Groups: \"g\"\r\n"
        #expect(isBanned(table, "https://a:81/x", head: head))
        #expect(isBanned(table, "reverse1:https://a:81/x", head: head))
        #expect(!isBanned(table, "https://a/x", head: head))
        #expect(!isBanned(table, "http://a:81/x", head: head))
    }

    @Test func `tags in trailers are none`() {
        let table = table([.tag(Array("g".utf8), origin: nil)])
        #expect(!isBanned(table, "http://a/", head: "A: b\r\n\r\nCache-Tag: g\r\n"))
    }

    @Test func `a key has its slices, QUERYs and routes, and no other key`() {
        let table = table([.key(Array("http://a/x".utf8))])
        #expect(isBanned(table, "http://a/x"))
        #expect(isBanned(table, "http://a/x\0" + String(repeating: "\u{1}", count: 16)))
        #expect(!isBanned(table, "http://a/xy"))
        #expect(isBanned(table, "query:http://a/x"))
        #expect(isBanned(table, "reverse3:http://a/x"))
    }

    @Test func `it is about what was stored before, and about nothing else`() {
        let table = table([.everything])
        #expect(isBanned(table, "http://a/", .born(0)))
        #expect(!isBanned(table, "http://a/", .born(1)))
        #expect(isBanned(table, "http://a/", .row(100)))
        #expect(!isBanned(table, "http://a/", .row(101)))
    }

    @Test func `of a hard and a soft ban of a pattern each is about its own past`() {
        var table = BanTable()
        let pattern = BanPattern.prefix(Array("http://a/".utf8))
        let (hard, soft) = (
            BanMark(serial: 5, through: 50, time: 500), BanMark(serial: 9, through: 90, time: 900)
        )
        _ = table.add(Ban(pattern: pattern, isSoft: false, mark: hard))
        _ = table.add(Ban(pattern: pattern, isSoft: true, mark: soft))
        #expect(verdict(table, "http://a/", .row(50)) == .gone(5))
        #expect(verdict(table, "http://a/", .row(51)) == .stale(9, since: 900))
        #expect(verdict(table, "http://a/", .row(91)) == .none)
        _ = table.retire { $0.serial == 5 }
        #expect(verdict(table, "http://a/", .row(50)) == .stale(9, since: 900))
        _ = table.retire { _ in true }
        #expect(table.isEmpty)
        #expect(table.bytes == 0)
    }

    @Test func `too many become a ban of more, never of less, and not of what came after them`() {
        var table = BanTable()
        let count = BanTable.maximumPatterns + 10
        for number in 1...count {
            let mark = BanMark(serial: UInt64(number), through: Int64(number), time: 1)
            let pattern = BanPattern.tag(Array("\(number)".utf8), origin: nil)
            _ = table.add(Ban(pattern: pattern, isSoft: false, mark: mark))
        }
        #expect(table.count <= BanTable.maximumPatterns)
        for number in [1, 100, count / 4, count] {
            let head = "Cache-Tag: \(number)\r\n"
            #expect(isBanned(table, "http://a/", head: head, .row(Int64(number))))
            #expect(!isBanned(table, "http://a/", head: head, .row(Int64(number + count))))
        }
        // What was stored after the last of those that were joined is what it was.
        #expect(!isBanned(table, "http://a/", head: "Cache-Tag: other\r\n", .row(Int64(count))))
        #expect(isBanned(table, "http://a/", head: "Cache-Tag: other\r\n", .row(1)))
    }
}
