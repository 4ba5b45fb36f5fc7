import CachePolicy

/// Makes responses visible: the moments at which both tiers change together.
extension CacheStore {
    /// Publishes a response that is complete in memory. Returns `nil` on success. The flight is
    /// ended.
    ///
    /// Memory accepts it whatever the state of the disk's queue.
    func publish(_ response: CachedResponse, flight: StoreFlight) -> StoreRefusalReason? {
        let intake = disk.intake
        let fits = memory.admits(response.memoryBytes)
        let bytes = intake.bytes(of: response)
        let reserved = bytes == nil ? nil : intake.reserve(response, isInMemory: fits)
        let isChunked = intake.isChunked(response)
        let admitted: Admitted? = memory.withShard(response.keyHash, adding: response) {
            shard, dropped in
            guard shard.flights.land(flight) else { return nil }
            let (token, removals) = disk.index.admit(
                response, bytes: reserved == nil ? nil : bytes, body: 0, isChunked: isChunked)
            response.token = token
            if fits {
                shard.insert(response, dropped: &dropped)
            } else {
                shard.removeVariant(of: response, dropped: &dropped)
            }
            return Admitted(token: token, superseded: removals)
        }
        guard let admitted else {
            disk.budget.release(reserved ?? 0)
            return .invalidated
        }
        queue(response, admitted, reserved: reserved ?? 0)
        if fits || admitted.token != .none { return nil }
        guard bytes != nil else { return .tooLarge }
        return reserved == nil ? .queueFull : .diskOff
    }

    /// What the index has done with a response.
    private struct Admitted: Sendable {
        let token: IndexToken
        let superseded: [Removal]
    }

    /// Publishes a response whose body was streamed to disk, with its copy in memory if there is
    /// one. The `reserved` bytes of the budget pass to the writer, or are returned.
    func publish(
        row: CachedResponse, inMemory: CachedResponse?, body: DiskBody, flight: StoreFlight,
        reserved: Int
    ) -> StoreRefusalReason? {
        let bytes = disk.intake.bytes(of: row)
        let fits = inMemory.map { memory.admits($0.memoryBytes) } ?? false
        let admitted: Admitted? = memory.withShard(row.keyHash, adding: inMemory) {
            shard, dropped in
            guard shard.flights.land(flight) else { return nil }
            let (token, removals) = disk.index.admit(
                row, bytes: bytes, body: body.id, isChunked: true)
            row.token = token
            if fits, let inMemory {
                inMemory.token = token
                shard.insert(inMemory, dropped: &dropped)
            } else {
                shard.removeVariant(of: row, dropped: &dropped)
            }
            return Admitted(token: token, superseded: removals)
        }
        guard let admitted else {
            disk.budget.release(reserved)
            return .invalidated
        }
        queue(row, admitted, reserved: reserved)
        return admitted.token != .none || fits ? nil : .diskOff
    }

    /// Queues a published response for the disk, if it was admitted there.
    private func queue(_ response: CachedResponse, _ admitted: Admitted, reserved: Int) {
        let isQueued = disk.intake.enqueue(
            response, admitted.token, superseded: admitted.superseded, reserved: reserved)
        if !isQueued { disk.budget.release(reserved) }
    }

    /// See `update`.
    func freshen(
        _ old: CachedResponse, vary: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64
    ) throws(StoreRefusalReason) -> CachedResponse {
        let text = old.key.count + head.count + vary.bytes.count
        guard text <= EntryRecord.maximumBytes else { throw .headTooLarge }
        let made = old.withHead(head, varyKey: vary, metadata: metadata, policy: policy)
        guard let response = made else { throw .memory }
        let intake = disk.intake
        let isKept = memory.admits(response.memoryBytes) && !response.isOnDiskOnly
        let reserved = intake.reserve(response, isInMemory: isKept)
        let bytes = reserved == nil ? nil : intake.bytes(of: response)
        let isChunked = intake.isChunked(response)
        let held = reserved ?? 0
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
                        isQueued: intake.enqueue(
                            row, token, superseded: removals, reserved: held))
                } else {
                    freshened = .noMemory(removals)
                }
            case .rewrite:
                guard !response.isOnDiskOnly else { return .superseded }
                // With another Vary key it would not be replaced by itself.
                let replaced = disk.index.remove(old.token)
                let (token, removals) = disk.index.admit(
                    response, bytes: bytes, body: 0, isChunked: isChunked)
                response.token = token
                freshened = .whole(
                    Admitted(token: token, superseded: removals + (replaced.map { [$0] } ?? [])))
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
        case .whole(let admitted):
            queue(response, admitted, reserved: held)
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
        case whole(Admitted)
        case headOnly(isQueued: Bool)
        case noMemory([Removal])
    }

    /// What is written for a response whose chunks stay as they are. The chunks were pinned for it.
    private func rowOfHead(_ response: CachedResponse, body: Int64) -> CachedResponse? {
        let pinned = disk.body(
            id: body, count: response.bodyCount, chunkBytes: response.chunkBytes)
        guard !response.isOnDiskOnly else { return response }
        guard let row = response.onDisk(pinned) else { return nil }
        row.token = response.token
        return row
    }
}
