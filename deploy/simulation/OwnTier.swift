/// The tiers of one gateway, as one: S3-FIFO by bytes (`EvictionQueues`).
struct OwnTier {
    /// A response. It is there, or will be, since `fetched` (its age is counted from then).
    struct Slot {
        var object: Int32
        var fetched: Int32
        var newer: Int32 = -1
        var uses: UInt8 = 0
        var isProven = false
    }

    struct Queue {
        var oldest: Int32 = -1
        var newest: Int32 = -1
    }

    /// For each object its slot, -1, or, of one that was evicted on probation, -2 less the number of
    /// that eviction.
    let index: UnsafeMutablePointer<Int32>
    var slots: [Slot] = []
    private var free: [Int32] = []
    private var probation = Queue()
    private var main = Queue()
    private var bytes: Int64 = 0
    private var probationBytes: Int64 = 0
    private var evictions: Int32 = 0
    private let limit: Int64
    private let objects: Objects

    init(_ objects: Objects, bytes limit: Int64) {
        self.objects = objects
        self.limit = limit
        index = .allocate(capacity: objects.count)
        index.initialize(repeating: -1, count: objects.count)
    }

    var count: Int { slots.count - free.count }

    @inline(__always)
    func find(_ object: Int) -> Int32 { index[object] }

    mutating func use(_ slot: Int32) {
        if slots[Int(slot)].uses < 3 { slots[Int(slot)].uses += 1 }
    }

    mutating func insert(_ object: Int, fetched: Int32) {
        let size = Int64(objects.sizes[object])
        guard size * 10 <= limit else { return }
        let mark = index[object]
        let isKnown = mark <= -2 && evictions &- (-2 &- mark) <= Int32(max(64, count))
        var slot = Slot(object: Int32(object), fetched: fetched)
        slot.isProven = isKnown
        let place: Int32
        if let reused = free.popLast() {
            slots[Int(reused)] = slot
            place = reused
        } else {
            slots.append(slot)
            place = Int32(slots.count - 1)
        }
        index[object] = place
        bytes += size
        if !isKnown { probationBytes += size }
        link(place, isMain: isKnown)
        while bytes > limit { evict() }
    }

    private mutating func link(_ slot: Int32, isMain: Bool) {
        var queue = isMain ? main : probation
        slots[Int(slot)].newer = -1
        if queue.newest >= 0 { slots[Int(queue.newest)].newer = slot } else { queue.oldest = slot }
        queue.newest = slot
        if isMain { main = queue } else { probation = queue }
    }

    private mutating func unlinkOldest(isMain: Bool) -> Int32 {
        var queue = isMain ? main : probation
        let slot = queue.oldest
        queue.oldest = slots[Int(slot)].newer
        if queue.oldest < 0 { queue.newest = -1 }
        if isMain { main = queue } else { probation = queue }
        return slot
    }

    private mutating func evict() {
        var steps = 64
        while true {
            let isOver = probationBytes * 10 > bytes
            let isProbation = (isOver && probation.oldest >= 0) || main.oldest < 0
            let slot = unlinkOldest(isMain: !isProbation)
            let object = Int(slots[Int(slot)].object)
            let size = Int64(objects.sizes[object])
            if isProbation { probationBytes -= size }
            guard steps > 0, slots[Int(slot)].uses > 0 else {
                bytes -= size
                if isProbation {
                    index[object] = -2 &- evictions
                    evictions &+= 1
                } else {
                    index[object] = -1
                }
                free.append(slot)
                return
            }
            steps -= 1
            if isProbation {
                slots[Int(slot)].uses = 0
                slots[Int(slot)].isProven = true
            } else {
                slots[Int(slot)].uses -= 1
            }
            link(slot, isMain: true)
        }
    }
}
