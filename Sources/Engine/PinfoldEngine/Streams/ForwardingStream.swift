import CacheStore
import EventLoop
import HTTPCore

/// A client's stream in place of another one, which does everything. A subclass overrides what is
/// to be done in another way; the others' calls then cost one more call each.
class ForwardingStream: DownstreamStream {
    /// The stream that this one is in place of.
    final let stream: any DownstreamStream

    init(of stream: any DownstreamStream) { self.stream = stream }

    // MARK: Heads

    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        stream.makeHead(status: status, phrase: phrase, room: room)
    }
    func sendInterim(_ head: consuming HeadDraft) { stream.sendInterim(head) }
    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        stream.sendHead(head, framing: framing, closing: closing)
    }
    func withdrawHead() -> Bool { stream.withdrawHead() }
    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover? {
        stream.handOver(after: head, isUpgrade: isUpgrade)
    }
    func switchProtocols(after head: consuming HeadDraft, to server: UpstreamHandover) {
        stream.switchProtocols(after: head, to: server)
    }

    // MARK: Content

    func send(_ content: UnsafeRawBufferPointer, owner: AnyObject) {
        stream.send(content, owner: owner)
    }
    func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        stream.sendFile(file, offset: offset, count: count)
    }
    final func finish(trailers: TrailerSection?) -> Bool { stream.finish(trailers: trailers) }
    final func flush() -> Bool { stream.flush() }
    final func resumeContent() { stream.resumeContent() }
    final func pauseContent() { stream.pauseContent() }

    // MARK: The client, and the exchange

    final var account: ClientAccount? { stream.account }
    final var refusal: ExchangeError { stream.refusal }
    final var localEndpoint: Endpoint? { stream.localEndpoint }
    final var sentBytes: (total: UInt64, content: UInt64) { stream.sentBytes }
    final var isFlushed: Bool { stream.isFlushed }
    final var inputFollows: Bool { stream.inputFollows }
    final var isOneOfSeveral: Bool { stream.isOneOfSeveral }
    final var takesInterimResponses: Bool { stream.takesInterimResponses }
    final var takesProtocols: Bool { stream.takesProtocols }

    final func expectPauses() { stream.expectPauses() }
    final func exchangeEnded(cut: Bool) { stream.exchangeEnded(cut: cut) }
    final func exchangeContinues() { stream.exchangeContinues() }
    final func exchangeReleased() { stream.exchangeReleased() }
}
