import CachePolicy
import CacheStore
import SharedCache

/// A body on its way to the engine: its chunks are sent as they are filled, and expire if nothing
/// names them.
final class SharedStream: LevelStream {
    /// Bytes of a chunk.
    static let chunkBytes = 64 << 10

    private let level: SharedLevel
    private let body: SharedBody
    private let id: Int64
    /// What is not sent yet.
    private var chunk: ChunkBytes?
    private var number: UInt32 = 0
    private var count: UInt64 = 0
    private var chunks: SharedChunks?
    private var hasEnded = false

    init(
        _ level: SharedLevel, _ arriving: ArrivingResponse
    ) throws(StoreRefusalReason) {
        guard !arriving.key.bytes.isOfPart else { throw .tooLarge }
        guard let digest = SharedName.digest(of: arriving.key.bytes) else { throw .memory }
        let body = SharedBody(digest: digest, token: .drawn())
        self.level = level
        self.body = body
        id = level.shared.withLock { $0.bodies.begin(body) }
    }

    deinit { abandon() }

    func append(_ bytes: UnsafeRawBufferPointer) throws(StoreRefusalReason) {
        guard !hasEnded else { throw .closed }
        do throws(StoreRefusalReason) {
            var rest = bytes
            while !rest.isEmpty {
                let chunk = try roomyChunk()
                let taken = chunk.append(rest)
                count += UInt64(taken)
                rest = UnsafeRawBufferPointer(rebasing: rest[taken...])
                if chunk.bytes.count == Self.chunkBytes { try send() }
            }
        } catch {
            abandon()
            throw error
        }
    }

    private func roomyChunk() throws(StoreRefusalReason) -> ChunkBytes {
        if let chunk { return chunk }
        guard let made = ChunkBytes(capacity: Self.chunkBytes) else { throw .memory }
        chunk = made
        return made
    }

    private func send() throws(StoreRefusalReason) {
        guard let chunk = chunk.take() else { return }
        let number = number
        let refusal = level.shared.withLock { state -> StoreRefusalReason? in
            guard state.level == .ready else { return .diskOff }
            guard state.bytes + chunk.bytes.count <= level.options.queueBytes,
                state.waiting < level.options.queueCommands
            else {
                state.statistics.skipped += 1
                return .queueFull
            }
            state.add(.addChunk(body, number: number, chunk))
            state.bodies.send(id)
            return nil
        }
        if let refusal { throw refusal }
        self.number += 1
        level.proceed()
    }

    func finish() throws(StoreRefusalReason) -> LevelBody {
        guard !hasEnded else { throw .closed }
        do throws(StoreRefusalReason) {
            try send()
            guard
                let chunks = SharedChunks(
                    body: body.token, chunkBytes: UInt32(Self.chunkBytes), count: count)
            else { throw .tooLarge }
            self.chunks = chunks
            level.shared.withLock { $0.bodies.finish(id, chunks) }
        } catch {
            abandon()
            throw error
        }
        hasEnded = true
        return LevelBody(id: id, count: count, chunkBytes: Self.chunkBytes, source: level)
    }

    func publish(
        _ response: CachedResponse, copy: CachedResponse?, _ work: inout LevelWork
    ) -> StoreRefusalReason? {
        guard let chunks else { return .closed }
        return level.publish(response, body, chunks, &work)
    }

    /// What has been completed goes with the last handle on the body, unless an entry has it.
    func abandon() {
        guard !hasEnded else { return }
        hasEnded = true
        chunk = nil
        level.shared.withLock { state in
            guard let dropped = state.bodies.abandon(id), state.level == .ready else { return }
            state.add(dropped)
        }
        level.proceed()
    }
}

extension SharedLevel {
    /// Stores a response whose body has been streamed.
    fileprivate func publish(
        _ response: CachedResponse, _ body: SharedBody, _ chunks: SharedChunks,
        _ work: inout LevelWork
    ) -> StoreRefusalReason? {
        guard response.staleSince == 0, systemTrust.covers(response) else {
            forget(variantOf: response, &work)
            return .tooLarge
        }
        return set(response, .chunks(body, chunks), &work) ? nil : .diskOff
    }
}

extension SharedToken {
    /// One that nobody can predict.
    static func drawn() -> SharedToken {
        var random = SystemRandomNumberGenerator()
        return SharedToken(random: (random.next(), random.next()))
    }
}
