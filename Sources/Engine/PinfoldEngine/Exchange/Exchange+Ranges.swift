import CachePolicy
import CacheStore
import EventLoop
import HTTPCore

// Several ranges of a stored response, as a multipart/byteranges (RFC 9110 §14.6).
extension Exchange {
    /// Sends the head, and the first range.
    /// - Parameter head: in place of the stored one.
    @inline(never)
    func serveRanges(
        of stored: CachedResponse, _ hit: CacheHit, _ cacheStatus: CacheStatus?,
        head: UnsafeRawBufferPointer? = nil
    ) {
        guard case .several(_, let boundary) = hit.form, let ranges = ranges(of: stored, boundary),
            register()
        else { return fail(.gateway(.descriptorsExhausted)) }
        guard goesOn(after: .decided(.serve)), let client else { return }
        sendHead(
            hit, stored.metadata, head ?? stored.head, hit.content(of: stored.contentCount),
            cacheStatus, to: client)
        serving.send(RangesToSend(ranges, of: stored))
        sendNextRange()
    }

    /// The parts that the request asks for.
    func ranges(of stored: CachedResponse, _ boundary: UInt64) -> MultipartRanges? {
        withRequestHead {
            MultipartRanges(
                of: stored.metadata, storedHead: stored.head.octets, for: request, in: $0,
                boundary: boundary)
        }
    }

    /// Sends the next range, or the end.
    func sendNextRange() {
        guard let client, let ranges = serving.ranges else { return }
        guard let part = ranges.next() else {
            serving.endRanges()
            send(ranges.end, to: client)
            return storedBodyEnded()
        }
        send(part.head, to: client)
        read(part.range, from: source(of: ranges.response))
    }

    private func send(_ bytes: [UInt8], to client: any DownstreamStream) {
        let buffer = environment.loop.buffers.take(bytes: bytes.count)
        bytes.withUnsafeBytes { buffer.writable.copyMemory(from: $0) }
        buffer.end = bytes.count
        client.send(buffer.readable, owner: buffer)
    }

    private func source(of response: CachedResponse) -> StoredBodyReader.Source {
        switch response.body {
        case .contiguous(let body): .memory(body.bytes, owner: response)
        case .heap(let heap): .memory(heap.bytes, owner: heap)
        case .file(let file): .file(file)
        case .disk(let body): .disk(body)
        case .arriving(let body): .arriving(body)
        case .parts(let parts): .parts(StoredParts(response, parts))
        }
    }
}
