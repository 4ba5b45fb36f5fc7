import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("The table of cache misses in progress")
struct FlightTableTests {
    private final class Flight {}

    /// What a miss does, as a word.
    private func enter(
        _ table: inout FlightTable<Flight>, _ flight: Flight, _ hash: UInt64, now: Int64 = 0
    ) -> String {
        switch table.enter(flight, hash: hash, now: now) {
        case .lead: "lead"
        case .alone: "alone"
        case .follow(let leader): leader === flight ? "follow itself" : "follow"
        }
    }

    @Test func `the first miss of a key leads and the next ones follow it`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let (first, second) = (Flight(), Flight())
        #expect(enter(&table, first, 3) == "lead")
        #expect(enter(&table, second, 3) == "follow")
        guard case .follow(let leader) = table.enter(second, hash: 3, now: 0) else {
            Issue.record("nobody leads")
            return
        }
        #expect(leader === first)
    }

    @Test func `a flight that is forgotten is followed by nobody who comes later`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let (first, second, other) = (Flight(), Flight(), Flight())
        _ = enter(&table, first, 3)
        _ = enter(&table, other, 4)
        #expect(table.forget { $0 === first } == [3])
        #expect(enter(&table, second, 3) == "lead")
        #expect(enter(&table, Flight(), 4) == "follow")
        // It ends later, and leaves its successor in place.
        table.leave(first, hash: 3)
        #expect(enter(&table, Flight(), 3) == "follow")
    }

    @Test func `when a flight has ended the next miss leads`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let (first, second) = (Flight(), Flight())
        _ = enter(&table, first, 3)
        // Only the leader can end it.
        table.leave(second, hash: 3)
        #expect(enter(&table, second, 3) == "follow")
        table.leave(first, hash: 3)
        #expect(enter(&table, second, 3) == "lead")
    }

    @Test func `another flight can lead in its place`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let (first, second) = (Flight(), Flight())
        #expect(table.leader(3) == nil)
        _ = enter(&table, first, 3)
        #expect(table.leader(3) === first && table.leader(11) == nil)
        // Only the leader can be replaced.
        table.replace(second, by: second, hash: 3)
        #expect(table.leader(3) === first)
        table.replace(first, by: second, hash: 3)
        #expect(table.leader(3) === second)
        table.leave(first, hash: 3)
        #expect(table.leader(3) === second)
        table.leave(second, hash: 3)
        #expect(table.leader(3) == nil)
    }

    @Test func `a key whose slots are in use by others proceeds alone while their flights last`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let flights = [3, 5, 7, 9].map { (hash: UInt64($0), flight: Flight()) }
        for (hash, flight) in flights { #expect(enter(&table, flight, hash) == "lead") }
        #expect(enter(&table, Flight(), 11) == "alone")
        for (hash, flight) in flights {
            #expect(table.leader(hash) === flight && enter(&table, Flight(), hash) == "follow")
        }
        #expect(enter(&table, Flight(), 4) == "lead")
        table.leave(flights[2].flight, hash: 7)
        #expect(enter(&table, Flight(), 11) == "lead")
        #expect(enter(&table, Flight(), 7) == "alone")
        #expect(table.leaderCount == 5)
    }

    @Test func `misses of a marked key proceed alone for a while`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let flight = Flight()
        table.proceedAlone(hash: 3, until: 100, for: nil)
        #expect(enter(&table, flight, 3, now: 99) == "alone")
        #expect(enter(&table, flight, 3, now: 100) == "lead")
        #expect(enter(&table, Flight(), 3, now: 100) == "follow")
    }

    @Test func `a mark does not end a flight, and is of one key`() {
        var table = FlightTable<Flight>(slotCount: 8)
        let (first, second) = (Flight(), Flight())
        _ = enter(&table, first, 3)
        table.proceedAlone(hash: 3, until: 100, for: nil)
        #expect(enter(&table, second, 3) == "follow")
        table.leave(first, hash: 3)
        #expect(enter(&table, second, 3) == "alone")
        // In the same place.
        #expect(enter(&table, second, 11) == "lead")
        #expect(enter(&table, second, 3) == "alone")
    }

    @Test func `one client's marks leave those of others`() {
        var table = FlightTable<Flight>(slotCount: 8)
        table.proceedAlone(hash: 3, until: 100, for: IPNetwork(.v4(1)))
        for hash: UInt64 in 100..<200 {
            table.proceedAlone(hash: hash, until: 100, for: IPNetwork(.v4(2)))
        }
        #expect(enter(&table, Flight(), 3) == "alone")
        #expect(enter(&table, Flight(), 199) == "alone")
        #expect(enter(&table, Flight(), 101) == "lead")
    }

    @Test func `the table holds no flight that has ended`() {
        var table = FlightTable<Flight>(slotCount: 8)
        weak var ended: Flight?
        do {
            let flight = Flight()
            ended = flight
            _ = enter(&table, flight, 3)
            table.leave(flight, hash: 3)
        }
        #expect(ended == nil)
        #expect(enter(&table, Flight(), 3) == "lead")
    }
}
