import Synchronization

/// A flat block of 64-bit counters with one writing thread and any number of reading ones.
///
/// An increment is a relaxed load and a relaxed store: plain moves on the machine, with no locked
/// instruction, because nobody else writes. Readers see each counter whole, and different counters
/// at slightly different moments.
///
/// The block owns nothing: whoever allocated it frees it.
package struct CounterCells: @unchecked Sendable {
    @usableFromInline let cells: UnsafeMutablePointer<Atomic<UInt64>>
    /// How many counters there are.
    package let count: Int

    /// Allocates `count` counters at zero.
    package static func allocate(count: Int) -> CounterCells {
        let cells = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: count)
        for index in 0..<count { (cells + index).initialize(to: Atomic(0)) }
        return CounterCells(cells: cells, count: count)
    }

    @usableFromInline
    init(cells: UnsafeMutablePointer<Atomic<UInt64>>, count: Int) {
        self.cells = cells
        self.count = count
    }

    /// Frees the counters; no thread may use them any more.
    package func deallocate() {
        cells.deinitialize(count: count)
        cells.deallocate()
    }

    /// Adds to a counter, wrapping; only the writing thread may call this.
    @inlinable @inline(__always)
    package func add(_ amount: UInt64, to index: Int) {
        assert(index >= 0 && index < count)
        let value = cells[index].load(ordering: .relaxed)
        cells[index].store(value &+ amount, ordering: .relaxed)
    }

    /// Sets a counter; only the writing thread may call this.
    @inlinable @inline(__always)
    package func set(_ value: UInt64, at index: Int) {
        assert(index >= 0 && index < count)
        cells[index].store(value, ordering: .relaxed)
    }

    /// A counter's value, from any thread.
    @inlinable @inline(__always)
    package subscript(index: Int) -> UInt64 {
        assert(index >= 0 && index < count)
        return cells[index].load(ordering: .relaxed)
    }
}
