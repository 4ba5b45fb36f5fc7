/// What goes by in the clear after a HelloRetryRequest (RFC 8446 §4.1.4): the client's second
/// ClientHello, which has to be the first but for what the server asked for, and the server's
/// answer to it. From there on all is encrypted.
///
///     client ──► second ClientHello ──► server ──► ServerHello ──► encrypted
///
/// It is not looked at for the client's sake, who does that itself. A client that lies might have
/// the server of the first ClientHello examined, and speak with that of the second.
package struct HelloRetry {
    /// What the client has said.
    package enum Saying: Hashable, Sendable {
        /// A second ClientHello that agrees with the first, and how many of these bytes belong to
        /// it: what follows is not looked at.
        case agrees(count: Int)
        /// It will not go on.
        case leaves
    }

    /// What the server has said.
    package enum Answer: Hashable, Sendable {
        /// What follows is encrypted.
        case encrypted
        /// The server will not.
        case alert(code: UInt8)
    }

    private let first: ClientHello
    private let request: HelloRetryRequest
    /// Whether the server may read an encrypted ClientHello.
    private let readsEncryptedHello: Bool
    private var client: HandshakeStream
    private var server = HandshakeStream(stage: .afterRetry(skipsEarlyData: false))
    private var second: ClientHello?

    init(of first: ClientHello, by request: HelloRetryRequest, readsEncryptedHello: Bool) {
        self.first = first
        self.request = request
        self.readsEncryptedHello = readsEncryptedHello
        client = HandshakeStream(stage: .afterRetry(skipsEarlyData: first.offersEarlyData))
    }

    /// The second ClientHello is there, and the server may have it.
    package var isAgreed: Bool { second != nil }

    /// Takes the next bytes of the client, before it is agreed; nil: more of them are needed.
    ///
    /// - Throws: `changed` for what a client must not change; what cannot be followed.
    package mutating func takeFromClient(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) -> Saying? {
        var rest = bytes[...]
        while let item = try client.next(&rest) {
            switch item {
            case .alert(true, _): return .leaves
            case .alert(false, _): continue
            case .changeCipherSpec: throw .unexpected("a change of cipher")
            case .message(let message):
                guard message.kind == .clientHello, client.isBetweenMessages else {
                    throw .unexpected("something else than a second ClientHello")
                }
                let hello = try ClientHello(message.body)
                try first.requireSame(
                    in: hello, for: request, readsEncryptedHello: readsEncryptedHello)
                second = hello
                return .agrees(count: bytes.count - rest.count)
            }
        }
        return nil
    }

    /// Takes the next bytes of the server; nil: more of them are needed.
    package mutating func takeFromServer(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) -> Answer? {
        var rest = bytes[...]
        while let item = try server.next(&rest) {
            switch item {
            case .alert(true, let code): return .alert(code: code)
            case .alert(false, _): continue
            case .changeCipherSpec: throw .unexpected("a change of cipher")
            case .message(let message):
                guard message.kind == .serverHello, let second else {
                    throw .unexpected("a message before the second ClientHello")
                }
                let answer = try ServerHello(message.body, answering: second)
                guard !answer.asksForRetry else {
                    throw .unexpected("a second request for another ClientHello")
                }
                guard answer.version == ClientHello.Version.tls13, answer.suite == request.suite
                else { throw .unexpected("another version or cipher suite than before") }
                return .encrypted
            }
        }
        return nil
    }
}
