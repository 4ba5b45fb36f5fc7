import EventLoop
import HTTPCore
import Transformation

/// A client's stream on which a route's rules change the heads of final responses while they are
/// sent, wherever they come from.
///
/// An exchange whose route has such rules uses this in place of the client's own stream, so that
/// nothing on the way of any other response has to ask whether there are rules. Replies of the
/// gateway itself are sent on the stream inside. In interim responses except 101 only the gateway's
/// name changes.
final class ChangedHeads: ForwardingStream {
    private let rules: ResponseHeadRules
    private let buffers: BufferPool
    /// Of the head being written: its status, and where its field lines begin.
    private var head: (status: UInt16, start: Int) = (0, 0)

    init(of stream: any DownstreamStream, by rules: ResponseHeadRules, _ buffers: BufferPool) {
        self.rules = rules
        self.buffers = buffers
        super.init(of: stream)
    }

    override func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        let draft = stream.makeHead(status: status, phrase: phrase, room: room)
        head = (status, draft.fields.count)
        return draft
    }

    override func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        stream.sendHead(changed(head), framing: framing, closing: closing)
    }

    override func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover?
    {
        stream.handOver(after: changed(head), isUpgrade: isUpgrade)
    }

    override func sendInterim(_ head: consuming HeadDraft) {
        guard let name = rules.name else { return stream.sendInterim(head) }
        stream.sendInterim(
            head.replacingFields(from: self.head.start, in: buffers) {
                name.fields(of: $0, from: self.head.start)
            })
    }

    private func changed(_ draft: consuming HeadDraft) -> HeadDraft {
        draft.replacingFields(from: head.start, in: buffers) {
            rules.fields(of: $0, from: head.start, status: head.status)
        }
    }
}

extension HeadDraft {
    /// The same with other field lines.
    ///
    /// - Parameters:
    ///   - start: where they begin.
    ///   - change: the new lines for a head; `nil` to keep the old ones.
    consuming func replacingFields(
        from start: Int, in pool: BufferPool, by change: (Span<UInt8>) -> [UInt8]?
    ) -> HeadDraft {
        guard !fields.overflowed else { return self }
        let written = UnsafeRawBufferPointer(rebasing: buffer.writable[..<fields.count])
        guard let lines = change(written.octets) else { return self }
        // As much is left for what the stream adds.
        let size = start + lines.count + fields.capacity - fields.count
        var changed = HeadDraft(pool.take(atLeast: size))
        changed.fields.append(bytes: UnsafeRawBufferPointer(rebasing: written[..<start]))
        changed.fields.append(lines.span)
        return changed
    }
}
