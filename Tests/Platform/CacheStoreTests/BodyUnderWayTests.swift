import CacheTestSupport
import Locking
import TestSupport
import Testing

@testable import CacheStore

/// Reads a body while it arrives, as far as it is there.
private struct Reader {
    let store: CacheStore
    let body: BodyUnderWay
    var bytes: [UInt8] = []

    enum End { case waits, end, gone }

    /// Reads until there is nothing more. `wakes` is increased when there is.
    mutating func read(_ wakes: Locked<Int>) -> End {
        while true {
            let part = body.part(at: UInt64(bytes.count)) { wakes.withLock { $0 += 1 } }
            switch part {
            case .bytes(let piece, let range): bytes += piece.bytes[range]
            case .file(let file, let count):
                var part = [UInt8](repeating: 0, count: count)
                let offset = bytes.count
                guard part.withUnsafeMutableBytes({ file.read(into: $0, at: offset) }) else {
                    return .gone
                }
                bytes += part
            case .level(let level):
                let size = level.chunkBytes
                guard let chunk = store.chunk(level, bytes.count / size) else { return .gone }
                bytes += chunk[(bytes.count % size)...]
            case .nothingYet: return .waits
            case .end: return .end
            case .gone: return .gone
            }
        }
    }
}

extension CacheStore {
    fileprivate func chunk(_ body: LevelBody, _ index: Int) -> [UInt8]? {
        let waiting = Waiting<[UInt8]?>()
        let isAccepted = readChunk(body, index) { result in
            guard case .chunk(let chunk) = result else { return waiting.set(nil) }
            waiting.set([UInt8](chunk.bytes))
        }
        return isAccepted ? waiting.value() : nil
    }
}

private final class Waiting<Value: Sendable>: Sendable {
    private let monitor = Monitor<Value?>(nil)

    func set(_ value: Value) {
        monitor.withLock { $0 = value }
        monitor.broadcast()
    }

    func value() -> Value { monitor.wait { value in value.map { .done($0) } ?? .signal } }
}

@Suite("A body while it arrives")
struct BodyUnderWayTests {
    private let folder = TemporaryFolder()

    private func append(_ bytes: ArraySlice<UInt8>, _ ticket: StoreTicket) -> Bool {
        let isStored = bytes.withUnsafeBytes { ticket.append($0) }
        bytes.withUnsafeBytes { ticket.shared?.append($0, from: isStored ? ticket : nil) }
        return isStored
    }

    private func arriving(_ ticket: StoreTicket) throws -> BodyUnderWay {
        let response = try #require(ticket.share())
        guard case .arriving(let body) = response.body else {
            throw StoreRefusalReason.memory
        }
        #expect(response.head.count > 0 && response.isReadInParts)
        return body
    }

    /// Sizes below and above the limits of each place in which a body is stored, and when the first
    /// reader comes.
    @Test(
        arguments: [100, 40_000, 200_000, 3_000_000, 12_000_000] as [Int],
        [0, 1, 60, 100] as [Int])
    func `is the same for all, whenever they come`(size: Int, percent: Int) throws {
        var options = CacheStoreOptions.small(folder)
        // Bodies of up to 4 MiB are gathered in memory.
        options.memoryBytes = 32 << 20
        let store = CacheStore(options: options).ready()
        defer { store.close() }
        for isAnnounced in [true, false] {
            let content = body(size, seed: percent)
            let ticket = try store.begin("http://a/", length: isAnnounced ? UInt64(size) : nil)
            let wakes = Locked(0)
            var readers: [Reader] = []
            for step in 0...100 {
                if step == percent {
                    readers.append(Reader(store: store, body: try arriving(ticket)))
                }
                if step == percent || step == 80 || step == 100 {
                    readers.append(Reader(store: store, body: try arriving(ticket)))
                }
                let part = content[size * step / 101..<size * (step + 1) / 101]
                #expect(append(part, ticket))
                // The first reader keeps up, the others read at the end.
                if !readers.isEmpty {
                    let end = readers[0].read(wakes)
                    #expect(end == .waits)
                    #expect(readers[0].bytes.count == size * (step + 1) / 101)
                }
            }
            let outcome = ticket.finish()
            #expect(outcome.refusal == nil)
            let before = wakes.withLock { $0 }
            readers[0].body.end(with: outcome)
            #expect(wakes.withLock { $0 } > before, "those that wait are woken at the end")
            for index in readers.indices {
                let end = readers[index].read(wakes)
                #expect(end == .end)
                #expect(readers[index].bytes == content)
            }
        }
        store.flushNow()
        #expect(store.statistics().sharingBytes == 0, "what was shared is given back")
    }

    @Test func `is not there for requests that come after an invalidation`() throws {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let ticket = try store.begin("http://a/", length: 100)
        #expect(ticket.share() != nil && ticket.isCurrent)
        store.key("http://a/") { store.invalidate($0) }
        #expect(ticket.share() == nil && !ticket.isCurrent)
        ticket.abandon()
    }

    @Test func `that breaks off is gone for all, at once or where it broke off`() throws {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let ticket = try store.begin("http://a/", length: 100)
        var reader = Reader(store: store, body: try arriving(ticket))
        #expect(append(body(50)[...], ticket))
        let wakes = Locked(0)
        #expect(reader.read(wakes) == .waits)
        reader.body.breakOff()
        #expect(wakes.withLock { $0 } == 1)
        #expect(reader.read(wakes) == .gone)
        #expect(reader.bytes == body(50))
    }

    @Test func `goes on for readers that keep up if it is no longer stored`() throws {
        let store = CacheStore(options: .small(folder)).ready()
        defer { store.close() }
        let content = body(40_000_000)
        let ticket = try store.begin("http://a/", length: nil)
        let shared = try arriving(ticket)
        var fast = Reader(store: store, body: shared)
        let slow = Reader(store: store, body: shared)
        let wakes = Locked(0)
        for start in stride(from: 0, to: content.count, by: 100_000) {
            if start == 2_000_000 { ticket.abandon() }
            content[start..<start + 100_000].withUnsafeBytes {
                shared.append($0, from: start < 2_000_000 ? ticket : nil)
            }
            #expect(fast.read(wakes) == .waits)
        }
        shared.end(with: nil)
        #expect(fast.read(wakes) == .end)
        #expect(fast.bytes == content)
        var late = slow
        #expect(late.read(wakes) == .gone)
        // At most 8 MiB of it are in memory.
        #expect(store.statistics().sharingBytes <= 9 << 20)
    }
}
