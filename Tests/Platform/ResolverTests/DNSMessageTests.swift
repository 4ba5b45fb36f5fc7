import HTTPCore
import Testing

@testable import PinfoldResolver

@Suite("DNS messages")
struct DNSMessageTests {
    private let name = DomainName("www.example.com")
    private let question = DNSWire.question("www.example.com", .a)

    private func outcome(
        _ message: [UInt8], _ family: IPAddress.Family = .v4
    ) throws -> FamilyOutcome {
        DNSMessage(message).outcome(name: try #require(name), family: family)
    }

    private func v4(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    @Test func `addresses come in the answer's order, once each, with the least TTL`() throws {
        let message = DNSWire.response(
            question: question,
            answer: [.a("1.2.3.4", ttl: 300), .a("1.2.3.5", ttl: 60), .a("1.2.3.4", ttl: 20)])
        let expected = [try v4("1.2.3.4"), try v4("1.2.3.5")]
        #expect(try outcome(message) == .addresses(expected, ttlSeconds: 20))
    }

    @Test func `AAAA records answer an AAAA question, and A records do not`() throws {
        let question = DNSWire.question("www.example.com", .aaaa)
        let message = DNSWire.response(
            question: question, answer: [.a("1.2.3.4"), .aaaa("2001:db8::1", ttl: 9)])
        let expected = [try v4("2001:db8::1")]
        #expect(try outcome(message, .v6) == .addresses(expected, ttlSeconds: 9))
    }

    @Test
    func `aliases are followed in any order and without regard to case; their TTLs count`() throws {
        let message = DNSWire.response(
            question: question,
            answer: [
                .a("1.2.3.4", owner: "C.example.net", ttl: 300),
                .cname("c.EXAMPLE.net", owner: "b.example.net", ttl: 5),
                .cname("B.example.net", ttl: 100),
            ])
        #expect(try outcome(message) == .addresses([try v4("1.2.3.4")], ttlSeconds: 5))
    }

    @Test func `addresses of names that the question does not lead to are not taken`() throws {
        let message = DNSWire.response(
            question: question,
            answer: [
                .a("6.6.6.6", owner: "evil.example"),
                .cname("b.example.net"), .a("7.7.7.7", owner: "x.b.example.net"),
                .a("1.2.3.4", owner: "b.example.net"),
            ])
        #expect(try outcome(message) == .addresses([try v4("1.2.3.4")], ttlSeconds: 60))
        let only = DNSWire.response(question: question, answer: [.a("6.6.6.6", owner: "evil.x")])
        #expect(try outcome(only) == .noData(ttlSeconds: nil))
    }

    @Test
    func `a chain of aliases may have 16 links; one more, or a ring, is a bad answer`() throws {
        func chain(_ links: Int) -> [UInt8] {
            var records: [DNSWire.Record] = []
            for link in 0..<links {
                records.append(
                    .cname("n\(link + 1).example", owner: link == 0 ? nil : "n\(link).example"))
            }
            records.append(.a("1.2.3.4", owner: "n\(links).example"))
            return DNSWire.response(question: question, answer: records)
        }
        let expected = FamilyOutcome.addresses([try v4("1.2.3.4")], ttlSeconds: 60)
        #expect(try outcome(chain(DNSMessage.maximumAliases)) == expected)
        #expect(
            try outcome(chain(DNSMessage.maximumAliases + 1)) == .failed(.badResponse))
        let ring = DNSWire.response(
            question: question,
            answer: [
                .cname("b.example"), .cname("www.example.com", owner: "b.example"),
            ])
        #expect(try outcome(ring) == .failed(.badResponse))
    }

    @Test func `a name may have 255 bytes, also one that pointers lead to`() throws {
        for (last, isTaken) in [(61, true), (62, false)] {
            let labels = [63, 63, 63, last].map { String(repeating: "a", count: $0) }
            let alias = DNSWire.Record.cname(labels.joined(separator: "."))
            var message = DNSWire.response(question: question, answer: [alias, .a("1.2.3.4")])
            // The header, the question, and what precedes the data of the first record.
            let start = 12 + question.count + 12
            let pointer = start + alias.data.count
            message[pointer] = 0xC0 | UInt8(start >> 8)
            message[pointer + 1] = UInt8(start & 0xFF)
            #expect(
                try outcome(message)
                    == (isTaken
                        ? .addresses([try v4("1.2.3.4")], ttlSeconds: 60) : .failed(.badResponse)))
        }
    }

    @Test func `of more than 64 addresses the first 64 are taken`() throws {
        for count in [DNSMessage.maximumAddresses, DNSMessage.maximumAddresses + 1] {
            let records = (0..<count).map { DNSWire.Record.a("10.0.0.\($0)") }
            let message = DNSWire.response(question: question, answer: records)
            guard case .addresses(let addresses, _) = try outcome(message) else {
                Issue.record("no addresses")
                return
            }
            #expect(addresses.count == DNSMessage.maximumAddresses)
            #expect(addresses.first == (try v4("10.0.0.0")))
        }
    }

    @Test func `512 records are read; an answer with one more is refused`() throws {
        func message(_ count: Int) -> [UInt8] {
            var records = [DNSWire.Record](
                repeating: DNSWire.Record(owner: nil, type: .txt, ttl: 1, data: []),
                count: count - 1)
            records.append(.a("1.2.3.4"))
            return DNSWire.response(question: question, answer: records)
        }
        let expected = FamilyOutcome.addresses([try v4("1.2.3.4")], ttlSeconds: 60)
        #expect(try outcome(message(DNSMessage.maximumRecords)) == expected)
        #expect(try outcome(message(DNSMessage.maximumRecords + 1)) == .failed(.badResponse))
    }

    @Test func `a TTL with the top bit set is zero`() throws {
        let message = DNSWire.response(
            question: question, answer: [.a("1.2.3.4", ttl: 0x8000_0000)])
        #expect(try outcome(message) == .addresses([try v4("1.2.3.4")], ttlSeconds: 0))
        let largest = DNSWire.response(
            question: question, answer: [.a("1.2.3.4", ttl: 0x7fff_ffff)])
        #expect(
            try outcome(largest) == .addresses([try v4("1.2.3.4")], ttlSeconds: 0x7fff_ffff))
    }

    @Test(
        arguments: [(UInt32(300), UInt32(60), Int64(60)), (60, 300, 60), (0, 300, 0), (300, 0, 0)])
    func `a negative answer holds for the lesser of the SOA's TTL and its minimum`(
        ttl: UInt32, minimum: UInt32, expected: Int64
    ) throws {
        let soa = DNSWire.Record.soa(owner: "example.com", ttl: ttl, minimum: minimum)
        let noName = DNSWire.response(question: question, code: 3, authority: [soa])
        #expect(try outcome(noName) == .noSuchName(ttlSeconds: expected))
        let noData = DNSWire.response(question: question, authority: [soa])
        #expect(try outcome(noData) == .noData(ttlSeconds: expected))
        let alias = DNSWire.response(
            question: question, answer: [.cname("b.example")], authority: [soa])
        #expect(try outcome(alias) == .noData(ttlSeconds: expected))
    }

    @Test func `a negative answer without a readable SOA has no time to live`() throws {
        let noName = DNSWire.response(question: question, code: 3)
        #expect(try outcome(noName) == .noSuchName(ttlSeconds: nil))
        var soa = DNSWire.Record.soa(owner: "example.com", ttl: 300, minimum: 60)
        soa.data.removeLast()
        let damaged = DNSWire.response(question: question, code: 3, authority: [soa])
        #expect(try outcome(damaged) == .noSuchName(ttlSeconds: nil))
    }

    @Test(
        arguments: [
            (UInt16(1), FamilyOutcome.failed(.serverFailure)), (2, .failed(.serverFailure)),
            (3, .noSuchName(ttlSeconds: nil)), (4, .failed(.serverFailure)),
            (5, .failed(.refused)), (9, .failed(.serverFailure)), (15, .failed(.serverFailure)),
        ])
    func `each response code has its meaning`(code: UInt16, expected: FamilyOutcome) throws {
        #expect(try outcome(DNSWire.response(question: question, code: code)) == expected)
    }

    @Test func `what is not a whole response to this very question is a bad answer`() throws {
        let good = DNSWire.response(question: question, answer: [.a("1.2.3.4")])
        var query = good
        query[2] &= 0x7f
        var notify = good
        notify[2] |= 0x20
        var noQuestion = good
        noQuestion[5] = 0
        var pointerToItself = good
        pointerToItself[12 + question.count + 1] = UInt8(12 + question.count)
        var pointerIntoHeader = good
        pointerIntoHeader[12 + question.count + 1] = 4
        var reservedLabel = good
        reservedLabel[12 + question.count] = 0x80
        let bad = [
            [], query, notify, noQuestion, pointerToItself, pointerIntoHeader, reservedLabel,
            DNSWire.response(
                question: DNSWire.question("www.example.org", .a), answer: [.a("1.2.3.4")]),
            DNSWire.response(
                question: DNSWire.question("www.example.com.x", .a), answer: [.a("1.2.3.4")]),
            DNSWire.response(
                question: DNSWire.question("www.example", .a), answer: [.a("1.2.3.4")]),
            DNSWire.response(
                question: DNSWire.question("www.example.com", .aaaa), answer: [.a("1.2.3.4")]),
            DNSWire.response(question: question, truncated: true, answer: [.a("1.2.3.4")]),
            DNSWire.response(
                question: question,
                answer: [DNSWire.Record(owner: nil, type: .a, ttl: 1, data: [1, 2, 3])]),
            DNSWire.response(
                question: question,
                answer: [DNSWire.Record(owner: nil, type: .a, ttl: 1, data: [1, 2, 3, 4, 5])]),
        ]
        for (index, message) in bad.enumerated() {
            #expect(try outcome(message) == .failed(.badResponse), "message \(index)")
        }
        #expect(try outcome(good) != .failed(.badResponse))
    }

    @Test func `upper case in the question's echo is the same name`() throws {
        let message = DNSWire.response(
            question: DNSWire.question("WWW.eXample.com", .a), answer: [.a("1.2.3.4")])
        #expect(try outcome(message) == .addresses([try v4("1.2.3.4")], ttlSeconds: 60))
    }

    @Test func `a message cut anywhere is a bad answer`() throws {
        let message = DNSWire.response(
            question: question,
            answer: [.cname("b.example"), .a("1.2.3.4", owner: "b.example")])
        for count in 0..<message.count {
            #expect(
                try outcome(Array(message[..<count])) == .failed(.badResponse), "\(count) bytes")
        }
    }

    @Test func `damaged messages never trap: any three bytes changed, ten thousand times`() throws {
        let name = try #require(name)
        let message = DNSWire.response(
            question: question,
            answer: [
                .cname("b.example"), .a("1.2.3.4", owner: "b.example"),
                .aaaa("2001:db8::1", owner: "b.example"),
            ], authority: [.soa(ttl: 1, minimum: 1)])
        var seed: UInt64 = 0x9e37_79b9_7f4a_7c15
        func next() -> UInt64 {
            seed ^= seed << 13
            seed ^= seed >> 7
            seed ^= seed << 17
            return seed
        }
        for _ in 0..<10_000 {
            var changed = message
            for _ in 0..<3 {
                changed[Int(next() % UInt64(changed.count))] = UInt8(truncatingIfNeeded: next())
            }
            _ = DNSMessage(changed).outcome(name: name, family: .v4)
            _ = DNSMessage(changed).outcome(name: name, family: .v6)
        }
    }
}
