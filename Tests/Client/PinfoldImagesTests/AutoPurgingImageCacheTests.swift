import PinfoldImages
import Testing

/// Numbers of bytes instead of images.
private typealias Cache = AutoPurgingImageCache<Int>

@Suite("The auto-purging image cache")
struct AutoPurgingImageCacheTests {
    private func cache(_ capacity: Int = 100, _ preferred: Int = 60) -> AutoPurgingImageCache<Int> {
        Cache(memoryCapacity: capacity, preferredMemoryUsageAfterPurge: preferred) { $0 }
    }

    private func key(_ name: String, _ identifier: String? = nil) -> AutoPurgingImageCache<Int>.Key
    {
        Cache.Key(url: name, identifier: identifier)
    }

    @Test func `has AFNetworking's capacities by default`() {
        let cache = Cache { $0 }
        #expect(cache.memoryCapacity == 104_857_600)
        #expect(cache.preferredMemoryUsageAfterPurge == 62_914_560)
    }

    @Test func `is purged to the preferred usage once the capacity is exceeded`() {
        var cache = cache()
        for index in 0..<10 { #expect(cache.add(10, for: key("\(index)")).isEmpty) }
        #expect(cache.memoryUsage == 100 && cache.count == 10)
        #expect(cache.add(10, for: key("10")) == (0...4).map { key("\($0)") })
        #expect(cache.memoryUsage == 60 && cache.count == 6)
        #expect((5...10).allSatisfy { cache.contains(key("\($0)")) })
    }

    @Test func `keeps the most recently used`() {
        var cache = cache()
        for index in 0..<10 { cache.add(10, for: key("\(index)")) }
        #expect(cache.image(for: key("0")) == 10)
        #expect(cache.image(for: key("5")) == 10)
        // Checking for an image does not count as use.
        #expect(cache.contains(key("1")))
        #expect(cache.add(10, for: key("10")) == [1, 2, 3, 4, 6].map { key("\($0)") })
        #expect(cache.image(for: key("1")) == nil)
    }

    @Test func `takes replaced images into account`() {
        var cache = cache()
        cache.add(90, for: key("a"))
        #expect(cache.add(50, for: key("a")).isEmpty)
        #expect(cache.memoryUsage == 50 && cache.count == 1)
        #expect(cache.image(for: key("a")) == 50)
        cache.add(0, for: key("a"))
        #expect(cache.memoryUsage == 0 && cache.count == 1)
    }

    @Test func `distinguishes filters of a URL`() {
        var cache = cache()
        cache.add(1, for: key("a"))
        cache.add(2, for: key("a", "circle"))
        cache.add(3, for: key("acircle"))
        #expect(cache.image(for: key("a")) == 1)
        #expect(cache.image(for: key("a", "circle")) == 2)
        #expect(cache.image(for: key("acircle")) == 3)
        #expect(cache.remove(key("a", "circle")) && !cache.remove(key("a", "circle")))
        #expect(cache.count == 2 && cache.memoryUsage == 4)
    }

    @Test func `does not store what exceeds the capacity`() {
        var cache = cache()
        cache.add(10, for: key("a"))
        cache.add(10, for: key("b"))
        #expect(cache.add(101, for: key("b")).isEmpty)
        // The one that it replaces is removed nevertheless.
        #expect(cache.contains(key("a")) && !cache.contains(key("b")))
        #expect(cache.add(95, for: key("c")) == [key("a"), key("c")])
        #expect(cache.memoryUsage == 0 && cache.count == 0)
    }

    @Test func `is emptied under memory pressure`() {
        var cache = cache()
        cache.add(10, for: key("a"))
        cache.removeAll()
        #expect(cache.memoryUsage == 0 && cache.count == 0 && cache.image(for: key("a")) == nil)
        cache.add(10, for: key("a"))
        #expect(cache.image(for: key("a")) == 10)
    }

    @Test func `behaves like a list in the order of access`() {
        var generator = SystemRandomNumberGenerator()
        var cache = cache()
        var model: [(name: String, bytes: Int)] = []
        for _ in 0..<5000 {
            let name = "\(Int.random(in: 0..<20, using: &generator))"
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                model.removeAll { $0.name == name }
                cache.remove(key(name))
            case 1:
                let found = model.first { $0.name == name }
                #expect(cache.image(for: key(name)) == found?.bytes)
                if let found {
                    model.removeAll { $0.name == name }
                    model.append(found)
                }
            default:
                let bytes = Int.random(in: 0...40, using: &generator)
                model.removeAll { $0.name == name }
                model.append((name, bytes))
                if model.map(\.bytes).reduce(0, +) > 100 {
                    while model.map(\.bytes).reduce(0, +) > 60 { model.removeFirst() }
                }
                cache.add(bytes, for: key(name))
            }
            #expect(cache.memoryUsage == model.map(\.bytes).reduce(0, +))
            #expect(cache.count == model.count)
            #expect(model.allSatisfy { cache.contains(key($0.name)) })
        }
    }
}
