import HTTPCore
import PinfoldTLS
import Testing
import Trust

@testable import PinfoldEngine

@Suite("The ledger of inspected tunnels")
struct InspectionTableTests {
    private static let authority = BoundAuthority(host: "a.test", port: 443)

    private func session(
        _ client: String = "192.0.2.1", _ authority: BoundAuthority = Self.authority,
        digest: UInt8 = 1
    ) throws -> InspectedSession {
        let hashed = SHA256Digest(hashing: [digest].span)
        return InspectedSession(
            client: try #require(IPNetwork(client)), authority: authority,
            digest: try #require(hashed))
    }

    @Test func `a session is one client's, with one host and port`() throws {
        var table = InspectionTable()
        table.note(try session(), until: 100)
        #expect(table.end(of: try session(), at: 99) == 100)
        for other in [
            try session("192.0.2.2"), try session(digest: 2),
            try session("192.0.2.1", BoundAuthority(host: "b.test", port: 443)),
            try session("192.0.2.1", BoundAuthority(host: "a.test", port: 8443)),
        ] {
            #expect(table.end(of: other, at: 0) == nil)
        }
    }

    @Test func `a session ends, and stays at an end`() throws {
        var table = InspectionTable()
        table.note(try session(), until: 100)
        #expect(table.end(of: try session(), at: 100) == nil)
        #expect(table.end(of: try session(), at: 0) == nil)
    }

    @Test func `a session ends within a day, or with its proof`() throws {
        let ledger = InspectionLedger()
        ledger.note(try session(digest: 1), until: .max, at: 1000)
        ledger.note(try session(digest: 2), until: 1005, at: 1000)
        #expect(ledger.knows(try session(digest: 1), at: 1000) == 1000 + 86_400)
        #expect(ledger.knows(try session(digest: 2), at: 1004) == 1005)
        #expect(ledger.knows(try session(digest: 2), at: 1005) == nil)
    }

    @Test func `as many are kept as there is room for, the most recently used`() throws {
        var table = InspectionTable(sessionLimit: 2)
        for digest in [1, 2] as [UInt8] { table.note(try session(digest: digest), until: 9) }
        #expect(table.end(of: try session(digest: 1), at: 0) == 9)
        table.note(try session(digest: 3), until: 9)
        #expect(table.end(of: try session(digest: 2), at: 0) == nil)
        #expect(table.end(of: try session(digest: 1), at: 0) == 9)
    }

    @Test func `one client's sessions and probes leave those of others`() throws {
        var table = InspectionTable(sessionLimit: 4, probeLimit: 4)
        let address = try #require(IPAddress("192.0.2.7"))
        func server(_ port: UInt16) -> ProbedServer {
            ProbedServer(
                endpoint: Endpoint(address: address, port: port), authority: Self.authority,
                applicationProtocols: [])
        }
        let clients = [IPNetwork("192.0.2.1"), IPNetwork("192.0.2.2")]
        table.note(try session("192.0.2.1"), until: 9)
        table.note(ProbedTrust(), of: server(1), for: clients[0], until: 9)
        for number: UInt8 in 2..<20 {
            table.note(try session("192.0.2.2", digest: number), until: 9)
            table.note(ProbedTrust(), of: server(UInt16(number)), for: clients[1], until: 9)
        }
        #expect(table.end(of: try session("192.0.2.1"), at: 0) == 9)
        let known = [1, 2, 19].map { table.probe(of: server($0), at: 0) != nil }
        #expect(known == [true, false, true])
    }

    @Test func `a probe is of one address, host and list of protocols, for a while`() throws {
        let address = try #require(IPAddress("192.0.2.7"))
        func server(
            _ port: UInt16 = 443, _ host: String = "a.test", _ protocols: [UInt8] = []
        ) -> ProbedServer {
            ProbedServer(
                endpoint: Endpoint(address: address, port: port),
                authority: BoundAuthority(host: host, port: 443), applicationProtocols: protocols)
        }
        let ledger = InspectionLedger()
        ledger.note(ProbedTrust(readsEncryptedHello: true), of: server(), for: nil, at: 1000)
        ledger.note(ProbedTrust(expires: 50), of: server(444), for: nil, at: 1000)
        let end = 1000 + InspectionLedger.probeMilliseconds
        #expect(ledger.probe(of: server(), at: end - 1, wall: 0)?.readsEncryptedHello == true)
        #expect(ledger.probe(of: server(443, "b.test"), at: 1000, wall: 0) == nil)
        #expect(ledger.probe(of: server(443, "a.test", [2, 104, 50]), at: 1000, wall: 0) == nil)
        #expect(ledger.probe(of: server(444), at: 1000, wall: 49) != nil)
        #expect(ledger.probe(of: server(444), at: 1000, wall: 50) == nil)
        #expect(ledger.probe(of: server(), at: end, wall: 0) == nil)
    }
}
