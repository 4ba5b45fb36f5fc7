import CLinux
import CachePolicy
import CacheStore
import Clocks
import Dispatch
import Locking

/// A value that another thread hands over.
package final class Handover<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)

    package init() {}

    package func give(_ value: Value) {
        self.value.withLock { $0 = value }
        semaphore.signal()
    }
    package func take() -> Value? {
        guard semaphore.wait(timeout: .now() + 20) == .success else { return nil }
        return value.withLock { $0 }
    }
}

/// Waits for a condition that another thread brings about; `false` after ten seconds.
package func eventually(_ condition: () -> Bool) -> Bool {
    let deadline = Clock.monotonicNanoseconds() + 10_000_000_000
    while !condition() {
        if Clock.monotonicNanoseconds() > deadline { return false }
        usleep(500)
    }
    return true
}

extension CacheStore {
    package func ready() -> CacheStore {
        _ = waitUntilDiskSettled(milliseconds: 20_000)
        return self
    }

    package func key<Result>(_ text: String, _ use: (CacheKeyView) throws -> Result) rethrows
        -> Result
    {
        let key = CacheKey(bytes: Array(text.utf8))
        return try key.bytes.withUnsafeBytes {
            try use(CacheKeyView(bytes: $0, hash: key.hash))
        }
    }

    /// Stores at once, or in pieces of `piece` bytes.
    @discardableResult
    package func put(
        _ text: String, _ body: [UInt8], vary: VaryKey = .none, tag: String = "1",
        announced: Bool = true, piece: Int = .max, policy: UInt64 = 0, lines: String = ""
    ) -> StoreOutcome {
        do {
            let ticket = try begin(
                text, vary: vary, tag: tag, length: announced ? UInt64(body.count) : nil,
                policy: policy, lines: lines)
            var offset = 0
            while offset < body.count {
                let count = min(piece, body.count - offset)
                let taken = body.withUnsafeBytes {
                    ticket.append(UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
                }
                guard taken else { return .refused(ticket.refusal ?? .memory) }
                offset += count
            }
            return ticket.finish()
        } catch {
            return .refused(error)
        }
    }

    package func begin(
        _ text: String, vary: VaryKey = .none, tag: String = "1", length: UInt64?,
        policy: UInt64 = 0, flight: StoreFlight? = nil, lines: String = ""
    ) throws(StoreRefusalReason) -> StoreTicket {
        let head = head(tag, extra: lines)
        var made: Result<StoreTicket, StoreRefusalReason> = .failure(.memory)
        key(text) { key in
            head.withUnsafeBytes { bytes in
                made = Result { () throws(StoreRefusalReason) in
                    try beginStore(
                        key: key, vary: vary, head: bytes, metadata: metadata(head),
                        policy: policy, expectedLength: length, flight: flight)
                }
            }
        }
        return try made.get()
    }

    /// The flight of a request for the key that is sent now.
    package func flight(_ text: String) -> StoreFlight { key(text) { beginFlight(of: $0) } }

    package func inMemory(_ text: String) -> [CachedResponse] {
        switch key(text, { lookup($0) }) {
        case .none: []
        case .one(let response): [response]
        case .several(let responses): responses
        }
    }

    package func loaded(_ text: String) -> [CachedResponse] {
        let handover = Handover<LoadResult>()
        guard key(text, { load($0, policy: PolicyOptions()) { handover.give($0) } }) else {
            return []
        }
        guard case .found(let responses, _)? = handover.take() else { return [] }
        return responses
    }

    /// What a look at a key finds; nothing if it cannot say.
    package func seen(_ text: String) -> [SeenResponse] {
        let handover = Handover<Result<[SeenResponse], CacheListingError>>()
        look(at: CacheKey(bytes: Array(text.utf8))) { handover.give($0) }
        return (try? handover.take()?.get()) ?? []
    }

    package func flushNow() {
        let handover = Handover<Bool>()
        flush { handover.give(true) }
        _ = handover.take()
    }

    package func drop(_ text: String) { key(text) { invalidate($0) } }

    /// The whole body, from wherever it is; `nil` if a part is missing or damaged.
    package func bytes(_ response: CachedResponse) -> [UInt8]? {
        if let bytes = response.bytesInMemory { return bytes }
        guard case .disk(let disk) = response.body else { return nil }
        var bytes: [UInt8] = []
        for index in 0..<disk.chunkCount {
            let handover = Handover<ChunkResult>()
            guard readChunk(disk, index, completion: { handover.give($0) }),
                case .chunk(let chunk)? = handover.take()
            else { return nil }
            bytes += chunk.bytes
        }
        return bytes
    }
}

extension CachedResponse {
    /// The body, if it is in memory.
    package var bytesInMemory: [UInt8]? {
        switch body {
        case .contiguous(let body): return [UInt8](body.bytes)
        case .heap(let heap): return [UInt8](heap.bytes)
        case .file(let file):
            var bytes = [UInt8](repeating: 0, count: file.count)
            return bytes.withUnsafeMutableBytes({ file.read(into: $0, at: 0) }) ? bytes : nil
        case .disk, .arriving, .parts: return nil
        }
    }
}

extension StoreOutcome {
    package var refusal: StoreRefusalReason? {
        if case .refused(let reason) = self { return reason }
        return nil
    }
    package var response: CachedResponse? {
        if case .stored(let response) = self { return response }
        return nil
    }
}
