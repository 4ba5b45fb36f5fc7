/// What is sent in the clear after a HelloRetryRequest (RFC 8446 §4.1.4): the client's second
/// ClientHello, which must equal the first except for what the server asked for, and the server's
/// answer to it. After that everything is encrypted.
///
///     client ──► second ClientHello ──► server ──► ServerHello ──► encrypted
///
/// This is not checked for the client's sake, which does so itself: a client that lies could have
/// the server of the first ClientHello examined, and talk to the one named in the second.
package struct HelloRetry {
    /// What the client has sent.
    package enum ClientOutcome: Hashable, Sendable {
        /// A second ClientHello that is consistent with the first, and how many of these bytes
        /// belong to it: what follows is not examined.
        case agrees(count: Int)
        /// The client aborts.
        case leaves
    }

    /// What the server has answered.
    package enum ServerOutcome: Hashable, Sendable {
        /// What follows is encrypted.
        case encrypted
        /// The server aborts.
        case alert(code: UInt8)
    }

    private let first: ClientHello
    private let request: HelloRetryRequest
    /// Whether the server may be able to read an encrypted ClientHello.
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

    /// Whether a valid second ClientHello has arrived, which may be forwarded to the server.
    package var isAgreed: Bool { second != nil }

    /// Consumes the next bytes from the client, before it is agreed; returns `nil` if more are
    /// needed.
    ///
    /// - Throws: `changed` for what a client must not change; other errors for what cannot be
    ///   followed.
    package mutating func takeFromClient(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) -> ClientOutcome? {
        var rest = bytes[...]
        while let item = try client.next(&rest) {
            switch item {
            case .alert(true, _): return .leaves
            case .alert(false, _): continue
            case .changeCipherSpec: throw .unexpected("a ChangeCipherSpec")
            case .message(let message):
                guard message.kind == .clientHello, client.isBetweenMessages else {
                    throw .unexpected("something other than a second ClientHello")
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

    /// Consumes the next bytes from the server; returns `nil` if more are needed.
    package mutating func takeFromServer(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) -> ServerOutcome? {
        var rest = bytes[...]
        while let item = try server.next(&rest) {
            switch item {
            case .alert(true, let code): return .alert(code: code)
            case .alert(false, _): continue
            case .changeCipherSpec: throw .unexpected("a ChangeCipherSpec")
            case .message(let message):
                guard message.kind == .serverHello, let second else {
                    throw .unexpected("a message before the second ClientHello")
                }
                let answer = try ServerHello(message.body, answering: second)
                guard !answer.isHelloRetryRequest else {
                    throw .unexpected("a second HelloRetryRequest")
                }
                guard answer.version == ClientHello.Version.tls13, answer.suite == request.suite
                else { throw .unexpected("another version or cipher suite than before") }
                return .encrypted
            }
        }
        return nil
    }
}
