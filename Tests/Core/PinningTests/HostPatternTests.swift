import Testing

@testable import Trust

@Suite("Host patterns")
struct HostPatternTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var pattern: String
        var host: String
        var port: UInt16 = 443
        var matches: Bool
        var testDescription: String { "\(pattern) \(matches ? "is" : "is not") \(host):\(port)" }
    }

    static let cases: [Case] = [
        // Exactly that name.
        Case(pattern: "api.example.com", host: "api.example.com", matches: true),
        Case(pattern: "api.example.com", host: "API.Example.COM", matches: true),
        Case(pattern: "API.example.com", host: "api.example.com", matches: true),
        Case(pattern: "api.example.com", host: "api.example.com.", matches: true),
        Case(pattern: "api.example.com.", host: "api.example.com", matches: true),
        Case(pattern: "api.example.com", host: "xapi.example.com", matches: false),
        Case(pattern: "api.example.com", host: "x.api.example.com", matches: false),
        Case(pattern: "api.example.com", host: "pi.example.com", matches: false),
        Case(pattern: "api.example.com", host: "api.example.comx", matches: false),
        Case(pattern: "api.example.com", host: "", matches: false),
        Case(pattern: "api.example.com", host: ".", matches: false),
        Case(pattern: "localhost", host: "localhost", matches: true),
        Case(pattern: "my_host", host: "MY_HOST", matches: true),
        // Only letters fold: '@' and '[' are 0x20 away from '`' and '{', not letters.
        Case(pattern: "a-b", host: "a\u{0D}b", matches: false),
        // One label more, neither none nor two.
        Case(pattern: "*.example.com", host: "a.example.com", matches: true),
        Case(pattern: "*.example.com", host: "A.EXAMPLE.COM.", matches: true),
        Case(pattern: "*.example.com", host: "example.com", matches: false),
        Case(pattern: "*.example.com", host: ".example.com", matches: false),
        Case(pattern: "*.example.com", host: "a.b.example.com", matches: false),
        Case(pattern: "*.example.com", host: "aexample.com", matches: false),
        Case(pattern: "*.example.com", host: "a-example.com", matches: false),
        Case(pattern: "*.example.com", host: "a.example.org", matches: false),
        // Any depth, the domain included.
        Case(pattern: "**.example.com", host: "example.com", matches: true),
        Case(pattern: "**.example.com", host: "a.example.com", matches: true),
        Case(pattern: "**.example.com", host: "a.b.c.example.com", matches: true),
        Case(pattern: "**.example.com", host: "aexample.com", matches: false),
        Case(pattern: "**.example.com", host: ".example.com", matches: false),
        Case(pattern: "**.example.com", host: "com", matches: false),
        // Ports.
        Case(pattern: "a.example:8443", host: "a.example", port: 8443, matches: true),
        Case(pattern: "a.example:8443", host: "a.example", port: 443, matches: false),
        Case(pattern: "a.example", host: "a.example", port: 1, matches: true),
        Case(pattern: "*.example:65535", host: "a.example", port: 65535, matches: true),
        Case(pattern: "**.example.:1", host: "b.a.example", port: 1, matches: true),
        // Addresses match themselves, in whatever notation.
        Case(pattern: "127.0.0.1", host: "127.0.0.1", matches: true),
        Case(pattern: "127.0.0.1", host: "127.0.0.2", matches: false),
        Case(pattern: "127.0.0.1:80", host: "127.0.0.1", port: 80, matches: true),
        Case(pattern: "127.0.0.1:80", host: "127.0.0.1", port: 81, matches: false),
        Case(pattern: "127.0.0.1", host: "[::ffff:127.0.0.1]", matches: true),
        Case(pattern: "::1", host: "[::1]", matches: true),
        Case(pattern: "[::1]", host: "::1", matches: true),
        Case(pattern: "[::1]:443", host: "0:0:0:0:0:0:0:1", matches: true),
        Case(pattern: "[::1]:444", host: "[::1]", matches: false),
        Case(pattern: "2001:db8::A", host: "[2001:DB8:0::a]", matches: true),
        Case(pattern: "2001:db8::a", host: "2001:db8::b", matches: false),
        Case(pattern: "*.example.com", host: "127.0.0.1", matches: false),
    ]

    @Test(arguments: cases)
    func `a pattern matches the hosts that it describes and no others`(_ example: Case) throws {
        let pattern = try HostPattern(example.pattern)
        #expect(pattern.matches(host: example.host, port: example.port) == example.matches)
    }

    @Test(
        arguments: [
            ("", HostPatternError.empty), (":80", .empty), ("https://example.com", .url),
            ("http://example.com:8443/path", .url), ("HTTPS://*.example.com/", .url),
            ("a:0", .port), ("a:", .port), ("a:65536", .port), ("a:x", .port), ("a:+1", .port),
            ("[::1]:", .port), ("*", .wildcardAlone), ("**", .wildcardAlone),
            ("*.", .wildcardAlone),
            ("a.*.b", .wildcardPosition), ("a*.b", .wildcardPosition), ("*a.b", .wildcardPosition),
            ("***.b", .wildcardPosition), ("*.*.b", .wildcardPosition),
            ("*.0.0.1", .wildcardOverAddress), ("**.10", .wildcardOverAddress),
            ("1.2.3", .address), ("1.2.3.256", .address), ("1.2.3.4.5", .address),
            ("[::1", .address),
            ("::g", .address), ("1::2::3", .address), ("fe80::1%eth0", .address),
            ("01.2.3.4", .address),
            (".a", .emptyLabel), ("a..b", .emptyLabel), ("*..a", .emptyLabel), (".", .emptyLabel),
            ("a b", .character), ("a/b", .character), ("a@b", .character),
            ("münchen.de", .notASCII),
        ])
    func `a text that is no pattern is refused with the reason`(
        _ text: String, _ error: HostPatternError
    ) {
        #expect(throws: error) { try HostPattern(text) }
    }

    @Test func `a label may have 63 bytes and a name 253, and not one more`() throws {
        let label = String(repeating: "a", count: 63)
        #expect(try HostPattern(label).matches(host: label, port: 1))
        #expect(throws: HostPatternError.longLabel) { try HostPattern(label + "a") }
        let name = [label, label, label, String(repeating: "b", count: 61)].joined(separator: ".")
        #expect(name.utf8.count == HostPattern.nameBytes)
        #expect(try HostPattern(name).matches(host: name, port: 1))
        #expect(throws: HostPatternError.longName) { try HostPattern(name + "b") }
    }

    @Test(
        arguments: [
            ("API.example.com.", "api.example.com"), ("*.A.b:80", "*.a.b:80"), ("**.a", "**.a"),
            ("::1", "::1"), ("[::1]:443", "[::1]:443"), ("127.0.0.1:1", "127.0.0.1:1"),
        ])
    func `a pattern is described as it is written, normalised`(_ text: String, _ expected: String)
        throws
    {
        #expect(try HostPattern(text).description == expected)
    }

    @Test func `every error has what was expected`() {
        for error in HostPatternError.allCases {
            #expect(!error.problem.isEmpty)
        }
        #expect(
            Set(HostPatternError.allCases.map(\.problem)).count == HostPatternError.allCases.count)
    }
}
