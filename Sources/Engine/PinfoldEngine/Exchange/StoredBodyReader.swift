import CacheStore
import EventLoop
import PinfoldMetrics

/// Reads a stored body part by part: from the disk tier, from its memory file, or while it arrives.
/// For the client, the next part is read once the last has been written; it is also used to read a
/// body for translation.
final class StoredBodyReader {
    /// Where the body is.
    enum Source {
        case disk(LevelBody)
        case file(MemoryFile)
        /// In one piece, which the object keeps.
        case memory(UnsafeRawBufferPointer, owner: AnyObject)
        case arriving(BodyUnderWay)
        /// Slices, and what arrives of others.
        case parts(StoredParts)
    }

    /// Unowned because the exchange owns it; unsafe because nobody else does.
    unowned(unsafe) let exchange: Exchange
    private(set) var source: Source
    /// The response that the body is of; `nil` if nothing could be fetched of it.
    private var response: CachedResponse?
    /// Where it is counted, if the body is still arriving.
    private var metrics: WorkerMetrics?
    private var content: Range<UInt64>
    /// Where it began.
    private let start: UInt64
    /// Bytes that are still to be read; very many of a body whose length is unknown.
    private var left: UInt64 { content.upperBound - content.lowerBound }
    /// The position of the next byte in the content.
    var position: UInt64 { content.lowerBound }
    /// The position after the last byte.
    var limit: UInt64 { content.upperBound }
    private var isWaiting = false
    /// The body whose chunk it waits for, and the position in it.
    private var chunked: (body: LevelBody, offset: UInt64)?
    private var attempts = 0
    /// After how long it tries again, if it has to; `nil` if it does not.
    private(set) var retryMilliseconds: Int64?
    private static let attemptLimit = 500
    /// Bytes that are read from a file in one step.
    private static let partBytes = 64 << 10

    init(
        exchange: Exchange, source: Source, of response: CachedResponse?, content: Range<UInt64>
    ) {
        self.exchange = exchange
        self.source = source
        self.response = response
        start = content.lowerBound
        self.content = content
        guard case .arriving(let body) = source else { return }
        body.join()
        exchange.metrics.adjust(.cacheBodyReaders, by: 1)
        metrics = exchange.metrics
    }

    deinit { leave() }

    private func leave() {
        guard case .arriving(let body) = source else { return }
        body.leave()
        metrics?.adjust(.cacheBodyReaders, by: -1)
    }

    /// Requests the next part, or reports the end.
    func proceed() {
        guard !isWaiting, exchange.client != nil else { return }
        retryMilliseconds = nil
        guard !content.isEmpty else { return exchange.storedBodyEnded() }
        switch source {
        case .disk(let body): askForChunk(of: body, at: position)
        case .file(let file): takePart(of: file, at: Int(position), atMost: .max)
        case .memory(let bytes, let owner):
            pass(UnsafeRawBufferPointer(rebasing: bytes[Int(position)..<Int(limit)]), owner: owner)
        case .arriving(let body): takePart(of: body)
        case .parts(let parts): takePart(of: parts)
        }
    }

    /// More of the body has arrived, or it has ended.
    func progressed() {
        guard isWaiting, chunked == nil else { return }
        goOn()
    }

    /// What it waited for is there.
    func goOn() {
        isWaiting = false
        proceed()
    }

    /// Somebody will call it when there is more.
    func waitForMore() { isWaiting = true }

    /// What a body that is being received has at an offset.
    func part(of body: BodyUnderWay, at offset: UInt64) -> BodyUnderWay.Part {
        let (token, mailbox) = (exchange.token, exchange.environment.mailbox)
        return body.part(at: offset, else: { mailbox.post(.progressed(token)) })
    }

    /// Passes the next bytes on. The next ones are taken in another turn, so that others get their
    /// share.
    func pass(_ bytes: UnsafeRawBufferPointer, owner: AnyObject) {
        content = (content.lowerBound + UInt64(bytes.count))..<content.upperBound
        let loop = exchange.environment.loop
        if exchange.takeStored(bytes, owner: owner) { loop.requeue(exchange) }
    }

    func pass(_ piece: ChunkBytes, _ range: Range<Int>) {
        let end = range.lowerBound + Int(min(UInt64(range.count), left))
        pass(UnsafeRawBufferPointer(rebasing: piece.bytes[range.lowerBound..<end]), owner: piece)
    }

    private func takePart(of body: BodyUnderWay) {
        switch part(of: body, at: position) {
        case .bytes(let piece, let range): pass(piece, range)
        case .file(let file, let count): takePart(of: file, at: Int(position), atMost: count)
        case .level(let body): askForChunk(of: body, at: position)
        case .nothingYet: waitForMore()
        case .end:
            // Of a body whose length was not announced.
            guard content.upperBound == .max else { return unreadable() }
            exchange.storedBodyEnded()
        case .gone: unreadable()
        }
    }

    /// What comes next cannot be had: the disk has failed, or has no room for what is being
    /// received. The rest is fetched, if its server can be asked for it. As long as nothing of the
    /// response has been written, the request is sent to the server instead.
    func unreadable() {
        guard let response, let rest = restInParts(of: response) else {
            return exchange.fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
        }
        leave()
        source = .parts(rest)
        content = position..<min(limit, response.contentCount)
        attempts = 0
        // The rest does without what could not be read.
        self.response = nil
        if !exchange.leavesServer() { proceed() }
    }

    /// Whether what it reads is fetched in parts.
    var readsParts: Bool { if case .parts = source { true } else { false } }

    /// The rest of a body that cannot be read any further, to be fetched in parts; `nil` if that is
    /// not possible.
    private func restInParts(of response: CachedResponse) -> StoredParts? {
        guard position > start || exchange.client?.isFlushed ?? false, exchange.mayFetchRest,
            response.metadata.hasStrongEntityTag, response.metadata.status == 200,
            position < response.contentCount
        else { return nil }
        let sliceBytes = exchange.origin?.caching.sliceBytes ?? Exchange.defaultSliceBytes
        let parts: PartsBody
        switch source {
        case .arriving(let body) where !body.isBroken:
            parts = body.partsOfRest(sliceBytes: sliceBytes)
        case .disk: parts = PartsBody(sliceBytes: sliceBytes)
        case .arriving, .file, .memory, .parts: return nil
        }
        return response.inParts(parts).map { StoredParts($0, parts) }
    }

    func askForChunk(of body: LevelBody, at offset: UInt64) {
        isWaiting = true
        chunked = (body, offset)
        let index = Int(offset / UInt64(body.chunkBytes))
        let (token, mailbox) = (exchange.token, exchange.environment.mailbox)
        let accepted =
            exchange.environment.shared.store?.readChunk(body, index) {
                mailbox.post(.chunk(token, $0))
            } ?? false
        guard !accepted else { return }
        // Many reads are waiting: tries again in a moment.
        isWaiting = false
        chunked = nil
        attempts += 1
        guard attempts < Self.attemptLimit else { return unreadable() }
        retryMilliseconds = 20
        exchange.environment.loop.setDeadline(exchange, after: retryMilliseconds)
    }

    /// Passes on what was read.
    func arrived(_ result: ChunkResult) {
        guard isWaiting, let (body, offset) = chunked.take(), exchange.client != nil else {
            return
        }
        isWaiting = false
        attempts = 0
        guard case .chunk(let chunk) = result else { return unreadable() }
        let start = offset % UInt64(body.chunkBytes)
        let end = start + min(UInt64(chunk.bytes.count) &- start, left)
        guard start < UInt64(chunk.bytes.count), start < end else { return unreadable() }
        content = (content.lowerBound + (end - start))..<content.upperBound
        let bytes = UnsafeRawBufferPointer(rebasing: chunk.bytes[Int(start)..<Int(end)])
        if exchange.takeStored(bytes, owner: chunk) { proceed() }
    }

    /// Reads a part immediately. The next one is read in another turn, so that others get their
    /// share.
    func takePart(of file: MemoryFile, at offset: Int, atMost limit: Int) {
        let loop = exchange.environment.loop
        let part = loop.buffers.takeLarge()
        let count = min(Int(min(left, UInt64(Self.partBytes))), limit)
        guard
            file.read(
                into: UnsafeMutableRawBufferPointer(rebasing: part.writable[..<count]),
                at: offset)
        else { return unreadable() }
        part.end = count
        content = (content.lowerBound + UInt64(count))..<content.upperBound
        if exchange.takeStored(part.readable, owner: part) { loop.requeue(exchange) }
    }
}
