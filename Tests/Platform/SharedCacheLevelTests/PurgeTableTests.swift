import CacheStore
import CacheTestSupport
import SharedCache
import Testing

@testable import SharedCacheLevel

/// What purges make of values, and what a process leaves to the next one.
@Suite("The purges that values are compared with")
struct PurgeTableTests {
    private func at(_ milliseconds: UInt64, epoch: UInt64 = 3) -> PurgePosition {
        PurgePosition(epoch: epoch, milliseconds: milliseconds, sequence: 0)
    }

    private func tag(_ tag: String, isSoft: Bool = false, at seconds: Int64 = 9) -> FleetPurge {
        FleetPurge(pattern: .tag(Array(tag.utf8), origin: nil), isSoft: isSoft, seconds: seconds)
    }

    private func verdict(
        _ table: PurgeTable, _ born: PurgePosition, tags: String = "t"
    ) -> PurgeTable.Verdict {
        let head = head(extra: "Surrogate-Key: \(tags)\r\n")
        return Array("http://a/x".utf8).withUnsafeBytes { key in
            head.withUnsafeBytes { table.verdict(key: key, head: $0, born: born) }
        }
    }

    @Test func `are those after the position of the value`() {
        var table = PurgeTable(floor: at(5))
        table.add(tag("t"), at: at(10))
        table.add(tag("u", isSoft: true, at: 77), at: at(20))
        #expect(verdict(table, at(9)) == .gone)
        #expect(verdict(table, at(10)) == .current)
        #expect(verdict(table, at(10), tags: "u") == .stale(since: 77))
        #expect(verdict(table, at(20), tags: "u") == .current)
        #expect(verdict(table, at(9), tags: "v") == .current)
        #expect(verdict(table, at(9), tags: "t u") == .gone)
    }

    @Test func `say nothing of values that are older than they are, or of another epoch`() {
        let table = PurgeTable(floor: at(5))
        #expect(verdict(table, at(4)) == .unknown)
        #expect(verdict(table, at(5)) == .current)
        #expect(verdict(table, at(9, epoch: 4)) == .unknown)
    }

    @Test func `are read up to where the stream was read, whatever was written to it`() {
        var table = PurgeTable(floor: at(5))
        table.add(tag("t"), at: at(10))
        #expect(table.position == at(5))
        table.read(to: at(9))
        table.read(to: at(8))
        #expect(table.position == at(9))
        #expect(
            table.goesOn(in: .init(epoch: 3, first: at(5), last: at(30), hasRemoved: true)))
        #expect(
            !table.goesOn(in: .init(epoch: 3, first: at(11), last: at(30), hasRemoved: true)))
        #expect(
            !table.goesOn(in: .init(epoch: 4, first: nil, last: at(30), hasRemoved: false)))
    }

    @Test func `are left to the next process as a line`() {
        let places = FleetRecord.Positions(purges: at(7), removed: at(8))
        for record in [
            FleetRecord(), FleetRecord(hasLost: true), FleetRecord(positions: places),
            FleetRecord(positions: places, hasLost: true),
        ] {
            #expect(FleetRecord(record.text) == record)
        }
        for text in [
            "", "pinfold-fleet-1", "pinfold-fleet-2 1 1-1 1-1 told", "pinfold-fleet-1 1 1-1 1-1",
            "pinfold-fleet-1 x 1-1 1-1 told", "pinfold-fleet-1 1 1 1-1 told",
            "pinfold-fleet-1 1 1-1 1-1 maybe", "pinfold-fleet-1 1 1-1 1-1 told more",
        ] {
            #expect(FleetRecord(text) == nil, "\(text)")
        }
    }
}
