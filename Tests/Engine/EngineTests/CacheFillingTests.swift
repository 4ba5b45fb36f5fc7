import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("Filling the cache after the client has left")
struct CacheFillingTests {
    @Test func `each network has its share`() throws {
        let limits = FillingLimits()
        let one = try #require(IPNetwork("192.0.2.1/32"))
        let other = try #require(IPNetwork("192.0.2.2/32"))
        for network in [one, other, nil] {
            for _ in 0..<FillingLimits.limit { #expect(limits.begin(for: network)) }
            #expect(!limits.begin(for: network))
        }
        limits.end(for: one)
        #expect(limits.begin(for: one))
        #expect(!limits.begin(for: one) && !limits.begin(for: other))
        for network in [one, other, nil] {
            for _ in 0..<FillingLimits.limit { limits.end(for: network) }
            // More than began is not counted.
            limits.end(for: network)
            for _ in 0..<FillingLimits.limit { #expect(limits.begin(for: network)) }
            #expect(!limits.begin(for: network))
        }
    }

    @Test(
        arguments: [
            (0, 10_000, false), (0, 10_001, true), (163_840, 10_001, true),
            (163_857, 10_001, false), (1 << 30, 3_600_000, false), (1 << 20, 3_600_000, true),
        ])
    func `a rate matters after a while`(received: Int, elapsed: Int64, isTooSlow: Bool) {
        var filling = CacheFilling(network: nil, began: 500)
        filling.received = received
        #expect(filling.isTooSlow(now: 500 + elapsed) == isTooSlow)
    }
}
