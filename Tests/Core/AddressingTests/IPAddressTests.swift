import HTTPCore
import Testing

@Suite("IP addresses")
struct IPAddressTests {
    @Test(
        arguments: [
            ("0.0.0.0", UInt32(0)), ("127.0.0.1", 0x7f00_0001), ("1.2.3.4", 0x0102_0304),
            ("255.255.255.255", 0xffff_ffff), ("10.0.200.99", 0x0a00_c863),
        ])
    func `IPv4 is four decimal parts of at most 255`(text: String, value: UInt32) {
        #expect(IPAddress(text) == .v4(value))
        #expect(IPAddress(text)?.description == text)
    }

    @Test(
        arguments: [
            "", "1", "127.1", "127.0.1", "2130706433", "0x7f.0.0.1", "0x7f000001", "0177.0.0.1",
            "127.0.0.01", "00.0.0.0", "1.2.3.256", "1.2.3.1000", "1.2.3.4.5", "1.2.3.4.", ".1.2.3",
            "1..2.3", "1.2.3.", "+1.2.3.4", "-1.2.3.4", " 1.2.3.4", "1.2.3.4 ", "1.2.3.4\n",
            "1.2.3.4/8", "1.2.3.4:80", "1.2.3.a", "١.2.3.4", "1.2.3.4\0", "a.b.c.d", "localhost",
            "99999999999.1.1.1",
        ])
    func `short, octal, hexadecimal and padded IPv4 forms are not addresses`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(
        arguments: [
            ("::", UInt64(0), UInt64(0), "::"),
            ("::1", 0, 1, "::1"),
            ("1::", 0x0001_0000_0000_0000, 0, "1::"),
            ("0:0:0:0:0:0:0:0", 0, 0, "::"),
            ("2001:db8::1", 0x2001_0db8_0000_0000, 1, "2001:db8::1"),
            ("2001:DB8::A", 0x2001_0db8_0000_0000, 10, "2001:db8::a"),
            ("2001:0db8:0000:0000:0000:0000:0000:0001", 0x2001_0db8_0000_0000, 1, "2001:db8::1"),
            ("1:2:3:4:5:6:7:8", 0x0001_0002_0003_0004, 0x0005_0006_0007_0008, "1:2:3:4:5:6:7:8"),
            ("1:2:3:4:5:6:7::", 0x0001_0002_0003_0004, 0x0005_0006_0007_0000, "1:2:3:4:5:6:7:0"),
            ("::2:3:4:5:6:7:8", 0x0000_0002_0003_0004, 0x0005_0006_0007_0008, "0:2:3:4:5:6:7:8"),
            ("1:2:3::5:6:7:8", 0x0001_0002_0003_0000, 0x0005_0006_0007_0008, "1:2:3:0:5:6:7:8"),
            // RFC 5952 §4.2.2: one zero group is not shortened; §4.2.3: the first of equal runs.
            (
                "2001:db8:0:1:1:1:1:1", 0x2001_0db8_0000_0001, 0x0001_0001_0001_0001,
                "2001:db8:0:1:1:1:1:1"
            ),
            ("2001:0:0:1:0:0:0:1", 0x2001_0000_0000_0001, 1, "2001:0:0:1::1"),
            (
                "2001:db8:0:0:1:0:0:1", 0x2001_0db8_0000_0000, 0x0001_0000_0000_0001,
                "2001:db8::1:0:0:1"
            ),
            ("0:0:1:0:0:0:0:0", 0x0000_0000_0001_0000, 0, "0:0:1::"),
            (
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", .max, .max,
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
            ),
            ("::ffff:1.2.3.4", 0, 0xffff_0102_0304, "::ffff:1.2.3.4"),
            ("::FFFF:102:304", 0, 0xffff_0102_0304, "::ffff:1.2.3.4"),
            ("::1.2.3.4", 0, 0x0102_0304, "::102:304"),
            ("64:ff9b::192.0.2.33", 0x0064_ff9b_0000_0000, 0xc000_0221, "64:ff9b::c000:221"),
            (
                "1:2:3:4:5:6:255.255.255.255", 0x0001_0002_0003_0004, 0x0005_0006_ffff_ffff,
                "1:2:3:4:5:6:ffff:ffff"
            ),
            (
                "1:2:3:4:5::1.2.3.4", 0x0001_0002_0003_0004, 0x0005_0000_0102_0304,
                "1:2:3:4:5:0:102:304"
            ),
        ] as [(String, UInt64, UInt64, String)])
    func `IPv6 is read in every form of RFC 4291 and written in that of RFC 5952`(
        text: String, high: UInt64, low: UInt64, canonical: String
    ) {
        #expect(IPAddress(text) == .v6(high, low))
        #expect(IPAddress.v6(high, low).description == canonical)
        #expect(IPAddress(canonical) == .v6(high, low))
    }

    @Test(
        arguments: [
            ":", ":::", "::1::", "1::2::3", ":1", "1:", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1:2:3:4::5:6:7:8", "12345::", "::12345",
            "::00001", "::g", "::-1", "::1%eth0", "fe80::1%25eth0", "fe80::1%1", "[::1]", "::1/64",
            "::1.2.3", "::1.2.3.4.5", "::1.2.3.4:5", "1.2.3.4::", "::1.2.3.256", "::01.2.3.4",
            "1:2:3:4:5:6:7:1.2.3.4", "1:2:3:4:5:6::1.2.3.4:", "1:2:3:4:5:1.2.3.4", "::ffff:127.1",
            "1:2:3:4:5:6:7::1.2.3.4", " ::1", "::1 ", "::\u{661}",
            "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555",
        ])
    func `malformed IPv6, zones and brackets are not addresses`(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test
    func `every prefix and every one-byte change of a literal gives an address or nil, no trap`() {
        let literals = ["::ffff:192.168.100.200", "2001:db8:1:2:3:4:5:6", "192.168.100.200"]
        for literal in literals {
            let bytes = Array(literal.utf8)
            for count in 0...bytes.count {
                _ = IPAddress(bytes: bytes.span.extracting(0..<count))
            }
            for index in bytes.indices {
                for byte in UInt8.min...UInt8.max {
                    var changed = bytes
                    changed[index] = byte
                    guard let address = IPAddress(bytes: changed.span) else { continue }
                    #expect(IPAddress(address.description) == address)
                }
            }
        }
    }

    @Test func `text, part of a text, span and raw memory are read alike`() {
        let text = "x2001:db8::1x"
        let part = text.dropFirst().dropLast()
        let bytes = Array(part.utf8)
        let expected = IPAddress.v6(0x2001_0db8_0000_0000, 1)
        #expect(IPAddress(part) == expected)
        #expect(IPAddress(String(part)) == expected)
        #expect(IPAddress(bytes: bytes.span) == expected)
        #expect(bytes.withUnsafeBytes { IPAddress(bytes: $0) } == expected)
        #expect(IPAddress(bytes: UnsafeRawBufferPointer(start: nil, count: 0)) == nil)
    }

    @Test(
        arguments: [
            ("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("[::ffff:1.2.3.4]", "::ffff:1.2.3.4"),
            ("::1", nil), ("[127.0.0.1]", nil), ("[::1", nil), ("::1]", nil), ("[]", nil),
            ("[", nil), ("]", nil), ("", nil), ("[v1.fe]", nil), ("[fe80::1%25eth0]", nil),
            ("example.com", nil),
        ] as [(String, String?)])
    func `a URI's host is a literal with IPv6 in brackets only`(text: String, expected: String?) {
        #expect(IPAddress(host: text.utf8.span)?.description == expected)
    }

    @Test(
        arguments: [
            ("::ffff:10.1.2.3", "10.1.2.3"), ("::10.1.2.3", "10.1.2.3"), ("::2", "0.0.0.2"),
            ("64:ff9b::10.1.2.3", "10.1.2.3"), ("2002:a01:203::", "10.1.2.3"),
            ("2002:a01:203:ffff::1", "10.1.2.3"), ("::", nil), ("::1", nil),
            ("64:ff9b::1:a01:203", nil), ("64:ff9b:1::a01:203", nil), ("::1:ffff:a01:203", nil),
            ("::fffe:a01:203", nil), ("2001:db8::10.1.2.3", nil), ("10.1.2.3", nil),
        ] as [(String, String?)])
    func `IPv6 addresses that carry an IPv4 one expose it`(text: String, expected: String?) throws {
        let address = try #require(IPAddress(text))
        #expect(address.embeddedV4?.description == expected)
    }

    @Test(
        arguments: [
            ("10.0.0.1", []), ("2001:db8::1", []), ("::1", []),
            ("64:ff9b::10.1.2.3", ["10.1.2.3"]), ("::ffff:10.1.2.3", ["10.1.2.3"]),
            ("64:ff9b:1::10.1.2.3", ["10.1.2.3"]), ("64:ff9b:1::", []),
            ("64:ff9b:1:a01:2:300::", ["10.1.2.3", "1.2.3.0", "2.3.0.0"]),
            ("64:ff9b:2::10.1.2.3", []),
        ] as [(String, [String])])
    func `the prefix of local gateways carries an address at any of its places`(
        text: String, expected: [String]
    ) throws {
        let address = try #require(IPAddress(text))
        #expect(address.embeddedV4s.map(\.description) == expected)
    }

    @Test func `only mapped addresses are unmapped, and families are of the written form`() {
        #expect(IPAddress("::ffff:1.2.3.4")?.unmapped == .v4(0x0102_0304))
        #expect(IPAddress("::1.2.3.4")?.unmapped == .v6(0, 0x0102_0304))
        #expect(IPAddress("1.2.3.4")?.unmapped == .v4(0x0102_0304))
        #expect(IPAddress("::ffff:1.2.3.4")?.family == .v6)
        #expect(IPAddress("1.2.3.4")?.family == .v4)
        #expect(IPAddress.loopbackV4.description == "127.0.0.1")
        #expect(IPAddress.loopbackV6.description == "::1")
    }

    @Test func `the longest text fits, with its brackets and port`() {
        let longest = Endpoint(address: .v6(.max, .max), port: 65535)
        #expect(longest.text.count == 47)
        #expect(String(longest.text) == "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535")
        let mapped = Endpoint(address: .v6(0, 0xffff_ffff_ffff), port: 65535)
        #expect(mapped.description == "[::ffff:255.255.255.255]:65535")
        #expect(longest.text.count <= AddressText.maximumBytes)
    }
}
