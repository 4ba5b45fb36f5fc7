import Testing

@testable import Trust

@Suite("The parts of the rules")
struct RuleTests {
    @Test func `every rule has a token and a sentence of its own`() {
        let rules = CertificateRule.allCases
        #expect(Set(rules.map(\.token)).count == rules.count)
        #expect(Set(rules.map(\.problem)).count == rules.count)
        for rule in rules {
            #expect(
                rule.token.utf8.allSatisfy {
                    "abcdefghijklmnopqrstuvwxyz-0123456789".utf8.contains($0)
                })
        }
    }

    @Test(
        arguments: [
            ("a", true), ("a.b", true), ("xn--nxasmq6b.example", true), ("A-1.B", true),
            ("127.0.0.1", true), (String(repeating: "a", count: 63) + ".b", true), ("", false),
            (".a", false), ("a.", false), ("a..b", false), ("a_b.c", false), ("-a.b", false),
            ("a-.b", false), ("a.-b", false), ("*.a", false), ("a b", false), ("a\0.b", false),
            ("é.b", false), (String(repeating: "a", count: 64) + ".b", false),
            (String(repeating: "a.", count: 126) + "ab", false),
        ])
    func `names of hosts are letters, digits and hyphens between dots`(name: String, isHost: Bool) {
        #expect(LeafNames.isHost(Array(name.utf8)[...]) == isHost)
        #expect(LeafNames.isWildcard(Array("*.\(name)".utf8)[...]) == isHost || name.count > 250)
    }

    @Test(
        arguments: [
            ("a_b.test", true), ("_a.test", true), ("*.a_b.test", true), ("a_.b", true),
            ("a_b..test", false), ("a_b*.test", false), ("a_b.test.", false), ("-_.test", false),
        ])
    func `an underscore is distinguished from what is worse`(name: String, isOnly: Bool) {
        #expect(LeafNames.hasUnderscoreOnly(Array(name.utf8)[...]) == isOnly)
    }

    @Test(
        arguments: [
            ("service.test", true), ("localhost", true), ("LOCALHOST", true), ("127.0.0.1", true),
            ("::1", true), ("[::1]", true), ("0x7f000001", true), ("2001:DB8:0::1", true),
            ("*.example.com", true), ("bücher.example", true), ("a_b.c", true), ("1.2.3.4.5", true),
            ("Leaf", false), ("Example Inc.", false), ("My Server", false), ("a@b.c", false),
            ("", false), (".", false), ("https://a.b/", false), ("1234", false),
        ])
    func `common names that look like hosts`(name: String, looksLikeHost: Bool) {
        #expect(LeafNames.looksLikeHost(Array(name.utf8)) == looksLikeHost)
    }

    @Test func `an address is named by its canonical text only`() {
        func isText(_ name: String, _ bytes: [UInt8]) -> Bool {
            LeafNames.isText(Array(name.utf8), of: .address(bytes[...]))
        }
        let six: [UInt8] = [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]
        #expect(isText("127.0.0.1", [127, 0, 0, 1]))
        #expect(isText("2001:db8::1", six))
        for other in ["2001:DB8::1", "2001:db8:0::1", "2001:db8::01"] {
            #expect(!isText(other, six))
        }
        #expect(!isText("127.0.0.01", [127, 0, 0, 1]))
        #expect(!isText("127.0.0.1", [127, 0, 0]))
    }

    private static func subtrees(_ tag: UInt8, _ bases: [[UInt8]]) -> [UInt8] {
        var list: [UInt8] = []
        for base in bases { list += [0x30, UInt8(base.count)] + base }
        return [tag, UInt8(list.count)] + list
    }

    private static func constraints(_ lists: [UInt8]...) -> [UInt8] {
        let inner = lists.flatMap { $0 }
        return [0x30, UInt8(inner.count)] + inner
    }

    private static func dns(_ name: String) -> [UInt8] {
        [0x82, UInt8(name.utf8.count)] + Array(name.utf8)
    }

    private static func network(_ bytes: [UInt8]) -> [UInt8] { [0x87, UInt8(bytes.count)] + bytes }

    @Test(
        arguments: [
            (constraints(subtrees(0xA0, [dns("a.test")])), false, false),
            (constraints(subtrees(0xA1, [dns("")])), false, false),
            (
                constraints(
                    subtrees(0xA0, [dns("a")]),
                    subtrees(0xA1, [network([10, 0, 0, 0, 255, 0, 0, 0])])),
                false, false
            ),
            (constraints(subtrees(0xA0, [network([0, 0, 0, 0, 0, 0, 0, 0])])), false, false),
            (constraints(subtrees(0xA0, [network([10, 0, 0, 0, 255, 240, 0, 0])])), false, false),
            (constraints(), true, false),
            (constraints([0xA0, 0]), true, false),
            (constraints([0xA0, 0], [0xA1, 0]), true, false),
            (constraints(subtrees(0xA0, [dns(".a.test")])), false, true),
            (constraints(subtrees(0xA0, [dns("*.a.test")])), false, true),
            (constraints(subtrees(0xA0, [network([10, 0, 0, 0, 255, 0, 255, 0])])), false, true),
            (constraints(subtrees(0xA0, [network([10, 0, 0, 0, 253, 0, 0, 0])])), false, true),
            (constraints(subtrees(0xA0, [network([10, 0, 0, 0])])), false, true),
            (constraints(subtrees(0xA0, [dns("a") + [0x80, 1, 0]])), false, true),
            (constraints(subtrees(0xA0, [dns("a") + [0x81, 1, 5]])), false, true),
            (constraints(subtrees(0xA0, [[0x02, 1, 5]])), false, true),
        ] as [([UInt8], Bool, Bool)])
    func `name constraints are empty, malformed or neither`(
        value: [UInt8], isEmpty: Bool, isMalformed: Bool
    ) throws {
        let read = try #require(NameConstraints(value[...]))
        #expect(read.isEmpty == isEmpty)
        #expect(read.isMalformed == isMalformed)
        for count in 0..<value.count { #expect(NameConstraints(value.prefix(count)) == nil) }
        #expect(NameConstraints((value + [0])[...]) == nil)
    }

    @Test(
        arguments: [
            ([0x30, 0x80, 0, 0], nil), ([0x30, 0x81, 0x01, 0], nil), ([0x30, 0x82, 0, 1, 0], nil),
            ([0x30, 0x85, 0, 0, 0, 0, 1, 0], nil), ([0x3F, 0x01, 0], nil), ([0x30], nil), ([], nil),
            ([0x30, 1], nil), ([0x30, 1, 7], 1), ([0x30, 0], 0),
        ] as [([UInt8], Int?)])
    func `only lengths of DER are read`(bytes: [UInt8], count: Int?) {
        var reader = DERReader(bytes[...])
        #expect(reader.next()?.contents.count == count)
    }
}
