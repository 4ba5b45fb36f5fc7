import CachePolicy
import CacheStore
import RedisProtocol
import SharedCache

// What is made of the replies to a lookup.
extension LevelLoop {
    func readValue(_ pending: PendingLoad, _ reply: RESPValue) {
        if let error = reply.redisError {
            count(SharedLevelReason(error.code))
            if !pending.isOver {
                pending.load.look?.fail(.busy)
                answer(pending, [])
            }
            heed(error, from: link(of: pending))
            return
        }
        guard !pending.isOver else { return }
        let fields: [(name: [UInt8], value: [UInt8])] = (reply.entries ?? []).compactMap {
            guard let name = $0.key.bytes, let value = $0.value.bytes else { return nil }
            return (name, value)
        }
        // On another connection it may have overtaken what this gateway has purged before.
        guard let generation = generation(of: link(of: pending)),
            fleet.written >= pending.announcement, let number = readNumber(pending, fields)
        else { return complete(pending) }
        let instance = Engine.instance(generation, number.token)
        for (name, value) in fields where name.count == PendingLoad.fieldBytes {
            if let found = readVariant(pending, name, value, instance) {
                pending.found.append(found)
            }
        }
        pending.keepWanted()
        if pending.load.stale != nil {
            pending.found = pending.found.filter { found in
                pending.withHead(of: found, engine.clock) { pending.load.wants($0) } ?? false
            }
        }
        pending.missing = 1
        for found in pending.found { askForBody(pending, found) }
        came(pending)
    }

    /// A key's own number, if it has one.
    private struct KeyNumber { var token: SharedToken? }

    /// Reads the key's own number; `nil` if there is one that cannot be read.
    private func readNumber(
        _ pending: PendingLoad, _ fields: [(name: [UInt8], value: [UInt8])]
    ) -> KeyNumber? {
        var token: SharedToken?
        if let field = fields.first(where: { $0.name == Engine.numberField }) {
            do throws(SharedRecordError) {
                token = try engine.number(
                    field.value, under: engine.names.index(pending.digest))
            } catch {
                count(SharedLevelReason(error))
                if case .deleteAndReport = error.handling {
                    send(.nothing, to: link(of: pending)) {
                        $0.begin(2)
                        $0.add("UNLINK")
                        $0.add(engine.hash(pending.digest))
                    }
                }
                return nil
            }
        }
        let hash = pending.load.hash
        if let news = engine.read(token, of: hash, after: pending.removals) {
            learn(news, of: hash, in: pending.load.memory)
        }
        return KeyNumber(token: token)
    }

    /// Another gateway has drawn a key's number: responses to requests that were sent before are
    /// not to be stored under it, as they may be from before whatever has made them invalid.
    ///
    /// The order matters. What is on its way is void first; what was queued before is known by how
    /// many numbers had been learned; and only then are there requests that find this number.
    private func learn(_ number: SharedToken, of hash: UInt64, in memory: MemoryTier) {
        memory.voidFlights(hash)
        let learned = level.shared.withLock { state in
            state.learned += 1
            return state.learned
        }
        engine.learn(number, of: hash, as: learned)
    }

    private func readVariant(
        _ pending: PendingLoad, _ field: [UInt8], _ bytes: [UInt8], _ instance: SharedToken
    ) -> FoundValue? {
        switch pending.read(bytes, in: field, of: instance, engine.names, engine.keyring) {
        case .success(let found):
            guard let found, let purges = fleet.table,
                pending.judge(found, by: purges, engine.clock)
            else {
                count(.voided)
                return nil
            }
            return found
        case .failure(let error):
            count(SharedLevelReason(error))
            if case .deleteAndReport = error.handling {
                sendFields(
                    [field, Engine.chunksField(of: field)], of: engine.hash(pending.digest),
                    .nothing, to: link(of: pending))
            }
            return nil
        }
    }

    // MARK: Bodies in chunks

    private func askForBody(_ pending: PendingLoad, _ found: FoundValue) {
        guard case .chunks(let chunks) = found.value.body else { return }
        guard chunks.count <= options.maximumObject,
            chunks.chunkBytes == UInt32(SharedStream.chunkBytes)
        else {
            found.isBroken = true
            return
        }
        let names = (0..<chunks.chunkCount).map {
            engine.names.chunk(pending.digest, body: chunks.body, $0)
        }
        guard chunks.count <= options.wholeBodyBytes, pending.load.look == nil else {
            // It stays in the engine, but only if all of it is there.
            pending.missing += 1
            return send(.presence(pending, found), to: link(of: pending)) {
                $0.begin(1 + names.count)
                $0.add("TOUCH")
                for name in names { $0.add(name) }
            }
        }
        found.body = [UInt8](repeating: 0, count: Int(chunks.count))
        for (number, name) in names.enumerated() {
            pending.missing += 1
            sendGet(
                name, .chunkOfLoad(pending, found, number: UInt32(number)),
                to: link(of: pending))
        }
    }

    func readChunk(
        _ pending: PendingLoad, _ found: FoundValue, _ number: UInt32, _ reply: RESPValue
    ) {
        defer { came(pending) }
        guard !pending.isOver, !found.isBroken, case .chunks(let chunks) = found.value.body
        else { return }
        guard let bytes = reply.bytes else {
            found.isBroken = true
            return count(.incomplete)
        }
        let name = engine.names.chunk(pending.digest, body: chunks.body, number)
        let start = Int(number) * Int(chunks.chunkBytes)
        bytes.withUnsafeBytes { bytes in
            do throws(SharedRecordError) {
                let chunk = try chunks.chunk(number, bytes, under: name, by: engine.keyring)
                found.body.withUnsafeMutableBytes {
                    UnsafeMutableRawBufferPointer(rebasing: $0[start..<start + chunk.count])
                        .copyMemory(from: chunk)
                }
            } catch {
                found.isBroken = true
                count(SharedLevelReason(error))
            }
        }
    }

    /// A reply that was missing has come.
    func came(_ pending: PendingLoad) {
        pending.missing -= 1
        guard pending.missing == 0, !pending.isOver else { return }
        complete(pending)
    }

    // MARK: The answer

    private func complete(_ pending: PendingLoad) {
        succeeded(link(of: pending))
        var published: [CachedResponse] = []
        for found in pending.found where !found.isBroken {
            guard let response = makeResponse(pending, found) else { continue }
            let current = pending.load.publish(response) { _ in
                level.shared.withLock { state in
                    guard state.loads.isValid(pending.flight) else { return false }
                    if case .disk(let body) = response.body, pending.load.look == nil {
                        state.bodies.publish(body.id, response)
                    }
                    return true
                }
            }
            if let current { published.append(current) }
        }
        removeBroken(pending)
        if published.isEmpty, mayWait(pending) { return waitOrLead(pending) }
        answer(pending, published)
    }

    /// What has lost a part is not looked at again.
    private func removeBroken(_ pending: PendingLoad) {
        let fields = pending.found.filter(\.isBroken).compactMap {
            SharedName.variant($0.vary, trust: $0.value.trust)
        }
        guard !fields.isEmpty else { return }
        sendFields(
            fields + fields.map { Engine.chunksField(of: $0) },
            of: engine.hash(pending.digest), .nothing, to: link(of: pending))
    }

    private func makeResponse(
        _ pending: PendingLoad, _ found: FoundValue
    ) -> CachedResponse? {
        guard case .chunks(let chunks) = found.value.body else {
            return pending.inlineResponse(found, engine.clock)
        }
        let load = pending.load
        return pending.withHead(of: found, engine.clock) { loaded -> CachedResponse? in
            guard found.body.isEmpty else {
                return found.body.withUnsafeBytes {
                    load.memory.makeResponse(loaded, for: load, body: $0)
                }
            }
            let place = SharedBody(digest: pending.digest, token: chunks.body)
            let id = level.shared.withLock { $0.bodies.read(place, chunks) }
            let body = LevelBody(
                id: id, count: chunks.count, chunkBytes: Int(chunks.chunkBytes),
                source: level)
            return load.memory.makeResponse(loaded, for: load, body: body)
        }
    }

    /// Answers a lookup.
    func answer(_ pending: PendingLoad, _ found: [CachedResponse]) {
        if let wait = pending.wait { return looked(pending, for: wait, found) }
        pending.isOver = true
        pending.found = []
        let took = now - pending.began
        level.shared.withLock { state in
            state.loads.end(pending.flight)
            guard pending.load.look == nil else { return }
            state.statistics.took(took)
            if found.isEmpty {
                state.statistics.misses += 1
            } else {
                state.statistics.hits += 1
            }
        }
        pending.load.completion(found.isEmpty ? .nothing : .found(found, isShared: true))
    }
}
