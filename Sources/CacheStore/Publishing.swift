import CachePolicy

/// Making responses visible: the moments at which both tiers change together.
extension CacheStore {
    /// Bytes a response will take on disk; nil: it is not kept there. A body that is to be written
    /// from memory goes into one transaction, so it must not be large; larger ones were streamed.
    private func diskBytes(_ response: CachedResponse) -> Int64? {
        guard response.isOnDiskOnly || response.bodyCount <= UInt64(options.wholeBodyBytes) else {
            return nil
        }
        let record =
            EntryRecord.headerBytes + response.key.count + response.varyKey.bytes.count
            + response.head.count
        let isInline = !isChunked(response)
        let bytes = Schema.footprint(
            recordBytes: record, inlineBytes: isInline ? Int(response.bodyCount) : 0,
            chunked: isInline ? 0 : response.bodyCount, chunkBytes: response.chunkBytes)
        return bytes <= options.diskBytes / 2 ? bytes : nil
    }

    private func isChunked(_ response: CachedResponse) -> Bool {
        response.isOnDiskOnly || response.bodyCount > UInt64(options.inlineBodyBytes)
    }

    /// Publishes a response that is whole in memory. nil: done. The `reserved` bytes of the budget
    /// pass to the writer, or are given back.
    func publish(
        _ response: CachedResponse, generation: StoreGeneration, reserved: Int
    ) -> StoreRefusal? {
        let bytes = diskBytes(response)
        let isChunked = isChunked(response)
        let fits = memory.admits(response.memoryBytes)
        let removals: [Removal]? = memory.withShard(response.keyHash, adding: response) {
            shard, dropped in
            guard shard.generation(response.keyHash) == generation.value else { return nil }
            let (token, removals) = disk.index.admit(
                response, bytes: bytes, body: 0, isChunked: isChunked)
            response.token = token
            if fits {
                shard.insert(response, dropped: &dropped)
            } else {
                shard.removeVariant(of: response, dropped: &dropped)
            }
            return removals
        }
        guard let removals else {
            disk.budget.release(reserved)
            return .invalidated
        }
        queue(response, superseded: removals, reserved: reserved)
        if response.token == .none, !fits {
            return bytes == nil ? .tooLarge : .diskOff
        }
        return nil
    }

    /// Publishes a response whose body was streamed to disk, with its copy in memory if there is
    /// one.
    func publish(
        row: CachedResponse, inMemory: CachedResponse?, body: DiskBody,
        generation: StoreGeneration, reserved: Int
    ) -> StoreRefusal? {
        let bytes = diskBytes(row)
        let fits = inMemory.map { memory.admits($0.memoryBytes) } ?? false
        let removals: [Removal]? = memory.withShard(row.keyHash, adding: inMemory) {
            shard, dropped in
            guard shard.generation(row.keyHash) == generation.value else { return nil }
            let (token, removals) = disk.index.admit(
                row, bytes: bytes, body: body.id, isChunked: true)
            row.token = token
            if fits, let inMemory {
                inMemory.token = token
                shard.insert(inMemory, dropped: &dropped)
            } else {
                shard.removeVariant(of: row, dropped: &dropped)
            }
            return removals
        }
        guard let removals else {
            disk.budget.release(reserved)
            return .invalidated
        }
        queue(row, superseded: removals, reserved: reserved)
        guard row.token == .none else { return nil }
        return fits ? nil : .diskOff
    }

    /// Queues a published response for the disk, if it has a place there.
    private func queue(_ response: CachedResponse, superseded: [Removal], reserved: Int) {
        if !enqueue(response, superseded: superseded, reserved: reserved) {
            disk.budget.release(reserved)
        }
    }

    /// The same, but the `reserved` bytes stay the caller's where it answers false.
    private func enqueue(
        _ response: CachedResponse, superseded: [Removal], reserved: Int
    ) -> Bool {
        if response.token != .none,
            disk.queue.append(.row(response, superseded: superseded, reserved: reserved))
        {
            return true
        }
        if response.token != .none { _ = disk.index.remove(response.token) }
        disk.remove(superseded)
        return false
    }

    /// See `update`.
    func freshen(
        _ old: CachedResponse, vary: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64
    ) throws(StoreRefusal) -> CachedResponse {
        let text = old.key.count + head.count + vary.bytes.count
        guard text <= EntryRecord.maximumBytes else { throw .headTooLarge }
        let made = old.withHead(head, varyKey: vary, metadata: metadata, policy: policy)
        guard let response = made else { throw .memory }
        let bytes = diskBytes(response)
        let isChunked = isChunked(response)
        let reserved = text + Int(clamping: response.isOnDiskOnly ? 0 : response.bodyCount)
        let hasBudget = disk.budget.reserve(reserved)
        let held = hasBudget ? reserved : 0
        let freshened: Freshened = memory.withShard(old.keyHash, adding: response) {
            shard, dropped in
            let isInMemory = shard.contains(old)
            guard isInMemory || disk.index.isLive(old.token) else { return .superseded }
            let freshened: Freshened
            switch disk.index.succeed(old.token, with: response) {
            case .takenOver(let token, let body, let removals):
                response.token = token
                // Queued under the lock: a body's rows must be written in the order in which they
                // have taken it over.
                if let row = rowOfHead(response, body: body) {
                    freshened = .headOnly(
                        isQueued: enqueue(row, superseded: removals, reserved: held))
                } else {
                    freshened = .noMemory(removals)
                }
            case .rewrite:
                guard !response.isOnDiskOnly else { return .superseded }
                // With another Vary key it would not be replaced by itself.
                let replaced = disk.index.remove(old.token)
                let (token, removals) = disk.index.admit(
                    response, bytes: hasBudget ? bytes : nil, body: 0, isChunked: isChunked)
                response.token = token
                freshened = .whole(removals + (replaced.map { [$0] } ?? []))
            }
            shard.remove(old, dropped: &dropped)
            if isInMemory {
                shard.insert(response, dropped: &dropped)
            } else {
                shard.removeVariant(of: response, dropped: &dropped)
            }
            return freshened
        }
        switch freshened {
        case .superseded:
            disk.budget.release(held)
            throw .superseded
        case .whole(let removals):
            queue(response, superseded: removals, reserved: held)
        case .headOnly(let isQueued):
            if !isQueued { disk.budget.release(held) }
        case .noMemory(let removals):
            disk.budget.release(held)
            disk.remove(removals)
            remove(response)
            throw .memory
        }
        return response
    }

    private enum Freshened: Sendable {
        case superseded
        case whole([Removal])
        case headOnly(isQueued: Bool)
        case noMemory([Removal])
    }

    /// What is written for a response whose chunks stay as they are. The chunks were pinned for
    /// it.
    private func rowOfHead(_ response: CachedResponse, body: Int64) -> CachedResponse? {
        let pinned = disk.body(
            id: body, count: response.bodyCount, chunkBytes: response.chunkBytes)
        guard !response.isOnDiskOnly else { return response }
        guard let row = response.onDisk(pinned) else { return nil }
        row.token = response.token
        return row
    }
}
