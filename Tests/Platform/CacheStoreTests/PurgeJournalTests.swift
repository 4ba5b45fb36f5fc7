import Foundation
import TestSupport
import Testing

@testable import CacheStore

@Suite("The journal of purges")
struct PurgeJournalTests {
    private let folder = TemporaryFolder()
    private var path: String { folder.file("cache.sqlite.purges") }

    private func bans() throws -> [Ban] {
        let patterns: [BanPattern] = [
            .everything, .host(try PurgeHost("*.a.example:81")), .host(try PurgeHost("b")),
            .tag([1, 2, 3], origin: nil), .tag([], origin: Array("http://a".utf8)),
            .prefix(Array("http://a/".utf8)), .key([UInt8](repeating: 7, count: 16_384)),
        ]
        return patterns.enumerated().map { number, pattern in
            Ban(
                pattern: pattern, isSoft: number % 2 == 0,
                mark: BanMark(
                    serial: UInt64(number + 3), through: Int64(number * 1000), time: 1_700_000_000))
        }
    }

    @Test func `what is appended is read again, in its order`() throws {
        let bans = try bans()
        let journal = try PurgeJournal.create(path, Array(bans[..<3]), lastSerial: 2)
        for ban in bans[3...] { try journal.append([ban]) }
        let found = PurgeJournal.contents(path)
        #expect(found == PurgeJournal.Contents(bans: bans, lastSerial: 9))
        journal.retire(through: 5)
        let rest = PurgeJournal.contents(path)
        #expect(rest.bans == Array(bans[3...]))
        #expect(rest.lastSerial == 9)
    }

    @Test func `without a file there is nothing, and nothing is damaged`() {
        #expect(PurgeJournal.contents(path) == PurgeJournal.Contents())
    }

    @Test func `a record that is cut off was not acknowledged`() throws {
        let bans = Array(try bans()[3..<6])
        let journal = try PurgeJournal.create(path, [], lastSerial: 0)
        try journal.append([bans[0], bans[1]])
        let complete = journal.bytes
        try journal.append([bans[2]])
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        for count in complete..<whole.count {
            try whole.prefix(count).write(to: URL(fileURLWithPath: path))
            let found = PurgeJournal.contents(path)
            #expect(found.bans == Array(bans[..<2]) && !found.isDamaged, "\(count)")
        }
        try (whole.prefix(complete) + Data(count: 100)).write(to: URL(fileURLWithPath: path))
        #expect(PurgeJournal.contents(path).bans == Array(bans[..<2]))
    }

    @Test func `every byte that is changed is noticed`() throws {
        let journal = try PurgeJournal.create(path, [], lastSerial: 1)
        try journal.append(Array(try bans()[3..<6]))
        let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        // The last serial is only a lower bound; one that nobody reaches is damaged.
        var far = whole
        far[15] = 0x7F
        try Data(far).write(to: URL(fileURLWithPath: path))
        #expect(PurgeJournal.contents(path).isDamaged)
        for index in whole.indices where !(8..<16).contains(index) {
            var changed = whole
            changed[index] ^= 0x10
            try Data(changed).write(to: URL(fileURLWithPath: path))
            let found = PurgeJournal.contents(path)
            #expect(found.isDamaged, "byte \(index)")
        }
    }

    @Test func `it is not appended to when another file has its place`() throws {
        let journal = try PurgeJournal.create(path, [], lastSerial: 0)
        try FileManager.default.removeItem(atPath: path)
        #expect(throws: (any Error).self) { try journal.append(try bans()) }
        _ = try PurgeJournal.create(path, [], lastSerial: 0)
        #expect(throws: (any Error).self) { try journal.append(try bans()) }
    }
}
