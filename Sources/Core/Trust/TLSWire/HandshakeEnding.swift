/// The rest of a full handshake after the server's flight, before TLS 1.3: the client's messages up
/// to its ChangeCipherSpec, then the server's, with the ticket for another connection.
///
/// It is still examined because an old client may accept a message that comes too early: a
/// ChangeCipherSpec before the keys are agreed on makes some of them use an empty key
/// (CVE-2014-0224).
package struct HandshakeEnding {
    private var client: HandshakeStream
    private var server: HandshakeStream

    private var serverIsOver = false

    /// The ticket for resuming the session, in addition to its identifier; empty if there is none.
    package private(set) var ticket: [UInt8] = []
    /// Whether one side has aborted the handshake with an alert.
    package private(set) var isBroken = false

    package init(limits: HandshakeStream.Limits = HandshakeStream.Limits()) {
        client = HandshakeStream(limits: limits)
        server = HandshakeStream(limits: limits)
    }

    /// Creates the end of a resumed session's handshake, of which the server has sent everything
    /// that is not encrypted: the client sends its ChangeCipherSpec only after it has seen the
    /// server's proof of the session.
    ///
    /// - Parameter ticket: the ticket that the client was given; empty if none.
    package init(resumedWith ticket: [UInt8]) {
        self.init()
        self.ticket = ticket
        serverIsOver = true
    }

    /// Whether both sides are encrypting.
    package var isOver: Bool { client.isOver && (serverIsOver || server.isOver) }

    /// Consumes the next bytes from the client.
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
                    guard !serverIsOver else { throw .unexpected("a message from the client") }
                default: throw .unexpected("a message from the client")
                }
            }
        }
    }

    /// Consumes the next bytes from the server.
    package mutating func takeFromServer(
        _ bytes: UnsafeRawBufferPointer
    ) throws(TLSWireError) {
        guard !serverIsOver else { return }
        var rest = bytes[...]
        while let item = try server.next(&rest) {
            switch item {
            case .alert(let isFatal, _): isBroken = isBroken || isFatal
            case .changeCipherSpec:
                guard client.isOver else { throw .unexpected("an early ChangeCipherSpec") }
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
