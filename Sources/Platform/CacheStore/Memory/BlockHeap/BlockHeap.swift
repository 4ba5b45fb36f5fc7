import CLinux
import Locking

/// Memory for stored responses, on huge pages.
///
/// A body requested at random out of hundreds of megabytes is in none of the processor's caches,
/// and with pages of 4 KiB neither are the addresses of its pages: translating them costs as much
/// as copying the body into the socket. Here bodies are kept in slabs of 2 MiB, each a huge page if
/// the kernel provides them to programs that ask (madvise(2)).
///
/// Blocks from `leastBytes` to `mostBytes` are allocated here; smaller and larger ones with malloc.
/// Best fit keeps the slabs nine tenths full while sizes are mixed at random. When the sizes
/// change, holes remain between the blocks: whole pages of them are returned to the system, so that
/// the heap's memory exceeds the blocks' by at most a quarter of `limit`.
///
/// Any thread may allocate and free blocks. No system call is made under the lock.
final class BlockHeap: Sendable {
    /// The smallest block allocated here; below it, rounding to units costs too much.
    static let leastBytes = 4 << 10
    /// The largest block allocated here: eight fit into a slab, so that little is wasted at its
    /// end.
    static let mostBytes = Slab.bytes / 8
    /// With fewer bytes of blocks than this, a few slabs that are not full would matter.
    static let leastLimit = 8 * Slab.bytes

    private let table: Locked<SlabTable>

    /// - Parameter limit: the expected bytes of blocks. There may be more.
    init(limit: Int) { table = Locked(SlabTable(limit: limit)) }

    /// The heap of a store, or `nil` if malloc does better: for a small one, and under
    /// AddressSanitizer, which detects faulty accesses only to malloc's blocks.
    static func suitable(limit: Int) -> BlockHeap? {
        #if ADDRESS_SANITIZER
            return nil
        #else
            return limit >= leastLimit ? BlockHeap(limit: limit) : nil
        #endif
    }

    /// The units of a block of `bytes`, or `nil` if it is to be allocated with malloc.
    static func units(_ bytes: Int) -> Int? {
        guard bytes >= leastBytes, bytes <= mostBytes else { return nil }
        return (bytes + Slab.unitBytes - 1) / Slab.unitBytes
    }

    /// The maximum of system memory that the slabs occupy, including holes.
    var residentBytes: Int { table.withLock { $0.residentBytes } }

    /// Bytes of its blocks.
    var usedBytes: Int { table.withLock { $0.usedUnits * Slab.unitBytes } }

    /// The number of its slabs.
    var slabCount: Int { table.withLock { $0.slabs.count } }

    /// Allocates contiguous units; `nil` if there is no memory.
    func take(_ units: Int) -> Place? {
        let (found, isTooLarge) = table.withLock { table in
            let found = table.take(units).map { Place(slab: $0.slab, start: $0.start) }
            return (found, table.isTooLarge)
        }
        if let found {
            if isTooLarge { releaseIdlePages() }
            return found
        }
        guard let slab = Slab() else { return nil }
        let (start, isTooLargeNow) = table.withLock { table in
            let start = table.add(slab, taking: units)
            return (start, table.isTooLarge)
        }
        if isTooLargeNow { releaseIdlePages() }
        return start.map { Place(slab: slab, start: $0) }
    }

    /// Allocates more units directly after a block's; `false` if they are in use.
    func extend(_ place: Place, from units: Int, to more: Int) -> Bool {
        table.withLock {
            $0.take(more - units, of: place.slab, at: place.start + units)
        }
    }

    /// Frees a block's units from `first` on.
    func give(back place: Place, _ units: Int, from first: Int = 0) {
        let unneeded = table.withLock {
            $0.give(back: place.start + first, units - first, of: place.slab)
        }
        // Unmapped here, outside the lock.
        _ = consume unneeded
    }

    /// Returns memory between the blocks of one slab to the system. Returns `false` if there is no
    /// reason to, or nothing to return.
    @discardableResult
    func releaseIdlePages() -> Bool {
        guard let (slab, runs) = table.withLock({ $0.takeIdlePages() }) else { return false }
        slab.discard(runs)
        for run in runs {
            give(back: Place(slab: slab, start: run.lowerBound), run.count)
        }
        return true
    }
}

/// The location of a block in its heap.
struct Place: Sendable {
    let slab: Slab
    /// Its first unit.
    let start: Int

    var address: UnsafeMutableRawPointer { slab.base + start * Slab.unitBytes }
}
