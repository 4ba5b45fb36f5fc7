import CachePolicy
import CacheStore

/// What a reader of a representation of which parts are stored holds at a time: a slice, or a run
/// that is being received.
final class StoredParts {
    let response: CachedResponse
    let parts: PartsBody
    let key: CacheKey
    /// The slice that is being read.
    var slice: StoredSlice?
    /// The run that is being read or waited for.
    private(set) var run: PartsUnderWay?
    /// Whether a slice is being read from a level.
    var isLoading = false
    /// How often something was fetched without much having been read since.
    private var attempts = 0
    /// The position at the last attempt.
    private var attemptedAt: UInt64 = 0

    init(_ response: CachedResponse, _ parts: PartsBody) {
        self.response = response
        self.parts = parts
        key = CacheKey(CacheKeyView(bytes: response.key, hash: response.keyHash))
    }

    deinit { leaveRun() }

    func join(_ run: PartsUnderWay) {
        leaveRun()
        run.body.join()
        self.run = run
    }

    func leaveRun() {
        run?.body.leave()
        run = nil
    }

    /// Whether something may be fetched once more. Servers that break off now and then are asked
    /// again; one that does so all the time is not.
    func mayFetch(at position: UInt64) -> Bool {
        if position >= attemptedAt + Self.progressBytes || attempts == 0 { attempts = 0 }
        attempts += 1
        attemptedAt = position
        return attempts <= Self.mostAttempts
    }

    /// What to fetch: the slice, if whole ones are asked for; otherwise what is missing up to the
    /// next slice that is stored.
    func missing(
        from offset: UInt64, before limit: UInt64, wholeSlices: Bool, in store: CacheStore
    ) -> Range<UInt64> {
        let slice = parts.slice(at: offset)
        if wholeSlices {
            return slice.lowerBound..<min(slice.upperBound, response.contentCount)
        }
        var end = slice.upperBound
        for _ in 0..<Self.mostSlicesAhead {
            guard end < limit else { break }
            guard case .nothing = store.slice(of: parts, key: key, at: end) else {
                return offset..<end
            }
            end = parts.slice(at: end).upperBound
        }
        return offset..<limit
    }

    private static let mostSlicesAhead = 256
    private static let progressBytes: UInt64 = 64 << 10
    private static let mostAttempts = 3
}

extension StoredBodyReader {
    /// Reads what comes next from its slice, from a run, or has it fetched.
    func takePart(of parts: StoredParts) {
        let offset = position
        if let slice = parts.slice, slice.range.contains(offset) { return read(slice, of: parts) }
        parts.slice = nil
        if let run = parts.run, take(from: run, at: offset, of: parts) { return }
        guard let store = exchange.store else { return unreadable() }
        switch store.slice(of: parts.parts, key: parts.key, at: offset) {
        case .inMemory(let slice) where slice.range.contains(offset):
            parts.slice = slice
            read(slice, of: parts)
        case .inLevel where !parts.isLoading: load(parts, at: offset, from: store)
        case .inMemory, .inLevel, .nothing: obtain(parts, at: offset, from: store)
        }
    }

    /// Returns `false` if the run has nothing for this position.
    private func take(
        from run: PartsUnderWay, at offset: UInt64, of parts: StoredParts
    ) -> Bool {
        // What is stored comes first.
        guard offset >= run.range.lowerBound else { return false }
        switch part(of: run.body, at: offset - run.range.lowerBound) {
        case .bytes(let piece, let range):
            pass(piece, range)
            return true
        case .nothingYet:
            waitForMore()
            return true
        case .file, .level, .end, .gone:
            parts.leaveRun()
            return false
        }
    }

    private func load(_ parts: StoredParts, at offset: UInt64, from store: CacheStore) {
        let (token, mailbox) = (exchange.token, exchange.environment.mailbox)
        let accepted = store.loadSlice(
            of: parts.parts, key: parts.key, at: offset, policy: exchange.cacheOptions
        ) { mailbox.post(.loaded(token, $0)) }
        guard accepted else { return obtain(parts, at: offset, from: store) }
        parts.isLoading = true
        waitForMore()
    }

    /// A slice was read from a level, or is not there.
    func loaded(_ result: LoadResult) {
        guard case .parts(let parts) = source, parts.isLoading else { return }
        if case .found(let responses, _) = result {
            parts.slice = responses.lazy.compactMap { StoredSlice($0) }.first
        }
        goOn()
        parts.isLoading = false
    }

    private func obtain(_ parts: StoredParts, at offset: UInt64, from store: CacheStore) {
        guard parts.mayFetch(at: offset) else { return unreadable() }
        let (run, isNew) = store.joinRun(of: parts.parts, at: offset) {
            parts.missing(
                from: offset, before: limit, wholeSlices: exchange.asksForSlices, in: store)
        }
        parts.join(run)
        if isNew {
            // It may have arrived since it was looked for.
            if case .inMemory(let slice) = store.slice(
                of: parts.parts, key: parts.key, at: offset), slice.range.contains(offset)
            {
                parts.leaveRun()
                store.abandonRun(run)
            } else {
                exchange.fetch(run, of: parts.response)
            }
        }
        takePart(of: parts)
    }

    private func read(_ slice: StoredSlice, of parts: StoredParts) {
        // Nothing can be added to a part without a strong entity tag (RFC 9111 §3.4): one that has
        // less than is wanted is not begun, because what has begun could not be completed.
        guard slice.range.upperBound >= limit || parts.response.metadata.hasStrongEntityTag else {
            return unreadable()
        }
        let start = Int(position - slice.range.lowerBound)
        let end = Int(min(slice.range.upperBound, limit) - slice.range.lowerBound)
        switch slice.response.body {
        case .contiguous(let body):
            pass(UnsafeRawBufferPointer(rebasing: body.bytes[start..<end]), owner: slice.response)
        case .heap(let heap):
            pass(UnsafeRawBufferPointer(rebasing: heap.bytes[start..<end]), owner: heap)
        case .file(let file): takePart(of: file, at: start, atMost: end - start)
        case .disk(let body): askForChunk(of: body, at: UInt64(start))
        case .arriving, .parts: unreadable()
        }
    }
}
