import Synchronization

/// Accepts responses for the disk: into the index, and into the writer's queue. Nobody waits for
/// the disk: what its writer cannot keep up with is skipped and counted, and stays in memory
/// nevertheless.
///
/// A response that memory keeps may use up to half of the queue when it is stored, or later, when
/// the writer has caught up. The other half is for those that have no other chance: responses held
/// only by memory when they are evicted from it, and those that memory does not accept.
extension DiskTier {
    /// The bytes that a response will take on disk; `nil` if it is not kept there. A body written
    /// from memory goes into one transaction, so it must not be large; larger ones were streamed.
    func bytes(of response: CachedResponse) -> Int64? {
        guard options.diskBytes > 0,
            response.isOnDiskOnly || response.bodyCount <= UInt64(options.wholeBodyBytes)
        else { return nil }
        let record =
            EntryRecord.headerBytes + response.key.count + response.varyKey.bytes.count
            + response.head.count
        let isInline = !isChunked(response)
        let bytes = Schema.footprint(
            recordBytes: record, inlineBytes: isInline ? Int(response.bodyCount) : 0,
            chunked: isInline ? 0 : response.bodyCount, chunkBytes: response.chunkBytes)
        return bytes <= options.diskBytes / 2 ? bytes : nil
    }

    /// Whether its body is, or will be, in chunks.
    func isChunked(_ response: CachedResponse) -> Bool {
        response.isOnDiskOnly || response.bodyCount > UInt64(options.inlineBodyBytes)
    }

    /// Reserves space in the queue for a response that is written from memory; `nil` if the queue
    /// is full, which is counted while the disk is on.
    func reserve(_ response: CachedResponse, isInMemory: Bool) -> Int? {
        let count = response.rowBytes
        if budget.reserve(count, within: isInMemory ? budget.limit / 2 : budget.limit) {
            return count
        }
        if index.phase == .ready { passOver() }
        if isInMemory { mayLackSome.store(true, ordering: .relaxed) }
        return nil
    }

    /// Stores what only memory has, because the disk was not ready, or behind, when it was stored.
    /// Under the lock of its key, by the writer. Returns `false` if the queue is full: later.
    func storeMissing(_ response: CachedResponse, _ work: inout LevelWork) -> Bool {
        guard response.token == .none, index.phase == .ready, let bytes = bytes(of: response) else {
            return true
        }
        guard bans.verdict(response).isNone else {
            // Once it is stale, it may be stored.
            mayLackSome.store(true, ordering: .relaxed)
            return true
        }
        let reserved = response.rowBytes
        guard budget.reserve(reserved, within: budget.limit / 2) else { return false }
        admit(response, bytes: bytes, reserved: reserved, &work)
        return true
    }

    func passOver() { counters.skipped.wrappingAdd(1, ordering: .relaxed) }

    /// Why a body cannot be streamed to it any further. If that is because the writer does not keep
    /// up, it counts as skipped.
    func reasonToGiveUp() -> StoreRefusalReason {
        guard index.phase == .ready else { return .diskOff }
        passOver()
        return .queueFull
    }

    /// Adds a response to the index, under the lock of its key, and leaves the rest to `work`.
    ///
    /// - Parameters:
    ///   - bytes: the space it will take on disk; `nil` if it only replaces.
    ///   - body: the id under which its chunks were streamed; 0 if it is written from memory.
    ///   - reserved: bytes of the queue, which pass to the writer or are returned.
    ///   - further: further rows that its row replaces.
    /// - Returns: its entry, which is also `response.token`; `.none` if there is none.
    @discardableResult
    func admit(
        _ response: CachedResponse, bytes: Int64?, body: Int64 = 0, reserved: Int,
        replacing further: [Removal] = [], _ work: inout LevelWork
    ) -> IndexToken {
        let (token, removals) = index.admit(
            response, bytes: bytes, body: body, isChunked: isChunked(response))
        let superseded = further.isEmpty ? removals : removals + further
        response.token = token
        if token != .none || !superseded.isEmpty || reserved > 0 {
            work.add { [self] in
                let isQueued = enqueue(
                    response, token, superseded: superseded, reserved: reserved)
                guard !isQueued else { return }
                budget.release(reserved)
                if !superseded.isEmpty { tell(response.key) }
            }
        }
        return token
    }

    /// Queues a response that the index has accepted. If it returns `false`, its index entry has
    /// been given up, and the `reserved` bytes remain the caller's.
    /// - Parameters:
    ///   - token: the entry. `response.token` may have been set since, by another thread that
    ///     queues it itself.
    ///   - wakes: `false` if the caller will wake the writer.
    func enqueue(
        _ response: CachedResponse, _ token: IndexToken, superseded: [Removal], reserved: Int,
        wakes: Bool = true
    ) -> Bool {
        if token != .none,
            queue.append(
                .row(response, superseded: superseded, reserved: reserved), wakes: wakes)
        {
            return true
        }
        if token != .none { _ = index.remove(token) }
        remove(superseded)
        return false
    }
}
