import CLinux

/// A block of memory, from a heap or malloc. Freed with its owner, on any thread.
@usableFromInline struct BlockMemory: ~Copyable, @unchecked Sendable {
    @usableFromInline var base: UnsafeMutableRawPointer
    /// The number of bytes allocated.
    private(set) var capacity: Int
    /// Its location in `heap`, or `nil` if it was allocated with malloc.
    private var place: Place?
    /// The heap in which a similar block would be allocated.
    let heap: BlockHeap?

    /// Allocates at least `bytes`; `nil` if there is no memory.
    ///
    /// - Parameter heap: for the sizes that it handles; `nil` to use malloc for all.
    init?(_ bytes: Int, _ heap: BlockHeap?) {
        self.heap = heap
        if let heap, let units = BlockHeap.units(bytes), let place = heap.take(units) {
            base = place.address
            capacity = units * Slab.unitBytes
            self.place = place
            return
        }
        guard let memory = malloc(max(bytes, 1)) else { return nil }
        base = memory
        capacity = bytes
    }

    deinit {
        if let heap, let place {
            heap.give(back: place, capacity / Slab.unitBytes)
        } else {
            free(base)
        }
    }

    /// Resizes it to at least `bytes`; the contents are kept, as far as they still fit. It may
    /// move. Returns `false`, with nothing changed, if there is no memory.
    mutating func resize(to bytes: Int) -> Bool {
        let units = heap.flatMap { _ in BlockHeap.units(bytes) }
        if let heap, let place, let units {
            let own = capacity / Slab.unitBytes
            if units < own { heap.give(back: place, own, from: units) }
            if units <= own || heap.extend(place, from: own, to: units) {
                capacity = units * Slab.unitBytes
                return true
            }
        } else if place == nil, units == nil {
            guard let moved = realloc(base, max(bytes, 1)) else { return false }
            base = moved
            capacity = bytes
            return true
        }
        guard let moved = BlockMemory(bytes, heap) else { return false }
        memcpy(moved.base, base, min(capacity, moved.capacity))
        self = moved
        return true
    }

    /// Frees what is after the first `bytes`, if it is worth it: from the heap, any unit is; from
    /// malloc, a quarter of the block.
    mutating func trim(to bytes: Int) {
        if place != nil || capacity - bytes > capacity / 4 { _ = resize(to: bytes) }
    }
}
