/// What is left of a full handshake after the server's flight, before TLS 1.3: the client's
/// messages up to its change of cipher, then the server's, with the ticket for another connection.
///
/// It is still looked at because an old client may take what comes too early for what it expects: a
/// change of cipher before the keys are agreed on makes some of them use no key (CVE-2014-0224).
package struct HandshakeEnding {
    private var client: HandshakeStream
    private var server: HandshakeStream

    private var serverIsOver = false

    /// What the session may be resumed by, besides its identifier; empty: by nothing.
    package private(set) var ticket: [UInt8] = []
    /// One side has ended the handshake by an alert.
    package private(set) var isBroken = false

    package init(limits: HandshakeStream.Limits = HandshakeStream.Limits()) {
        client = HandshakeStream(limits: limits)
        server = HandshakeStream(limits: limits)
    }

    /// Of a session that goes on, where the server has said all that is not encrypted: the client
    /// changes its cipher only when it has seen the server's proof of the session.
    ///
    /// - Parameter ticket: what it was given; empty: nothing.
    package init(resumedWith ticket: [UInt8]) {
        self.init()
        self.ticket = ticket
        serverIsOver = true
    }

    /// Both sides speak encrypted.
    package var isOver: Bool { client.isOver && (serverIsOver || server.isOver) }

    /// Takes the next bytes of the client.
    package mutating func takeFromClient(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) {
        var rest = bytes[...]
        while let item = try client.next(&rest) {
            switch item {
            case .alert(let isFatal, _): isBroken = isBroken || isFatal
            case .changeCipherSpec: return
            case .message(let message):
                switch message.kind {
                case .certificate, .clientKeyExchange, .certificateVerify, .certificateURL:
                    guard !serverIsOver else { throw .unexpected("a message of the client") }
                default: throw .unexpected("a message of the client")
                }
            }
        }
    }

    /// Takes the next bytes of the server.
    package mutating func takeFromServer(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) {
        guard !serverIsOver else { return }
        var rest = bytes[...]
        while let item = try server.next(&rest) {
            switch item {
            case .alert(let isFatal, _): isBroken = isBroken || isFatal
            case .changeCipherSpec:
                guard client.isOver else { throw .unexpected("an early change of cipher") }
                return
            case .message(let message):
                guard message.kind == .newSessionTicket, client.isOver, ticket.isEmpty else {
                    throw .unexpected("a message after the server's flight")
                }
                ticket = try SessionTicket.read(message.body)
            }
        }
    }
}
