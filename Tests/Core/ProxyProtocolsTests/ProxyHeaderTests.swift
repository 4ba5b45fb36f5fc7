import HTTPCore
import Testing

@testable import ProxyProtocols

@Suite("PROXY headers")
struct ProxyHeaderTests {
    /// What is read of bytes that arrive in pieces of this length, and how many of them.
    static func read(
        _ bytes: [UInt8], pieces: Int = .max
    ) throws(ProxyHeaderError) -> (header: ProxyHeader?, consumed: Int) {
        var parser = ProxyHeaderParser()
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start &+ min(pieces, bytes.count))
            let (consumed, header) = try parser.take(bytes.span.extracting(start..<end))
            start += consumed
            if header != nil { return (header, start) }
        }
        return (nil, start)
    }

    static func client(_ source: String, _ destination: String) throws -> ProxyHeader.Origin {
        .client(
            source: try #require(Endpoint(source)), destination: try #require(Endpoint(destination))
        )
    }

    /// A header of version 2.
    static func binary(_ command: UInt8, _ family: UInt8, _ rest: [UInt8]) -> [UInt8] {
        ProxyHeaderLayout.signature + [
            command, family, UInt8(rest.count >> 8), UInt8(rest.count & 255),
        ] + rest
    }

    static let ipv4: [UInt8] = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x34, 0x01, 0xBB]

    // MARK: Version 1

    @Test(
        arguments: [
            ("TCP4 192.0.2.1 198.51.100.2 56324 443", "192.0.2.1:56324", "198.51.100.2:443"),
            (
                "TCP4 255.255.255.255 255.255.255.254 65535 65535", nil,
                "255.255.255.254:65535"
            ),
            ("TCP4 192.0.2.1 0.0.0.0 0 0", "192.0.2.1:0", "0.0.0.0:0"),
            ("TCP6 2001:db8::1 2001:db8::2 1 2", "[2001:db8::1]:1", "[2001:db8::2]:2"),
            ("TCP6 2001:DB8::A ::1 1 2", "[2001:db8::a]:1", "[::1]:2"),
            ("TCP6 ::ffff:192.0.2.1 ::1 1 2", "192.0.2.1:1", "[::1]:2"),
        ] as [(String, String?, String)])
    func `a line names the client and where it connected to`(
        text: String, source: String?, destination: String
    ) throws {
        let bytes = Array("PROXY \(text)\r\n".utf8)
        for pieces in [1, 2, 3, .max] {
            guard let source else {
                #expect(throws: ProxyHeaderError.impossibleAddress) {
                    try Self.read(bytes, pieces: pieces)
                }
                continue
            }
            let (header, consumed) = try Self.read(bytes + Array("GET".utf8), pieces: pieces)
            #expect(header == ProxyHeader(.v1, try Self.client(source, destination)))
            #expect(consumed == bytes.count)
        }
    }

    @Test(arguments: [
        "UNKNOWN", "UNKNOWN ", "UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535",
        "UNKNOWN whatever  it is",
    ])
    func `UNKNOWN leaves the connection with its sender, whatever follows`(text: String) throws {
        let (header, _) = try Self.read(Array("PROXY \(text)\r\n".utf8), pieces: 1)
        #expect(header == ProxyHeader(.v1, .sender))
    }

    @Test(arguments: [
        "TCP4 192.0.2.1 198.51.100.2 56324 443 ", "TCP4  192.0.2.1 198.51.100.2 56324 443",
        " TCP4 192.0.2.1 198.51.100.2 56324 443", "TCP4 192.0.2.1 198.51.100.2 56324",
        "TCP4 192.0.2.1 198.51.100.2 56324 443 1", "TCP4 192.0.2.01 198.51.100.2 56324 443",
        "TCP4 192.0.2.1 198.51.100.2 056324 443", "TCP4 192.0.2.1 198.51.100.2 56324 0443",
        "TCP4 192.0.2.1 198.51.100.2 00 443", "TCP4 192.0.2.1 198.51.100.2 65536 443",
        "TCP4 192.0.2.1 198.51.100.2 -1 443", "TCP4 192.0.2.1 198.51.100.2 +1 443",
        "TCP4 192.0.2.1 198.51.100.2 1 99999", "TCP4 192.0.2.1 198.51.100.2 1 ",
        "TCP4 192.0.2.1 198.51.100.2  443", "TCP4 192.0.2.256 198.51.100.2 1 443",
        "TCP4 192.0.2 198.51.100.2 1 443", "TCP4 ::1 ::1 1 443", "TCP4 ::ffff:192.0.2.1 ::1 1 2",
        "TCP6 192.0.2.1 198.51.100.2 1 443", "TCP6 [::1] [::1] 1 443", "TCP6 ::1%lo ::1 1 443",
        "TCP6 :: 2001:db8::2 1 2 3", "TCP5 192.0.2.1 198.51.100.2 1 443",
        "tcp4 192.0.2.1 198.51.100.2 1 443", "UDP4 192.0.2.1 198.51.100.2 1 443",
        "UNKNOWNX", "unknown", "", " ", "TCP4\t192.0.2.1 198.51.100.2 1 443",
        "TCP4 192.0.2.1 198.51.100.2 1 443\n", "TCP4 192.0.2.1 198.51.100.2 1 443\r",
        "TCP4 192.0.2.1\r 198.51.100.2 1 443", "UNKNOWN\rX", "TCP4 a.example b.example 1 443",
        "TCP4 192.0.2.1 198.51.100.2 1 443\u{0}",
    ])
    func `a line that differs from the grammar in anything is refused`(text: String) {
        for pieces in [1, 7, .max] {
            #expect(throws: ProxyHeaderError.malformedLine, "\(text)") {
                try Self.read(Array("PROXY \(text)\r\n".utf8), pieces: pieces)
            }
        }
    }

    @Test func `a line has at most 107 bytes`() throws {
        for count in 95...107 {
            let line = Array("PROXY UNKNOWN ".utf8)
            let rest = [UInt8](repeating: UInt8(ascii: "x"), count: count - line.count - 2)
            let (header, consumed) = try Self.read(line + rest + [0x0D, 0x0A], pieces: 1)
            #expect(header?.origin == .sender && consumed == count)
        }
        for count in 108...120 {
            let line = Array("PROXY UNKNOWN ".utf8)
            let rest = [UInt8](repeating: UInt8(ascii: "x"), count: count - line.count - 2)
            #expect(throws: ProxyHeaderError.lineTooLong) {
                try Self.read(line + rest + [0x0D, 0x0A])
            }
        }
    }

    @Test(arguments: [
        "G", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "PUT /", "POST /", "PROXy", "PROXY\t",
        "PROXYTCP4", " PROXY", "\r\nPROXY", "\r\n\r\n\0\r\nQUIT ", "\u{16}\u{3}\u{1}", "\n", "\0",
    ])
    func `what begins otherwise is no header, as soon as that is certain`(text: String) {
        for pieces in [1, .max] {
            #expect(throws: ProxyHeaderError.missing, "\(text)") {
                try Self.read(Array(text.utf8), pieces: pieces)
            }
        }
    }

    // MARK: Version 2

    @Test func `a binary header names the client and where it connected to`() throws {
        let ipv6: [UInt8] =
            [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [1]
            + [0x20, 1, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 11) + [2] + [0, 1, 0xFF, 0xFF]
        let cases: [([UInt8], ProxyHeader.Origin)] = [
            (
                Self.binary(0x21, 0x11, Self.ipv4),
                try Self.client("192.0.2.1:4660", "198.51.100.2:443")
            ),
            (
                Self.binary(0x21, 0x21, ipv6),
                try Self.client("[2001:db8::1]:1", "[2001:db8::2]:65535")
            ),
            (
                Self.binary(0x21, 0x11, Self.ipv4 + [4, 0, 0, 5, 0, 2, 9, 9]),
                try Self.client("192.0.2.1:4660", "198.51.100.2:443")
            ),
        ]
        for (bytes, origin) in cases {
            for pieces in [1, 5, 16, .max] {
                let (header, consumed) = try Self.read(bytes + [0x16, 3, 1], pieces: pieces)
                #expect(header == ProxyHeader(.v2, origin))
                #expect(consumed == bytes.count)
            }
        }
    }

    @Test func `LOCAL, no family and Unix sockets leave the connection with its sender`() throws {
        let cases = [
            Self.binary(0x20, 0x00, []), Self.binary(0x20, 0x11, Self.ipv4),
            // Whatever is written there is discarded.
            Self.binary(0x20, 0xFF, [1, 2, 3]), Self.binary(0x20, 0x21, [9]),
            Self.binary(0x21, 0x00, []), Self.binary(0x21, 0x00, [1, 2, 3]),
            Self.binary(0x21, 0x31, [UInt8](repeating: 0x2F, count: 216)),
        ]
        for bytes in cases {
            for pieces in [1, .max] {
                let (header, consumed) = try Self.read(bytes + [1], pieces: pieces)
                #expect(header == ProxyHeader(.v2, .sender))
                #expect(consumed == bytes.count)
            }
        }
    }

    @Test(arguments: [
        (0x11 as UInt8, 0x11 as UInt8, ProxyHeaderError.version), (0x31, 0x11, .version),
        (0x01, 0x11, .version), (0x22, 0x11, .command), (0x2F, 0x11, .command),
        (0x21, 0x12, .family), (0x21, 0x22, .family), (0x21, 0x32, .family), (0x21, 0x10, .family),
        (0x21, 0x01, .family), (0x21, 0x41, .family), (0x21, 0xFF, .family),
        (0x21, 0x21, .tooShort), (0x21, 0x31, .tooShort),
    ])
    func `a binary header of another version, command or family is refused`(
        command: UInt8, family: UInt8, error: ProxyHeaderError
    ) {
        for pieces in [1, .max] {
            #expect(throws: error) {
                try Self.read(Self.binary(command, family, Self.ipv4), pieces: pieces)
            }
        }
    }

    @Test func `a binary header has at most 4096 bytes`() throws {
        let rest = ProxyHeaderParser.maximumBytes - 16 - 12 - 3
        let field =
            [0xE0, UInt8(rest >> 8), UInt8(rest & 255)] + [UInt8](repeating: 7, count: rest)
        let longest = Self.binary(0x21, 0x11, Self.ipv4 + field)
        #expect(longest.count == 4096)
        #expect(try Self.read(longest, pieces: 1).header != nil)
        #expect(throws: ProxyHeaderError.tooLong) {
            try Self.read(Array(Self.binary(0x21, 0x11, Self.ipv4 + field + [4, 0, 0]).prefix(16)))
        }
        #expect(throws: ProxyHeaderError.tooLong) {
            try Self.read(Array(Self.binary(0x20, 0, Self.ipv4 + field + [4, 0, 0]).prefix(16)))
        }
    }

    @Test(
        arguments: [
            [1], [1, 0], [1, 0, 1], [1, 0, 5, 1, 2, 3, 4], [4, 0, 0, 1], [0xE0, 0xFF, 0xFF, 1],
            [1, 0, 2, 9, 9, 9],
        ] as [[UInt8]])
    func `fields that do not end where the header does are refused`(fields: [UInt8]) {
        #expect(throws: ProxyHeaderError.malformedFields) {
            try Self.read(Self.binary(0x21, 0x11, Self.ipv4 + fields))
        }
    }

    @Test(arguments: ["0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.2.3", "255.255.255.255"])
    func `an address that no client has is refused`(text: String) throws {
        let address = try #require(IPAddress(text)).networkBytes
        #expect(throws: ProxyHeaderError.impossibleAddress) {
            try Self.read(Self.binary(0x21, 0x11, address + Self.ipv4.dropFirst(4)))
        }
        #expect(throws: ProxyHeaderError.impossibleAddress) {
            try Self.read(Array("PROXY TCP6 ::ffff:\(text) ::1 1 2\r\n".utf8))
        }
        #expect(throws: ProxyHeaderError.impossibleAddress) {
            try Self.read(Array("PROXY TCP6 :: ::1 1 2\r\n".utf8))
        }
    }

    // MARK: The checksum

    @Test func `the checksum is that of Castagnoli`() {
        #expect(CRC32C.of([]) == 0)
        #expect(CRC32C.of(Array("123456789".utf8)) == 0xE306_9283)
        // RFC 3720 appendix B.4.
        #expect(CRC32C.of([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.of([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
    }

    @Test func `a header with a checksum is accepted, and with any byte changed refused`() throws {
        let header = ProxyHeader(.v2, try Self.client("192.0.2.1:1", "198.51.100.2:443"))
        let bytes = header.bytes(hasChecksum: true)
        #expect(try Self.read(bytes, pieces: 1).header == header)
        for index in 16..<bytes.count {
            // Of the field itself, type and length say whether there is a checksum at all.
            guard index != bytes.count - 7 else { continue }
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                #expect(throws: ProxyHeaderError.self, "byte \(index)") {
                    let (read, _) = try Self.read(changed)
                    // The length of the field may now be more than there is.
                    if read == nil { throw ProxyHeaderError.malformedFields }
                }
            }
        }
    }

    @Test func `two checksums, or one of another length, are refused`() throws {
        let origin = try Self.client("192.0.2.1:1", "198.51.100.2:443")
        let good = ProxyHeader(.v2, origin).bytes(hasChecksum: true)
        let fields = Array(good.suffix(7))
        for rest in [fields + fields, [3, 0, 3, 1, 2, 3], [3, 0, 0], [3, 0, 5, 1, 2, 3, 4, 5]] {
            #expect(throws: ProxyHeaderError.checksum) {
                try Self.read(Self.binary(0x21, 0x11, Self.ipv4 + rest))
            }
        }
    }

    // MARK: Writing

    @Test(arguments: [ProxyHeader.Version.v1, .v2])
    func `what is written is read as the same`(version: ProxyHeader.Version) throws {
        let origins: [ProxyHeader.Origin] = [
            .sender, try Self.client("192.0.2.1:1", "198.51.100.2:65535"),
            try Self.client("[2001:db8::1]:0", "[fe80::1]:443"),
        ]
        for origin in origins {
            let header = ProxyHeader(version, origin)
            for hasChecksum in [false, true] {
                let bytes = header.bytes(hasChecksum: hasChecksum)
                let (read, consumed) = try Self.read(bytes + [1], pieces: 1)
                #expect(read == header && consumed == bytes.count)
            }
        }
    }

    @Test func `headers are written as the protocol says`() throws {
        let origin = try Self.client("192.0.2.1:4660", "198.51.100.2:443")
        let line = String(decoding: ProxyHeader(.v1, origin).bytes(), as: UTF8.self)
        #expect(line == "PROXY TCP4 192.0.2.1 198.51.100.2 4660 443\r\n")
        #expect(ProxyHeader(.v2, origin).bytes() == Self.binary(0x21, 0x11, Self.ipv4))
        #expect(ProxyHeader(.v1, .sender).bytes() == Array("PROXY UNKNOWN\r\n".utf8))
        #expect(ProxyHeader(.v2, .sender).bytes() == Self.binary(0x20, 0, []))
    }

    @Test func `addresses of two families become those of IPv6`() throws {
        let mixed = try Self.client("192.0.2.1:1", "[2001:db8::2]:2")
        let line = String(decoding: ProxyHeader(.v1, mixed).bytes(), as: UTF8.self)
        #expect(line == "PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n")
        for version in ProxyHeader.Version.allCases {
            #expect(
                try Self.read(ProxyHeader(version, mixed).bytes()).header
                    == ProxyHeader(version, mixed))
        }
    }

    // MARK: Every prefix, every byte

    private static func good() throws -> [[UInt8]] {
        let v4 = try client("192.0.2.1:4660", "198.51.100.2:443")
        let v6 = try client("[2001:db8::1]:1", "[2001:db8::2]:2")
        return [
            ProxyHeader(.v1, v4).bytes(), ProxyHeader(.v1, v6).bytes(),
            ProxyHeader(.v1, .sender).bytes(), ProxyHeader(.v2, v4).bytes(),
            ProxyHeader(.v2, v6).bytes(hasChecksum: true), ProxyHeader(.v2, .sender).bytes(),
        ]
    }

    @Test func `every prefix of a header waits for the rest`() throws {
        for bytes in try Self.good() {
            for count in 0..<bytes.count {
                let (header, consumed) = try Self.read(Array(bytes[..<count]))
                #expect(header == nil && consumed == count)
            }
        }
    }

    @Test func `with any byte changed a header is read the same at once and byte by byte`() throws {
        func outcome(_ bytes: [UInt8], _ pieces: Int) -> String {
            do throws(ProxyHeaderError) {
                let (header, consumed) = try Self.read(bytes, pieces: pieces)
                return "\(String(describing: header)) \(consumed)"
            } catch {
                return "\(error)"
            }
        }
        for bytes in try Self.good() {
            for index in bytes.indices {
                for value in UInt8.min...UInt8.max {
                    var changed = bytes + [0, 0]
                    changed[index] = value
                    #expect(outcome(changed, 1) == outcome(changed, .max))
                }
            }
        }
    }
}
