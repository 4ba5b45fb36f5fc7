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
        case arriving(BodyUnderWay)
    }

    /// Unowned because the exchange owns it; unsafe because nobody else does.
    private unowned(unsafe) let exchange: Exchange
    private let source: Source
    /// Where it is counted, if the body is still arriving.
    private var metrics: WorkerMetrics?
    private var content: Range<UInt64>
    /// Bytes that are still to be read; very many of a body whose length is unknown.
    private var left: UInt64 { content.upperBound - content.lowerBound }
    private var isWaiting = false
    /// The body whose chunk it waits for.
    private var chunked: LevelBody?
    private var attempts = 0
    private static let retryMilliseconds: Int64 = 20
    private static let attemptLimit = 500
    /// Bytes that are read from a file in one step.
    private static let partBytes = 64 << 10

    init(exchange: Exchange, source: Source, content: Range<UInt64>) {
        self.exchange = exchange
        self.source = source
        self.content = content
        guard case .arriving(let body) = source else { return }
        body.join()
        exchange.metrics.adjust(.cacheBodyReaders, by: 1)
        metrics = exchange.metrics
    }

    deinit {
        guard case .arriving(let body) = source else { return }
        body.leave()
        metrics?.adjust(.cacheBodyReaders, by: -1)
    }

    /// Requests the next part, or reports the end.
    func proceed() {
        guard !isWaiting, exchange.client != nil else { return }
        guard !content.isEmpty else { return exchange.storedBodyEnded() }
        switch source {
        case .disk(let body): askForChunk(of: body)
        case .file(let file): takePart(of: file, atMost: .max)
        case .arriving(let body): takePart(of: body)
        }
    }

    /// More of the body has arrived, or it has ended.
    func progressed() {
        guard isWaiting, chunked == nil else { return }
        isWaiting = false
        proceed()
    }

    private func takePart(of body: BodyUnderWay) {
        let (token, mailbox) = (exchange.token, exchange.environment.mailbox)
        switch body.part(at: content.lowerBound, else: { mailbox.post(.progressed(token)) }) {
        case .bytes(let piece, let range):
            let count = min(UInt64(range.count), left)
            let end = range.lowerBound + Int(count)
            let bytes = UnsafeRawBufferPointer(rebasing: piece.bytes[range.lowerBound..<end])
            content = (content.lowerBound + count)..<content.upperBound
            // The next one is taken in another turn, so that others get their share.
            let loop = exchange.environment.loop
            if exchange.takeStored(bytes, owner: piece) { loop.requeue(exchange) }
        case .file(let file, let count): takePart(of: file, atMost: count)
        case .level(let body): askForChunk(of: body)
        case .nothingYet: isWaiting = true
        case .end:
            // Of a body whose length was not announced.
            guard content.upperBound == .max else { return unreadable() }
            exchange.storedBodyEnded()
        case .gone: unreadable()
        }
    }

    /// As long as nothing of the response has been written, the request is sent to the origin
    /// instead.
    private func unreadable() {
        exchange.fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
    }

    private func askForChunk(of body: LevelBody) {
        isWaiting = true
        chunked = body
        let index = Int(content.lowerBound / UInt64(body.chunkBytes))
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
        exchange.environment.loop.setDeadline(exchange, after: Self.retryMilliseconds)
    }

    /// Passes on what was read.
    func arrived(_ result: ChunkResult) {
        guard isWaiting, let body = chunked.take(), exchange.client != nil else { return }
        isWaiting = false
        attempts = 0
        guard case .chunk(let chunk) = result else { return unreadable() }
        let start = content.lowerBound % UInt64(body.chunkBytes)
        let end = start + min(UInt64(chunk.bytes.count) &- start, left)
        guard start < UInt64(chunk.bytes.count), start < end else { return unreadable() }
        content = (content.lowerBound + (end - start))..<content.upperBound
        let bytes = UnsafeRawBufferPointer(rebasing: chunk.bytes[Int(start)..<Int(end)])
        if exchange.takeStored(bytes, owner: chunk) { proceed() }
    }

    /// Reads a part immediately. The next one is read in another turn, so that others get their
    /// share.
    private func takePart(of file: MemoryFile, atMost limit: Int) {
        let loop = exchange.environment.loop
        let part = loop.buffers.takeLarge()
        let count = min(Int(min(left, UInt64(Self.partBytes))), limit)
        guard
            file.read(
                into: UnsafeMutableRawBufferPointer(rebasing: part.writable[..<count]),
                at: Int(content.lowerBound))
        else { return unreadable() }
        part.end = count
        content = (content.lowerBound + UInt64(count))..<content.upperBound
        if exchange.takeStored(part.readable, owner: part) { loop.requeue(exchange) }
    }
}
