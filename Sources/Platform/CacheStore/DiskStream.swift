/// A body on its way to disk in chunks, while it is being received. Used by one thread.
final class DiskStream {
    let id: Int64
    private let tier: DiskTier
    private let epoch: Int
    private var chunk: ChunkBytes?
    private var nextIndex = 0
    private(set) var count: UInt64 = 0
    private var isOver = false

    /// `nil` if the tier is off.
    init?(_ tier: DiskTier) {
        guard let epoch = tier.queue.epoch, let id = tier.index.beginBody(),
            tier.queue.append(.beginBody(id), epoch: epoch)
        else { return nil }
        self.tier = tier
        self.epoch = epoch
        self.id = id
    }

    deinit { abandon() }

    /// Appends `bytes`; `false` if the queue is full, or the tier was turned off. What was written
    /// is then removed.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isOver else { return false }
        var offset = 0
        while offset < bytes.count {
            guard let chunk = chunkWithRoom() else {
                abandon()
                return false
            }
            offset += chunk.append(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
            if chunk.count == chunk.capacity, !send() { return false }
        }
        count += UInt64(bytes.count)
        return true
    }

    private func chunkWithRoom() -> ChunkBytes? {
        if let chunk { return chunk }
        let size = tier.options.chunkBytes
        guard nextIndex < 1 << Int(Schema.chunkBits), tier.budget.reserve(size) else { return nil }
        chunk = ChunkBytes(capacity: size)
        if chunk == nil { tier.budget.release(size) }
        return chunk
    }

    private func send() -> Bool {
        guard let chunk else { return true }
        self.chunk = nil
        let operation = DiskOperation.chunk(
            body: id, index: nextIndex, chunk, reserved: chunk.capacity)
        nextIndex += 1
        if tier.queue.append(operation, epoch: epoch) { return true }
        tier.budget.release(chunk.capacity)
        abandon()
        return false
    }

    /// Queues the last chunk. Returns the body, pinned; `nil` if it could not be queued.
    func finish() -> DiskBody? {
        guard !isOver, send() else { return nil }
        isOver = true
        tier.index.pin(id)
        return tier.body(id: id, count: count, chunkBytes: tier.options.chunkBytes)
    }

    /// Removes what was written.
    func abandon() {
        guard !isOver else { return }
        isOver = true
        if let chunk { tier.budget.release(chunk.capacity) }
        chunk = nil
        _ = tier.queue.append(.dropBody(id), epoch: epoch)
    }

    /// Called if the rows of a finished body will not be written: removes its chunks.
    func discard() { _ = tier.queue.append(.dropBody(id), epoch: epoch) }
}
