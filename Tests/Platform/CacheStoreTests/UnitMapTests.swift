import TestSupport
import Testing

@testable import CacheStore

@Suite("The units of a slab")
struct UnitMapTests {
    @Test func `an empty one is taken whole, and then nothing more`() {
        var map = UnitMap()
        #expect(map.take(UnitMap.units) == 0)
        #expect(map.longest == 0)
        #expect(map.take(1) == nil)
        map.give(back: 0, UnitMap.units)
        #expect(map.longest == UnitMap.units)
        #expect(map.used == 0)
    }

    @Test(arguments: [1, 8, 33, 63, 64, 65, 512, 4096])
    func `blocks of one size are adjacent until there is no room`(size: Int) {
        var map = UnitMap()
        for index in 0..<UnitMap.units / size { #expect(map.take(size) == index * size) }
        #expect(map.take(size) == nil)
        #expect(map.longest == UnitMap.units % size)
    }

    @Test func `the shortest run that will do is taken`() {
        var map = UnitMap()
        for size in [10, 1, 30, 1, 20, 1] { _ = map.take(size) }
        map.give(back: 0, 10)
        map.give(back: 11, 30)
        map.give(back: 42, 20)
        #expect(map.take(15) == 42)
        #expect(map.take(10) == 0)
        #expect(map.take(25) == 11)
        #expect(map.take(25) == 63)
    }

    @Test func `neighbouring runs become one`() {
        var map = UnitMap()
        _ = map.take(UnitMap.units)
        map.give(back: 60, 10)
        map.give(back: 200, 100)
        #expect(map.longest == 100)
        map.give(back: 70, 130)
        #expect(map.longest == 240)
        #expect(map.take(241) == nil)
        #expect(map.take(240) == 60)
    }

    @Test func `a run is taken at a position only if all of it is free`() {
        var map = UnitMap()
        _ = map.take(100)
        #expect(map.take(1, at: 99) == false)
        #expect(map.take(28, at: 100) == true)
        #expect(map.longest == UnitMap.units - 128)
        #expect(map.take(UnitMap.units, at: 128) == false)
        #expect(map.take(UnitMap.units - 128, at: 128) == true)
        #expect(map.longest == 0)
    }

    @Test func `a page is free when each of its units is`() {
        var map = UnitMap()
        _ = map.take(17)
        #expect(!map.isFree(page: 0))
        #expect(!map.isFree(page: 2))
        #expect(map.isFree(page: 3))
        map.give(back: 16, 1)
        #expect(map.isFree(page: 2))
        #expect(map.isFree(page: 511))
    }

    @Test(arguments: [1, 2, 3])
    func `it matches a list of flags`(seed: UInt64) {
        var generator = SeededRandom(seed: seed)
        var map = UnitMap()
        var model = UnitModel()
        var blocks: [Range<Int>] = []
        for _ in 0..<500 {
            let count = Int.random(
                in: 1...(Bool.random(using: &generator) ? 40 : 300), using: &generator)
            if Int.random(in: 0..<5, using: &generator) < 3 {
                let start = map.take(count)
                #expect(start == model.shortestRun(atLeast: count))
                if let start { blocks.append(start..<start + count) }
            } else if let index = blocks.indices.randomElement(using: &generator) {
                let block = blocks.remove(at: index)
                if Bool.random(using: &generator) {
                    map.give(back: block.lowerBound, block.count)
                    model.set(block, false)
                } else if model.isFree(block.upperBound, count) {
                    #expect(map.take(count, at: block.upperBound) == true)
                    blocks.append(block.lowerBound..<block.upperBound + count)
                } else {
                    #expect(map.take(count, at: block.upperBound) == false)
                    blocks.append(block)
                }
            }
            for block in blocks.suffix(1) { model.set(block, true) }
            #expect(map.used == model.used)
            #expect(map.longest == model.longest)
        }
    }
}

/// The same, unit by unit.
private struct UnitModel {
    private var flags = [Bool](repeating: false, count: UnitMap.units)

    private var runs: [Range<Int>] {
        var runs: [Range<Int>] = []
        var start: Int?
        for index in 0...flags.count {
            if index < flags.count, !flags[index] {
                start = start ?? index
            } else if let first = start {
                runs.append(first..<index)
                start = nil
            }
        }
        return runs
    }

    var used: Int { flags.count { $0 } }
    var longest: Int { runs.map(\.count).max() ?? 0 }

    /// Where the first of the shortest sufficient runs begins.
    func shortestRun(atLeast count: Int) -> Int? {
        runs.filter { $0.count >= count }.min { $0.count < $1.count }?.lowerBound
    }

    func isFree(_ start: Int, _ count: Int) -> Bool {
        start + count <= flags.count && !flags[start..<start + count].contains(true)
    }

    mutating func set(_ units: Range<Int>, _ value: Bool) {
        for unit in units { flags[unit] = value }
    }
}
