import CachePolicy
import CacheStore
import HTTPCore
import Locking

/// One export under way: an archive of what is stored, produced piece by piece, each when it is
/// asked for. Used by one caller at a time.
final class CacheExport: @unchecked Sendable {
    /// A piece has about as many bytes; a record is not divided.
    static let pieceBytes = 256 << 10

    private let cache: CacheAdministration
    private var piece: [UInt8] = CacheArchive.magic
    private var keys: [CacheKey] = []
    private var cursor: EntryCursor?
    private var hasEnded = false
    private var isFirst = true
    /// Keys with several variants, which are listed once for each.
    private var known: Set<UInt64> = []
    private var waiting: [Waiting] = []
    private var body: Body?
    private var hash = ArchiveHash()
    private var count: UInt64 = 0

    /// An entry that is to be copied.
    private struct Waiting {
        var entry: FoundEntry
        /// Of a slice, the fingerprint of its head; `nil` for a response.
        var policyOfHead: UInt64?
    }

    /// The content that is being copied.
    private struct Body {
        var response: CachedResponse
        var position = 0
        var chunk = 0
    }

    init(_ cache: CacheAdministration) { self.cache = cache }

    typealias Completion = @Sendable (Result<[UInt8], CacheListingError>) -> Void

    /// Produces the next piece; an empty one is behind the end. After `busy` it can be asked for
    /// again; any other error ends the export, which would lack something.
    func next(_ completion: @escaping Completion) {
        while piece.count < Self.pieceBytes {
            if body != nil {
                if copy(completion) { continue }
                return
            }
            if let entry = waiting.popLast() {
                begin(entry)
            } else if let key = keys.popLast() {
                return look(at: key, completion)
            } else if !isFirst, cursor == nil {
                guard !hasEnded else { break }
                hasEnded = true
                var record: [UInt8] = []
                CacheArchive.append(count, to: &record)
                CacheArchive.append(.archiveEnd, record, to: &piece)
            } else {
                return list(completion)
            }
        }
        deliver(completion)
    }

    /// What has been produced so far is a piece.
    private func deliver(_ completion: Completion) {
        let made = piece
        piece = []
        completion(.success(made))
    }

    /// It cannot go on now, or not at all.
    private func stop(_ error: CacheListingError, _ completion: Completion) {
        error == .busy && !piece.isEmpty ? deliver(completion) : completion(.failure(error))
    }

    private func look(at key: CacheKey, _ completion: @escaping Completion) {
        guard let slice = SliceKey(key.bytes) else {
            return take(key, policyOfHead: nil, completion)
        }
        // A slice says nothing of what it was obtained under, and is of no use without its head.
        find(CacheKey(bytes: slice.response), for: key, completion) { [self] found in
            let head = found.first { $0.response.set == slice.set }
            guard let head else { return next(completion) }
            take(key, policyOfHead: head.response.policy, completion)
        }
    }

    private func take(
        _ key: CacheKey, policyOfHead: UInt64?, _ completion: @escaping Completion
    ) {
        find(key, for: key, completion) { [self] found in
            waiting = found.filter { !$0.response.isArriving }
                .map { Waiting(entry: $0, policyOfHead: policyOfHead) }
            next(completion)
        }
    }

    /// Looks for what is stored under a key, because another one is to be copied, or the same.
    private func find(
        _ key: CacheKey, for copied: CacheKey, _ completion: @escaping Completion,
        _ body: @escaping @Sendable ([FoundEntry]) -> Void
    ) {
        cache.look(at: [key]) { [self] result in
            switch result {
            case .success(let found): body(found)
            case .failure(let error):
                keys.append(copied)
                stop(error, completion)
            }
        }
    }

    private func list(_ completion: @escaping Completion) {
        cache.store.entries(after: cursor, limit: 256) { [self] result in
            switch result {
            case .success(let page):
                isFirst = false
                for info in page.entries {
                    let key = CacheKey(bytes: info.key)
                    if info.varyNames.isEmpty || known.insert(key.hash).inserted {
                        keys.append(key)
                    }
                }
                cursor = page.next
                next(completion)
            case .failure(let error): stop(error, completion)
            }
        }
    }

    private func begin(_ waiting: Waiting) {
        let response = waiting.entry.response
        let times = response.metadata.times
        let record = ArchivedEntry(
            policy: waiting.policyOfHead ?? response.policy, requestTime: times.requestTime,
            responseTime: times.responseTime, initialAge: times.initialAge,
            staleSince: response.staleSince, bytes: response.bodyCount, key: waiting.entry.key,
            vary: response.varyKey.bytes, head: [UInt8](response.head)
        ).record
        guard record.count <= CacheArchive.maximumRecord else { return }
        hash = ArchiveHash()
        hash.add(record)
        CacheArchive.append(waiting.policyOfHead == nil ? .entry : .slice, record, to: &piece)
        body = Body(response: response)
    }

    /// Copies some content. Returns `false` if it comes later, and calls for the next piece then.
    private func copy(_ completion: @escaping Completion) -> Bool {
        guard let body else { return true }
        switch body.response.body {
        case .contiguous(let view): add(view.bytes)
        case .heap(let heap): add(heap.bytes)
        case .file(let file):
            let count = min(file.count - body.position, 64 << 10)
            guard count > 0 else {
                end(true)
                return true
            }
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { memory, filled in
                let target = UnsafeMutableRawBufferPointer(memory)
                filled =
                    file.read(
                        into: UnsafeMutableRawBufferPointer(rebasing: target[..<count]),
                        at: body.position) ? count : 0
            }
            guard bytes.count == count else {
                end(false)
                return true
            }
            append(bytes)
        case .disk(let level):
            guard body.chunk < level.chunkCount else {
                end(true)
                return true
            }
            let isAccepted = cache.store.readChunk(level, body.chunk) { [self] result in
                do throws(CacheListingError) {
                    try add(result)
                } catch {
                    return stop(error, completion)
                }
                next(completion)
            }
            if !isAccepted { stop(.busy, completion) }
            return false
        case .parts(let parts):
            guard body.position == 0 else {
                end(true)
                return true
            }
            append(parts.bytes)
        case .arriving: end(false)
        }
        return true
    }

    private func add(_ chunk: ChunkResult) throws(CacheListingError) {
        switch chunk {
        case .chunk(let bytes):
            body?.chunk += 1
            append(bytes.bytes)
        case .damaged: end(false)
        case .gone:
            // If nothing else is wrong, only this body is damaged.
            try cache.store.checkReadable()
            end(false)
        case .failed(let error): throw error
        }
    }

    private func add(_ bytes: UnsafeRawBufferPointer) {
        guard let position = body?.position, position < bytes.count else { return end(true) }
        append(bytes[position..<min(bytes.count, position + 64 << 10)])
    }

    private func append(_ bytes: some Collection<UInt8>) {
        body?.position += bytes.count
        hash.add(bytes)
        CacheArchive.append(.content, bytes, to: &piece)
    }

    /// The entry is complete, or damaged before its end: its checksum is then wrong.
    private func end(_ isComplete: Bool) {
        var record: [UInt8] = []
        CacheArchive.append(isComplete ? hash.value : ~hash.value, to: &record)
        CacheArchive.append(.entryEnd, record, to: &piece)
        body = nil
        if isComplete { count += 1 }
    }
}

extension CachedResponse {
    /// Whether its content is not complete yet: then it is in no level either.
    fileprivate var isArriving: Bool { if case .arriving = body { true } else { false } }

    /// The number of the set of its slices; `nil` if it has none.
    fileprivate var set: UInt64? { if case .parts(let parts) = body { parts.set } else { nil } }
}
