import CLinux
import Locking

/// Memory for stored responses, on huge pages.
///
/// A body that is asked for at random out of hundreds of megabytes is in no cache of the processor,
/// and with pages of 4 KiB neither are the addresses of its pages: finding them costs as much as
/// copying it into the socket. Here bodies lie in slabs of 2 MiB, each a huge page where the kernel
/// has them for programs that ask (madvise(2)).
///
/// Blocks from `leastBytes` to `mostBytes` are taken; what is smaller or larger is malloc's. Best
/// fit keeps the slabs filled to nine tenths while sizes are mixed at random. When the sizes
/// change, holes remain between the blocks: whole pages of them go back to the system, so that the
/// memory taken stays within a quarter of `limit` more than what blocks may take.
///
/// Any thread may take blocks and give them back. No system call is made under the lock.
final class BlockHeap: Sendable {
    /// The smallest block that is taken; below it the rounding to units costs too much.
    static let leastBytes = 4 << 10
    /// The largest block that is taken: eight go into a slab, so that little is left at its end.
    static let mostBytes = Slab.bytes / 8
    /// Below so many bytes of blocks a few slabs that are not full would matter.
    static let leastLimit = 8 * Slab.bytes

    private let table: Locked<SlabTable>

    /// - Parameter limit: bytes of blocks that are expected. There may be more.
    init(limit: Int) { table = Locked(SlabTable(limit: limit)) }

    /// The heap of a store; nil where malloc does better: for a small one, and under
    /// AddressSanitizer, which sees faulty accesses to malloc's blocks only.
    static func suitable(limit: Int) -> BlockHeap? {
        #if ADDRESS_SANITIZER
            return nil
        #else
            return limit >= leastLimit ? BlockHeap(limit: limit) : nil
        #endif
    }

    /// The units of a block of `bytes`; nil: it is malloc's.
    static func units(_ bytes: Int) -> Int? {
        guard bytes >= leastBytes, bytes <= mostBytes else { return nil }
        return (bytes + Slab.unitBytes - 1) / Slab.unitBytes
    }

    /// Bytes that the slabs take of the system's memory at most, holes included.
    var residentBytes: Int { table.withLock { $0.residentBytes } }

    /// Bytes of its blocks.
    var usedBytes: Int { table.withLock { $0.usedUnits * Slab.unitBytes } }

    /// Slabs that it has.
    var slabCount: Int { table.withLock { $0.slabs.count } }

    /// Takes units side by side. nil: no memory.
    func take(_ units: Int) -> Place? {
        let (found, isTooLarge) = table.withLock { table in
            let found = table.take(units).map { Place(slab: $0.slab, start: $0.start) }
            return (found, table.isTooLarge)
        }
        if let found {
            if isTooLarge { giveBackIdlePages() }
            return found
        }
        guard let slab = Slab() else { return nil }
        let (start, isTooLargeNow) = table.withLock { table in
            let start = table.add(slab, taking: units)
            return (start, table.isTooLarge)
        }
        if isTooLargeNow { giveBackIdlePages() }
        return start.map { Place(slab: slab, start: $0) }
    }

    /// Takes further units right behind a block's; false if they are in use.
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
        // Unmapped here, without the lock.
        _ = consume unneeded
    }

    /// Gives memory between the blocks back to the system, of one slab; false: there is no reason
    /// to, or nothing to give.
    @discardableResult
    func giveBackIdlePages() -> Bool {
        guard let (slab, runs) = table.withLock({ $0.takeIdlePages() }) else { return false }
        slab.discard(runs)
        for run in runs {
            give(back: Place(slab: slab, start: run.lowerBound), run.count)
        }
        return true
    }
}

/// Where a block lies in its heap.
struct Place: Sendable {
    let slab: Slab
    /// Its first unit.
    let start: Int

    var address: UnsafeMutableRawPointer { slab.base + start * Slab.unitBytes }
}
