import HTTPCore
import Testing

@testable import AccessPolicy

@Suite("Ranges of addresses")
struct AddressRangesTests {
    private func ranges(_ networks: String...) throws -> AddressRanges {
        var ranges = AddressRanges()
        for network in networks { ranges.insert(try #require(IPNetwork(network))) }
        ranges.seal()
        return ranges
    }

    @Test func `contain the addresses of their networks`() throws {
        let ranges = try ranges("10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1")
        let within = [
            "10.0.0.0", "10.255.255.255", "192.0.2.1", "::ffff:10.1.1.1", "2001:db8::",
            "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "::1",
        ]
        let outside = [
            "9.255.255.255", "11.0.0.0", "192.0.2.0", "192.0.2.2", "2001:db7::", "2001:db9::",
            "::", "::2", "0.0.0.0", "255.255.255.255",
        ]
        for text in within {
            let address = try #require(IPAddress(text))
            #expect(ranges.contains(address), "\(text)")
        }
        for text in outside {
            let address = try #require(IPAddress(text))
            #expect(!ranges.contains(address), "\(text)")
        }
        #expect(ranges.count == 4)
    }

    @Test func `join those that overlap or touch`() throws {
        let counts = [
            try ranges("10.0.0.0/9", "10.128.0.0/9", "10.1.0.0/16").count,
            try ranges("10.0.0.0/9", "10.128.0.0/10", "10.192.0.1").count,
            try ranges("0.0.0.0/0", "255.255.255.255", "1.1.1.1").count,
            try ranges("::/0", "ffff::/16").count,
        ]
        #expect(counts == [1, 2, 1, 1])
        let all = try ranges("0.0.0.0/0", "::/0")
        for text in ["0.0.0.0", "255.255.255.255", "::", "ffff::"] {
            let address = try #require(IPAddress(text))
            #expect(all.contains(address), "\(text)")
        }
    }

    @Test func `of nothing contain nothing`() throws {
        let none = try ranges()
        #expect(none.isEmpty && none.count == 0)
        #expect(!none.contains(.loopbackV4) && !none.contains(.loopbackV6))
    }

    @Test func `contain the same as a model that compares every network`() throws {
        var numbers = Numbers(state: 8)
        for _ in 0..<50 {
            let networks = (0..<20).compactMap { _ in
                IPNetwork(
                    masking: .v4(UInt32.random(in: 0..<256, using: &numbers)),
                    prefixLength: Int.random(in: 24...32, using: &numbers))
            }
            var ranges = AddressRanges()
            for network in networks.prefix(10) { ranges.insert(network) }
            var others = AddressRanges()
            for network in networks.dropFirst(10) { others.insert(network) }
            ranges.formUnion(others)
            ranges.seal()
            for number in UInt32(0)..<260 {
                let address = IPAddress.v4(number)
                #expect(ranges.contains(address) == networks.contains { $0.contains(address) })
            }
        }
    }
}
