import EventLoop
import PinfoldEngine

/// A request's content while it is sent.
final class Upload {
    enum Source {
        /// After the head, in its buffer.
        case withHead
        case bytes([UInt8])
        case feed(any ContentFeed)
    }

    let source: Source
    /// The buffer of the head, if the content is in it, too.
    var buffer: Buffer?
    var sent = 0
    /// Whether the exchange accepts nothing for now. At first there is no connection yet.
    var isPaused = true
    /// Whether a part was requested that has not arrived.
    var isAsking = false
    /// A part that has arrived, until the exchange accepts it.
    var waiting: ContentPart?
    /// Whether the pause after a part is in progress.
    var isResting = false
    /// Whether the server is expected to ask for the content.
    var awaitsContinue: Bool
    /// Whether it has responded instead.
    var isWithheld = false
    /// Whether content is being passed to the exchange, which may request more meanwhile.
    var isDriving = false

    init(_ source: Source, awaitsContinue: Bool) {
        self.source = source
        self.awaitsContinue = awaitsContinue
    }

    var isWithHead: Bool { if case .withHead = source { true } else { false } }
}

// Sends the content after the head: as much as the exchange accepts, without reading ahead.
extension Transfer {
    /// The number of bytes passed to the exchange at a time.
    private static let partBytes = BufferPool.largeBytes
    /// The number of parts per turn of the loop. Other transfers have theirs in between.
    private static let partsPerTurn = 4

    /// Sends content until the exchange asks for a pause.
    func driveUpload() {
        guard let upload, !upload.awaitsContinue, !upload.isResting, !upload.isDriving,
            !isSuspended
        else { return }
        upload.isDriving = true
        defer { upload.isDriving = false }
        for _ in 0..<Self.partsPerTurn {
            guard self.upload === upload, !upload.isPaused, !isSuspended, exchange != nil else {
                return
            }
            guard sendPart(of: upload) else { return }
        }
        if self.upload === upload, !upload.isPaused { environment.loop.requeue(self) }
    }

    /// Returns `false` if there is nothing to send now.
    private func sendPart(of upload: Upload) -> Bool {
        switch upload.source {
        case .withHead:
            guard let buffer = upload.buffer else { return false }
            let content = buffer.readable
            buffer.start = buffer.end
            give(content, owner: buffer, isLast: true, upload)
        case .bytes(let bytes):
            let count = min(Self.partBytes, bytes.count - upload.sent)
            let buffer = environment.loop.buffers.takeLarge()
            buffer.writable.copyBytes(from: bytes[upload.sent..<(upload.sent + count)])
            buffer.end = count
            give(
                buffer.readable, owner: buffer, isLast: upload.sent + count == bytes.count, upload)
        case .feed(let feed): return sendNext(of: feed, upload)
        }
        return true
    }

    private func sendNext(of feed: any ContentFeed, _ upload: Upload) -> Bool {
        guard let part = upload.waiting.take() else {
            ask(feed, upload)
            return false
        }
        switch part {
        case .bytes(let bytes):
            if bytes.isEmpty { return !rests(after: feed, upload) }
            // A pooled buffer: before version 2.38, glibc does not reuse freed aligned memory, and
            // may grow its heap by 64 MiB instead.
            let buffer = environment.loop.buffers.take(atLeast: bytes.count)
            buffer.writable.copyBytes(from: bytes)
            buffer.end = bytes.count
            give(buffer.readable, owner: buffer, isLast: false, upload)
            if self.upload === upload, rests(after: feed, upload) { return false }
        case .end:
            self.upload = nil
            exchange?.contentEnded(trailers: nil)
        case .failed(let error):
            cancel(
                error as? ClientError
                    ?? ClientError(
                        .contentFailed, "the content cannot be read: \(error)", underlying: error))
        }
        return self.upload === upload
    }

    /// Whether there is a pause after a part, which then begins.
    private func rests(after feed: any ContentFeed, _ upload: Upload) -> Bool {
        guard feed.pauseMilliseconds > 0 else { return false }
        upload.isResting = true
        pauseUpload(milliseconds: feed.pauseMilliseconds)
        return true
    }

    private func ask(_ feed: any ContentFeed, _ upload: Upload) {
        guard !upload.isAsking else { return }
        upload.isAsking = true
        let (post, number) = (session.post, number)
        feed.next { post(.content(transfer: number, $0)) }
    }

    private func give(
        _ content: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool, _ upload: Upload
    ) {
        guard let exchange else { return }
        upload.sent += content.count
        times.sentBytes += Int64(content.count)
        moved()
        request.contentHasEnd ? advanced() : streamed()
        channel.sent(content.count)
        let acceptsMore = exchange.content(content, owner: owner, isLast: isLast)
        upload.isPaused = !acceptsMore
        // The exchange may have ended in between.
        guard isLast, self.upload === upload else { return }
        self.upload = nil
        self.exchange?.contentEnded(trailers: nil)
    }

    /// The server asks for the content, or need not be waited for any longer.
    func contentIsWanted() {
        guard let upload, upload.awaitsContinue, !upload.isWithheld else { return }
        upload.awaitsContinue = false
        stopWaitingForContinue()
        // The exchange may be in the middle of the server's response.
        environment.loop.requeue(self)
    }

    /// The server has responded, and did not ask for the content.
    func withholdContent() {
        guard let upload, upload.awaitsContinue else { return }
        (upload.isWithheld, times.withheldContent) = (true, true)
        stopWaitingForContinue()
    }

    /// The response counts for nothing: the request is sent again.
    func offerContentAgain() {
        guard let upload, upload.isWithheld else { return }
        (upload.isWithheld, times.withheldContent) = (false, false)
    }

    /// Handles a requested part.
    func contentArrived(_ part: ContentPart) {
        if let upgraded { return upgraded.arrived(part) }
        guard let upload else { return }
        upload.isAsking = false
        upload.waiting = part
        driveUpload()
    }

    /// Handles the end of the pause after a part, in which nobody was idle.
    func restEnded() {
        moved()
        upload?.isResting = false
        driveUpload()
    }
}
