/// The slabs of a heap and their blocks, as a value without locks.
struct SlabTable {
    private(set) var slabs: ContiguousArray<Slab> = []
    /// Of each slab, the longest free run. Side by side, so that a search reads little memory.
    private var longest: ContiguousArray<UInt16> = []
    /// Units in use, of all slabs.
    private(set) var usedUnits = 0
    private var absentPages = 0
    /// The empty slab that is kept, so that one block which comes and goes does not map and unmap
    /// one each time.
    private var spare: Slab?
    /// Bytes of blocks that are expected.
    private let limit: Int
    /// Bytes without a block and with memory behind them that are put up with; more while what
    /// there is lies in pieces of pages.
    private var idleLimit: Int

    /// - Parameter limit: bytes of blocks that are expected. A quarter of it may lie idle.
    init(limit: Int) {
        self.limit = limit
        idleLimit = limit / 4
    }

    /// Bytes that may have memory behind them: all slabs, without what went back of them.
    var residentBytes: Int { slabs.count * Slab.bytes - absentPages * Slab.pageBytes }

    /// Bytes without a block and with memory behind them.
    private var idleBytes: Int { residentBytes - usedUnits * Slab.unitBytes }

    /// Blocks and what lies idle between them are more than the heap should take.
    var isTooLarge: Bool {
        residentBytes > max(usedUnits * Slab.unitBytes, limit) + idleLimit
    }

    /// Takes units side by side, in the slab whose longest free run is the shortest that will do:
    /// so the emptier slabs get emptier. nil: no slab has room.
    mutating func take(_ units: Int) -> (slab: Slab, start: Int)? {
        var best = -1
        var shortest = UInt16.max
        for index in longest.indices where longest[index] >= units && longest[index] < shortest {
            best = index
            shortest = longest[index]
        }
        guard best >= 0, let start = slabs[best].map.take(units) else { return nil }
        if slabs[best] === spare { spare = nil }
        taken(slabs[best], start, units)
        return (slabs[best], start)
    }

    /// Takes further units right behind a block; false if they are in use.
    mutating func take(_ units: Int, of slab: Slab, at start: Int) -> Bool {
        guard slab.map.take(units, at: start) else { return false }
        taken(slab, start, units)
        return true
    }

    private mutating func taken(_ slab: Slab, _ start: Int, _ units: Int) {
        longest[slab.position] = UInt16(slab.map.longest)
        usedUnits += units
        absentPages -= slab.touch(start, units)
    }

    /// Frees units. Answers the slab if it is no longer needed; its memory goes with the reference.
    mutating func give(back start: Int, _ units: Int, of slab: Slab) -> Slab? {
        slab.map.give(back: start, units)
        longest[slab.position] = UInt16(slab.map.longest)
        usedUnits -= units
        guard slab.map.used == 0 else { return nil }
        guard spare != nil else {
            spare = slab
            return nil
        }
        remove(slab)
        return slab
    }

    /// Adds an empty slab and takes units of it.
    mutating func add(_ slab: Slab, taking units: Int) -> Int? {
        guard let start = slab.map.take(units) else { return nil }
        slab.position = slabs.count
        slabs.append(slab)
        longest.append(0)
        taken(slab, start, units)
        return start
    }

    private mutating func remove(_ slab: Slab) {
        absentPages -= slab.absentPages
        slabs.remove(at: slab.position)
        longest.remove(at: slab.position)
        for index in slab.position..<slabs.count { slabs[index].position = index }
    }

    /// Takes the idle pages of the slab that has most, if too much lies idle: they are to be
    /// discarded, and then given back. nil: all is well, or there are no whole pages.
    mutating func takeIdlePages() -> (slab: Slab, runs: [Range<Int>])? {
        let idle = idleBytes
        guard idle > idleLimit else {
            idleLimit = max(limit / 4, min(idleLimit, idle))
            return nil
        }
        guard let slab = slabs.max(by: { $0.idleUnits < $1.idleUnits }) else { return nil }
        if slab === spare { spare = nil }
        let before = slab.absentPages
        let runs = slab.takeIdlePages()
        guard !runs.isEmpty else {
            // Not looked for again until there is more.
            idleLimit = idle + limit / 16
            return nil
        }
        absentPages += slab.absentPages - before
        longest[slab.position] = UInt16(slab.map.longest)
        for run in runs { usedUnits += run.count }
        return (slab, runs)
    }
}
