import HTTPCore
import Testing

@testable import PinfoldResolver

@Suite("The cache of answers")
struct AnswerCacheTests {
    private func name(_ text: String) throws -> DomainName { try #require(DomainName(text)) }

    private func entry(_ number: UInt32, until expiry: Int64) -> AnswerCache.Entry {
        let answer = ResolvedAnswer(
            addresses: [.v4(number)], source: .dns, isComplete: true,
            expiresAtMilliseconds: expiry)
        return AnswerCache.Entry(result: .resolved(answer), expiresAtMilliseconds: expiry)
    }

    private func expectFind(
        _ expected: ResolveResult?, in cache: inout AnswerCache, _ name: DomainName,
        nowMilliseconds: Int64, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = cache.find(name, nowMilliseconds: nowMilliseconds)
        #expect(found == expected, sourceLocation: sourceLocation)
    }

    private func expectFound(
        in cache: inout AnswerCache, _ name: DomainName, nowMilliseconds: Int64,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let found = cache.find(name, nowMilliseconds: nowMilliseconds)
        #expect(found != nil, sourceLocation: sourceLocation)
    }

    @Test func `an entry is found until its time and gone at it`() throws {
        var cache = AnswerCache(maximumEntries: 4)
        let name = try name("a.example")
        cache.insert(name, entry(1, until: 100), nowMilliseconds: 0)
        expectFind(entry(1, until: 100).result, in: &cache, name, nowMilliseconds: 99)
        #expect(cache.count == 1)
        expectFind(nil, in: &cache, name, nowMilliseconds: 100)
        #expect(cache.count == 0)
        expectFind(nil, in: &cache, name, nowMilliseconds: 0)
    }

    @Test func `one client's names do not push out another's answers`() throws {
        var cache = AnswerCache(maximumEntries: 10)
        let (first, second) = (IPNetwork(.v4(1)), IPNetwork(.v4(2)))
        let kept = try name("a.example")
        cache.insert(kept, entry(1, until: 100), client: first, nowMilliseconds: 0)
        for number: UInt32 in 0..<100 {
            cache.insert(
                try name("n\(number).example"), entry(number, until: 100), client: second,
                nowMilliseconds: 0)
        }
        #expect(cache.count == 10)
        expectFound(in: &cache, kept, nowMilliseconds: 1)
        expectFound(in: &cache, try name("n99.example"), nowMilliseconds: 1)
    }

    @Test func `an entry already expired is not kept, and takes its predecessor with it`() throws {
        var cache = AnswerCache(maximumEntries: 4)
        let name = try name("a.example")
        cache.insert(name, entry(1, until: 100), nowMilliseconds: 0)
        cache.insert(name, entry(2, until: 50), nowMilliseconds: 50)
        expectFind(nil, in: &cache, name, nowMilliseconds: 50)
        #expect(cache.count == 0)
    }

    @Test
    func `at the limit everything is kept; beyond it the least recently used one is dropped`()
        throws
    {
        var cache = AnswerCache(maximumEntries: 3)
        for number: UInt32 in 0..<3 {
            cache.insert(
                try name("n\(number).example"), entry(number, until: 100), nowMilliseconds: 0)
        }
        #expect(cache.count == 3)
        // Used in the order 1, 0: 2 becomes the oldest.
        expectFound(in: &cache, try name("n1.example"), nowMilliseconds: 1)
        expectFound(in: &cache, try name("n0.example"), nowMilliseconds: 1)
        cache.insert(try name("n3.example"), entry(3, until: 100), nowMilliseconds: 1)
        #expect(cache.count == 3)
        expectFind(nil, in: &cache, try name("n2.example"), nowMilliseconds: 1)
        cache.insert(try name("n4.example"), entry(4, until: 100), nowMilliseconds: 1)
        expectFind(nil, in: &cache, try name("n1.example"), nowMilliseconds: 1)
        for number in [0, 3, 4] {
            expectFound(in: &cache, try name("n\(number).example"), nowMilliseconds: 1)
        }
    }

    @Test func `a newer answer replaces the older one`() throws {
        var cache = AnswerCache(maximumEntries: 1)
        let name = try name("a.example")
        cache.insert(name, entry(1, until: 100), nowMilliseconds: 0)
        cache.insert(name, entry(2, until: 200), nowMilliseconds: 0)
        #expect(cache.count == 1)
        expectFind(entry(2, until: 200).result, in: &cache, name, nowMilliseconds: 150)
    }

    @Test func `a cache of no entries keeps none, and a cleared one is empty and usable`() throws {
        var none = AnswerCache(maximumEntries: 0)
        none.insert(try name("a.example"), entry(1, until: 100), nowMilliseconds: 0)
        #expect(none.count == 0)
        var cache = AnswerCache(maximumEntries: 2)
        cache.insert(try name("a.example"), entry(1, until: 100), nowMilliseconds: 0)
        cache.removeAll()
        expectFind(nil, in: &cache, try name("a.example"), nowMilliseconds: 0)
        cache.insert(try name("a.example"), entry(1, until: 100), nowMilliseconds: 0)
        #expect(cache.count == 1)
    }

    @Test func `against a simple model, over many random steps, it finds the same`() throws {
        var cache = AnswerCache(maximumEntries: 5)
        var model: [(name: Int, value: UInt32, expiry: Int64)] = []  // newest last
        var seed: UInt64 = 42
        var now: Int64 = 0
        for step in 0..<5000 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let number = Int(seed >> 33) % 9
            let key = try name("n\(number).example")
            now += Int64(seed >> 40 & 1)
            let place = model.firstIndex { $0.name == number }
            if seed >> 50 & 1 == 0 {
                let expiry = now + Int64(seed >> 52 & 15)
                cache.insert(
                    key, entry(UInt32(step), until: expiry), nowMilliseconds: now)
                if let place { model.remove(at: place) }
                if expiry > now {
                    if model.count == 5 { model.removeFirst() }
                    model.append((number, UInt32(step), expiry))
                }
            } else {
                var expected: ResolveResult?
                if let place {
                    let found = model.remove(at: place)
                    if found.expiry > now {
                        model.append(found)
                        expected = entry(found.value, until: found.expiry).result
                    }
                }
                expectFind(expected, in: &cache, key, nowMilliseconds: now)
            }
            #expect(cache.count == model.count)
        }
    }
}
