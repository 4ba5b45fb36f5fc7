/// The slabs of a heap and their blocks, as a value without locks.
struct SlabTable {
    private(set) var slabs: ContiguousArray<Slab> = []
    /// The longest free run of each slab. Contiguous, so that a search reads little memory.
    private var longest: ContiguousArray<UInt16> = []
    /// Units in use, over all slabs.
    private(set) var usedUnits = 0
    private var absentPages = 0
    /// The empty slab that is kept, so that a single block that comes and goes does not map and
    /// unmap one each time.
    private var spare: Slab?
    /// The expected bytes of blocks.
    private let limit: Int
    /// The number of idle bytes (free, but backed by memory) that is tolerated; raised while they
    /// are in fragments smaller than a page.
    private var idleLimit: Int

    /// - Parameter limit: the expected bytes of blocks. A quarter of it may be idle.
    init(limit: Int) {
        self.limit = limit
        idleLimit = limit / 4
    }

    /// Bytes that may be backed by memory: all slabs, except what was returned.
    var residentBytes: Int { slabs.count * Slab.bytes - absentPages * Slab.pageBytes }

    /// Bytes that are free but backed by memory.
    private var idleBytes: Int { residentBytes - usedUnits * Slab.unitBytes }

    /// Whether the blocks and the idle memory between them exceed what the heap should occupy.
    var isTooLarge: Bool {
        residentBytes > max(usedUnits * Slab.unitBytes, limit) + idleLimit
    }

    /// Allocates contiguous units in the slab whose longest free run is the shortest that is long
    /// enough, so that emptier slabs get emptier. `nil` if no slab has space.
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

    /// Allocates more units directly after a block; `false` if they are in use.
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

    /// Frees units. Returns the slab if it is no longer needed; its memory is freed with the
    /// reference.
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

    /// Adds an empty slab and allocates units from it.
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

    /// Allocates the idle pages of the slab that has the most, if too much is idle: the caller must
    /// discard and then free them. `nil` if nothing needs to be done, or there are no whole pages.
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
            // Not searched again until there is more.
            idleLimit = idle + limit / 16
            return nil
        }
        absentPages += slab.absentPages - before
        longest[slab.position] = UInt16(slab.map.longest)
        for run in runs { usedUnits += run.count }
        return (slab, runs)
    }
}
