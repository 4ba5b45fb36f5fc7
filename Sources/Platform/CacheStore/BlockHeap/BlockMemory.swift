import CLinux

/// A block of memory: of a heap, or malloc's. Freed with its owner, on whichever thread.
struct BlockMemory: ~Copyable, @unchecked Sendable {
    private(set) var base: UnsafeMutableRawPointer
    /// Bytes that it has, and takes.
    private(set) var capacity: Int
    /// Where it lies in `heap`; nil: it is malloc's.
    private var place: Place?
    /// Where a block like it would be looked for.
    let heap: BlockHeap?

    /// At least `bytes`. nil: no memory.
    ///
    /// - Parameter heap: for what is of its sizes; nil: all is malloc's.
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

    /// Changes it to at least `bytes`; what it holds stays, as far as it still fits. It may move.
    /// false: no memory, nothing has changed.
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

    /// Gives back what lies behind the first `bytes`, if that is worth the while: of the heap's,
    /// each unit is; of malloc's, a quarter.
    mutating func trim(to bytes: Int) {
        if place != nil || capacity - bytes > capacity / 4 { _ = resize(to: bytes) }
    }
}
