import EventLoop
import PinfoldEngine

/// A request's content while it is sent.
final class Upload {
    enum Source {
        /// Behind the head, in its buffer.
        case withHead
        case bytes([UInt8])
        case feed(any ContentFeed)
    }

    let source: Source
    /// The head's, where the content is there, too.
    var buffer: Buffer?
    var sent = 0
    /// The exchange takes nothing for now: in the beginning there is no connection yet.
    var isPaused = true
    /// A part was asked for, and has not come.
    var isAsking = false
    /// A part that has come, until the exchange takes it.
    var waiting: ContentPart?
    /// The pause behind a part runs.
    var isResting = false
    /// Content is being given to the exchange, which may ask for more meanwhile.
    var isDriving = false

    init(_ source: Source) { self.source = source }

    var isWithHead: Bool { if case .withHead = source { true } else { false } }
}

// What is sent behind the head: as much as the exchange takes, and no more is read.
extension Transfer {
    /// Bytes that are given to the exchange at a time.
    private static let partBytes = BufferPool.largeBytes
    /// Parts in one turn of the loop; others have theirs in between.
    private static let partsPerTurn = 4

    /// Sends content until the exchange asks to pause.
    func driveUpload() {
        guard let upload, !upload.isResting, !upload.isDriving, !isSuspended else { return }
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

    /// False: there is nothing to send now.
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
            guard !bytes.isEmpty else { return true }
            // One that is kept: glibc before 2.38 does not use aligned memory again that was freed,
            // and may let its heap grow by 64 MiB instead.
            let buffer = environment.loop.buffers.take(atLeast: bytes.count)
            buffer.writable.copyBytes(from: bytes)
            buffer.end = bytes.count
            give(buffer.readable, owner: buffer, isLast: false, upload)
            if self.upload === upload, feed.pauseMilliseconds > 0 {
                upload.isResting = true
                pauseUpload(milliseconds: feed.pauseMilliseconds)
                return false
            }
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
        order.contentHasEnd ? advanced() : streamed()
        channel.sent(content.count)
        let goesOn = exchange.content(content, owner: owner, isLast: isLast)
        upload.isPaused = !goesOn
        // The exchange may have ended in between.
        guard isLast, self.upload === upload else { return }
        self.upload = nil
        self.exchange?.contentEnded(trailers: nil)
    }

    /// A part that was asked for.
    func contentArrived(_ part: ContentPart) {
        if let upgraded { return upgraded.arrived(part) }
        guard let upload else { return }
        upload.isAsking = false
        upload.waiting = part
        driveUpload()
    }

    /// The pause behind a part is over.
    func restEnded() {
        upload?.isResting = false
        driveUpload()
    }
}
