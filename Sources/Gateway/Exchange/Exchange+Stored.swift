import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Answers from the cache: hits, confirmed and stale responses.
extension Exchange {
    /// Sends a stored response in the form that was decided.
    /// - Parameter fresh: the head that the origin has just confirmed it with, which may not have
    ///   been stored.
    func serve(
        _ stored: CachedResponse, _ hit: CacheHit, as fresh: FreshenedResponse? = nil,
        cacheStatus: CacheStatus? = nil
    ) {
        guard let client else { return finish() }
        become(.serving)
        let headBytes = fresh?.head.count ?? stored.head.count
        let head = buffer(for: headBytes + HitHead.maximumAddedBytes)
        var writer = HeadWriter(head.writable)
        if let fresh {
            let bytes = fresh.head
            HitHead.append(
                hit, stored: fresh.metadata, storedHead: bytes.span, cacheStatus: cacheStatus,
                to: &writer)
        } else {
            HitHead.append(
                hit, stored: stored.metadata,
                storedHead: Span(_unsafeElements: stored.head.bindMemory(to: UInt8.self)),
                cacheStatus: cacheStatus, to: &writer)
        }
        writer.append("Via: 1.1 pinfold\r\n")
        head.end = writer.count
        let content: Range<UInt64>
        switch hit.form {
        case .full:
            status = stored.metadata.status
            content = 0..<stored.bodyCount
        case .headOnly:
            status = stored.metadata.status
            content = 0..<0
        case .notModified:
            status = 304
            content = 0..<0
        case .partial(let first, let last, _):
            status = 206
            content = first..<(last + 1)
        case .rangeNotSatisfiable:
            status = 416
            content = 0..<0
        }
        responseHeadSent = true
        client.sendHead(
            consume head, framing: content.isEmpty ? .none : .lengthInHead(UInt64(content.count)),
            closing: false)
        send(content, of: stored, to: client)
    }

    private func send(
        _ content: Range<UInt64>, of stored: CachedResponse, to client: any ClientStream
    ) {
        let range = Int(content.lowerBound)..<Int(content.upperBound)
        if !range.isEmpty {
            switch stored.body {
            case .contiguous(let body):
                client.sendBody(UnsafeRawBufferPointer(rebasing: body.bytes[range]), owner: stored)
            case .heap(let heap):
                client.sendBody(UnsafeRawBufferPointer(rebasing: heap.bytes[range]), owner: heap)
            case .file(let file):
                client.sendFile(
                    file.fileDescriptor, offset: range.lowerBound, count: range.count, owner: file)
            case .disk(let body):
                return stream(body, content)
            }
        }
        client.sendEnd(trailers: UnsafeRawBufferPointer(start: nil, count: 0))
        responseIsComplete = true
        if client.flush() { finishIfResponseIsOver() }
    }

    private func stream(_ body: DiskBody, _ content: Range<UInt64>) {
        guard register() else { return fail(.descriptorsExhausted) }
        serving = StoredBodyReader(exchange: self, body: body, content: content)
        serving?.proceed()
    }

    /// A part of the stored body cannot be read. As long as nothing of the response has been
    /// written, the origin is asked instead.
    fileprivate func storedBodyFailed() {
        guard clientReference?.withdrawHead() ?? false else { return fail(.storedBodyUnreadable) }
        responseHeadSent = false
        status = 0
        guard mayRetry(after: .storedBodyUnreadable) else { return fail(.storedBodyUnreadable) }
        serving = nil
        stored = nil
        validation = nil
        become(.routing)
        missed(.uriMiss)
    }

    /// A chunk of the body that is being streamed from disk.
    func chunkArrived(_ result: ChunkResult) {
        guard phase == .serving else { return }
        serving?.arrived(result)
    }
}

/// Streams a body from the disk tier to the client, one chunk at a time: the next is asked for when
/// the last has been written.
final class StoredBodyReader {
    /// Unowned, for the exchange owns it; unsafe, for nobody else does.
    private unowned(unsafe) let exchange: Exchange
    private let body: DiskBody
    private var content: Range<UInt64>
    private var isWaiting = false
    private var attempts = 0
    private static let retryMilliseconds: Int64 = 20
    private static let attemptLimit = 500

    init(exchange: Exchange, body: DiskBody, content: Range<UInt64>) {
        self.exchange = exchange
        self.body = body
        self.content = content
    }

    /// Asks for the next chunk, or ends the response.
    func proceed() {
        guard !isWaiting, let client = exchange.client else { return }
        guard !content.isEmpty else {
            guard !exchange.responseIsComplete else { return }
            client.sendEnd(trailers: UnsafeRawBufferPointer(start: nil, count: 0))
            exchange.responseIsComplete = true
            if client.flush() { exchange.finishIfResponseIsOver() }
            return
        }
        isWaiting = true
        let index = Int(content.lowerBound / UInt64(body.chunkBytes))
        let (token, mailbox) = (exchange.token, exchange.worker.mailbox)
        let accepted =
            exchange.worker.shared.store?.readChunk(body, index) {
                mailbox.post(.chunk(token, $0))
            } ?? false
        guard !accepted else { return }
        // Many reads are waiting: this one tries again in a moment.
        isWaiting = false
        attempts += 1
        guard attempts < Self.attemptLimit else { return exchange.fail(.storedBodyUnreadable) }
        exchange.worker.loop.setDeadline(exchange, after: Self.retryMilliseconds)
    }

    /// Sends what was read.
    func arrived(_ result: ChunkResult) {
        guard isWaiting, let client = exchange.client else { return }
        isWaiting = false
        attempts = 0
        guard case .chunk(let chunk) = result else { return exchange.storedBodyFailed() }
        let start = content.lowerBound % UInt64(body.chunkBytes)
        let end = min(UInt64(chunk.bytes.count), start + UInt64(content.count))
        guard start < end else { return exchange.fail(.storedBodyUnreadable) }
        client.sendBody(
            UnsafeRawBufferPointer(rebasing: chunk.bytes[Int(start)..<Int(end)]), owner: chunk)
        content = (content.lowerBound + (end - start))..<content.upperBound
        if client.flush() { proceed() }
    }
}
