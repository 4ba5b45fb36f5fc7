import HTTPCore

/// Answers requests that are for the gateway itself, not for a server.
package protocol LocalSite: AnyObject {
    /// - Parameters:
    ///   - bytes: the bytes of the head.
    ///   - client: who asks.
    func answer(
        to request: borrowing RequestHead, in bytes: Span<UInt8>, from client: LocalClient
    ) -> LocalAnswer
}

/// The client of a ``LocalSite``.
package struct LocalClient {
    /// The listener through which it came, with the results of its TLS handshake.
    package var ingress: Ingress?
    package var peer: Endpoint?
    /// The gateway's address that it is connected to; `nil` for a Unix socket.
    package var localAddress: IPAddress?
}

/// What a ``LocalSite`` answers.
package enum LocalAnswer {
    case now(LocalResponse)
    /// It depends on the content of the request, which is collected first: at most as many bytes.
    /// The closure is called with all of it, on the loop.
    case afterContent(maximum: Int, _ answer: (_ content: [UInt8]) -> LocalAnswer)
    /// The response comes later. The closure begins what it takes, and does not wait; what it is
    /// given is to be called once, on any thread.
    case later((_ reply: @escaping @Sendable (LocalResponse) -> Void) -> Void)
    /// The content after this head, the body of which is not sent, comes piece by piece, as long as
    /// there is any. The closure begins what the next piece takes, and does not wait; what it is
    /// given is to be called once, on any thread. It is not called before all pieces until then
    /// have been written: a client that reads slowly holds up nothing, and no more than one piece
    /// waits for it.
    case stream(LocalResponse, next: LocalPieces)
}

/// What begins to produce the next piece of the content of a ``LocalSite``'s response.
package typealias LocalPieces =
    @Sendable (_ reply: @escaping @Sendable (LocalPiece) -> Void) -> Void

/// A piece of the content of a ``LocalSite``'s response.
package enum LocalPiece: Sendable {
    case bytes([UInt8])
    /// There are no more.
    case end
}

/// A response of a ``LocalSite``.
package struct LocalResponse: Sendable {
    package var status: UInt16
    /// Name and value of each field, Content-Type among them.
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]
    /// Whether the connection is closed after it.
    package var closesConnection = false

    package init(status: UInt16, fields: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}
