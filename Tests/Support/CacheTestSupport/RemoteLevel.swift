import CLinux
import CachePolicy
import CacheStore
import Dispatch
import Locking

/// A third level of the cache, as another process or a network might be one: it has no index, it
/// answers later, and it may be slow, full or away. It uses nothing of the module but what the
/// package declares for levels.
///
/// Its commands are carried out one after the other, on its own queue, in the order in which they
/// were added under the locks of the keys.
package final class RemoteLevel: CacheLevel {
    private struct State {
        var level = LevelState.ready
        var commands: [RemoteCommand] = []
        /// Bytes of bodies among them.
        var bytes = 0
        /// Loads under way; a change of their key voids them.
        var loads = StoreFlights()
        /// The bodies that this process knows of.
        var bodies: [Int64: Use] = [:]
        /// The thread that is carrying commands out.
        var runner: pthread_t?
        /// Changes could not be carried out: what the server has may be outdated.
        var hasLostChanges = false
        var statistics = LevelStatistics(name: "remote", state: .ready)
    }

    /// Who needs a body that is kept apart.
    private struct Use {
        var readers = 0
        /// The entry that has it; `nil` if that has been replaced or removed.
        var entry: Entry?
    }

    private struct Entry: Equatable {
        /// The hash of its key.
        let key: UInt64
        let vary: [UInt8]
        let head: [UInt8]

        init(_ response: CachedResponse) {
            key = response.keyHash
            vary = response.varyKey.bytes
            head = [UInt8](response.head)
        }
    }

    private let server: RemoteServer
    private let queueBytes: Int
    private let shared = Locked(State())
    private let line = DispatchQueue(label: "remote")
    static let chunkBytes = 64 << 10
    package let largestBody: UInt64 = 8 << 20
    package var isShared: Bool { true }

    package init(_ server: RemoteServer, queueBytes: Int = 64 << 20) {
        self.server = server
        self.queueBytes = queueBytes
    }

    // MARK: The connection

    /// Adds a command, in the order of the calls; `proceed` carries it out.
    private func add(_ command: RemoteCommand, _ state: inout State) {
        state.commands.append(command)
        state.bytes += command.bytes
    }

    /// Without any lock of a key: sees to it that what was added is carried out.
    private func proceed() {
        line.async { [self] in
            while true {
                let next = shared.withLock { state -> RemoteCommand? in
                    state.runner = state.commands.isEmpty ? nil : pthread_self()
                    guard !state.commands.isEmpty else { return nil }
                    let next = state.commands.removeFirst()
                    state.bytes -= next.bytes
                    return next
                }
                guard let next else { return }
                carryOut(next)
            }
        }
    }

    private func carryOut(_ command: RemoteCommand) {
        switch command {
        case .load(let load, let flight): answer(load, flight, server.get(load.key))
        case .set(let key, let value, let replaced):
            server.set(key, value, replacing: replaced)
            shared.withLock { $0.statistics.stores += 1 }
        case .remove(let key, let vary): server.remove(key, vary: vary)
        case .removeAll: server.removeAll()
        case .setBody(let id, let bytes): server.setBody(id, bytes)
        case .removeBody(let id): server.removeBody(id)
        case .part(let id, let start, let count, let completion):
            let part = server.part(of: id, from: start, count: count)
            guard let part, let chunk = ChunkBytes(capacity: count) else {
                return completion(.gone)
            }
            _ = part.withUnsafeBytes { chunk.append($0) }
            completion(.chunk(chunk))
        case .barrier(let completion): completion()
        }
    }

    /// The connection is lost, and with it all that was queued.
    package func fail() {
        let lost = shared.withLock { state in
            let lost = state.commands
            state.level = .off
            state.commands = []
            state.bytes = 0
            state.hasLostChanges = true
            return lost
        }
        for command in lost { giveUp(command) }
    }

    /// The connection is there again. What could not be removed meanwhile must not be found.
    package func recover() {
        shared.withLock { state in
            if state.hasLostChanges {
                state.commands.insert(.removeAll, at: 0)
                state.loads.voidAll()
                void(&state) { _ in true }
            }
            state.hasLostChanges = false
            state.level = .ready
        }
        proceed()
    }

    private func giveUp(_ command: RemoteCommand) {
        switch command {
        case .load(let load, let flight): answer(load, flight, [])
        case .part(_, _, _, let completion): completion(.gone)
        case .barrier(let completion): completion()
        case .set, .remove, .removeAll, .setBody, .removeBody: break
        }
    }

    // MARK: How it is doing

    package var state: LevelState { shared.withLock { $0.level } }

    package func statistics() -> LevelStatistics {
        shared.withLock { state in
            var statistics = state.statistics
            statistics.state = state.level
            return statistics
        }
    }

    // MARK: Looking

    package func varyNames(_ key: CacheKeyView) -> [[UInt8]?] { state == .ready ? [nil] : [] }

    package func mayHold(_ key: CacheKeyView, _ variants: [VaryKey]) -> Bool { state == .ready }

    package func load(_ load: LevelLoad, wakes: Bool) -> Bool {
        let isAccepted = shared.withLock { state in
            guard state.level == .ready else { return false }
            add(.load(load, state.loads.begin(load.hash)), &state)
            return true
        }
        if isAccepted { proceed() }
        return isAccepted
    }

    private func answer(_ load: LevelLoad, _ flight: StoreFlight, _ values: [RemoteServer.Value]) {
        var found: [CachedResponse] = []
        for value in values {
            guard let response = makeResponse(load, value) else { continue }
            let current = load.publish(response) { _ in
                shared.withLock { state in
                    guard state.loads.isValid(flight) else { return false }
                    if case .apart(let id, _) = value.body {
                        state.bodies[id]?.entry = Entry(response)
                    }
                    return true
                }
            }
            if let current { found.append(current) }
        }
        shared.withLock { state in
            state.loads.end(flight)
            guard load.look == nil else { return }
            if found.isEmpty {
                state.statistics.misses += 1
            } else {
                state.statistics.hits += 1
            }
        }
        load.completion(found.isEmpty ? .nothing : .found(found))
    }

    private func makeResponse(_ load: LevelLoad, _ value: RemoteServer.Value) -> CachedResponse? {
        guard let vary = VaryKey(bytes: value.vary),
            let metadata = StoredMetadata(
                storedHead: value.head.span, times: value.times,
                hasQuery: load.key.contains(UInt8(ascii: "?")), options: load.policy)
        else { return nil }
        return value.head.withUnsafeBytes { head in
            let loaded = LoadedHead(
                vary: vary, metadata: metadata, policy: value.policy, head: head)
            switch value.body {
            case .whole(let body):
                return body.withUnsafeBytes {
                    load.memory.makeResponse(loaded, for: load, body: $0)
                }
            case .apart(let id, let count):
                return load.memory.makeResponse(loaded, for: load, body: body(id, count: count))
            }
        }
    }

    /// A handle on a body that is kept apart.
    private func body(_ id: Int64, count: Int) -> LevelBody {
        shared.withLock { $0.bodies[id, default: Use()].readers += 1 }
        return LevelBody(
            id: id, count: UInt64(count), chunkBytes: Self.chunkBytes, source: self)
    }

    package func readChunk(
        _ body: LevelBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool {
        let isAccepted = shared.withLock { state in
            guard state.level == .ready else { return false }
            add(
                .part(
                    body.id, start: index * Self.chunkBytes, count: body.expectedCount(index),
                    completion), &state)
            return true
        }
        if isAccepted { proceed() }
        return isAccepted
    }

    package func release(body id: Int64) {
        shared.withLock { state in
            state.bodies[id]?.readers -= 1
            dropIfUnused(id, &state)
        }
        proceed()
    }

    private func dropIfUnused(_ id: Int64, _ state: inout State) {
        guard let use = state.bodies[id], use.readers == 0, use.entry == nil else { return }
        state.bodies[id] = nil
        if state.level == .ready { add(.removeBody(id), &state) }
    }

    /// The entries that `isGone` names have been replaced or removed.
    private func void(_ state: inout State, _ isGone: (Entry) -> Bool) {
        for (id, use) in state.bodies {
            guard let entry = use.entry, isGone(entry) else { continue }
            state.bodies[id]?.entry = nil
            dropIfUnused(id, &state)
        }
    }

    // MARK: Changes of a key

    /// Makes a change of a key: its loads under way are void, and so are entries of this variant
    /// (of all if `nil`). Returns `false` if the level is away, which it remembers.
    private func change(
        _ key: UInt64, vary: [UInt8]?, _ work: inout LevelWork, _ command: RemoteCommand
    ) -> Bool {
        let isReady = shared.withLock { state in
            state.loads.void(key)
            void(&state) { $0.key == key && (vary == nil || $0.vary == vary) }
            guard state.level == .ready else {
                state.hasLostChanges = true
                return false
            }
            add(command, &state)
            return true
        }
        if isReady { work.add { [self] in proceed() } }
        return isReady
    }

    /// Has the server keep a response, instead of its predecessor of the same variant and of the
    /// variant `replaced`.
    private func set(
        _ response: CachedResponse, _ body: RemoteServer.Body, replacing replaced: [UInt8]? = nil,
        _ work: inout LevelWork
    ) -> Bool {
        let vary = response.varyKey.bytes
        let value = RemoteServer.Value(
            vary: vary, head: [UInt8](response.head), times: response.metadata.times,
            policy: response.policy, body: body)
        let command = RemoteCommand.set([UInt8](response.key), value, replacing: replaced)
        guard change(response.keyHash, vary: vary, &work, command) else { return false }
        if case .apart(let id, _) = body {
            shared.withLock { state in
                state.bodies[id]?.entry = Entry(response)
            }
        }
        return true
    }

    package func store(
        _ response: CachedResponse, isInMemory: Bool, _ work: inout LevelWork
    ) -> StoreRefusalReason? {
        guard response.bodyCount <= largestBody else {
            forget(variantOf: response, &work)
            return .tooLarge
        }
        guard hasRoom(for: Int(response.bodyCount)), let body = response.bytesInMemory else {
            shared.withLock { $0.statistics.skipped += 1 }
            forget(variantOf: response, &work)
            return .queueFull
        }
        return set(response, .whole(body), &work) ? nil : .diskOff
    }

    package func hasRoom(for bytes: Int) -> Bool {
        shared.withLock { $0.bytes + bytes <= queueBytes }
    }

    package func forget(variantOf response: CachedResponse, _ work: inout LevelWork) {
        let vary = response.varyKey.bytes
        let command = RemoteCommand.remove([UInt8](response.key), vary: vary)
        _ = change(response.keyHash, vary: vary, &work, command)
    }

    /// Known only of bodies that are kept apart.
    package func holds(_ response: CachedResponse) -> Bool {
        guard case .disk(let body) = response.body, body.source === self else { return false }
        let entry = Entry(response)
        return shared.withLock { $0.bodies[body.id]?.entry == entry }
    }

    package func freshen(
        _ old: CachedResponse, with response: CachedResponse, isInMemory: Bool,
        _ work: inout LevelWork
    ) -> Bool {
        if case .disk(let body) = response.body {
            guard body.source === self else {
                forget(variantOf: old, &work)
                forget(variantOf: response, &work)
                return false
            }
            return set(
                response, .apart(body.id, count: Int(body.count)), replacing: old.varyKey.bytes,
                &work)
        }
        forget(variantOf: old, &work)
        return store(response, isInMemory: isInMemory, &work) == nil
    }

    /// It has been stored here when it was stored in memory, or was refused.
    package func leaveMemory(
        _ response: CachedResponse, wasUsed: Bool, _ work: inout LevelWork
    ) {}

    package func remove(_ key: CacheKeyView, _ work: inout LevelWork) {
        _ = change(key.hash, vary: nil, &work, .remove([UInt8](key.bytes), vary: nil))
    }

    package func remove(_ response: CachedResponse, _ work: inout LevelWork) {
        forget(variantOf: response, &work)
    }

    // MARK: Bodies that arrive in pieces

    package func beginStream(
        _ arriving: ArrivingResponse
    ) throws(StoreRefusalReason) -> any LevelStream {
        guard state == .ready else { throw .diskOff }
        return Stream(self)
    }

    /// Gathers the body, and sends it when it is complete.
    private final class Stream: LevelStream {
        private let level: RemoteLevel
        private var bytes: [UInt8] = []
        private var id: Int64?

        init(_ level: RemoteLevel) { self.level = level }

        func append(_ bytes: UnsafeRawBufferPointer) throws(StoreRefusalReason) {
            self.bytes += bytes
        }

        func finish() throws(StoreRefusalReason) -> LevelBody {
            guard level.hasRoom(for: bytes.count) else { throw .queueFull }
            let id = level.server.takeBodyNumber()
            self.id = id
            let body = level.body(id, count: bytes.count)
            level.shared.withLock { level.add(.setBody(id, bytes), &$0) }
            level.proceed()
            return body
        }

        func publish(
            _ response: CachedResponse, copy: CachedResponse?, _ work: inout LevelWork
        ) -> StoreRefusalReason? {
            guard let id else { return .closed }
            return level.set(response, .apart(id, count: bytes.count), &work) ? nil : .diskOff
        }

        /// What has been sent goes with the last handle on the body, unless an entry has it.
        func abandon() { bytes = [] }
    }

    // MARK: As a whole

    package func purge() {
        shared.withLock { state in
            state.loads.voidAll()
            void(&state) { _ in true }
            if state.level == .ready {
                add(.removeAll, &state)
            } else {
                state.hasLostChanges = true
            }
        }
        proceed()
    }

    package func flush(_ completion: @escaping @Sendable () -> Void) {
        let isAccepted = shared.withLock { state in
            guard state.level == .ready else { return false }
            add(.barrier(completion), &state)
            return true
        }
        isAccepted ? proceed() : completion()
    }

    package func close() {
        let runner = shared.withLock { state in
            state.level = .off
            return state.runner
        }
        // In a completion: it cannot wait for itself.
        guard runner != pthread_self() else { return }
        let done = DispatchSemaphore(value: 0)
        proceed()
        line.async { done.signal() }
        _ = done.wait(timeout: .now() + 5)
    }
}
