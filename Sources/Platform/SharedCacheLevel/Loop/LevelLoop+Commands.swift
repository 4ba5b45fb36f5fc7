import CachePolicy
import CacheStore
import Clocks
import SharedCache

// What is written for each command.
extension LevelLoop {
    func carryOut(_ command: SharedCommand) {
        switch command {
        case .load(let load, let flight, let began, let deadline):
            sendLoad(load, flight, began: began, deadline: deadline)
        case .store(let store): sendStore(store)
        case .forget(let key, let variants): sendForgetting(key, variants)
        case .remove(let key): sendRemoval(key, isInvalid: true)
        case .discard(let key): sendRemoval(key, isInvalid: false)
        case .announce(let purges, let number): announce(purges, number)
        case .confirm(let completion): confirm(completion)
        case .readMembers(let completion):
            sendGetAll(engine.names.members, .members(completion), to: home)
        case .publishPolicy(let policy, let completion): publish(policy, completion)
        case .addChunk(let body, let number, let chunk):
            let name = engine.names.chunk(body.digest, body: body.token, number)
            guard let link = link(of: body.digest),
                let record = SharedChunks.record(
                    of: chunk.bytes, number, of: body.token, under: name, by: engine.keyring)
            else { return }
            sendChunk(
                name, record, chunk.bytes, Engine.arrivingMilliseconds, .early, to: link)
        case .dropBody(let body, let chunks, let wasPublished):
            sendDropping(body, chunks, isRead: wasPublished)
        case .readChunk(let id, let body, let chunks, let number, let completion):
            let name = engine.names.chunk(body.digest, body: body.token, number)
            guard let link = link(of: body.digest) else { return completion(.gone) }
            sendGet(
                name, .chunkRead(id: id, body, chunks, number: number, completion), to: link)
        case .lookAgain(let wait, let load, let flight): lookAgain(wait, load, flight)
        case .endLease(let digest, let token, let end): endLease(digest, token, end)
        case .barrier(let completion): sendBarrier(completion)
        }
    }

    func sendGet(_ name: [UInt8], _ expected: Expected, to link: ServerLink) {
        send(expected, to: link) {
            $0.begin(2)
            $0.add("GET")
            $0.add(name)
        }
    }

    func sendGetAll(_ hash: [UInt8], _ expected: Expected, to link: ServerLink) {
        send(expected, to: link) {
            $0.begin(2)
            $0.add("HGETALL")
            $0.add(hash)
        }
    }

    // MARK: Lookups

    private func sendLoad(
        _ load: LevelLoad, _ flight: StoreFlight, began: Int64, deadline: Int64
    ) {
        let digest = load.key.withUnsafeBytes { SharedName.digest(of: $0) }
        let pending = PendingLoad(
            load, flight, began: began, deadline: deadline, digest: digest ?? [],
            removals: engine.removals, mark: level.mark(of: load))
        guard canLookUp, digest != nil, deadline > now, let link = link(of: pending.digest)
        else {
            load.look?.fail(.busy)
            return answer(pending, [])
        }
        if mayWait(pending), joins(pending) { return }
        (pending.link, pending.announcement) = (link, fleet.sent)
        wait(for: pending)
        sendGetAll(engine.hash(pending.digest), .value(pending), to: link)
    }

    /// Where a lookup was sent to.
    func link(of pending: PendingLoad) -> ServerLink { pending.link ?? home }

    // MARK: Stores

    func digest(of key: UnsafeRawBufferPointer) -> [UInt8]? { SharedName.digest(of: key) }

    private func sendStore(_ store: SharedStore) {
        let response = store.response
        guard let digest = digest(of: response.key),
            let field = store.variant.field(marked: store.mark)
        else { return refuse(store) }
        guard engine.wasKnown(response.keyHash, at: store.learned) else {
            count(.voided)
            return refuse(store)
        }
        guard let link = link(of: digest) else { return skip(store) }
        let replaced = store.replaced.flatMap { $0.field(marked: store.mark) }
        var token: SharedToken?
        var ownChunks: SharedChunks?
        switch store.body {
        case .chunks(let body, _): token = body.token
        case .whole where response.bodyCount > options.inlineBodyBytes:
            let drawn = SharedToken.drawn()
            ownChunks = SharedChunks(
                body: drawn, chunkBytes: UInt32(SharedStream.chunkBytes),
                count: response.bodyCount)
            guard ownChunks != nil else { return refuse(store) }
            token = drawn
        case .whole: break
        }
        let pending = PendingStore(
            store, digest: digest, fields: [field] + (replaced.map { [$0] } ?? []),
            ownChunks: ownChunks, token: token)
        guard let text = makeText(pending, field, generation(of: link)) else {
            return refuse(store)
        }
        let milliseconds = lifetime(of: response)
        noteStore(response, digest)
        sendChunks(pending, milliseconds, to: link)
        for field in pending.fields {
            askForPredecessor(pending.digest, field, token, on: link)
        }
        sendTransaction(pending, text, milliseconds, to: link)
    }

    /// The value of the field, in two parts: the record, and the body if it follows.
    private struct Text {
        var record: [UInt8]
        var body: [UInt8] = []
        var chunks: SharedChunks?
    }

    private func makeText(
        _ pending: PendingStore, _ field: [UInt8], _ generation: SharedToken?
    ) -> Text? {
        let response = pending.store.response
        guard let generation,
            let times = engine.clock.toEngine(response.metadata.times)
        else { return nil }
        let draft = SharedValueDraft(
            key: [UInt8](response.key), vary: response.varyKey, head: [UInt8](response.head),
            times: times, trust: response.policy ^ pending.store.mark,
            instance: Engine.instance(generation, engine.number(of: response.keyHash)),
            born: born(of: pending.store))
        let name = engine.names.value(pending.digest, variant: field)
        var chunks = pending.ownChunks
        if case .chunks(_, let known) = pending.store.body { chunks = known }
        if let chunks {
            return draft.record(.chunks(chunks), under: name, by: engine.keyring).map {
                Text(record: $0, chunks: chunks)
            }
        }
        guard let body = response.copyBody(0..<Int(response.bodyCount)),
            let record = body.withUnsafeBytes({
                draft.record(body: $0, under: name, by: engine.keyring)
            })
        else { return nil }
        return Text(record: record, body: body)
    }

    /// Up to which purge a response is known not to be purged: also what this gateway has purged
    /// before it was stored, unless another one has purged something in between, or may have: what
    /// is before an own purge has been read when that has.
    private func born(of store: SharedStore) -> PurgePosition {
        guard let own = fleet.announced, store.announcement == fleet.read,
            store.born.isBefore(own) ?? false
        else { return store.born }
        let foreign = fleet.lastForeign
        return foreign.map { store.born.isBefore($0) ?? true } ?? false ? store.born : own
    }

    /// For how long it is kept, in milliseconds.
    private func lifetime(of response: CachedResponse) -> Int64 {
        let metadata = response.metadata
        let longest = Engine.longestSeconds
        let fresh = metadata.timeToLive(at: Clock.wallSeconds())
        let grace = max(
            options.graceSeconds, metadata.staleIfErrorSeconds,
            metadata.staleWhileRevalidateSeconds)
        let seconds = min(max(0, fresh), longest) + min(max(0, grace), longest)
        return 1000 * min(max(1, seconds), longest)
    }

    /// The chunks, before the entry that names them.
    private func sendChunks(
        _ pending: PendingStore, _ milliseconds: Int64, to link: ServerLink
    ) {
        let lives = milliseconds + Engine.readingMilliseconds
        if case .chunks(let body, let chunks) = pending.store.body {
            for number in 0..<chunks.chunkCount {
                let name = engine.names.chunk(body.digest, body: body.token, number)
                sendExpiry(name, lives, .chunk(pending), to: link)
            }
            return
        }
        guard let chunks = pending.ownChunks else { return }
        for number in 0..<chunks.chunkCount {
            let name = engine.names.chunk(pending.digest, body: chunks.body, number)
            let start = Int(number) * SharedStream.chunkBytes
            let range = start..<start + chunks.count(of: number)
            guard let bytes = pending.store.response.copyBody(range),
                let record = bytes.withUnsafeBytes({
                    SharedChunks.record(
                        of: $0, number, of: chunks.body, under: name, by: engine.keyring)
                })
            else {
                pending.failure = .incomplete
                return
            }
            bytes.withUnsafeBytes {
                sendChunk(name, record, $0, lives, .chunk(pending), to: link)
            }
        }
    }

    private func sendChunk(
        _ name: [UInt8], _ record: [UInt8], _ bytes: UnsafeRawBufferPointer,
        _ milliseconds: Int64, _ expected: Expected, to link: ServerLink
    ) {
        send(expected, to: link) {
            $0.begin(5)
            $0.add("SET")
            $0.add(name)
            $0.add(record, bytes)
            $0.add("PX")
            $0.add(milliseconds)
        }
    }

    func sendExpiry(
        _ name: [UInt8], _ milliseconds: Int64, _ expected: Expected, to link: ServerLink
    ) {
        send(expected, to: link) {
            $0.begin(3)
            $0.add("PEXPIRE")
            $0.add(name)
            $0.add(milliseconds)
        }
    }

    /// Which chunks the response has that is about to be replaced.
    func askForPredecessor(
        _ digest: [UInt8], _ field: [UInt8], _ successor: SharedToken?, on link: ServerLink
    ) {
        send(.predecessor(digest: digest, successor: successor), to: link) {
            $0.begin(3)
            $0.add("HGET")
            $0.add(engine.hash(digest))
            $0.add(Engine.chunksField(of: field))
        }
    }

    /// The entry, at once or not at all.
    private func sendTransaction(
        _ pending: PendingStore, _ text: Text, _ milliseconds: Int64, to link: ServerLink
    ) {
        let hash = engine.hash(pending.digest)
        let field = pending.fields[0]
        let other = Engine.chunksField(of: field)
        send(.queued(pending), to: link) {
            $0.begin(1)
            $0.add("MULTI")
        }
        if let number = engine.number(of: pending.store.response.keyHash),
            let record = engine.record(number, under: engine.names.index(pending.digest))
        {
            send(.queued(pending), to: link) {
                $0.begin(4)
                $0.add("HSETNX")
                $0.add(hash)
                $0.add(Engine.numberField)
                $0.add(record)
            }
        }
        send(.queued(pending), to: link) {
            $0.begin(text.chunks == nil ? 4 : 6)
            $0.add("HSET")
            $0.add(hash)
            $0.add(field)
            $0.add(text.record, text.body)
            guard let chunks = text.chunks else { return }
            $0.add(other)
            $0.add(Engine.chunksText(chunks))
        }
        let gone =
            (text.chunks == nil ? [other] : [])
            + pending.fields.dropFirst().flatMap { [$0, Engine.chunksField(of: $0)] }
        if !gone.isEmpty { sendFields(gone, of: hash, .queued(pending), to: link) }
        for condition in ["NX", "GT"] {
            send(.queued(pending), to: link) {
                $0.begin(4)
                $0.add("PEXPIRE")
                $0.add(hash)
                $0.add(milliseconds)
                $0.add(Array(condition.utf8))
            }
        }
        send(.queued(pending), to: link) {
            $0.begin(2)
            $0.add("HLEN")
            $0.add(hash)
        }
        send(.stored(pending), to: link) {
            $0.begin(1)
            $0.add("EXEC")
        }
    }

    func sendFields(
        _ fields: [[UInt8]], of hash: [UInt8], _ expected: Expected, to link: ServerLink
    ) {
        send(expected, to: link) {
            $0.begin(2 + fields.count)
            $0.add("HDEL")
            $0.add(hash)
            for field in fields { $0.add(field) }
        }
    }

    /// It is not stored, as its node cannot be asked at present. What it would have replaced may be
    /// found there later, as long as that is fresh.
    private func skip(_ store: SharedStore) {
        level.shared.withLock { state in
            state.statistics.skipped += 1
            state.loads.void(store.response.keyHash)
            for command in state.bodies.void(store.response.keyHash, [store.variant]) {
                state.add(command)
            }
        }
    }

    /// It cannot be stored: what it would have replaced goes nevertheless.
    private func refuse(_ store: SharedStore) {
        skip(store)
        sendForgetting(store.key, [store.variant] + (store.replaced.map { [$0] } ?? []))
    }

    // MARK: The fleet's records

    /// Sees to it that there are a generation and the streams.
    /// - Parameter useless: the record of a generation in whose place they begin anew; `nil` if
    ///   they begin only if they are not there.
    func begin(insteadOf useless: [UInt8]? = nil) {
        let name = engine.generationName
        guard let record = engine.generationRecord(.drawn()) else { return }
        send(.begun) {
            $0.begin(10)
            $0.add("EVAL")
            $0.add(FleetStreams.beginning)
            $0.add(3)
            $0.add(name)
            $0.add(engine.names.stream)
            $0.add(engine.names.removed)
            $0.add(record)
            $0.add(Engine.generationSeconds)
            $0.add(useless == nil ? 0 : 1)
            $0.add(useless ?? [])
        }
    }

    /// Says of which history a generation is that an earlier version has begun.
    func complete(_ record: [UInt8], of number: SharedToken) {
        let name = engine.generationName
        guard !engine.history.isEmpty, let complete = engine.generationRecord(number) else {
            return
        }
        send(.nothing) {
            $0.begin(6)
            $0.add("EVAL")
            $0.add(FleetStreams.completing)
            $0.add(1)
            $0.add(name)
            $0.add(record)
            $0.add(complete)
        }
    }

    /// Asks what the streams are like, and under which number everything is.
    func askForStreams() {
        sendGet(engine.generationName, .generation, to: home)
        for name in [engine.names.stream, engine.names.removed] {
            send(.streamState(name)) {
                $0.begin(3)
                $0.add("XINFO")
                $0.add("STREAM")
                $0.add(name)
            }
        }
    }

    func sendExpirySeconds(_ name: [UInt8]) {
        send(.nothing) {
            $0.begin(3)
            $0.add("EXPIRE")
            $0.add(name)
            $0.add(Engine.generationSeconds)
        }
    }

    func askForTime() {
        send(.time(asked: Clock.wallMilliseconds())) {
            $0.begin(1)
            $0.add("TIME")
        }
    }
}
