import Testing

@testable import HTTPCore

/// A reference implementation with a single list.
private struct Model {
    struct Entry: Equatable {
        let key: Int
        var value: Int
        let client: IPNetwork?
        var weight: Int
    }

    /// The least recently used first.
    var entries: [Entry] = []
    var limit: Int

    var weight: Int { entries.reduce(0) { $0 + $1.weight } }

    func weight(of client: IPNetwork?) -> Int {
        entries.reduce(0) { $0 + ($1.client == client ? $1.weight : 0) }
    }

    func index(of key: Int) -> Int? { entries.firstIndex { $0.key == key } }

    mutating func use(_ key: Int) -> Int? {
        guard let index = index(of: key) else { return nil }
        entries.append(entries.remove(at: index))
        return entries.last?.value
    }

    mutating func set(_ value: Int, for key: Int, of client: IPNetwork?, weight: Int) {
        entries.removeAll { $0.key == key }
        entries.append(Entry(key: key, value: value, client: client, weight: weight))
        makeRoom()
    }

    mutating func makeRoom() {
        while weight > limit, let next = next() { entries.removeAll { $0 == next } }
    }

    func next(ofClients: Bool = false) -> Entry? {
        let candidates = entries.filter { !ofClients || $0.client != nil }
        let most = candidates.map { weight(of: $0.client) }.max()
        return candidates.first { weight(of: $0.client) == most }
    }
}

private struct Random {
    var state: UInt64

    init(_ seed: Int) { state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1 }

    mutating func callAsFunction(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % bound
    }
}

private func client(_ number: Int) -> IPNetwork? {
    number == 0 ? nil : IPNetwork(.v4(UInt32(number)))
}

@Suite("A table in which each client has a share")
struct ShareTableTests {
    @Test(arguments: 0..<200)
    func `does what a list does`(seed: Int) {
        var random = Random(seed)
        let limit = random(24)
        let clients = 1 + random(6)
        let heaviest = 1 + random(3)
        var model = Model(limit: limit)
        var table = ShareTable<Int, Int>(limit: limit)
        for step in 0..<1500 {
            let key = random(30)
            switch random(12) {
            case 0...3:
                let (client, weight) = (client(random(clients)), 1 + random(heaviest))
                model.set(step, for: key, of: client, weight: weight)
                table.set(step, for: key, of: client, weight: weight)
            case 4:
                let index = model.index(of: key)
                let expected = index.map { model.entries.remove(at: $0).value }
                let removed = table.remove(key)
                #expect(removed == expected)
            case 5:
                let weight = 1 + random(heaviest)
                if let index = model.index(of: key) {
                    model.entries[index].weight = weight
                    model.entries[index].value = step
                }
                table.update(step, for: key, weight: weight)
                model.makeRoom()
                while table.weight > table.limit { table.removeNext() }
            case 6 where random(20) == 0:
                model.limit = random(24)
                model.makeRoom()
                table.setLimit(model.limit)
            case 7 where random(20) == 0:
                model.entries.removeAll { $0.key.isMultiple(of: 3) }
                table.removeAll { key, _ in key.isMultiple(of: 3) }
            case 8:
                let (expected, found) = (model.next(), table.removeNext())
                model.entries.removeAll { $0 == expected }
                #expect(found == expected?.value)
            default:
                let (expected, found) = (model.use(key), table.use(key))
                #expect(found == expected)
            }
            check(table, model, clients)
        }
    }

    private func check(_ table: ShareTable<Int, Int>, _ model: Model, _ clients: Int) {
        #expect(table.count == model.entries.count)
        #expect(table.isEmpty == model.entries.isEmpty)
        #expect(table.weight == model.weight)
        #expect(table.weight <= table.limit && table.limit == model.limit)
        #expect(table.clientCount == Set(model.entries.map(\.client)).count)
        #expect(table.next() == model.next()?.value)
        #expect(table.next(ofClients: true) == model.next(ofClients: true)?.value)
        // One expectation for all clients, and one for all keys: there are 300,000 steps.
        let all = (0..<clients).map { client($0) }
        #expect(all.map { table.weight(of: $0) } == all.map { model.weight(of: $0) })
        #expect(
            all.map { table.next(of: $0) }
                == all.map { one in model.entries.first { $0.client == one }?.value })
        let keys = 0..<30
        #expect(
            keys.map { table.value(of: $0) }
                == keys.map { key in model.entries.first { $0.key == key }?.value })
    }

    @Test func `one client's flood leaves what others have`() {
        var table = ShareTable<Int, Int>(limit: 100)
        for key in 0..<10 { table.set(key, for: key, of: client(1)) }
        for key in 100..<10_100 { table.set(key, for: key, of: client(2)) }
        #expect(table.count == 100)
        for key in 0..<10 { #expect(table.value(of: key) == key) }
        #expect(table.weight(of: client(2)) == 90)
    }

    @Test func `one that has all the room gives it to those who come`() {
        var table = ShareTable<Int, Int>(limit: 90)
        for key in 0..<90 { table.set(key, for: key, of: client(1)) }
        #expect(table.weight(of: client(1)) == 90)
        for key in 100..<400 { table.set(key, for: key, of: client(key % 2 + 2)) }
        #expect((1...3).map { table.weight(of: client($0)) } == [30, 30, 30])
    }

    @Test func `where all hold as much, the longest unused is dropped`() {
        var table = ShareTable<Int, Int>(limit: 3)
        for key in 1...3 { table.set(key, for: key, of: client(key)) }
        _ = table.use(1)
        table.set(4, for: 4, of: client(4))
        #expect((1...4).map { table.value(of: $0) } == [1, nil, 3, 4])
    }

    @Test func `an entry counts for the client that added it, whichever uses it`() {
        var table = ShareTable<Int, Int>(limit: 4)
        table.set(0, for: 0, of: client(1))
        for key in 1...3 { table.set(key, for: key, of: client(2)) }
        // Used by others: it becomes its holder's most recently used, and still belongs to its
        // holder.
        _ = table.use(1)
        table.set(4, for: 4, of: client(3))
        #expect((0...4).map { table.value(of: $0) } == [0, 1, nil, 3, 4])
    }

    @Test func `what does not fit at all is dropped itself`() {
        var table = ShareTable<Int, Int>(limit: 10)
        table.set(1, for: 1, of: client(1), weight: 4)
        table.set(2, for: 2, of: client(2), weight: 11)
        #expect(table.value(of: 1) == 1 && table.value(of: 2) == nil)
        #expect(table.weight == 4)
    }

    @Test func `a table without room keeps nothing`() {
        var table = ShareTable<Int, Int>(limit: 0)
        table.set(1, for: 1, of: nil)
        #expect(table.isEmpty && table.weight == 0 && table.clientCount == 0)
        #expect(table.next() == nil)
        let removed = table.removeNext()
        #expect(removed == nil)
    }

    @Test func `many clients with one entry each are a table of the latest`() {
        var table = ShareTable<Int, Int>(limit: 500)
        for key in 1...5000 { table.set(key, for: key, of: client(key)) }
        #expect(table.count == 500)
        #expect((1...5000).filter { table.value(of: $0) != nil } == Array(4501...5000))
        #expect(table.clientCount == 500)
    }
}

@Suite("Places of which each holder has a share")
struct PlaceSharesTests {
    /// How many permits a holder gets of those that it asks for.
    private func take(_ count: Int, _ shares: inout PermitShares<Int>, for holder: Int?) -> Int {
        var taken = 0
        for _ in 0..<count where shares.take(for: holder) { taken += 1 }
        return taken
    }

    @Test func `half of them are anybody's, and then a quarter is as many as one may have`() {
        var shares = PermitShares<Int>(permits: 16)
        #expect(take(16, &shares, for: 1) == 8)
        #expect(take(16, &shares, for: 2) == 4)
        #expect(take(1, &shares, for: nil) == 1)
        #expect(take(1, &shares, for: 3) == 1)
        #expect((shares.taken, shares.taken(by: 1), shares.taken(by: 3)) == (14, 8, 1))
        #expect(take(5, &shares, for: nil) == 2)
        #expect(shares.isFull && !shares.mayTake(for: 4))
    }

    @Test func `a place that is given back is free`() {
        var shares = PermitShares<Int>(permits: 2)
        #expect(take(2, &shares, for: 1) == 1)
        shares.release(for: 1)
        #expect(shares.taken == 0 && shares.taken(by: 1) == 0)
        #expect(take(1, &shares, for: 1) == 1)
        shares.removeAll()
        #expect(shares.taken == 0 && shares.taken(by: 1) == 0 && shares.permits == 2)
    }

    @Test func `the last place is one that anybody may have`() {
        var shares = PermitShares<Int>(permits: 1)
        #expect(take(1, &shares, for: 1) == 1)
        shares.release(for: 1)
        #expect(take(1, &shares, for: 2) == 1)
    }
}

@Suite("The network that a client is counted by")
struct ClientNetworkTests {
    @Test(
        arguments: [
            ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ])
    func `is the address for IPv4 and the /64 for IPv6`(address: String, network: String) throws {
        let address = try #require(IPAddress(address))
        #expect(IPNetwork(client: address) == (try IPNetwork(parsing: network)))
    }
}
