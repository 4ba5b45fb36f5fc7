/// The streams that have content to send and a window for it, in the order of their turns (RFC 9218
/// §10): the most urgent first; of these, those whose recipient needs all of them before it can use
/// any, in the order in which they were opened; then the incremental ones, each for so many bytes
/// at a time.
struct ReadyStreams {
    /// What an incremental stream sends before the next one's turn, in bytes: a frame.
    static let turnBytes: Int32 = 16_384

    private struct List: BitwiseCopyable {
        var first: Int32 = -1
        var last: Int32 = -1
    }

    /// By urgency; for each the list of non-incremental streams, then that of incremental ones.
    private var lists = InlineArray<16, List>(repeating: List())
    /// A bit for each list that is not empty.
    private var occupied: UInt32 = 0

    var isEmpty: Bool { occupied == 0 }

    /// The slot of the stream whose turn it is, or -1.
    @inline(__always)
    var first: Int32 {
        occupied == 0 ? -1 : lists[occupied.trailingZeroBitCount].first
    }

    @inline(__always)
    private static func list(of priority: StreamPriority) -> Int {
        Int(priority.urgency) &* 2 &+ (priority.isIncremental ? 1 : 0)
    }

    @inline(__always)
    mutating func insert(_ slot: Int32, in streams: inout StreamTable) {
        let priority = streams[slot].priority
        let index = ReadyStreams.list(of: priority)
        var before = lists[index].last
        if !priority.isIncremental {
            let id = streams[slot].id
            while before >= 0, streams[before].id > id { before = streams[before].previous }
        }
        streams[slot].turnBytes = 0
        streams[slot].facts.insert(.isReady)
        link(slot, after: before, in: index, of: &streams)
    }

    @inline(__always)
    private mutating func link(
        _ slot: Int32, after before: Int32, in index: Int, of streams: inout StreamTable
    ) {
        let after = before < 0 ? lists[index].first : streams[before].next
        streams[slot].previous = before
        streams[slot].next = after
        if before < 0 { lists[index].first = slot } else { streams[before].next = slot }
        if after < 0 { lists[index].last = slot } else { streams[after].previous = slot }
        occupied |= 1 << UInt32(truncatingIfNeeded: index)
    }

    @inline(__always)
    mutating func remove(_ slot: Int32, from streams: inout StreamTable) {
        let index = ReadyStreams.list(of: streams[slot].priority)
        let before = streams[slot].previous
        let after = streams[slot].next
        if before < 0 { lists[index].first = after } else { streams[before].next = after }
        if after < 0 { lists[index].last = before } else { streams[after].previous = before }
        if lists[index].first < 0 { occupied &= ~(1 << UInt32(truncatingIfNeeded: index)) }
        streams[slot].facts.remove(.isReady)
    }

    /// Content of a stream that is in a list has been sent, and it has more.
    @inline(__always)
    mutating func sent(_ count: Int32, _ slot: Int32, in streams: inout StreamTable) {
        guard streams[slot].priority.isIncremental else { return }
        streams[slot].turnBytes &+= count
        guard streams[slot].turnBytes >= ReadyStreams.turnBytes else { return }
        remove(slot, from: &streams)
        insert(slot, in: &streams)
    }
}
