import PinfoldConfiguration
import TestSupport
import Testing
import Trust

@Suite("The entry that applies to a host")
struct HostIndexTests {
    private func index(_ entries: [[String]]) throws -> HostIndex {
        HostIndex(patterns: try entries.map { try $0.map { try HostPattern($0) } })
    }

    private func entry(_ index: HostIndex, _ host: String, _ port: UInt16 = 443) -> Int? {
        let bytes = Array(host.utf8)
        return index.entry(host: bytes.span, port: port)
    }

    @Test func `the first matching entry applies whatever its kind`() throws {
        let index = try index([
            ["a.example:8443"], ["*.pay.example"], ["**.example"], ["a.example", "x.pay.example"],
            ["[2001:db8::1]:443", "192.0.2.1"],
        ])
        #expect(entry(index, "a.example", 8443) == 0)
        #expect(entry(index, "a.example") == 2)
        #expect(entry(index, "x.pay.example") == 1)
        #expect(entry(index, "y.x.pay.example") == 2)
        #expect(entry(index, "pay.example") == 2)
        #expect(entry(index, "example") == 2)
        #expect(entry(index, "anexample") == nil)
        #expect(entry(index, "A.Example.") == 2)
        #expect(entry(index, "2001:db8:0::1") == 4)
        #expect(entry(index, "[2001:DB8::1]") == 4)
        #expect(entry(index, "2001:db8::1", 80) == nil)
        #expect(entry(index, "192.0.2.1", 1) == 4)
        #expect(entry(index, "::ffff:192.0.2.1", 1) == 4)
        #expect(entry(index, "") == nil)
        #expect(entry(index, ".") == nil)
    }

    @Test func `an earlier entry for one port does not hide a later one for all`() throws {
        let index = try index([["a:1"], ["a:2", "*.a:2"], ["a"], ["**.a"]])
        #expect(entry(index, "a", 1) == 0)
        #expect(entry(index, "a", 2) == 1)
        #expect(entry(index, "a", 3) == 2)
        #expect(entry(index, "b.a", 2) == 1)
        #expect(entry(index, "b.a", 3) == 3)
    }

    @Test func `an empty index matches nothing`() throws {
        #expect(entry(try index([]), "a") == nil)
        #expect(entry(try index([[]]), "a") == nil)
    }

    @Test func `bytes in memory are looked up like a span`() throws {
        let index = try index([["a.example"]])
        let bytes = Array("a.example".utf8)
        #expect(bytes.withUnsafeBytes { index.entry(host: $0, port: 1) } == 0)
        #expect(index.entry(host: UnsafeRawBufferPointer(start: nil, count: 0), port: 1) == nil)
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `the index answers as a scan of the patterns would`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        func name() -> String {
            let labels = Int.random(in: 1...4, using: &random)
            return (0..<labels).map { _ in
                ["a", "b", "c", "ab"].randomElement(using: &random) ?? ""
            }
            .joined(separator: ".")
        }
        let addresses = ["192.0.2.1", "::1", "2001:db8::a", "[::1]", "::ffff:192.0.2.1"]
        let patterns = try (0..<40).map { _ in
            try (0..<Int.random(in: 1...3, using: &random)).map { _ in
                var text = ["", "*.", "**."].randomElement(using: &random) ?? ""
                text += name()
                if Int.random(in: 0..<8, using: &random) == 0 {
                    text = addresses.randomElement(using: &random) ?? ""
                }
                let hasPort = Int.random(in: 0..<3, using: &random) == 0
                if hasPort, !text.contains(":") || text.hasPrefix("[") {
                    text += ":\(Int.random(in: 1...3, using: &random))"
                }
                return try HostPattern(text)
            }
        }
        let index = HostIndex(patterns: patterns)
        for _ in 0..<2_000 {
            var host = name()
            switch Int.random(in: 0..<8, using: &random) {
            case 0: host = addresses.randomElement(using: &random) ?? ""
            case 1: host += "."
            case 2: host = host.uppercased()
            case 3: host = "." + host
            case 4: host = host.replacing(".", with: "..")
            default: break
            }
            let port = UInt16.random(in: 1...4, using: &random)
            let scanned = patterns.firstIndex { group in
                group.contains { $0.matches(host: host, port: port) }
            }
            #expect(entry(index, host, port) == scanned, "\(host):\(port)")
        }
    }
}
