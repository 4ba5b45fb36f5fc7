import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import Notation

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
        let chain = chooseStages(stored, hit, fresh)
        let isStreamed =
            !content.isEmpty && (stored.isOnDiskOnly || chain != nil && stored.isInFile)
        if isStreamed, !register() { return fail(.descriptorsExhausted) }
        guard case .nothing = handle(.decided(isStreamed ? .serve : .respond)), let client else {
            return
        }
        if let fresh {
            sendHead(hit, fresh, content, cacheStatus, to: client)
        } else {
            sendHead(hit, stored.metadata, stored.head, content, cacheStatus, to: client)
        }
        send(content, of: stored, to: client)
    }

    /// Apart from the other, which is for every hit.
    @inline(never)
    private func sendHead(
        _ hit: CacheHit, _ fresh: FreshenedResponse, _ content: Range<UInt64>,
        _ cacheStatus: CacheStatus?, to client: any DownstreamStream
    ) {
        let bytes = fresh.head
        bytes.withUnsafeBytes {
            sendHead(hit, fresh.metadata, $0, content, cacheStatus, to: client)
        }
    }

    /// The stages that the content of a stored response passes.
    @inline(__always)
    private func chooseStages(
        _ stored: CachedResponse, _ hit: CacheHit, _ fresh: FreshenedResponse?
    ) -> BodyChain? {
        guard environment.bodyStages != nil else { return nil }
        let isPartial: Bool
        switch hit.form {
        case .full: isPartial = false
        case .partial: isPartial = true
        case .headOnly, .notModified, .rangeNotSatisfiable: return nil
        }
        let status = isPartial ? 206 : stored.metadata.status
        if let fresh {
            return chooseResponseStages(status: status, fresh.head.span, isStored: true)
        }
        return chooseResponseStages(
            status: status, stored.head.octets,
            isStored: true)
    }

    /// Which of the stored bytes are sent.
    private func content(of hit: CacheHit, _ stored: CachedResponse) -> Range<UInt64> {
        switch hit.form {
        case .full: 0..<stored.bodyCount
        case .headOnly, .notModified, .rangeNotSatisfiable: 0..<0
        case .partial(let first, let last, _): first..<(last + 1)
        }
    }

    @inline(__always)
    private func sendHead(
        _ hit: CacheHit, _ metadata: StoredMetadata, _ storedHead: UnsafeRawBufferPointer,
        _ content: Range<UInt64>, _ cacheStatus: CacheStatus?, to client: any DownstreamStream
    ) {
        let bytes = storedHead.octets
        let (code, phrase) = HitHead.status(of: hit, stored: metadata, storedHead: bytes)
        let changesLength = stages != nil && stages?.response?.changesLength ?? false
        let room = storedHead.count + HitHead.maximumAddedBytes + 64
        var head: HeadDraft
        if let phrase {
            head = client.makeHead(
                status: code, phrase: bytes.extracting(phrase.indices), room: room)
        } else {
            head = client.makeHead(status: code, phrase: nil, room: room)
        }
        HitHead.appendFields(
            hit, stored: metadata, storedHead: bytes, cacheStatus: cacheStatus,
            tellsLength: !changesLength, to: &head.fields)
        head.fields.appendVia(received: .http11)
        let framing: ContentFraming =
            changesLength
            ? .streamed : content.isEmpty ? .none : .lengthInFields(UInt64(content.count))
        send(head, status: code, framing: framing, to: client)
    }

    @inline(__always)
    private func send(
        _ content: Range<UInt64>, of stored: CachedResponse, to client: any DownstreamStream
    ) {
        let range = Int(content.lowerBound)..<Int(content.upperBound)
        if !range.isEmpty {
            switch stored.body {
            case .contiguous(let body):
                let bytes = UnsafeRawBufferPointer(rebasing: body.bytes[range])
                guard send(bytes, owner: stored, to: client) else { return }
            case .heap(let heap):
                let bytes = UnsafeRawBufferPointer(rebasing: heap.bytes[range])
                guard send(bytes, owner: heap, to: client) else { return }
            case .file(let file) where stages?.response == nil:
                client.sendFile(
                    file.fileDescriptor, offset: range.lowerBound, count: range.count, owner: file)
            case .file(let file): return read(content, of: .file(file))
            case .disk(let body): return read(content, of: .disk(body))
            }
        }
        endStored(client)
    }

    private func read(_ content: Range<UInt64>, of source: StoredBodyReader.Source) {
        serving = StoredBodyReader(exchange: self, source: source, content: content)
        serving?.proceed()
    }

    /// The last part of the stored content is queued.
    func storedBodyEnded(_ client: any DownstreamStream) {
        handle(.decided(.respond))
        endStored(client)
    }

    @inline(__always)
    private func endStored(_ client: any DownstreamStream) {
        if stages != nil, !finishStages(to: client) { return }
        if client.finish(trailers: nil) { clientDrained() }
    }

    /// A chunk of the body that is being streamed from disk.
    func chunkArrived(_ result: ChunkResult) {
        guard case .serving = state.step else { return }
        serving?.arrived(result)
    }
}

extension CachedResponse {
    fileprivate var isInFile: Bool { if case .file = body { true } else { false } }
}
