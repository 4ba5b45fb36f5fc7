import EventLoop
import HTTPCore

/// A consumer that asks a server something for the gateway itself, to see whether it answers: of
/// the answer only the head counts.
package protocol OwnQuestion: UpstreamConsumer {}

extension OwnQuestion {
    /// Space for a question's fields.
    private static var fieldBytes: Int { 256 }

    /// Sends a GET without content. Returns false if its head is too long.
    ///
    /// - Parameters:
    ///   - path: what is asked for.
    ///   - purpose: what the question is for, as User-Agent says behind the gateway's name.
    package func ask(
        _ path: String, of origin: Origin, for purpose: StaticString,
        on upstream: any UpstreamStream
    ) -> Bool {
        let method = "GET"
        let bytes = Array((method + path).utf8)
        var request = RequestHead()
        request.methodRange = ByteRange(from: 0, to: method.utf8.count)
        request.path = ByteRange(from: method.utf8.count, to: bytes.count)
        let authority = origin.authority
        var head = upstream.makeHead(
            for: request, in: bytes.span, host: authority.span, room: Self.fieldBytes)
        let name = origin.gatewayName.bytes
        head.fields.append("User-Agent: ")
        head.fields.append(name.span)
        head.fields.append("-")
        head.fields.append(purpose)
        head.fields.append("\r\nVia: 1.1 ")
        head.fields.append(name.span)
        head.fields.appendLineEnd()
        let outgoing = OutgoingRequest(framing: .none, method: .get)
        guard upstream.sendHead(head, of: outgoing, upgrade: []) else { return false }
        _ = upstream.finish(trailers: nil)
        return true
    }

    package var mayBeRepeated: Bool { true }
    package var clientNetwork: IPNetwork? { nil }

    package func upstreamHeadWithoutBody() {}

    package func upstreamBody(
        _ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool
    ) -> Bool { true }

    package func upstreamDrained() {}
}
