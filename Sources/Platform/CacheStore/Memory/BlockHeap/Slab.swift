import CLinux

/// A huge page's worth of memory, and which parts of it are in use. Everything except `base` is
/// accessed only under the lock of its heap.
final class Slab: @unchecked Sendable {
    /// The size and alignment of a slab: a huge page on x86-64 and most ARM systems.
    static let bytes = 2 << 20
    /// Blocks take whole units. Smaller ones would save little: of a block of 4 KiB or more, half a
    /// unit is lost on average.
    static let unitBytes = bytes / UnitMap.units
    static let pageBytes = unitBytes * UnitMap.unitsPerPage
    private static let pages = bytes / pageBytes

    let base: UnsafeMutableRawPointer
    var map = UnitMap()
    /// Its position in the heap's list.
    var position = 0
    /// Pages that were returned to the system and not used since, one bit each.
    private var absent = InlineArray<8, UInt64>(repeating: 0)
    private(set) var absentPages = 0

    /// `nil` if there is no memory. Without huge pages it consists of small ones.
    init?() {
        // Enough for an aligned slab wherever this begins; the rest is returned.
        let length = 2 * Self.bytes - Self.pageBytes
        guard
            let start = mmap(
                nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            Int(bitPattern: start) != -1
        else { return nil }
        let address = Int(bitPattern: start)
        let before = (address + Self.bytes - 1) / Self.bytes * Self.bytes - address
        base = start + before
        if before > 0 { munmap(start, before) }
        let after = length - before - Self.bytes
        if after > 0 { munmap(base + Self.bytes, after) }
        madvise(base, Self.bytes, MADV_HUGEPAGE)
    }

    deinit { munmap(base, Self.bytes) }

    /// Units that are free and may be backed by memory.
    var idleUnits: Int { UnitMap.units - map.used - absentPages * UnitMap.unitsPerPage }

    private func isIdle(_ page: Int) -> Bool {
        map.isFree(page: page) && absent[page / 64] >> UInt64(page % 64) & 1 == 0
    }

    /// Marks newly allocated units as backed by memory. Returns how many pages were not.
    func touch(_ start: Int, _ count: Int) -> Int {
        guard absentPages > 0 else { return 0 }
        let before = absentPages
        let last = (start + count - 1) / UnitMap.unitsPerPage
        for page in start / UnitMap.unitsPerPage...last {
            let bit = UInt64(1) << UInt64(page % 64)
            guard absent[page / 64] & bit != 0 else { continue }
            absent[page / 64] &= ~bit
            absentPages -= 1
        }
        return before - absentPages
    }

    /// Allocates every idle page, so that nobody else does while their memory is returned. Returns
    /// the runs, in units.
    func takeIdlePages() -> [Range<Int>] {
        var runs: [Range<Int>] = []
        for page in 0..<Self.pages where isIdle(page) {
            let start = page * UnitMap.unitsPerPage
            guard map.take(UnitMap.unitsPerPage, at: start) else { continue }
            absent[page / 64] |= 1 << UInt64(page % 64)
            absentPages += 1
            if let last = runs.last, last.upperBound == start {
                runs[runs.count - 1] = last.lowerBound..<start + UnitMap.unitsPerPage
            } else {
                runs.append(start..<start + UnitMap.unitsPerPage)
            }
        }
        return runs
    }

    /// Returns the memory of runs of whole pages to the system. From now on the slab consists of
    /// small pages: otherwise the kernel would make it a huge page again, including the holes.
    func discard(_ runs: [Range<Int>]) {
        madvise(base, Self.bytes, MADV_NOHUGEPAGE)
        for run in runs {
            madvise(
                base + run.lowerBound * Self.unitBytes, run.count * Self.unitBytes, MADV_DONTNEED)
        }
    }
}
