import CacheStore
import EventLoop
import HTTPCore
import HTTPTypes
import PinfoldEngine

/// What an exchange has sent in this turn, if it is a response at all.
struct PendingResponse {
    var status: UInt16 = 0
    var phrase = ""
    var head: ReceivedHead?
    var parts: [[UInt8]] = []
    var bytes = 0
    /// Why there is no response, according to the exchange.
    var failure: ClientError?
}

// The client's side of the exchange.
extension Transfer: DownstreamStream {
    package var account: ClientAccount? { nil }
    package var localEndpoint: Endpoint? { nil }
    package var sentBytes: (total: UInt64, content: UInt64) {
        (UInt64(times.receivedBytes), UInt64(times.receivedBytes))
    }
    package var isFlushed: Bool { !holdsBack }
    package var takesInterimResponses: Bool { upload?.awaitsContinue ?? false }

    /// The number of bytes that the version's own fields take up.
    private static let reservedBytes = 64

    package func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        response.status = status
        response.phrase = ""
        if let phrase {
            response.phrase = phrase.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        return HeadDraft(environment.loop.buffers.take(atLeast: room + Self.reservedBytes))
    }

    package func sendInterim(_ head: consuming HeadDraft) {
        _ = head.finished()
        if response.status == 100 { contentIsWanted() }
    }

    package func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        moved()
        if let exchange, let fault = exchange.remarks.fault {
            // The reply would say the same in the words of a gateway.
            response.failure = transportError ?? ClientError(fault, of: exchange)
            return
        }
        if case .length(let count) = framing {
            head.fields.append(field: .contentLength, decimal: count)
        }
        times.firstByte = microseconds
        withholdContent()
        if let exchange { noteConnection(of: exchange) }
        guard let fields = head.finished() else {
            response.failure = ClientError(.response(.headTooLarge))
            return
        }
        let received = session.fieldLineCache.fields(of: fields.readable)
        setHead(received)
        if let stream = request.stream { continueAsStream(stream) }
        advanced()
        if framing != .streamed {
            responseHasEnd = true
        } else if received.marks.contains(.eventStream) {
            session.becomesEventStream(self)
        }
    }

    /// Sets the head of the response with these fields.
    func setHead(_ received: ReceivedFields) {
        let head = HTTPResponse(
            status: .init(code: Int(response.status), reasonPhrase: response.phrase),
            headerFields: received.fields)
        response.head = ReceivedHead(
            response: head, status: Int(response.status), marks: received.marks, metrics: times)
    }

    package func withdrawHead() -> Bool {
        guard response.head != nil || response.failure != nil else { return false }
        times.receivedBytes -= Int64(response.bytes)
        offerContentAgain()
        response = PendingResponse()
        return true
    }

    package func send(_ content: UnsafeRawBufferPointer, owner: AnyObject) {
        guard response.failure == nil, content.count > 0 else { return }
        moved()
        if responseHasEnd { advanced() }
        times.receivedBytes += Int64(content.count)
        response.parts.append(Array(content))
        response.bytes += content.count
    }

    package func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        var (offset, remaining) = (offset, count)
        while remaining > 0 {
            let part = StoredFile.read(
                file.fileDescriptor, at: offset, count: min(remaining, BufferPool.largeBytes))
            guard !part.isEmpty else {
                response.failure = ClientError(.gateway(.storedBodyUnreadable))
                return
            }
            part.withUnsafeBytes { send($0, owner: file) }
            offset += part.count
            remaining -= part.count
        }
    }

    package func finish(trailers: TrailerSection?) -> Bool {
        if let trailers { channel.setTrailers(fields(of: trailers)) }
        // What the reader has not taken stays in the channel, so the exchange need not wait. It
        // ends now, and anything pending is delivered then, unless content still has to be sent.
        if upload != nil { deliver() }
        return true
    }

    /// The trailers that may be used (RFC 9110 section 6.5.1).
    private func fields(of trailers: TrailerSection) -> HTTPFields {
        let buffer = environment.loop.buffers.take(atLeast: trailers.bytes.count)
        var writer = HeadWriter(buffer.writable)
        writer.appendForwardedFields(trailers)
        guard !writer.overflowed else { return [:] }
        buffer.end = writer.count
        return session.fieldLineCache.fields(of: buffer.readable, includesEngineFields: false)
            .fields
    }

    package func flush() -> Bool {
        guard response.failure == nil else { return true }
        deliver()
        return !holdsBack
    }

    /// Delivers what there is to the reader.
    func deliver() {
        let (head, parts) = takeResponse()
        guard head != nil || !parts.isEmpty else { return }
        if !responseHasEnd, !parts.isEmpty, channel.takeReadingMark() { streamed() }
        if !channel.push(head, parts, wakes: session.wakes) { readerIsBehind = true }
    }

    /// Takes what there is for the reader, or nothing if there is a failure instead.
    func takeResponse() -> (head: ReceivedHead?, parts: [[UInt8]]) {
        guard response.failure == nil else { return (nil, []) }
        response.bytes = 0
        var parts: [[UInt8]] = []
        swap(&parts, &response.parts)
        return (response.head.take(), parts)
    }

    package func resumeContent() {
        guard let upload, upload.isPaused else { return }
        upload.isPaused = false
        upload.awaitsContinue && !upload.isWithheld ? waitForContinue() : driveUpload()
    }

    package func pauseContent() {
        upload?.isPaused = true
        stopWaitingForContinue()
    }

    package func expectPauses() {}

    package func exchangeEnded(cut: Bool) { exchangeIsOver(cut: cut) }

    package func handOver(
        after head: consuming HeadDraft, isUpgrade: Bool
    ) -> DownstreamHandover? {
        _ = head.finished()
        return nil
    }
}
