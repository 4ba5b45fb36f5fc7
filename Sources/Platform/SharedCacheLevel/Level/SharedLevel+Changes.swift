import CachePolicy
import CacheStore
import SharedCache

// Changes of a key, under its lock.
extension SharedLevel {
    /// Makes a change of a key: its lookups under way are void, and so is what is known of these
    /// variants' bodies (of all if `nil`).
    /// - Parameters:
    ///   - isInvalid: whether all gateways have to know of it.
    ///   - published: the body in chunks that the change gives an entry.
    /// - Returns: `false` if the level is off, which remembers the key.
    private func change(
        _ key: @autoclosure () -> SharedKey, _ hash: UInt64, _ variants: [SharedVariant]?,
        isInvalid: Bool = false, _ work: inout LevelWork,
        _ command: (borrowing State) -> SharedCommand,
        publishing published: SharedBody? = nil, of response: CachedResponse? = nil
    ) -> Bool {
        let isQueued = shared.withLock { state in
            state.loads.void(hash)
            let dropped = state.bodies.void(hash, variants)
            guard state.level == .ready else {
                state.lost.note(key(), isInvalid: isInvalid)
                return false
            }
            // A change cannot be refused, and must not be late: rather than that, what is stored of
            // its key is removed when the connection is there again.
            guard state.waiting < 2 * options.queueCommands else {
                state.lost.note(key(), isInvalid: isInvalid)
                state.isOverloaded = true
                set(.off, &state)
                return false
            }
            let command = command(state)
            state.changes.add(hash)
            state.add(command)
            if let published, let response { state.bodies.publish(published, response) }
            for command in dropped { state.add(command) }
            return true
        }
        work.add { [self] in proceed() }
        return isQueued
    }

    private func key(of response: CachedResponse) -> SharedKey {
        SharedKey(bytes: [UInt8](response.key), hash: response.keyHash)
    }

    /// Has the engine keep a response, instead of its predecessor of the same variant and of the
    /// variant `replaced`.
    func set(
        _ response: CachedResponse, _ body: SharedStore.Body,
        replacing replaced: SharedVariant? = nil, _ work: inout LevelWork
    ) -> Bool {
        let own = SharedVariant(response)
        let variants = [own] + (replaced.map { [$0] } ?? [])
        var chunked: SharedBody?
        if case .chunks(let name, _) = body { chunked = name }
        return change(
            key(of: response), response.keyHash, variants, &work,
            {
                // Whoever stores has compared it with what was carried out here by now.
                guard let born = $0.born else { return .forget(key(of: response), variants) }
                return .store(
                    SharedStore(
                        response: response, body: body, born: born,
                        announcement: $0.announcements, learned: $0.learned,
                        replaced: replaced, mark: systemTrust.mark(of: response.key)))
            }, publishing: chunked, of: response)
    }

    private func skip(
        _ response: CachedResponse, _ reason: StoreRefusalReason, _ work: inout LevelWork
    ) -> StoreRefusalReason {
        forget(variantOf: response, &work)
        return reason
    }

    package func store(
        _ response: CachedResponse, isInMemory: Bool, _ work: inout LevelWork
    ) -> StoreRefusalReason? {
        // What a soft purge has made stale is confirmed before it is worth sharing.
        guard response.bodyCount <= largestBody, response.isWholeInMemory,
            response.staleSince == 0, !response.isOfParts, systemTrust.covers(response)
        else { return skip(response, .tooLarge, &work) }
        guard hasRoom(for: Int(response.bodyCount)) else {
            let isOff = shared.withLock { state in
                if state.level == .ready { state.statistics.skipped += 1 }
                return state.level != .ready
            }
            return skip(response, isOff ? .diskOff : .queueFull, &work)
        }
        return set(response, .whole, &work) ? nil : .diskOff
    }

    package func hasRoom(for bytes: Int) -> Bool {
        shared.withLock { state in
            state.level == .ready && state.bytes + bytes <= options.queueBytes
                && state.waiting < options.queueCommands
        }
    }

    package func forget(variantOf response: CachedResponse, _ work: inout LevelWork) {
        let variant = SharedVariant(response)
        _ = change(
            key(of: response), response.keyHash, [variant], &work,
            { _ in .forget(key(of: response), [variant]) })
    }

    /// Known only of bodies that are kept apart.
    package func holds(_ response: CachedResponse) -> Bool {
        guard case .disk(let body) = response.body, body.source === self else { return false }
        let entry = KnownBodies.Entry(response)
        return shared.withLock { $0.bodies.entry(body.id) == entry }
    }

    package func freshen(
        _ old: CachedResponse, with response: CachedResponse, isInMemory: Bool,
        _ work: inout LevelWork
    ) -> Bool {
        guard case .disk(let body) = response.body else {
            if SharedVariant(old) != SharedVariant(response) {
                forget(variantOf: old, &work)
            }
            return store(response, isInMemory: isInMemory, &work) == nil
        }
        let place = shared.withLock { $0.bodies.place(body.id) }
        guard body.source === self, let (name, chunks) = place else {
            forget(variantOf: old, &work)
            forget(variantOf: response, &work)
            return false
        }
        let replaced = SharedVariant(old)
        return set(
            response, .chunks(name, chunks),
            replacing: replaced == SharedVariant(response) ? nil : replaced, &work)
    }

    /// It has been stored here when it was stored in memory, or was refused.
    package func leaveMemory(
        _ response: CachedResponse, wasUsed: Bool, _ work: inout LevelWork
    ) {}

    package func remove(_ key: CacheKeyView, _ work: inout LevelWork) {
        let key = SharedKey(bytes: [UInt8](key.bytes), hash: key.hash)
        _ = change(key, key.hash, nil, isInvalid: true, &work, { _ in .remove(key) })
    }

    package func remove(_ response: CachedResponse, _ work: inout LevelWork) {
        forget(variantOf: response, &work)
    }

    package func beginStream(
        _ arriving: ArrivingResponse
    ) throws(StoreRefusalReason) -> any LevelStream {
        guard state == .ready else { throw .diskOff }
        return try SharedStream(self, arriving)
    }
}
