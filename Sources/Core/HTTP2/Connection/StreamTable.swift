/// A stream, as an adapter names it: by its number in the protocol, and by a small index for a
/// table of the adapter's own. An index is used again once its stream has been released.
public struct StreamRef: Equatable, Sendable {
    public let id: UInt32
    public let slot: Int32

    @inlinable
    public init(id: UInt32, slot: Int32) {
        self.id = id
        self.slot = slot
    }
}

/// What is known of one stream.
struct StreamRecord: BitwiseCopyable {
    struct Facts: OptionSet, BitwiseCopyable {
        let rawValue: UInt16

        /// It is one of the concurrent streams.
        static var hasPlace: Facts { Facts(rawValue: 1) }
        /// The message's head has arrived: trailers may follow.
        static var hasHead: Facts { Facts(rawValue: 2) }
        /// This side has sent something on it.
        static var hasSent: Facts { Facts(rawValue: 4) }
        /// It has content to send.
        static var wantsToSend: Facts { Facts(rawValue: 8) }
        /// It is in the list of streams that can send.
        static var isReady: Facts { Facts(rawValue: 16) }
        /// Its priority was set by PRIORITY_UPDATE, which counts for more than its field.
        static var hasUpdatedPriority: Facts { Facts(rawValue: 32) }
        /// It carries a tunnel, whose pieces are as small as the peers like.
        static var isTunnel: Facts { Facts(rawValue: 64) }
    }

    var id: UInt32
    var state: StreamState
    var priority: StreamPriority
    var facts: Facts = []
    /// What may be sent; negative after the peer has made the window smaller.
    var sendWindow: Int32
    var receiving: ReceiveWindow
    /// How much of the content that waits counts towards this window alone, in bytes.
    var aside: Int32 = 0
    /// The time when it was opened, in milliseconds; only differences mean anything.
    var openedAt: UInt32
    /// Incremental: what it has sent since its turn began, in bytes.
    var turnBytes: Int32 = 0
    /// Neighbours in the list of streams that can send; `next` is also the list of free slots.
    var next: Int32 = -1
    var previous: Int32 = -1
    /// How much content must follow, in bytes; negative if unknown.
    var contentLeft: Int64 = -1
}

/// The streams of a connection that have not been released, by slot and by number.
///
/// It begins without memory, doubles it up to the most that is needed, and gives it back when there
/// is no stream and ``trim()`` is called; otherwise nothing is allocated.
struct StreamTable: ~Copyable {
    private static let firstCapacity = 8

    private var memory: UnsafeMutablePointer<StreamRecord>?
    /// Slot + 1 of a stream at its number's place or one of the next; 0 where there is none. Twice
    /// as long as `memory`, so that most are at their place.
    private var places: UnsafeMutablePointer<UInt16>?
    private var capacity = 0
    /// How far the hash of a number is shifted to give its place.
    private var shift: UInt32 = 0
    private var firstFree: Int32 = -1
    /// Slots below this have been used.
    private var used = 0
    private(set) var count = 0

    init() {}

    deinit {
        memory?.deallocate()
        places?.deallocate()
    }

    /// The record in a slot that is in use.
    @inline(__always)
    subscript(slot: Int32) -> StreamRecord {
        @inline(__always) unsafeAddress {
            assert(slot >= 0 && Int(slot) < used)
            return UnsafePointer(memory.unsafelyUnwrapped + Int(slot))
        }
        @inline(__always) unsafeMutableAddress {
            assert(slot >= 0 && Int(slot) < used)
            return memory.unsafelyUnwrapped + Int(slot)
        }
    }

    /// The slots that may be in use: those whose records have a number other than 0.
    @inline(__always)
    var slots: Range<Int32> { 0..<Int32(truncatingIfNeeded: used) }

    /// Whether the reference is to a stream that has not been released.
    @inline(__always)
    func contains(_ ref: StreamRef) -> Bool {
        ref.slot >= 0 && Int(ref.slot) < used && self[ref.slot].id == ref.id && ref.id != 0
    }

    /// The record of a stream that has not been released; valid until one is added.
    @inline(__always)
    func record(_ ref: StreamRef) -> UnsafeMutablePointer<StreamRecord>? {
        guard ref.slot >= 0, Int(ref.slot) < used, let memory, ref.id != 0 else { return nil }
        let record = memory + Int(ref.slot)
        return record.pointee.id == ref.id ? record : nil
    }

    /// The slot of a stream, or -1.
    @inline(__always)
    func find(_ id: UInt32) -> Int32 {
        guard let places else { return -1 }
        let mask = capacity &* 2 &- 1
        var index = home(id)
        while true {
            let slot = Int32(places[index]) &- 1
            if slot < 0 || self[slot].id == id { return slot }
            index = (index &+ 1) & mask
        }
    }

    /// Adds a stream, and returns its slot.
    @inline(__always)
    mutating func insert(_ record: StreamRecord) -> Int32 {
        var slot = firstFree
        if slot < 0 {
            if used == capacity { grow() }
            slot = Int32(truncatingIfNeeded: used)
            used &+= 1
        } else {
            firstFree = self[slot].next
        }
        (memory.unsafelyUnwrapped + Int(slot)).initialize(to: record)
        count &+= 1
        place(record.id, slot)
        return slot
    }

    @inline(__always)
    mutating func remove(_ slot: Int32) {
        vacate(self[slot].id)
        self[slot].id = 0
        self[slot].next = firstFree
        firstFree = slot
        count &-= 1
    }

    /// Gives back the memory, if there is no stream.
    mutating func trim() {
        guard count == 0, let memory, let places else { return }
        memory.deallocate()
        places.deallocate()
        self.memory = nil
        self.places = nil
        capacity = 0
        used = 0
        firstFree = -1
    }

    /// The place of a number. Numbers that follow each other are spread: side by side they would
    /// leave no gap, and to remove one would be to look at all.
    @inline(__always)
    private func home(_ id: UInt32) -> Int { Int((id &* 0x9E37_79B1) &>> shift) }

    @inline(__always)
    private func place(_ id: UInt32, _ slot: Int32) {
        let places = places.unsafelyUnwrapped
        let mask = capacity &* 2 &- 1
        var index = home(id)
        while places[index] != 0 { index = (index &+ 1) & mask }
        places[index] = UInt16(truncatingIfNeeded: slot &+ 1)
    }

    /// Removes a number from `places`, and moves those behind it that were not at their place.
    @inline(__always)
    private func vacate(_ id: UInt32) {
        let places = places.unsafelyUnwrapped
        let mask = capacity &* 2 &- 1
        var index = home(id)
        while self[Int32(places[index]) &- 1].id != id { index = (index &+ 1) & mask }
        var gap = index
        while true {
            index = (index &+ 1) & mask
            let slot = Int32(places[index]) &- 1
            if slot < 0 { break }
            let home = home(self[slot].id)
            // Whether the gap is between its place and where it is.
            if (index &- home) & mask >= (index &- gap) & mask {
                places[gap] = places[index]
                gap = index
            }
        }
        places[gap] = 0
    }

    @inline(never)
    private mutating func grow() {
        let larger = capacity == 0 ? StreamTable.firstCapacity : capacity * 2
        precondition(larger <= 1 << 15)
        let moved = UnsafeMutablePointer<StreamRecord>.allocate(capacity: larger)
        if let memory {
            moved.initialize(from: memory, count: used)
            memory.deallocate()
        }
        memory = moved
        places?.deallocate()
        places = .allocate(capacity: larger * 2)
        places?.initialize(repeating: 0, count: larger * 2)
        capacity = larger
        shift = UInt32(32 - (larger * 2).trailingZeroBitCount)
        for slot in slots where self[slot].id != 0 { place(self[slot].id, slot) }
    }
}
