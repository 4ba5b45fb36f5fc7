import HTTPCore
import Testing

@testable import ProxyProtocols

@Suite("Which protocol a client's first bytes are of")
struct OpeningProtocolTests {
    private static func decided(_ bytes: [UInt8]) -> OpeningProtocol {
        OpeningProtocol(bytes.span)
    }

    static let cases: [(String, OpeningProtocol)] = [
        ("", .undecided),
        ("GET / HTTP/1.1\r\n", .http),
        ("GET / HTTP/1.1\n", .http),
        ("\r\nGET / HTTP/1.1\r\n", .http),
        ("\nGET / HTTP/1.0\r\nHost: a\r\n\r\n", .http),
        ("POST http://a.test/x HTTP/1.1\r\n", .http),
        ("CONNECT a.test:443 HTTP/1.1\r\n", .http),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .http),
        ("M-SEARCH * HTTP/1.1\r\n", .http),
        ("GET /a b HTTP/1.1\r\n", .http),
        ("GET /ü HTTP/1.1\r\n", .http),
        ("GET  HTTP/1.1\r\n", .http),
        ("GET / HTTP/9.9\r\n", .http),
        // No version of HTTP is named.
        ("GET /\r\n", .other),
        ("GET / HTTP/1\r\n", .other),
        ("GET / HTTP/1.1 \r\n", .other),
        ("GET / http/1.1\r\n", .other),
        ("GET / HTTPS/1.1\r\n", .other),
        ("HTTP/1.1\r\n", .other),
        ("HTTP/1.1 200 OK\r\n", .other),
        // Other protocols of text.
        ("SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", .other),
        ("SSH-2.0-a\r\n", .other),
        ("EHLO a.test\r\n", .other),
        ("NICK somebody\r\n", .other),
        ("*1\r\n$4\r\nPING\r\n", .other),
        ("<?xml version='1.0'?>", .other),
        ("{\"id\":1}\n", .other),
        ("\r\n\r\nGET / HTTP/1.1\r\n", .other),
        (" GET / HTTP/1.1\r\n", .other),
        ("GET\t/ HTTP/1.1\r\n", .other),
        ("GET /\0 HTTP/1.1\r\n", .other),
        ("GET /\u{7F}", .other),
        // Not yet.
        ("G", .undecided), ("GET", .undecided), ("GET ", .undecided), ("\r", .undecided),
        ("GET h", .undecided), ("GET htt", .undecided), ("CONNECT a.test:443", .undecided),
        ("HELLO", .undecided), ("USER somebody", .undecided), ("SSH-2.0-a", .undecided),
        ("HELO httx.test", .undecided), ("GET  / HTTP/1.1", .undecided),
        // Not yet, but nothing else looks like that.
        ("GET /", .begun), ("GET /a?b", .begun), ("OPTIONS *", .begun),
        ("PRI * HTTP/2.0\r", .begun), ("GET http", .begun), ("GET HTTPS://a.test", .begun),
        ("PURGE /", .begun), ("GET / HTTP/1.1", .begun),
        ("GET / HTTP/1.1\r", .begun), ("\r\nGET / HT", .begun),
        (String(repeating: "A", count: 32), .undecided),
        (String(repeating: "A", count: 33), .other),
        (String(repeating: "A", count: 32) + " / HTTP/1.1\r\n", .http),
    ]

    @Test(arguments: cases)
    func `text is HTTP if its first line is a request line`(
        text: String, expected: OpeningProtocol
    ) {
        #expect(Self.decided(Array(text.utf8)) == expected)
    }

    @Test(arguments: [
        ([22] as [UInt8], OpeningProtocol.begun), ([22, 3], .tls), ([22, 3, 1, 2, 0, 1], .tls),
        ([22, 3, 9], .tls), ([22, 2], .other), ([22, 254, 253], .other), ([21, 3, 3], .other),
        ([0x80, 0x2E, 1, 0, 2], .other), ([5, 1, 0], .other), ([4, 1, 0, 80], .other),
        ([0], .other), ([255], .other),
    ])
    func `a handshake record of version 3 is TLS`(bytes: [UInt8], expected: OpeningProtocol) {
        #expect(Self.decided(bytes) == expected)
    }

    @Test(arguments: cases)
    func `what is decided does not change by what follows`(
        text: String, expected: OpeningProtocol
    ) {
        let bytes = Array(text.utf8)
        for count in 0...bytes.count {
            let early = Self.decided(Array(bytes[..<count]))
            #expect(
                early == .undecided || early == .begun && expected != .undecided
                    || early == expected, "\(count) bytes of \(text)")
        }
        if expected != .undecided, expected != .begun {
            #expect(Self.decided(bytes + [0, 255, 10]) == expected)
        }
    }

    @Test func `a line without end that begins like a request is one, so that it is refused`() {
        let most = OpeningProtocol.maximumLineBytes
        let line = Array("GET /".utf8) + [UInt8](repeating: UInt8(ascii: "a"), count: most)
        #expect(Self.decided(Array(line[..<(most - 1)])) == .begun)
        for end in ["", "\n", " HTTP/1.1\r\n", "\0"] {
            #expect(Self.decided(Array(line[..<most]) + Array(end.utf8)) == .http)
        }
    }
}

@Suite("The name that TLS asks for")
struct RequestedNameTests {
    @Test(arguments: ["a", "example.com", "a-b.c_d.test", "xn--bcher-kva.example", "1.example"])
    func `a host name is one`(name: String) {
        #expect(RequestedName.isValid(name))
    }

    @Test(arguments: [
        "", "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "[::1]", "a:80", "a/b", "a b", "a@b",
        "a\r\nb", "a%62", "b\u{FC}cher", String(repeating: "a", count: 256),
    ])
    func `an address, or what else cannot be a host, is none`(name: String) {
        #expect(!RequestedName.isValid(name))
    }
}
