import CachePolicy

/// Makes responses visible: the moments at which all levels change together.
extension CacheStore {
    /// What became of a response in the levels below memory.
    private struct Published: Sendable {
        var work = LevelWork()
        /// Why no level below memory has it; `nil` if one has.
        var refusal: StoreRefusalReason? = .tooLarge

        mutating func note(_ answer: StoreRefusalReason?) {
            if refusal != nil, answer != .tooLarge { refusal = answer }
        }
    }

    /// Publishes a response that is complete in memory. Returns `nil` on success. The flight is
    /// ended.
    ///
    /// Memory accepts it whatever the state of the other levels.
    func publish(_ response: CachedResponse, flight: StoreFlight) -> StoreRefusalReason? {
        let fits = memory.admits(response.memoryBytes)
        let published: Published? = memory.withShard(response.keyHash, adding: response) {
            shard, dropped in
            guard shard.land(flight, response, bans) else { return nil }
            var published = Published()
            for level in levels {
                let answer = level.store(response, isInMemory: fits, &published.work)
                published.note(answer)
            }
            if fits {
                shard.insert(response, dropped: &dropped)
            } else {
                shard.removeVariant(of: response, dropped: &dropped)
            }
            return published
        }
        return end(published, isInMemory: fits)
    }

    /// Publishes a response whose body was streamed to levels below memory, with its copy in memory
    /// if there is one. Each of them has a response of its own with its body.
    func publish(
        _ response: CachedResponse, streamedTo bodies: [LevelStreams.Body],
        inMemory: CachedResponse?, flight: StoreFlight
    ) -> StoreRefusalReason? {
        let copy = inMemory.flatMap { memory.admits($0.memoryBytes) ? $0 : nil }
        let published: Published? = memory.withShard(response.keyHash, adding: copy) {
            shard, dropped in
            guard shard.land(flight, response, bans) else { return nil }
            var published = Published()
            for level in levels {
                if let body = bodies.first(where: { $0.level === level }),
                    let row = body.response
                {
                    let answer = body.stream.publish(row, copy: copy, &published.work)
                    published.note(answer)
                } else {
                    level.forget(variantOf: response, &published.work)
                }
            }
            if let copy {
                shard.insert(copy, dropped: &dropped)
            } else {
                shard.removeVariant(of: response, dropped: &dropped)
            }
            return published
        }
        return end(published, isInMemory: copy != nil)
    }

    private func end(_ published: Published?, isInMemory: Bool) -> StoreRefusalReason? {
        guard let published else { return .invalidated }
        published.work.perform()
        return isInMemory ? nil : published.refusal
    }

    /// See `update`.
    func freshen(
        _ old: CachedResponse, vary: VaryKey, head: UnsafeRawBufferPointer,
        metadata: StoredMetadata, policy: UInt64, flight: StoreFlight?
    ) throws(StoreRefusalReason) -> CachedResponse {
        let text = old.key.count + head.count + vary.bytes.count
        guard text <= EntryRecord.maximumBytes else { throw .headTooLarge }
        let made = old.withHead(head, varyKey: vary, metadata: metadata, policy: policy)
        guard let response = made else { throw .memory }
        let isKept = memory.admits(response.memoryBytes) && !response.isOnDiskOnly
        let (isDone, work) = memory.withShard(old.keyHash, adding: response) {
            shard, dropped -> (Bool, LevelWork) in
            var work = LevelWork()
            // Whoever asked for the confirmation found it before it was purged.
            guard shard.verdict(old, bans).isNone, flight.map({ shard.flights.isValid($0) }) ?? true
            else { return (false, work) }
            let isInMemory = shard.contains(old)
            guard isInMemory || levels.contains(where: { $0.holds(old) }) else {
                return (false, work)
            }
            // If the body is in a level, that one decides whether there still is a response.
            let owner = levels.first { $0 === response.levelOfBody }
            if let owner, !owner.freshen(old, with: response, isInMemory: isKept, &work) {
                return (false, work)
            }
            for level in levels where level !== owner {
                _ = level.freshen(old, with: response, isInMemory: isKept, &work)
            }
            let hits = shard.hits(of: old)
            shard.remove(old, dropped: &dropped)
            response.born = shard.serial
            if isInMemory {
                shard.insert(response, dropped: &dropped)
                shard.inherit(hits, response)
            } else {
                shard.removeVariant(of: response, dropped: &dropped)
            }
            return (true, work)
        }
        work.perform()
        guard isDone else { throw .superseded }
        return response
    }
}

extension CachedResponse {
    /// The level that has its body, if that is not in memory.
    fileprivate var levelOfBody: (any ChunkSource)? {
        if case .disk(let body) = body { return body.source }
        return nil
    }
}
