/// Priorities that a client has sent before the streams that they are of (RFC 9218 §7.1): the
/// latest few.
struct EarlyPriorities {
    private struct Entry: BitwiseCopyable {
        var id: UInt32 = 0
        var priority = StreamPriority.unstated
    }

    private var entries = InlineArray<4, Entry>(repeating: Entry())
    private var next = 0
    private(set) var isEmpty = true

    mutating func insert(_ id: UInt32, _ priority: StreamPriority) {
        isEmpty = false
        var place = next
        for index in entries.indices where entries[index].id == id { place = index }
        if place == next { next = (next + 1) & 3 }
        entries[place] = Entry(id: id, priority: priority)
    }

    /// The priority of a stream that is being opened, which is forgotten here.
    mutating func take(_ id: UInt32) -> StreamPriority? {
        for index in entries.indices where entries[index].id == id {
            entries[index].id = 0
            return entries[index].priority
        }
        return nil
    }
}
