/// A body on its way to disk in chunks, while it is being received. Used by one thread.
final class DiskStream: LevelStream {
    private enum Step {
        case receiving
        /// All chunks are queued.
        case finished
        /// Published or removed.
        case over
    }

    let id: Int64
    private let tier: DiskTier
    private let epoch: Int
    private var chunk: ChunkBytes?
    private var nextIndex = 0
    private var count: UInt64 = 0
    /// The chunks that were queued and, when last looked at, not written yet; and how many were
    /// before them.
    private var unwritten: [ChunkBytes] = []
    private var writtenCount = 0
    /// Bytes taken from the queue's budget for the row.
    private var reserved: Int
    private var step = Step.receiving

    /// Refuses if the tier is off, or the queue is full.
    init(_ tier: DiskTier, textBytes: Int) throws(StoreRefusalReason) {
        guard tier.budget.reserve(textBytes) else { throw tier.reasonToGiveUp() }
        guard let epoch = tier.queue.epoch, let id = tier.index.beginBody(),
            tier.queue.append(.beginBody(id), epoch: epoch)
        else {
            tier.budget.release(textBytes)
            throw .diskOff
        }
        self.tier = tier
        self.epoch = epoch
        self.id = id
        reserved = textBytes
    }

    deinit { abandon() }

    func append(_ bytes: UnsafeRawBufferPointer) throws(StoreRefusalReason) {
        guard case .receiving = step else { throw .closed }
        var offset = 0
        while offset < bytes.count {
            guard let chunk = chunkWithRoom() else { throw giveUp() }
            offset += chunk.append(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            if chunk.count == chunk.capacity { try send() }
        }
        count += UInt64(bytes.count)
    }

    private func chunkWithRoom() -> ChunkBytes? {
        if let chunk { return chunk }
        let size = tier.options.chunkBytes
        guard nextIndex < 1 << Int(Schema.chunkBits), tier.budget.reserve(size) else { return nil }
        chunk = ChunkBytes(capacity: size)
        if chunk == nil { tier.budget.release(size) }
        return chunk
    }

    private func send() throws(StoreRefusalReason) {
        guard let chunk else { return }
        noteWritten()
        // Otherwise what arrives would be kept until the end, for nothing.
        if let first = unwritten.first, first.isDropped.load(ordering: .acquiring) {
            abandon()
            throw .noRoom
        }
        let operation = DiskOperation.chunk(
            body: id, index: nextIndex, chunk, reserved: chunk.capacity)
        guard tier.queue.append(operation, epoch: epoch) else { throw giveUp() }
        unwritten.append(chunk)
        self.chunk = nil
        nextIndex += 1
    }

    /// Lets go of the chunks that have been written.
    private func noteWritten() {
        let written = unwritten.prefix { $0.isWritten.load(ordering: .acquiring) }.count
        unwritten.removeFirst(written)
        writtenCount += written
    }

    func received() -> PartialBody? {
        guard case .receiving = step else { return nil }
        noteWritten()
        let rest = unwritten.map(\.bytes) + (chunk.map { [$0.bytes] } ?? [])
        guard writtenCount > 0 else { return PartialBody(written: nil, rest: rest) }
        guard tier.index.pin(id) else { return nil }
        let size = tier.options.chunkBytes
        let count = UInt64(writtenCount) * UInt64(size)
        return PartialBody(
            written: tier.body(id: id, count: count, chunkBytes: size), rest: rest)
    }

    private func giveUp() -> StoreRefusalReason {
        abandon()
        return tier.reasonToGiveUp()
    }

    /// Queues the last chunk.
    func finish() throws(StoreRefusalReason) -> LevelBody {
        guard case .receiving = step else { throw .closed }
        try send()
        unwritten = []
        guard tier.index.pin(id) else { throw giveUp() }
        step = .finished
        return tier.body(id: id, count: count, chunkBytes: tier.options.chunkBytes)
    }

    func publish(
        _ response: CachedResponse, copy: CachedResponse?, _ work: inout LevelWork
    ) -> StoreRefusalReason? {
        guard case .finished = step else { return .closed }
        tier.tellOfReplacement(of: response, &work)
        let token = tier.admit(
            response, bytes: tier.bytes(of: response), body: id, reserved: reserved, &work)
        copy?.token = token
        reserved = 0
        guard token != .none else { return .diskOff }
        step = .over
        return nil
    }

    func abandon() {
        if case .over = step { return }
        step = .over
        if let chunk { tier.budget.release(chunk.capacity) }
        chunk = nil
        unwritten = []
        tier.budget.release(reserved)
        reserved = 0
        _ = tier.queue.append(.dropBody(id), epoch: epoch)
    }
}
