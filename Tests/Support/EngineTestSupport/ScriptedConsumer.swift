import EventLoop
import HTTPCore
import PinfoldEngine
import Testing

/// A consumer that sends a given request and records how it is called back.
package final class ScriptedConsumer: UpstreamConsumer {
    package enum Event: Equatable {
        case ready
        case failed(Reason, responseStarted: Bool)
        case head(UInt16)
        case headWithoutBody
        case body(String)
        case ended(trailers: String?)
    }

    package var environment: Environment?
    /// The request to send, and whether it ends there.
    package var request = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
    package var endsRequest = true
    package var expectsContinue = false
    package var asksForUpgrade = false
    package var method = Method.get
    /// Whether it accepts content; if not, it asks for a pause at each part.
    package var takesContent = true
    /// What it does when a head has arrived.
    package var atHead: () -> Void = {}
    package var mayBeRepeated = true
    package var clientNetwork: IPNetwork?
    package var clientEnds: ClientEnds?
    package var response = ResponseHead()

    package private(set) var events: [Event] = []
    package private(set) var heads: [String] = []
    package private(set) var drains = 0
    /// The connection that the consumer has now, and the last one that it had.
    package private(set) var upstream: (any UpstreamStream)?
    package private(set) var lastUpstream: (any UpstreamStream)?

    package var isReady: Bool { upstream != nil }
    package var failure: Reason? {
        guard case .failed(let reason, _) = events.last else { return nil }
        return reason
    }
    /// Its response has ended, successfully or not.
    package var isOver: Bool {
        switch events.last {
        case .failed, .ended: true
        default: false
        }
    }
    /// The content, with its parts joined.
    package var content: String {
        events.reduce(into: "") { if case .body(let part) = $1 { $0 += part } }
    }

    package init(_ request: String? = nil) {
        if let request { self.request = request }
    }

    /// Forgets what was recorded, for another exchange.
    package func forget() {
        events = []
        heads = []
    }

    /// Queues more of the request, and writes it.
    package func send(_ text: String) -> Bool {
        guard let upstream, let environment else { return false }
        let buffer = Self.buffer(text, environment)
        upstream.send(buffer.readable, owner: buffer)
        return upstream.flush()
    }

    package static func buffer(_ text: String, _ environment: Environment) -> Buffer {
        let buffer = environment.loop.buffers.take(bytes: max(1, text.utf8.count))
        buffer.writable.copyBytes(from: text.utf8)
        buffer.end = text.utf8.count
        return buffer
    }

    package func upstreamReady(_ upstream: any UpstreamStream) {
        self.upstream = upstream
        lastUpstream = upstream
        events.append(.ready)
        guard environment != nil else { return }
        #expect(sendHead(on: upstream))
        _ = endsRequest ? upstream.finish(trailers: nil) : upstream.flush()
    }

    private func sendHead(on upstream: any UpstreamStream) -> Bool {
        let bytes = Array(request.utf8)
        var parser = RequestHeadParser()
        var parsed = RequestHead()
        guard case .complete = try? parser.parse(bytes.span, into: &parsed) else { return false }
        var head = upstream.makeHead(
            for: parsed, in: bytes.span, host: bytes.span.extracting(parsed.authority.indices),
            room: bytes.count)
        head.fields.appendForwardedFields(
            parsed.fields, of: bytes.span, omitting: FieldIDSet([.host]))
        return upstream.sendHead(
            head,
            of: OutgoingRequest(
                framing: .none, method: method, asksForUpgrade: asksForUpgrade,
                expectsContinue: expectsContinue),
            upgrade: [])
    }

    package func upstreamFailed(_ failure: StreamError) {
        upstream = nil
        events.append(
            .failed(failure.error.reason, responseStarted: failure.responseStarted))
    }

    package func upstreamHead(_ head: UnsafeRawBufferPointer) {
        heads.append(String(decoding: head, as: UTF8.self))
        events.append(.head(response.status))
        atHead()
    }

    package func upstreamHeadWithoutBody() { events.append(.headWithoutBody) }

    package func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool
    {
        events.append(.body(String(decoding: bytes, as: UTF8.self)))
        return takesContent
    }

    package func upstreamEnded(trailers: TrailerSection?) {
        upstream = nil
        events.append(
            .ended(trailers: trailers.map { String(decoding: $0.bytes, as: UTF8.self) }))
    }

    package func upstreamDrained() { drains += 1 }
}
