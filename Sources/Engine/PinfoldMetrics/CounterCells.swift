import Synchronization

/// A flat block of 64-bit counters with one writing thread and any number of reading ones.
///
/// An increment is a relaxed load and a relaxed store: plain moves on the machine, with no locked
/// instruction, because nobody else writes. Readers see each counter whole, and different counters
/// at slightly different moments.
///
/// The block owns nothing: whoever allocated it frees it.
public struct CounterCells: @unchecked Sendable {
    @usableFromInline let cells: UnsafeMutablePointer<Atomic<UInt64>>
    /// How many counters there are.
    public let count: Int

    /// Allocates `count` counters at zero.
    public static func allocate(count: Int) -> CounterCells {
        let cells = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
        return CounterCells(cells: cells, count: count)
    }

    @usableFromInline
    init(cells: UnsafeMutablePointer<Atomic<UInt64>>, count: Int) {
        self.cells = cells
        self.count = count
    }

    // MARK: With an owner

    /// Allocates `count` counters at zero, preceded by one for the owner.
    static func allocateWithOwner(_ owner: UInt64, count: Int) -> CounterCells {
        let all = allocate(count: count + 1)
        all.set(owner, at: 0)
        return CounterCells(cells: all.cells + 1, count: count)
    }

    /// The counters behind an owner's address (``ownerAddress``).
    @inline(__always)
    init(atOwner address: UnsafeMutableRawPointer, count: Int) {
        // Bound by `allocate`.
        self.init(
            cells: address.assumingMemoryBound(to: Atomic<UInt64>.self) + 1, count: count)
    }

    /// The address of the counter for the owner.
    var ownerAddress: UnsafeMutableRawPointer { UnsafeMutableRawPointer(cells - 1) }

    /// The owner; with `acquiring`, the initial zeros are visible, too.
    @inline(__always)
    func owner(_ ordering: OwnerOrdering) -> UInt64 {
        switch ordering {
        case .relaxed: cells[-1].load(ordering: .relaxed)
        case .acquiring: cells[-1].load(ordering: .acquiring)
        }
    }

    /// How ``owner(_:)`` is read: by the writing thread, or by others.
    enum OwnerOrdering { case relaxed, acquiring }

    /// Sets the owner; readers that see it also see everything that was set before.
    func setOwner(_ owner: UInt64) { cells[-1].store(owner, ordering: .releasing) }

    /// Frees the counters and the owner; no thread may use them any more.
    func deallocateWithOwner() {
        CounterCells(cells: cells - 1, count: count + 1).deallocate()
    }

    /// Frees the counters; no thread may use them any more.
    public func deallocate() {
        cells.deinitialize(count: count)
        cells.deallocate()
    }

    /// Adds to a counter, wrapping; only the writing thread may call this.
    @inlinable @inline(__always)
    public func add(_ amount: UInt64, to index: Int) {
        assert(index >= 0 && index < count)
        let value = cells[index].load(ordering: .relaxed)
        cells[index].store(value &+ amount, ordering: .relaxed)
    }

    /// Sets a counter; only the writing thread may call this.
    @inlinable @inline(__always)
    public func set(_ value: UInt64, at index: Int) {
        assert(index >= 0 && index < count)
        cells[index].store(value, ordering: .relaxed)
    }

    /// A counter's value, from any thread.
    @inlinable @inline(__always)
    public subscript(index: Int) -> UInt64 {
        assert(index >= 0 && index < count)
        return cells[index].load(ordering: .relaxed)
    }
}
