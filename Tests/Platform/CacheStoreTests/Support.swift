import CLinux
import CSQLite
import CachePolicy
import Clocks
import Dispatch
import Foundation
import HTTPCore
import Locking
import TestSupport
import Testing

@testable import CacheStore

extension TemporaryFolder {
    var database: String { file("cache.sqlite") }
}

/// Collects a store's events for the operator.
final class EventLog: Sendable {
    private let events = Locked<[StoreEvent]>([])
    var all: [StoreEvent] { events.withLock { $0 } }
    var record: @Sendable (StoreEvent) -> Void {
        { [self] event in events.withLock { $0.append(event) } }
    }
    func contains(_ test: (StoreEvent) -> Bool) -> Bool { all.contains(where: test) }
}

/// Waits for a condition that another thread brings about; `false` after ten seconds.
func eventually(_ condition: () -> Bool) -> Bool {
    let deadline = Clock.monotonicNanoseconds() + 10_000_000_000
    while !condition() {
        if Clock.monotonicNanoseconds() > deadline { return false }
        usleep(500)
    }
    return true
}

/// A value that another thread hands over.
final class Handover<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    private let semaphore = DispatchSemaphore(value: 0)
    func give(_ value: Value) {
        self.value.withLock { $0 = value }
        semaphore.signal()
    }
    func take() -> Value? {
        guard semaphore.wait(timeout: .now() + 20) == .success else { return nil }
        return value.withLock { $0 }
    }
}

extension CacheStoreOptions {
    /// Small and quick, for tests.
    static func small(_ folder: TemporaryFolder? = nil) -> CacheStoreOptions {
        var options = CacheStoreOptions()
        options.memoryBytes = 4 << 20
        options.memoryShards = 1
        options.diskBytes = folder == nil ? 0 : 64 << 20
        options.folder = folder?.path ?? ""
        options.batchMilliseconds = 1
        return options
    }
}

/// Bytes that depend on their position: a moved or exchanged piece is noticed.
func body(_ count: Int, seed: Int = 0) -> [UInt8] {
    var generator = SeededRandom(seed: UInt64(truncatingIfNeeded: seed &* 7919 &+ count))
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { raw in
        var offset = 0
        while offset < count {
            let word = generator.next()
            let part = min(8, count - offset)
            withUnsafeBytes(of: word) { source in
                UnsafeMutableRawBufferPointer(rebasing: raw[offset..<offset + part])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<part]))
            }
            offset += part
        }
    }
    return bytes
}

func head(_ tag: String = "1", extra: String = "") -> [UInt8] {
    Array(
        ("HTTP/1.1 200 OK\r\nDate: Fri, 21 Nov 2025 10:00:00 GMT\r\nETag: \"\(tag)\"\r\n"
            + "Cache-Control: max-age=3600\r\n\(extra)").utf8)
}

let testTimes = StoredTimes(requestTime: 1_763_719_200, responseTime: 1_763_719_201, initialAge: 3)

func metadata(_ head: [UInt8]) -> StoredMetadata {
    guard
        let metadata = StoredMetadata(
            storedHead: head.span, times: testTimes, hasQuery: false, options: PolicyOptions())
    else { fatalError("not a stored head") }
    return metadata
}

/// A Vary key that nominates `accept-language` with this value.
func vary(_ value: String?) -> VaryKey {
    guard let value else { return .none }
    let name = "accept-language"
    let bytes =
        [1, UInt8(name.utf8.count)] + Array(name.utf8) + [1, 0, UInt8(value.utf8.count)]
        + Array(value.utf8)
    guard let key = VaryKey(bytes: bytes) else { fatalError("not a Vary key") }
    return key
}

extension CacheStore {
    func ready() -> CacheStore {
        _ = waitUntilDiskSettled(milliseconds: 20_000)
        return self
    }

    func key<Result>(_ text: String, _ use: (CacheKeyView) throws -> Result) rethrows -> Result {
        let key = CacheKey(bytes: Array(text.utf8))
        return try key.bytes.withUnsafeBytes {
            try use(CacheKeyView(bytes: $0, hash: key.hash))
        }
    }

    /// Stores at once, or in pieces of `piece` bytes.
    @discardableResult
    func put(
        _ text: String, _ body: [UInt8], vary: VaryKey = .none, tag: String = "1",
        announced: Bool = true, piece: Int = .max, policy: UInt64 = 0
    ) -> StoreOutcome {
        do {
            let ticket = try begin(
                text, vary: vary, tag: tag, length: announced ? UInt64(body.count) : nil,
                policy: policy)
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

    func begin(
        _ text: String, vary: VaryKey = .none, tag: String = "1", length: UInt64?,
        policy: UInt64 = 0, flight: StoreFlight? = nil
    ) throws(StoreRefusalReason) -> StoreTicket {
        let head = head(tag)
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
    func flight(_ text: String) -> StoreFlight { key(text) { beginFlight(of: $0) } }

    func inMemory(_ text: String) -> [CachedResponse] {
        switch key(text, { lookup($0) }) {
        case .none: []
        case .one(let response): [response]
        case .several(let responses): responses
        }
    }

    func loaded(_ text: String) -> [CachedResponse] {
        let handover = Handover<LoadResult>()
        guard key(text, { load($0, policy: PolicyOptions()) { handover.give($0) } }) else {
            return []
        }
        guard case .found(let responses)? = handover.take() else { return [] }
        return responses
    }

    func flushNow() {
        let handover = Handover<Bool>()
        flush { handover.give(true) }
        _ = handover.take()
    }

    func drop(_ text: String) { key(text) { invalidate($0) } }

    /// The whole body, from wherever it is; `nil` if a part is missing or damaged.
    func bytes(_ response: CachedResponse) -> [UInt8]? {
        switch response.body {
        case .contiguous(let body): return [UInt8](body.bytes)
        case .heap(let heap): return [UInt8](heap.bytes)
        case .file(let file):
            var bytes = [UInt8](repeating: 0, count: file.count)
            return bytes.withUnsafeMutableBytes({ file.read(into: $0, at: 0) }) ? bytes : nil
        case .disk(let disk):
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
}

extension StoreOutcome {
    var refusal: StoreRefusalReason? {
        if case .refused(let reason) = self { return reason }
        return nil
    }
    var response: CachedResponse? {
        if case .stored(let response) = self { return response }
        return nil
    }
}

/// Reads a database file independently of the store.
func query(_ path: String, _ sql: String) -> Int64? {
    guard let database = try? Database(path: path, create: false, busyMilliseconds: 5000) else {
        return nil
    }
    defer { database.close() }
    return (try? database.integer(sql)) ?? nil
}

func execute(_ path: String, _ sql: String) throws {
    let database = try Database(path: path, create: true, busyMilliseconds: 5000)
    defer { database.close() }
    try database.execute(sql)
}
