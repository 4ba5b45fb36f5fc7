import CacheStore
import EventLoop
import HTTPCore

/// A client's stream on which the final head is noted as it is sent, wherever it comes from, and
/// for a recording that wants it, the content after it.
///
/// It takes the place of the client's own stream only while somebody looks at exchanges, so that
/// nothing on the way of a response has to ask. A route's rules (``ChangedHeads``) are outside:
/// what is noted is what the client gets.
final class KeptHeads: ForwardingStream {
    /// The exchange owns this, and ends before it is used for another one.
    private unowned let exchange: Exchange
    /// `nil` if only heads are kept.
    private let contents: KeptContents?
    /// The most bytes of a head that are kept.
    private let headBytes: Int

    init(of stream: any DownstreamStream, in exchange: Exchange, _ contents: KeptContents?) {
        self.exchange = exchange
        self.contents = contents
        headBytes = exchange.environment.keptHeadBytes
        super.init(of: stream)
    }

    override func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        note(head)
        stream.sendHead(head, framing: framing, closing: closing)
    }

    override func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover?
    {
        note(head)
        return stream.handOver(after: head, isUpgrade: isUpgrade)
    }

    override func switchProtocols(after head: consuming HeadDraft, to server: UpstreamHandover) {
        note(head)
        stream.switchProtocols(after: head, to: server)
    }

    override func withdrawHead() -> Bool {
        let isWithdrawn = stream.withdrawHead()
        if isWithdrawn {
            exchange.remarks.sent(head: [], isCut: false)
            contents?.withdrawn()
        }
        return isWithdrawn
    }

    override func send(_ content: UnsafeRawBufferPointer, owner: AnyObject) {
        contents?.sent(content)
        stream.send(content, owner: owner)
    }

    override func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        contents?.sent(file, offset: offset, count: count)
        stream.sendFile(file, offset: offset, count: count)
    }

    private func note(_ head: borrowing HeadDraft) {
        let (beginning, isCut) = head.beginning(of: headBytes)
        exchange.remarks.sent(head: beginning, isCut: isCut)
    }
}

extension Exchange {
    /// Unless the host wants nothing of this exchange: notes the final head that the client is
    /// sent, for whoever looks at exchanges, and the content of both messages for a recording that
    /// wants it.
    @inline(never)
    func keepResponseHead(of stream: any DownstreamStream) {
        if let host = environment.host { report.interest = host.interest(in: self) }
        guard report.interest != .none else { return }
        let contents = environment.keepsContents ? environment.host?.contents(of: self) : nil
        if let contents { remarks.keep(contents) }
        client = KeptHeads(of: stream, in: self, contents)
    }
}

extension HeadDraft {
    /// The first bytes that have been written, and whether there are more.
    fileprivate borrowing func beginning(of count: Int) -> (bytes: [UInt8], isCut: Bool) {
        guard !fields.overflowed else { return ([], false) }
        return (Array(buffer.writable[..<min(fields.count, count)]), fields.count > count)
    }
}
