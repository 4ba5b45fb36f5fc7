import HTTPCore
import Testing

@Suite("Host (RFC 9110 §7.2)")
struct HostTests {
    private static let longLabel = String(repeating: "a", count: 63)
    /// 253 bytes in labels of 63, 63, 63 and 61.
    private static let longName =
        "\(longLabel).\(longLabel).\(longLabel)." + String(repeating: "b", count: 61)

    @Test(
        arguments: [
            ("a", "a", HostKind.name, 80), ("a.b-c.d_e", "a.b-c.d_e", .name, 80),
            ("example.com.", "example.com", .name, 80),
            ("example.com.:81", "example.com", .name, 81),
            ("a:", "a", .name, 80), ("a:1", "a", .name, 1), ("a:00080", "a", .name, 80),
            ("xn--bcher-kva.example", "xn--bcher-kva.example", .name, 80),
            ("1a.2b", "1a.2b", .name, 80), ("1.2.3.4.example", "1.2.3.4.example", .name, 80),
            ("0xg", "0xg", .name, 80), ("-a-", "-a-", .name, 80),
            ("1.2.3.4", "1.2.3.4", .ipv4, 80),
            ("255.255.255.255:65535", "255.255.255.255", .ipv4, 65535),
            ("0.0.0.0", "0.0.0.0", .ipv4, 80),
            ("[::]", "::", .ipv6, 80), ("[::1]:8080", "::1", .ipv6, 8080),
            ("[1:2:3:4:5:6:7:8]", "1:2:3:4:5:6:7:8", .ipv6, 80),
            ("[1::8]", "1::8", .ipv6, 80), ("[1:2:3:4:5:6:7::]", "1:2:3:4:5:6:7::", .ipv6, 80),
            ("[::2:3:4:5:6:7:8]", "::2:3:4:5:6:7:8", .ipv6, 80),
            ("[ABCD:ef01::]", "ABCD:ef01::", .ipv6, 80),
            ("[::ffff:1.2.3.4]", "::ffff:1.2.3.4", .ipv6, 80),
            ("[1:2:3:4:5:6:1.2.3.4]", "1:2:3:4:5:6:1.2.3.4", .ipv6, 80),
            ("[64:ff9b::10.0.0.1]", "64:ff9b::10.0.0.1", .ipv6, 80),
            (longLabel, longLabel, .name, 80), (longName, longName, .name, 80),
            (longName + ".", longName, .name, 80),
            // Registered names that are not domain names: accepted, but they will have no address.
            ("0.0.0.0=5000", "0.0.0.0=5000", .name, 80), ("a=b:81", "a=b", .name, 81),
            ("a,b", "a,b", .name, 80), ("a%41", "a%41", .name, 80), ("%2e:1", "%2e", .name, 1),
            ("a;b", "a;b", .name, 80), ("(a)", "(a)", .name, 80), ("a'b", "a'b", .name, 80),
            ("a!b", "a!b", .name, 80), ("a*b", "a*b", .name, 80), ("*", "*", .name, 80),
            ("a~b", "a~b", .name, 80), ("a&b", "a&b", .name, 80), ("$+", "$+", .name, 80),
            (".", ".", .name, 80), ("..", "..", .name, 80), (".a", ".a", .name, 80),
            ("a..b", "a..b", .name, 80), ("a..", "a..", .name, 80), ("a.=b", "a.=b", .name, 80),
            ("a=b.", "a=b.", .name, 80), ("1.2.3.4=", "1.2.3.4=", .name, 80),
            ("127.0.0.1%2e", "127.0.0.1%2e", .name, 80),
            ("a,b:81", "a,b", .name, 81), (longLabel + "a", longLabel + "a", .name, 80),
            (longLabel + "=a.b", longLabel + "=a.b", .name, 80),
        ] as [(String, String, HostKind, UInt16)])
    func `a host is a name or an address, with or without a port`(
        value: String, host: String, kind: HostKind, port: UInt16
    ) throws {
        for target in ["GET /", "GET http://\(value)/"] {
            let text = "\(target) HTTP/1.1\r\nHost: \(value)\r\n\r\n"
            #expect(requestOutcome(text).isComplete)
            let head = try requestHead(text)
            let bytes = latin1(text)
            #expect(bytes.span.text(at: head.authority) == value)
            #expect(bytes.span.text(at: head.host) == host)
            #expect(head.hostKind == kind)
            #expect(head.port == port)
            #expect(head.hostConflicts == false)
            #expect(head.hasExplicitPort == value.contains(":\(port)") || value.hasSuffix(":00080"))
        }
    }

    @Test(arguments: [
        "a.:x", "a b", "a/b", "a?b", "a@b", "u:p@a", "u=1@a", "a=b@c", "a%", "a%4", "a%4g", "a%:1",
        "%%41", "a\\b", "a|b", "a\"b", "a<b>", "a^b", "a`b", "{a}", "\u{E9}", "a\u{80}", "a=\u{80}",
        "a, b", "a=b:x", "a=.1", "a=b.0x1f", "..1", "%31.1",
        "a:b", "a:-1", "a:+1", "a:0", "a:65536", "a:99999", "a:123456", "a: 80", "a :80", "a:80:80",
        "a:80,a:80", ":80", ":",
        "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "1.2.3.0x4", "0", "0x",
        "1.0x",
        "0177.0.0.1", "01.2.3.4", "1.2.3.04", "1.2.3.256", "1.2.3.4.5", "1.2.3", "1.2.3.4.", "a.1",
        "a.0x1f", "1..2.3", "00.0.0.0", "1.2.3.1000",
        "[", "]", "[]", "[:]", "[::", "::1", "[::1", "[::1]x", "[::1]80", "[::1].", "[:::]", "[1]",
        "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[1:2:3:4:5:6:7:8::]", "[::1::]", "[12345::]",
        "[g::]", "[:1:2:3:4:5:6:7:8]", "[1:2:3:4:5:6:7:8:]", "[1:]", "[::1%25eth0]", "[::1%eth0]",
        "[fe80::1%1]", "[v1.a:b]", "[::1.2.3]", "[::1.2.3.4.5]", "[::01.2.3.4]", "[::256.1.1.1]",
        "[1.2.3.4::]", "[::1.2.3.4:1]", "[1:2:3:4:5:6:7:1.2.3.4]", "[::ffff:1.2.3.4:80]", "[ ::1]",
        "[127.0.0.1]", longName + "b", longName + "b.", longName + "=",
    ])
    func `a host that could be read in two ways is refused`(value: String) {
        let text = "GET / HTTP/1.1\r\nHost: \(value)\r\n\r\n"
        #expect(requestOutcome(text).error == .malformedHost)
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\n", WireError.hostMissing),
        ("GET http://a/ HTTP/1.1\r\n", .hostMissing),
        ("CONNECT a:443 HTTP/1.1\r\n", .hostMissing),
        ("GET / HTTP/1.1\r\nX-Host: a\r\n", .hostMissing),
        ("GET / HTTP/1.1\r\nHost:\r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: \t \r\n", .malformedHost),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", .hostRepeated),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhOST: b\r\n", .hostRepeated),
        ("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n", .hostRepeated),
        ("GET / HTTP/1.0\r\nHost: a b\r\n", .malformedHost),
        ("GET http://a/ HTTP/1.1\r\nHost: a b\r\n", .malformedHost),
    ])
    func `HTTP 1.1 needs one valid Host, whatever the target`(head: String, error: WireError) {
        #expect(requestOutcome(head + "\r\n").error == error)
    }

    @Test(arguments: [
        ("GET http://a:81/ HTTP/1.1", 81), ("GET http://a:81/ HTTP/1.0", 81),
        ("OPTIONS http://a HTTP/1.1", 80), ("CONNECT a:443 HTTP/1.1", 443),
    ])
    func `an empty Host leaves it to the target that names one (RFC 9112 §3.2.2)`(
        line: String, port: UInt16
    ) throws {
        for value in ["", " \t "] {
            let text = "\(line)\r\nHost:\(value)\r\n\r\n"
            #expect(requestOutcome(text).isComplete)
            let head = try requestHead(text)
            #expect(latin1(text).span.text(at: head.host) == "a")
            #expect(head.port == port)
            #expect(head.hostConflicts == false)
        }
    }

    @Test func `HTTP 1.0 may leave Host out`() throws {
        #expect(requestOutcome("GET / HTTP/1.0\r\n\r\n").isComplete)
        let head = try requestHead("GET / HTTP/1.0\r\n\r\n")
        #expect(head.hostKind == .none && head.host.isEmpty && head.authority.isEmpty)
        let absolute = try requestHead("GET http://a:81/ HTTP/1.0\r\n\r\n")
        #expect(absolute.hostKind == .name && absolute.port == 81)
        #expect(absolute.hostConflicts == false)
    }
}
