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
        let content = content(of: hit, stored)
        let isStreamed = !content.isEmpty && stored.isOnDiskOnly
        if isStreamed, !register() { return fail(.descriptorsExhausted) }
        guard case .nothing = handle(.decided(isStreamed ? .serve : .respond)), let client else {
            return
        }
        if let fresh {
            let bytes = fresh.head
            bytes.withUnsafeBytes {
                sendHead(hit, fresh.metadata, $0, content, cacheStatus, to: client)
            }
        } else {
            sendHead(hit, stored.metadata, stored.head, content, cacheStatus, to: client)
        }
        send(content, of: stored, to: client)
    }

    /// Which of the stored bytes are sent.
    private func content(of hit: CacheHit, _ stored: CachedResponse) -> Range<UInt64> {
        switch hit.form {
        case .full: 0..<stored.bodyCount
        case .headOnly, .notModified, .rangeNotSatisfiable: 0..<0
        case .partial(let first, let last, _): first..<(last + 1)
        }
    }

    private func sendHead(
        _ hit: CacheHit, _ metadata: StoredMetadata, _ storedHead: UnsafeRawBufferPointer,
        _ content: Range<UInt64>, _ cacheStatus: CacheStatus?, to client: any DownstreamStream
    ) {
        let bytes = Span<UInt8>(_unsafeElements: storedHead.bindMemory(to: UInt8.self))
        let (code, phrase) = HitHead.status(of: hit, stored: metadata, storedHead: bytes)
        status = code
        let room = storedHead.count + HitHead.maximumAddedBytes + 64
        var head: HeadDraft
        if let phrase {
            head = client.makeHead(
                status: code, phrase: bytes.extracting(phrase.indices), room: room)
        } else {
            head = client.makeHead(status: code, phrase: nil, room: room)
        }
        HitHead.appendFields(
            hit, stored: metadata, storedHead: bytes, cacheStatus: cacheStatus, to: &head.fields)
        head.fields.appendVia(received: .http11)
        client.sendHead(
            head, framing: content.isEmpty ? .none : .lengthInFields(UInt64(content.count)),
            closing: false)
    }

    private func send(
        _ content: Range<UInt64>, of stored: CachedResponse, to client: any DownstreamStream
    ) {
        let range = Int(content.lowerBound)..<Int(content.upperBound)
        if !range.isEmpty {
            switch stored.body {
            case .contiguous(let body):
                client.send(UnsafeRawBufferPointer(rebasing: body.bytes[range]), owner: stored)
            case .heap(let heap):
                client.send(UnsafeRawBufferPointer(rebasing: heap.bytes[range]), owner: heap)
            case .file(let file):
                client.sendFile(
                    file.fileDescriptor, offset: range.lowerBound, count: range.count, owner: file)
            case .disk(let body):
                serving = StoredBodyReader(exchange: self, body: body, content: content)
                serving?.proceed()
                return
            }
        }
        client.sendEnd(trailers: nil)
        if client.flush() { clientDrained() }
    }

    /// The last part of the stored content is queued.
    fileprivate func storedBodyEnded(_ client: any DownstreamStream) {
        handle(.decided(.respond))
        client.sendEnd(trailers: nil)
        if client.flush() { clientDrained() }
    }

    /// A chunk of the body that is being streamed from disk.
    func chunkArrived(_ result: ChunkResult) {
        guard case .serving = state.step else { return }
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
        guard !content.isEmpty else { return exchange.storedBodyEnded(client) }
        isWaiting = true
        let index = Int(content.lowerBound / UInt64(body.chunkBytes))
        let (token, mailbox) = (exchange.token, exchange.environment.mailbox)
        let accepted =
            exchange.environment.shared.store?.readChunk(body, index) {
                mailbox.post(.chunk(token, $0))
            } ?? false
        guard !accepted else { return }
        // Many reads are waiting: this one tries again in a moment.
        isWaiting = false
        attempts += 1
        guard attempts < Self.attemptLimit else { return exchange.fail(.storedBodyUnreadable) }
        exchange.environment.loop.setDeadline(exchange, after: Self.retryMilliseconds)
    }

    /// Sends what was read.
    func arrived(_ result: ChunkResult) {
        guard isWaiting, let client = exchange.client else { return }
        isWaiting = false
        attempts = 0
        guard case .chunk(let chunk) = result else {
            // As long as nothing of the response has been written, the origin is asked instead.
            return exchange.fail(.storedBodyUnreadable, .storedBodyUnreadable)
        }
        let start = content.lowerBound % UInt64(body.chunkBytes)
        let end = min(UInt64(chunk.bytes.count), start + UInt64(content.count))
        guard start < end else { return exchange.fail(.storedBodyUnreadable) }
        client.send(
            UnsafeRawBufferPointer(rebasing: chunk.bytes[Int(start)..<Int(end)]), owner: chunk)
        content = (content.lowerBound + (end - start))..<content.upperBound
        if client.flush() { proceed() }
    }
}
