/// The streams that this side reset last: what the peer sends on them may have been on its way, and
/// is no error (RFC 9113 §5.1, closed).
///
/// For as many as may be open at a time this is exact, because a peer sees the resets in order, and
/// opens no more streams before. Of a peer that had not seen the limit yet some are forgotten; all
/// streams up to the last of those are then taken for such.
struct ResetStreams: ~Copyable {
    private var memory: UnsafeMutablePointer<UInt32>?
    private let capacity: Int
    private var count = 0
    private var next = 0
    private var forgottenUpTo: UInt32 = 0

    init(capacity: Int) { self.capacity = capacity }

    deinit { memory?.deallocate() }

    mutating func insert(_ id: UInt32) {
        if memory == nil { memory = .allocate(capacity: capacity) }
        guard let memory else { return }
        if count == capacity {
            forgottenUpTo = max(forgottenUpTo, memory[next])
        } else {
            count += 1
        }
        memory[next] = id
        next = next + 1 == capacity ? 0 : next + 1
    }

    func contains(_ id: UInt32) -> Bool {
        if id <= forgottenUpTo { return true }
        guard let memory else { return false }
        return UnsafeBufferPointer(start: memory, count: count).contains(id)
    }
}
