import CacheStore
import EventLoop

/// Reads a stored body part by part, from the disk tier or from its memory file. For the client,
/// the next part is read once the last has been written; it is also used to read a body for
/// translation.
final class StoredBodyReader {
    /// Where the body is.
    enum Source {
        case disk(LevelBody)
        case file(MemoryFile)
    }

    /// Unowned because the exchange owns it; unsafe because nobody else does.
    private unowned(unsafe) let exchange: Exchange
    private let source: Source
    private var content: Range<UInt64>
    private var isWaiting = false
    private var attempts = 0
    private static let retryMilliseconds: Int64 = 20
    private static let attemptLimit = 500
    /// Bytes that are read from a file in one step.
    private static let partBytes = 64 << 10

    init(exchange: Exchange, source: Source, content: Range<UInt64>) {
        self.exchange = exchange
        self.source = source
        self.content = content
    }

    /// Requests the next part, or reports the end.
    func proceed() {
        guard !isWaiting, exchange.client != nil else { return }
        guard !content.isEmpty else { return exchange.storedBodyEnded() }
        switch source {
        case .disk(let body): askForChunk(of: body)
        case .file(let file): takePart(of: file)
        }
    }

    private func askForChunk(of body: LevelBody) {
        isWaiting = true
        let index = Int(content.lowerBound / UInt64(body.chunkBytes))
        let (token, mailbox) = (exchange.token, exchange.environment.mailbox)
        let accepted =
            exchange.environment.shared.store?.readChunk(body, index) {
                mailbox.post(.chunk(token, $0))
            } ?? false
        guard !accepted else { return }
        // Many reads are waiting: tries again in a moment.
        isWaiting = false
        attempts += 1
        guard attempts < Self.attemptLimit else {
            return exchange.fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
        }
        exchange.environment.loop.setDeadline(exchange, after: Self.retryMilliseconds)
    }

    /// Passes on what was read.
    func arrived(_ result: ChunkResult) {
        guard isWaiting, case .disk(let body) = source, exchange.client != nil else { return }
        isWaiting = false
        attempts = 0
        guard case .chunk(let chunk) = result else {
            // As long as nothing of the response has been written, the request is sent to the
            // origin instead.
            return exchange.fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
        }
        let start = content.lowerBound % UInt64(body.chunkBytes)
        let end = min(UInt64(chunk.bytes.count), start + UInt64(content.count))
        guard start < end else {
            return exchange.fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable)
        }
        content = (content.lowerBound + (end - start))..<content.upperBound
        let bytes = UnsafeRawBufferPointer(rebasing: chunk.bytes[Int(start)..<Int(end)])
        if exchange.takeStored(bytes, owner: chunk) { proceed() }
    }

    /// Reads a part immediately. The next one is read in another turn, so that others get their
    /// share.
    private func takePart(of file: MemoryFile) {
        let loop = exchange.environment.loop
        let part = loop.buffers.takeLarge()
        let count = min(content.count, Self.partBytes)
        guard
            file.read(
                into: UnsafeMutableRawBufferPointer(rebasing: part.writable[..<count]),
                at: Int(content.lowerBound))
        else { return exchange.fail(.gateway(.storedBodyUnreadable), .storedBodyUnreadable) }
        part.end = count
        content = (content.lowerBound + UInt64(count))..<content.upperBound
        if exchange.takeStored(part.readable, owner: part) { loop.requeue(exchange) }
    }
}
