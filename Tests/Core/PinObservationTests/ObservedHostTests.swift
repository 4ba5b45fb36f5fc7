import HTTPCore
import Testing
import Trust

@testable import PinObservation

/// What is remembered of a server.
@Suite("An observed host")
struct ObservedHostTests {
    private func empty() -> ObservedHost { ObservedHost(name: name, time: 100) }

    @Test func `says what each sighting shows that is new`() {
        var host = empty()
        #expect(host.note(sighting("a", at: 100)) == .firstCertificate)
        #expect(host.note(sighting("a", at: 160)) == nil)
        #expect(host.note(sighting("b", key: "a", at: 200)) == .renewedCertificate)
        #expect(host.note(sighting("c", at: 300)) == .newKey(issuerIsKnown: true))
        #expect(
            host.note(sighting("d", below: [["other", "root"]], at: 400))
                == .newKey(issuerIsKnown: true))
        #expect(
            host.note(sighting("e", below: [["evil", "evil root"]], at: 500))
                == .newKey(issuerIsKnown: false))
        #expect(host.newKeys == 3)
        #expect(host.newKeySeen == 500)
        #expect(host.firstSeen == 100 && host.lastSeen == 500)
    }

    @Test func `counts full verifications apart from those that were only reported`() {
        var host = empty()
        host.note(sighting("a", at: 100))
        host.note(sighting("a", at: 200, isReported: true))
        host.note(sighting("b", at: 200, isReported: true))
        #expect(host.chains[0].verified == 1 && host.chains[0].reported == 1)
        #expect(host.chains[0].isVerified && !host.chains[1].isVerified)
    }

    @Test func `remembers every path to a root, and when it was seen`() {
        var host = empty()
        host.note(sighting("a", below: [["i", "old root"], ["i", "x", "new root"]], at: 100))
        host.note(sighting("a", below: [["i", "x", "new root"]], at: 200))
        let paths = host.chains[0].paths
        #expect(paths.map(\.issuers.count) == [2, 3])
        #expect(paths.map(\.lastSeen) == [100, 200])
        #expect(
            host.chains[0].keys
                == [key("a"), key("i"), key("old root"), key("x"), key("new root")])
    }

    @Test func `keeps the addresses that were seen last, and says how many gave way`() {
        var host = empty()
        let all = (0..<20).compactMap { IPAddress("192.0.2.\($0)") }
        for (index, address) in all.enumerated() {
            host.note(sighting("a", at: 100 + Int64(index), from: address))
        }
        #expect(host.chains[0].addresses.map(\.address) == Array(all.suffix(16)))
        #expect(host.chains[0].forgottenAddresses == 4)
    }

    @Test func `lets the certificates give way of the address that has the most`() {
        var host = empty()
        host.note(sighting("quiet", at: 100))
        for index in 0..<100 {
            host.note(sighting("loud \(index)", at: 200 + Int64(index), from: otherAddress))
        }
        #expect(host.chains.count == ObservedHost.chainsLimit)
        #expect(host.chains.contains { $0.leaf.subject == "CN=quiet" })
        #expect(host.chains.contains { $0.leaf.subject == "CN=loud 99" })
        #expect(host.forgottenChains == 101 - UInt64(ObservedHost.chainsLimit))
    }

    @Test func `counts the days on which a certificate was verified`() {
        var host = empty()
        for time in [100, 200, day, day + 5, 3 * day, 2 * day] {
            host.note(sighting("a", at: time))
        }
        host.note(sighting("a", at: 9 * day, isReported: true))
        #expect(host.chains[0].verifiedDays == 3)
        #expect(host.chains[0].lastVerified == 3 * day)
    }

    @Test func `is the same after it was written and read`() throws {
        var host = empty()
        host.note(sighting("a", below: [["i", "r"], ["i", "x", "s"]], at: 100))
        host.note(sighting("b", below: [[]], at: 200, from: nil))
        host.note(sighting("c", at: 300, from: IPAddress("2001:db8::1"), isReported: true))
        let text = host.json.text
        #expect(ObservedHost(json: Array(text.utf8)) == host)
        // A certificate is written once, however many paths it is on.
        #expect(text.components("\"subject\":\"CN=i\"") == 1)
    }

    @Test(
        arguments: [
            ("first", Int64.min), ("first", -1), ("first", 101), ("last", 99), ("last", .max),
            ("last", 253_402_300_800),
        ] as [(String, Int64)])
    func `is not read with times that cannot be, wherever they are`(key: String, time: Int64) {
        var host = empty()
        host.note(sighting("a", at: 100))
        let text = host.json.text
        let ranges = text.ranges(of: "\"\(key)\":100")
        // Of the host, its chain, the path and the address.
        #expect(ranges.count == 4)
        for range in ranges {
            var changed = text
            changed.replaceSubrange(range, with: "\"\(key)\":\(time)")
            #expect(ObservedHost(json: Array(changed.utf8)) == nil)
        }
    }

    @Test(arguments: [(Int64.min, 0), (.max, 253_402_300_799)] as [(Int64, Int64)])
    func `is read with ends of certificates that can be`(written: Int64, read: Int64) throws {
        var host = empty()
        host.note(sighting("a", below: [[]], at: 100, notAfter: written))
        let found = try #require(ObservedHost(json: Array(host.json.text.utf8)))
        #expect(found.chains[0].leaf.notAfter == read)
    }

    @Test(arguments: [
        "", "null", "{}", "[1]", #"{"host":"a","port":70000}"#,
        #"{"host":"a","port":1,"first":2,"last":1,"certificates":[],"chains":[]}"#,
        #"{"host":"a","port":1,"first":1,"last":2,"certificates":[],"chains":[{"leaf":0}]}"#,
    ])
    func `is not read from anything else`(text: String) {
        #expect(ObservedHost(json: Array(text.utf8)) == nil)
    }
}

extension String {
    /// How often a text occurs.
    fileprivate func components(_ text: String) -> Int {
        var count = 0
        var rest = self[...]
        while let found = rest.firstRange(of: text) {
            count += 1
            rest = rest[found.upperBound...]
        }
        return count
    }
}

/// The servers that are remembered together.
@Suite("The table of observed hosts")
struct ObservationTableTests {
    private func client(_ text: String) -> IPNetwork? { IPNetwork(text) }

    private func one(_ number: Int, at time: Int64) -> Sighting {
        sighting("leaf \(number)", at: time, of: ObservedName(host: "h\(number).test", port: 443))
    }

    @Test func `lets the hosts give way of the network that holds the most`() {
        var table = ObservationTable(hostsLimit: 10)
        _ = table.note(one(0, at: 1), for: client("10.0.0.1/32"))
        var gone: [ObservedName] = []
        for number in 1...50 {
            gone += table.note(one(number, at: Int64(number)), for: client("10.0.0.2/32")).forgotten
        }
        #expect(table.count == 10)
        #expect(table.entry(ObservedName(host: "h0.test", port: 443)) != nil)
        #expect(gone.map(\.host) == (1...41).map { "h\($0).test" })
        #expect(table.forgotten == 41)
    }

    @Test func `is bounded in bytes, too`() {
        var table = ObservationTable(bytesLimit: 20_000)
        for number in 0..<200 { _ = table.note(one(number, at: 1), for: nil) }
        #expect(table.bytes <= 20_000 && table.count > 5)
    }

    @Test func `estimates what a host takes as it is written to within half`() {
        var host = ObservedHost(name: name, time: 100)
        for index in 0..<20 {
            host.note(
                sighting(
                    "leaf \(index)", at: 100 + Int64(index), from: IPAddress("192.0.2.\(index)")))
        }
        let written = host.json.text.utf8.count
        #expect(host.byteCount > written / 2 && host.byteCount < written * 2)
    }
}

/// What a worker passes on.
@Suite("The cache of sightings")
struct SightingCacheTests {
    @Test func `passes on what is new, and then a count once a minute`() {
        var cache = SightingCache()
        #expect(cache.note(7, now: 0).count == 1)
        #expect(cache.note(7, now: 1).count == nil)
        #expect(cache.note(7, now: 59_999).count == nil)
        #expect(cache.note(7, now: 60_000).count == 3)
        #expect(cache.note(8, now: 60_000).count == 1)
    }

    @Test func `gives up counts that nobody asked for`() {
        var cache = SightingCache()
        _ = cache.note(7, now: 0)
        _ = cache.note(7, now: 10)
        #expect(cache.takeCounts(now: 1_000) == [])
        #expect(cache.takeCounts(now: 60_000) == [.init(key: 7, count: 1)])
        #expect(cache.takeCounts(now: nil) == [])
        _ = cache.note(7, now: 60_001)
        #expect(cache.takeCounts(now: nil) == [.init(key: 7, count: 1)])
    }

    @Test func `hands over the count of what gives way`() {
        var cache = SightingCache()
        // All in the same set of four.
        for index in 0..<4 as Range<Int64> {
            #expect(cache.note(UInt64(1 + 256 * index), now: index).count == 1)
        }
        _ = cache.note(1, now: 5)
        let answer = cache.note(1 + 256 * 4, now: 6)
        #expect(answer == .init(count: 1, displaced: .init(key: 1, count: 1)))
        #expect(cache.note(1, now: 7).count == 1)
    }

    @Test func `finds something new again after it was forgotten`() {
        var cache = SightingCache()
        _ = cache.note(7, now: 0)
        cache.forget(7)
        #expect(cache.note(7, now: 1).count == 1)
    }
}
