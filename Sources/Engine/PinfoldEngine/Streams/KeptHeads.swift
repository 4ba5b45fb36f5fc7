import EventLoop
import HTTPCore

/// A client's stream on which the final head is noted as it is sent, wherever it comes from.
///
/// It takes the place of the client's own stream only while somebody looks at exchanges, so that
/// nothing on the way of a response has to ask. A route's rules (``ChangedHeads``) are outside:
/// what is noted is what the client gets.
final class KeptHeads: ForwardingStream {
    /// The most bytes of a head that are kept.
    static let maximumBytes = 2048

    /// The exchange owns this, and ends before it is used for another one.
    private unowned let exchange: Exchange

    init(of stream: any DownstreamStream, in exchange: Exchange) {
        self.exchange = exchange
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
        if isWithdrawn { exchange.remarks.sent(head: []) }
        return isWithdrawn
    }

    private func note(_ head: borrowing HeadDraft) {
        exchange.remarks.sent(head: head.beginning(of: Self.maximumBytes))
    }
}

extension Exchange {
    /// Notes the final head that the client is sent, for whoever looks at exchanges.
    @inline(never)
    func keepResponseHead(of stream: any DownstreamStream) {
        client = KeptHeads(of: stream, in: self)
    }
}

extension HeadDraft {
    /// The first bytes that have been written.
    fileprivate borrowing func beginning(of count: Int) -> [UInt8] {
        guard !fields.overflowed else { return [] }
        return Array(buffer.writable[..<min(fields.count, count)])
    }
}
