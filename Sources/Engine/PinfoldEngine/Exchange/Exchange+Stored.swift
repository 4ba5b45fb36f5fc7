import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Responses from the cache: hits, confirmed and stale responses.
extension Exchange {
    /// Sends a hit in the chosen form.
    @inline(__always)
    func serve(_ stored: CachedResponse, _ hit: CacheHit) {
        if origin?.transformation == nil {
            serveAsStored(stored, hit, cacheStatus: nil)
        } else {
            serve(stored, hit, as: nil)
        }
    }

    /// Sends a stored response in the chosen form.
    /// - Parameter fresh: the head with which the origin has just confirmed it, which may not have
    ///   been stored.
    func serve(
        _ stored: CachedResponse, _ hit: CacheHit, as fresh: FreshenedResponse?,
        cacheStatus: CacheStatus? = nil
    ) {
        if let rules = origin?.transformation, rules.storesOrigin,
            translate(stored, hit, as: fresh, cacheStatus, by: rules)
        {
            return
        }
        if !(fresh?.metadata ?? stored.metadata).flags.isDisjoint(with: .dependsOnCoding),
            servesInForm(stored, hit, as: fresh, cacheStatus)
        {
            return
        }
        serveAsStored(stored, hit, as: fresh, cacheStatus: cacheStatus)
    }

    /// Sends a stored response in its stored form.
    func serveAsStored(
        _ stored: CachedResponse, _ hit: CacheHit, as fresh: FreshenedResponse?,
        cacheStatus: CacheStatus?
    ) {
        guard let fresh, !hit.isMultipart else {
            return serveAsStored(stored, hit, cacheStatus: cacheStatus)
        }
        if fresh.metadata.flags.contains(.hasTrailers),
            servesWithTrailers(stored, hit, as: fresh, cacheStatus)
        {
            return
        }
        let content = hit.content(of: stored.contentCount)
        guard let client = beginServing(stored, content) else { return }
        sendHead(hit, fresh, content, cacheStatus, to: client)
        send(content, of: stored, to: client)
    }

    private func serveAsStored(
        _ stored: CachedResponse, _ hit: CacheHit, cacheStatus: CacheStatus?
    ) {
        if hit.isMultipart { return serveRanges(of: stored, hit, cacheStatus) }
        if stored.metadata.flags.contains(.hasTrailers),
            servesWithTrailers(stored, hit, as: nil, cacheStatus)
        {
            return
        }
        let content = hit.content(of: stored.contentCount)
        guard let client = beginServing(stored, content) else { return }
        sendHead(hit, stored.metadata, stored.head, content, cacheStatus, to: client)
        send(content, of: stored, to: client)
    }

    /// Sends a stored response with its trailers, if the client takes them and asked for all of it.
    @inline(never)
    private func servesWithTrailers(
        _ stored: CachedResponse, _ hit: CacheHit, as fresh: FreshenedResponse?,
        _ cacheStatus: CacheStatus?
    ) -> Bool {
        guard case .full = hit.form, request.takesTrailers,
            client?.takesInterimResponses ?? false,
            !stored.metadata.flags.contains(.hasContentLength)
        else { return false }
        let storedHead = fresh?.head ?? Array(stored.head)
        guard let trailers = StoredTrailers.section(of: storedHead.span) else { return false }
        let content = hit.content(of: stored.bodyCount)
        guard let client = beginServing(stored, content) else { return true }
        // The length is not stated: the content is sent in chunks.
        var metadata = fresh?.metadata.confirmed ?? stored.metadata
        metadata.bodyBytes = nil
        let personalFields = fresh?.personalFields ?? []
        let room = personalFields.count + StoredTrailers.announcementBytes(of: trailers)
        storedHead.withUnsafeBytes {
            var head = makeHead(hit, metadata, $0, cacheStatus, room: room, for: client)
            head.fields.append(personalFields.span)
            StoredTrailers.appendAnnouncement(of: trailers, to: &head.fields)
            client.sendHead(head, framing: .streamed, closing: false)
        }
        serving.end(with: trailers)
        send(content, of: stored, to: client)
        return true
    }

    /// The client to send a stored response to; `nil` if there is none, or it cannot be sent.
    @inline(__always)
    func beginServing(
        _ stored: CachedResponse, _ content: Range<UInt64>
    ) -> (any DownstreamStream)? {
        let isStreamed = stored.isReadInParts && !content.isEmpty
        if isStreamed, !register() {
            fail(.gateway(.descriptorsExhausted))
            return nil
        }
        guard goesOn(after: .decided(isStreamed ? .serve : .respond)) else { return nil }
        return client
    }

    /// Separate from the other function, which every hit uses.
    @inline(never)
    private func sendHead(
        _ hit: CacheHit, _ fresh: FreshenedResponse, _ content: Range<UInt64>,
        _ cacheStatus: CacheStatus?, to client: any DownstreamStream
    ) {
        let bytes = fresh.head
        bytes.withUnsafeBytes {
            sendHead(
                hit, confirmed: fresh.metadata, $0, content, cacheStatus, fresh.personalFields,
                to: client)
        }
    }

    /// Sends the head of a response that the origin has just confirmed, with the fields that it
    /// sent for this client alone.
    @inline(never)
    func sendHead(
        _ hit: CacheHit, confirmed metadata: StoredMetadata, _ storedHead: UnsafeRawBufferPointer,
        _ content: Range<UInt64>, _ cacheStatus: CacheStatus?, _ personalFields: [UInt8],
        to client: any DownstreamStream
    ) {
        var head = makeHead(
            hit, metadata.confirmed, storedHead, cacheStatus, room: personalFields.count,
            for: client)
        head.fields.append(personalFields.span)
        send(head, content, to: client)
    }

    /// Sends the head of a response from the cache.
    @inline(__always)
    func sendHead(
        _ hit: CacheHit, _ metadata: StoredMetadata, _ storedHead: UnsafeRawBufferPointer,
        _ content: Range<UInt64>, _ cacheStatus: CacheStatus?, to client: any DownstreamStream
    ) {
        let head = makeHead(hit, metadata, storedHead, cacheStatus, room: 0, for: client)
        send(head, content, to: client)
    }

    /// - Parameter room: for further fields.
    @inline(__always)
    private func makeHead(
        _ hit: CacheHit, _ metadata: StoredMetadata, _ storedHead: UnsafeRawBufferPointer,
        _ cacheStatus: CacheStatus?, room: Int, for client: any DownstreamStream
    ) -> HeadDraft {
        let bytes = storedHead.octets
        let (code, phrase) = HitHead.status(of: hit, stored: metadata, storedHead: bytes)
        let room = storedHead.count + HitHead.maximumAddedBytes + 64 + room
        var head: HeadDraft
        if let phrase {
            head = client.makeHead(
                status: code, phrase: bytes.extracting(phrase.indices), room: room)
        } else {
            head = client.makeHead(status: code, phrase: nil, room: room)
        }
        HitHead.appendFields(
            hit, stored: metadata, storedHead: bytes, cacheStatus: cacheStatus,
            to: &head.fields)
        head.fields.appendVia(received: .http11)
        report.answered(code)
        return head
    }

    @inline(__always)
    private func send(
        _ head: consuming HeadDraft, _ content: Range<UInt64>, to client: any DownstreamStream
    ) {
        let framing: ContentFraming = content.isEmpty ? .none : Self.framing(of: content)
        client.sendHead(head, framing: framing, closing: false)
    }

    /// Apart, so that the function above stays small enough to be a part of its callers.
    @inline(never)
    private static func framing(of content: Range<UInt64>) -> ContentFraming {
        content.upperBound == .max
            ? .streamed : .lengthInFields(content.upperBound - content.lowerBound)
    }

    @inline(__always)
    func send(
        _ content: Range<UInt64>, of stored: CachedResponse, to client: any DownstreamStream
    ) {
        if !content.isEmpty {
            let range = Int(content.lowerBound)..<Int(clamping: content.upperBound)
            switch stored.body {
            case .contiguous(let body):
                let bytes = UnsafeRawBufferPointer(rebasing: body.bytes[range])
                client.send(bytes, owner: stored)
            case .heap(let heap):
                let bytes = UnsafeRawBufferPointer(rebasing: heap.bytes[range])
                client.send(bytes, owner: heap)
            case .file(let file):
                client.sendFile(file, offset: range.lowerBound, count: range.count)
            case .disk(let body): return read(content, from: .disk(body), of: stored)
            case .arriving(let body): return read(content, from: .arriving(body), of: stored)
            case .parts(let parts):
                return readParts(content, of: stored, parts)
            }
        }
        endStored(client)
    }

    /// Reads a stored body part by part.
    /// - Parameter response: what the body is of, if its rest can be fetched.
    func read(
        _ content: Range<UInt64>, from source: StoredBodyReader.Source,
        of response: CachedResponse? = nil
    ) {
        let reader = StoredBodyReader(
            exchange: self, source: source, of: response, content: content)
        serving.read(with: reader)
        reader.proceed()
    }

    /// Handles a part of a stored body. Returns true if the next may be read.
    func takeStored(_ part: UnsafeRawBufferPointer, owner: AnyObject) -> Bool {
        if let translation = serving.translation { return gather(part, for: translation) }
        if let form = serving.form { return gather(part, for: form) }
        guard let client else { return false }
        client.send(part, owner: owner)
        return client.flush()
    }

    /// The last part of the stored content has been handled.
    func storedBodyEnded() {
        // It ends with the server's response, which others read.
        if case .responding = state.step { return }
        if serving.ranges != nil { return sendNextRange() }
        if let translation = serving.translation { return work(on: translation) }
        if let form = serving.form { return work(on: form) }
        guard goesOn(after: .decided(.respond)), let client else { return }
        endStored(client)
    }

    /// Everything of a response from the cache is queued.
    @inline(__always)
    func endStored(_ client: any DownstreamStream) {
        if serving.trailers != nil { return endWithTrailers(client) }
        if client.finish(trailers: nil) { clientDrained() }
    }

    @inline(never)
    private func endWithTrailers(_ client: any DownstreamStream) {
        if client.finish(trailers: serving.trailers) { clientDrained() }
    }

    /// A chunk of a body that is streamed from disk has arrived.
    func chunkArrived(_ result: ChunkResult) {
        switch state.step {
        case .loading, .serving, .responding: serving.reader?.arrived(result)
        default: break
        }
    }

    /// More of a body that is read while it arrives is there.
    func bodyProgressed() {
        switch state.step {
        case .loading, .serving: serving.reader?.progressed()
        case .responding:
            serving.reader?.progressed()
            // Those who read the part have caught up with it.
            if storing.parts != nil { upstream?.resume() }
        default: break
        }
    }
}

extension CacheHit {
    /// The range of a body's bytes to send.
    @inline(__always)
    func content(of count: UInt64) -> Range<UInt64> {
        switch form {
        case .full: 0..<count
        case .headOnly, .notModified, .rangeNotSatisfiable: 0..<0
        case .partial(let first, let last, _): first..<(last + 1)
        case .several(let count, _): 0..<count
        }
    }

    /// Whether it is sent as a multipart/byteranges.
    @inline(__always)
    var isMultipart: Bool { if case .several = form { true } else { false } }
}
