/// The beginning of a client's stream, up to the end of its ClientHello.
package struct ClientOpening {
    private var stream: HandshakeStream

    package init(limits: HandshakeStream.Limits = HandshakeStream.Limits()) {
        stream = HandshakeStream(limits: limits)
    }

    /// Consumes the next bytes from the client.
    ///
    /// - Returns: the ClientHello once it is complete, and how many of these bytes belong to it:
    ///   what follows (early data, for example) is not examined. `nil` if more bytes are needed.
    /// - Throws: `notTLS` as soon as the bytes cannot be TLS.
    package mutating func take(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) -> (hello: ClientHello, count: Int)? {
        var rest = bytes[...]
        guard let item = try stream.next(&rest) else { return nil }
        guard case .message(let message) = item, message.kind == .clientHello else {
            throw .unexpected("something other than a ClientHello")
        }
        guard stream.isBetweenMessages else { throw .unexpected("data after the ClientHello") }
        return (try ClientHello(message.body), bytes.count - rest.count)
    }
}
