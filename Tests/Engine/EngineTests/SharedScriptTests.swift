import RedisProtocol
import SharedCache
import TestSupport
import Testing

@testable import PinfoldEngine

@Suite("The scripts of the shared cache's engine")
struct SharedScriptTests {
    private let keyring: SharedKeyring
    private let server: RedisServer
    private let client: RedisClient

    init() throws {
        let secret = try #require(SharedSecret([UInt8](repeating: 7, count: 32)))
        keyring = try #require(SharedKeyring([secret]))
        server = try RedisServer()
        let client = try server.client()
        try server.run { client.isReady }
        self.client = client
    }

    private func send(_ words: [[UInt8]]) throws -> RESPValue {
        guard case .reply(let value) = try server.outcome(client, RedisCommand(words)) else {
            throw RedisTestError.noReply
        }
        return value
    }

    private func send(_ name: String, _ words: [UInt8]...) throws -> RESPValue {
        try send([Array(name.utf8)] + words)
    }

    private func number(_ number: Int) -> [UInt8] { Array("\(number)".utf8) }

    private func run(
        _ script: SharedScript, _ names: [[UInt8]], _ arguments: [UInt8]...
    ) throws -> Int64? {
        try send(
            [Array("EVAL".utf8), Array(script.text.utf8), number(names.count)] + names + arguments
        ).integer
    }

    private func position(_ milliseconds: UInt64, epoch: UInt64 = 1) -> PurgePosition {
        PurgePosition(epoch: epoch, milliseconds: milliseconds, sequence: 0)
    }

    @Test func `publish a response only while its key has not been removed`() throws {
        defer { client.stop() }
        let names = ["{a}i", "{a}v", "{a}l"].map { Array($0.utf8) }
        let token = SharedToken(random: (1, 2))
        var index = SharedIndex(instance: token)
        let first = try #require(index.record(under: names[0], by: keyring))
        let lease = try #require(
            SharedLease(SharedToken(random: (3, 4)), by: Array("gw".utf8))?
                .record(under: names[2], by: keyring))
        let value = Array("value".utf8)
        func publish(
            _ token: SharedToken, from old: [UInt8] = [], to new: [UInt8] = []
        ) throws -> Int64? {
            try run(.publish, names, token.bytes, old, new, value, number(60_000), lease)
        }
        #expect(try publish(token) == 0)
        _ = try send("SET", names[0], first, Array("PX".utf8), number(1000))
        _ = try send("SET", names[2], lease)
        #expect(try publish(SharedToken(random: (9, 9))) == 0)
        #expect(try send("GET", names[1]) == .null)
        // Another gateway has noted other names meanwhile.
        let added = index.add([1, 2])
        #expect(added)
        let second = try #require(index.record(under: names[0], by: keyring))
        #expect(try publish(token, from: second, to: first) == 2)
        #expect(try send("GET", names[1]) == .null)
        #expect(try send("GET", names[2]) == .bulk(lease))
        #expect(try publish(token, from: first, to: second) == 1)
        #expect(try send("GET", names[0]) == .bulk(second))
        #expect(try send("GET", names[1]) == .bulk(value))
        #expect(try send("GET", names[2]) == .null)
        let life = try #require(try send("PTTL", names[0]).integer)
        #expect(life > 60_000)
        _ = try send("DEL", names[0])
        #expect(try publish(token) == 0)
    }

    @Test func `end and extend a lease only of its holder`() throws {
        defer { client.stop() }
        let name = Array("l".utf8)
        let (mine, other) = (Array("mine".utf8), Array("other".utf8))
        #expect(try run(.release, [name], mine) == 0)
        _ = try send("SET", name, mine, Array("PX".utf8), number(60_000))
        #expect(try run(.release, [name], other) == 0)
        #expect(try run(.extend, [name], other, number(600_000)) == 0)
        #expect(try run(.extend, [name], mine, number(600_000)) == 1)
        let life = try #require(try send("PTTL", name).integer)
        #expect(life > 60_000)
        #expect(try run(.release, [name], mine) == 1)
        #expect(try send("GET", name) == .null)
    }

    private let name = Array("g".utf8)

    private func begin(_ position: PurgePosition) throws -> Int64? {
        let floor = try #require(Generations.floorValue(position, under: name, by: keyring))
        return try run(.begin, [name], floor, number(60_000))
    }

    private func raise(
        _ pattern: PurgePattern, isSoft: Bool = false, at position: PurgePosition, limit: Int = 3
    ) throws -> Int64? {
        let mark = PurgeMark(pattern, isSoft: isSoft, seconds: 5, at: position)
        let floor = try #require(Generations.floorValue(position, under: name, by: keyring))
        return try run(
            .raise, [name], try #require(mark.field),
            try #require(mark.value(under: name, by: keyring)), floor, number(60_000),
            number(limit))
    }

    private func generations() throws -> Generations {
        let entries = try #require(try send("HGETALL", name).entries)
        let fields = try entries.map {
            (field: try #require($0.key.bytes), value: try #require($0.value.bytes))
        }
        return try Generations(fields, under: name, by: keyring)
    }

    @Test func `begin a record once for each epoch`() throws {
        defer { client.stop() }
        #expect(try begin(position(5)) == 1)
        #expect(try begin(position(9)) == 0)
        #expect(try generations().floor == position(5))
        #expect(try raise(.everything, at: position(6)) == 1)
        #expect(try begin(position(1, epoch: 2)) == 1)
        #expect(try generations() == Generations(floor: position(1, epoch: 2), marks: []))
    }

    @Test func `note the latest purge of each pattern`() throws {
        defer { client.stop() }
        let tag = PurgePattern.tag(Array("t".utf8), origin: nil)
        #expect(try raise(tag, at: position(10)) == 1)
        #expect(try generations().floor == position(10))
        #expect(try raise(tag, at: position(9)) == 0)
        #expect(try raise(tag, at: position(10)) == 0)
        #expect(try generations().marks.map(\.position) == [position(10)])
        // As numbers: as texts, 1000 would precede 11.
        #expect(try raise(tag, at: position(1000)) == 1)
        #expect(try raise(tag, isSoft: true, at: position(11)) == 1)
        #expect(
            Set(try generations().marks.map(\.position)) == [position(1000), position(11)])
        #expect(try raise(tag, at: position(2, epoch: 2)) == 1)
        let anew = try generations()
        #expect(anew.floor == position(2, epoch: 2))
        #expect(anew.marks.map(\.position) == [position(2, epoch: 2)])
    }

    @Test func `begin a record anew when it is full`() throws {
        defer { client.stop() }
        func key(_ number: Int) -> PurgePattern { .key(Array("https://a/\(number)".utf8)) }
        for number in 1...3 {
            #expect(try raise(key(number), at: position(UInt64(number))) == 1)
        }
        #expect(try raise(key(3), at: position(4)) == 1)
        #expect(try generations().marks.count == 3)
        #expect(try raise(key(4), at: position(5)) == 2)
        #expect(try generations() == Generations(floor: position(5), marks: []))
    }
}
