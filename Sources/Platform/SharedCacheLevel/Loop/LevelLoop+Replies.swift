import CachePolicy
import CacheStore
import Clocks
import RedisProtocol
import SharedCache

// What follows from each reply.
extension LevelLoop {
    func replied(_ reply: RESPValue, to expected: Expected, from link: ServerLink) {
        let error = reply.redisError
        if cluster != nil, let error { redirected(error.code, by: link, expected) }
        switch expected {
        case .nothing: break
        case .queued(let store):
            if let error { store.failure = store.failure ?? SharedLevelReason(error.code) }
        case .stored(let store): stored(store, reply, from: link)
        case .chunk(let store):
            if let error {
                store.failure = store.failure ?? SharedLevelReason(error.code)
            } else if reply.integer == 0 {
                // It was to be kept, and is gone.
                store.failure = store.failure ?? .incomplete
            }
        case .early:
            // Its entry will find that it is missing.
            if let error { count(SharedLevelReason(error.code)) }
        case .fieldCount(let removal): removal.fields = reply.integer ?? 0
        case .numberCount(let removal):
            removal.fields -= reply.integer ?? 0
            // On another connection they must not be told before it is removed.
            if cluster == nil { tell(removal) }
        case .numberQueued: break
        case .numberSet(let removal):
            // Without its new number, what others have asked for before is stored as valid.
            if reply.elements == nil { lose(removal.key, isInvalid: removal.isInvalid) }
            if cluster != nil { tell(removal) }
        case .announced(let purge, let number): announced(purge, number, reply)
        case .told: if let error { count(SharedLevelReason(error.code)) }
        case .removalTold(let key): told(key, reply)
        case .begun:
            if let error { disconnect(.transport("\(error)"), because: .init(error.code)) }
        case .streamState(let name): readState(of: name, reply)
        case .streams(let asked, let announced):
            readStreams(reply, asked: asked, announced: announced)
        case .members(let completion): readMembers(reply, completion)
        case .confirmations: readConfirmations(reply)
        case .published(let completion): completion(reply.isOK)
        case .policyVersion: readPolicyVersion(reply)
        case .policy(let version): readPolicy(reply, version: version)
        case .removed:
            // A value of another type is not one of ours.
            if let error, error.code != .wrongType {
                failedToRemove(expected, error, on: link)
            }
        case .predecessor(let digest, let successor):
            guard let text = reply.bytes, let (token, chunks) = Engine.chunks(text),
                token != successor,
                chunks <= options.maximumObject / UInt64(SharedStream.chunkBytes) + 1
            else { break }
            sendDropping(SharedBody(digest: digest, token: token), chunks, isRead: true)
        case .generation: readGeneration(reply)
        case .value(let load): readValue(load, reply)
        case .chunkOfLoad(let load, let found, let number):
            readChunk(load, found, number, reply)
        case .presence(let load, let found):
            if case .chunks(let chunks) = found.value.body,
                reply.integer != Int64(chunks.chunkCount)
            {
                found.isBroken = true
                count(.incomplete)
            }
            came(load)
        case .chunkRead(let id, let body, let chunks, let number, let completion):
            completion(readChunk(id, body, chunks, number, reply, from: link))
        case .lease(let wait): readLease(wait, reply)
        case .leaseKept(let digest, let token):
            if let error { count(SharedLevelReason(error.code)) }
            if reply.integer != 1 { leases.lose(digest, token) }
        case .barrier(let completion): barrierReached(completion)
        case .info: readInfo(reply, from: link)
        case .time(let asked): readTime(reply, asked: asked)
        case .probe(let deadline): probed(link, error == nil ? deadline : -1)
        }
    }

    /// What will not be replied to.
    func giveUp(_ expected: Expected) {
        switch expected {
        case .nothing, .queued, .chunk, .early, .predecessor, .generation, .info, .time, .probe,
            .fieldCount, .numberCount, .numberQueued, .told, .begun, .streamState, .streams,
            .confirmations, .policyVersion, .policy, .lease, .leaseKept:
            break
        case .announced(let purge, _): level.shared.withLock { $0.lost.note([purge]) }
        case .members(let completion): completion(nil)
        case .published(let completion): completion(false)
        case .stored(let store): lose(store.store.key, isInvalid: false)
        case .removed(let key, let isInvalid): lose(key, isInvalid: isInvalid)
        case .removalTold(let key): lose(key, isInvalid: true)
        case .numberSet(let removal):
            lose(removal.key, isInvalid: removal.isInvalid)
            if cluster != nil, isConnected { tell(removal) }
        case .value(let load), .chunkOfLoad(let load, _, _), .presence(let load, _):
            if !load.isOver {
                load.load.look?.fail(.busy)
                answer(load, [])
            }
        case .chunkRead(_, _, _, _, let completion): completion(.gone)
        case .barrier(let completion): completion()
        }
    }

    /// What will not be carried out.
    func giveUp(_ command: SharedCommand) {
        switch command {
        case .load(let load, let flight, let began, let deadline):
            load.look?.fail(.busy)
            answer(
                PendingLoad(
                    load, flight, began: began, deadline: deadline, digest: [], removals: 0,
                    mark: 0),
                [])
        case .store(let store): lose(store.key, isInvalid: false)
        case .forget(let key, _), .discard(let key): lose(key, isInvalid: false)
        case .remove(let key): lose(key, isInvalid: true)
        case .announce(let purges, _): level.shared.withLock { $0.lost.note(purges) }
        case .confirm(let completion):
            let own = String(decoding: options.gateway, as: UTF8.self)
            completion(
                FleetReceipt(
                    isRecorded: false, confirmed: [own], unconfirmed: fleet.others,
                    away: fleet.away))
        case .readMembers(let completion): completion(nil)
        case .publishPolicy(_, let completion): completion(false)
        // Its chunks expire.
        case .addChunk, .dropBody: break
        case .readChunk(_, _, _, _, let completion): completion(.gone)
        case .lookAgain(_, _, let flight): level.shared.withLock { $0.loads.end(flight) }
        // It ends by itself.
        case .endLease(let digest, let token, _): leases.lose(digest, token)
        case .barrier(let completion): completion()
        }
    }

    func lose(_ key: SharedKey, isInvalid: Bool) {
        level.shared.withLock { state in
            state.loads.void(key.hash)
            _ = state.bodies.void(key.hash, nil)
            state.lost.note(key, isInvalid: isInvalid)
        }
        noteLost()
    }

    func count(_ reason: SharedLevelReason) { level.count(reason) }

    /// An error was replied: to what it says of the server as a whole.
    /// - Returns: whether the connection was given up.
    @discardableResult
    func heed(_ error: RedisReplyError, from link: ServerLink) -> Bool {
        switch error.code.consequence {
        case .isPassing:
            failed(link)
            return false
        // Of a cluster it says nothing about the other keys.
        case .redirects where cluster != nil: return false
        case .redirects, .isWrongServer, .isMisconfigured:
            giveUp(link, error)
            return true
        case .refusesWrites, .needsScript, .isUnexpected: return false
        }
    }

    /// Closes the connection because of an error.
    private func giveUp(_ link: ServerLink, _ error: RedisReplyError) {
        disconnect(link, .transport("\(error)"), because: SharedLevelReason(error.code))
    }

    private func failedToRemove(
        _ expected: Expected, _ error: RedisReplyError, on link: ServerLink
    ) {
        // It is removed when there is a connection again, or by the node that has the key.
        giveUp(expected)
        if cluster != nil, case .redirects = error.code.consequence { return }
        giveUp(link, error)
    }

    // MARK: The engine itself

    private func readTime(_ reply: RESPValue, asked: Int64) {
        let answered = Clock.wallMilliseconds()
        let parts = reply.elements ?? []
        if parts.count == 2, let seconds = parts[0].integer, let rest = parts[1].integer,
            (0...StoredTimes.maximumTime).contains(seconds)
        {
            engine.clock.measured(
                asked: asked, answered: answered, engine: seconds * 1000 + rest / 1000)
        }
        withdrawView()
        if !engine.clock.isKnown {
            // It may not be asked: the clocks are taken for equal.
            engine.clock.measured(asked: answered, answered: answered, engine: answered)
        }
        prepared()
    }

    private func readGeneration(_ reply: RESPValue) {
        if let error = reply.redisError {
            if !heed(error, from: home) {
                waitForGeneration(SharedLevelReason(error.code), "\(error)")
            }
            return
        }
        guard let record = reply.bytes else {
            // It was evicted, or deleted; or the engine did not take it.
            if isPreparing {
                return waitForGeneration(.outOfMemory, "the engine does not keep a key")
            }
            return disconnect(.transport("its generation is gone"), because: .begunAnew)
        }
        do throws(SharedRecordError) {
            let read = try engine.readGeneration(record)
            let number = read.instance
            guard let known = engine.generation else {
                if let history = read.history, !engine.history.isEmpty, history != engine.history {
                    return beginAnew(insteadOf: record, "another server was the master since")
                }
                if read.history == nil { complete(record, of: number) }
                engine.generation = number
                generationIsKnown()
                return prepared()
            }
            if number != known {
                disconnect(.transport("another gateway has begun anew"), because: .begunAnew)
            }
        } catch {
            switch error.handling {
            case .deleteAndReport: count(.damaged)
            case .leave where error == .notOurs: break
            case .leave, .leaveAndReport:
                return disconnect(
                    .transport("the generation: \(error)"), because: .init(error))
            }
            beginAnew(insteadOf: record, "the generation: \(error)")
        }
    }

    private func beginAnew(insteadOf record: [UInt8], _ why: String) {
        begin(insteadOf: record)
        flush()
        disconnect(.transport(why), because: .begunAnew)
    }

    /// What the engine says about a stream.
    private func readState(of name: [UInt8], _ reply: RESPValue) {
        if let error = reply.redisError, error.code != .other {
            return disconnect(.transport("\(error)"), because: .init(error.code))
        }
        guard let stream = PurgeFollower.Stream(reply, epoch: engine.epoch) else {
            return disconnect(.transport("a stream is not there"), because: .begunAnew)
        }
        if name == engine.names.stream {
            fleet.purges.stream = stream
        } else {
            fleet.removed.stream = stream
            if fleet.isReading { return polled() }
        }
        if !fleet.isReading { prepared() }
    }

    private func readInfo(_ reply: RESPValue, from link: ServerLink) {
        if let error = reply.redisError { return giveUp(link, error) }
        let run = reply.run
        // Without it, nobody would notice that the engine has gone back to an earlier state.
        guard !run.isEmpty else {
            return disconnect(link, .transport("INFO says no run_id"), because: .refused)
        }
        let isFirst = link.identity == nil
        let identity = run + reply.history
        // A replica that becomes the master begins another history, and so does a master again that
        // was a replica meanwhile: what was confirmed before may be missing in it.
        guard link !== home || isFirst || link.identity == identity else {
            return disconnect(.transport("its data has another history"), because: .begunAnew)
        }
        identified(link, as: identity)
        if link === home, isFirst { began(run, history: reply.history) }
    }

    private func waitForGeneration(_ reason: SharedLevelReason, _ detail: String) {
        if isPreparing { disconnect(.transport(detail), because: reason) }
    }

    // MARK: Stores

    private func stored(
        _ pending: PendingStore, _ reply: RESPValue, from link: ServerLink
    ) {
        let isTooMuch = note(pending, reply)
        guard let failure = pending.failure else {
            level.shared.withLock { $0.statistics.stores += 1 }
            return
        }
        count(failure)
        undo(pending, on: link)
        if let error = reply.redisError, !isTooMuch { heed(error, from: link) }
    }

    /// Notes why a transaction has failed; returns whether the key has too many variants.
    private func note(_ pending: PendingStore, _ reply: RESPValue) -> Bool {
        if let error = reply.redisError {
            pending.failure = pending.failure ?? SharedLevelReason(error.code)
            return false
        }
        guard let results = reply.elements else {
            pending.failure = pending.failure ?? .refused
            return false
        }
        for result in results {
            if let error = result.redisError {
                pending.failure = pending.failure ?? SharedLevelReason(error.code)
            }
        }
        // Each variant has up to two fields.
        if pending.failure == nil, let fields = results.last?.integer,
            fields > 2 * options.maximumVariants
        {
            pending.failure = .tooManyVariants
            return true
        }
        return false
    }

    /// What could not be stored whole is removed, and so is what it should have replaced. Lookups
    /// that were sent in between find neither.
    private func undo(_ pending: PendingStore, on link: ServerLink) {
        let response = pending.store.response
        let variants = [pending.store.variant] + (pending.store.replaced.map { [$0] } ?? [])
        let dropped = level.shared.withLock { state -> [SharedCommand] in
            state.loads.void(response.keyHash)
            state.changes.add(response.keyHash)
            if state.commands.isEmpty { takenChanges = state.changes.count }
            return state.bodies.void(response.keyHash, variants)
        }
        let fields = pending.fields + pending.fields.map { Engine.chunksField(of: $0) }
        sendFields(
            fields, of: engine.hash(pending.digest), .removed(pending.store.key, isInvalid: false),
            to: link)
        if let chunks = pending.ownChunks {
            let body = SharedBody(digest: pending.digest, token: chunks.body)
            sendDropping(body, chunks.chunkCount, isRead: false)
        }
        for case .dropBody(let body, let chunks, let isRead) in dropped {
            sendDropping(body, chunks, isRead: isRead)
        }
        flush()
    }

    // MARK: Chunks that are read

    private func readChunk(
        _ id: Int64, _ body: SharedBody, _ chunks: SharedChunks, _ number: UInt32,
        _ reply: RESPValue, from link: ServerLink
    ) -> ChunkResult {
        if let error = reply.redisError {
            heed(error, from: link)
            return .failed(.readFailed(detail: "\(error)"))
        }
        guard let bytes = reply.bytes else {
            count(.incomplete)
            dropEntry(of: id, on: link)
            return .gone
        }
        let name = engine.names.chunk(body.digest, body: body.token, number)
        return bytes.withUnsafeBytes { bytes in
            do throws(SharedRecordError) {
                let chunk = try chunks.chunk(number, bytes, under: name, by: engine.keyring)
                guard let copy = ChunkBytes(capacity: chunk.count) else {
                    return .failed(.readFailed(detail: "there is no memory for it"))
                }
                _ = copy.append(chunk)
                return .chunk(copy)
            } catch {
                count(SharedLevelReason(error))
                dropEntry(of: id, on: link)
                return .damaged
            }
        }
    }

    /// The entry that has a body is of no use any longer.
    private func dropEntry(of id: Int64, on link: ServerLink) {
        let place = level.shared.withLock { state -> (SharedBody, SharedVariant)? in
            guard let entry = state.bodies.entry(id), let place = state.bodies.place(id) else {
                return nil
            }
            state.loads.void(entry.key)
            // It has a reader, so nothing is dropped by this.
            _ = state.bodies.void(entry.key, [entry.variant])
            return (place.body, entry.variant)
        }
        guard let (body, variant) = place else { return }
        // Its key is not known any longer, and so not by which of them its fingerprint is marked.
        let fields = level.systemTrust.marks.compactMap { variant.field(marked: $0) }
        guard !fields.isEmpty else { return }
        sendFields(
            fields + fields.map { Engine.chunksField(of: $0) }, of: engine.hash(body.digest),
            .nothing, to: link)
        flush()
    }
}

extension RESPValue {
    /// The error that it is.
    var redisError: RedisReplyError? {
        if case .error(let text) = self { RedisReplyError(text) } else { nil }
    }
}
