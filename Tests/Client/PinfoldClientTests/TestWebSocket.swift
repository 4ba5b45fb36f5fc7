import Testing

@testable import PinfoldClient

/// The server's end of a WebSocket. Each call blocks.
final class TestWebSocket {
    let connection: TestConnection
    let request: TestRequest
    private var frames: WebSocketConnection
    private var events: [WebSocketConnection.Event] = []

    init(_ connection: TestConnection, _ request: TestRequest, compresses: Bool = false) {
        self.connection = connection
        self.request = request
        frames = WebSocketConnection(role: .server, compresses: compresses)
    }

    /// The head of the 101 response to a request, without its empty line.
    static func head(_ request: TestRequest, accept: String? = nil) -> String {
        let key = request.field("sec-websocket-key") ?? ""
        let accept = accept ?? (try? WebSocketHandshake.accept(for: key)) ?? ""
        return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Accept: \(accept)\r\n"
    }

    /// Returns the next event, or `nil` if the client has closed the connection.
    func receive() -> WebSocketConnection.Event? {
        while events.isEmpty {
            guard let bytes = connection.receive() else { return nil }
            events = frames.receive(bytes)
            flush()
        }
        return events.removeFirst()
    }

    func send(_ text: String) {
        frames.send(text: text)
        flush()
    }

    func send(_ bytes: [UInt8]) {
        frames.send(binary: bytes)
        flush()
    }

    func ping(_ content: [UInt8]) {
        frames.ping(content)
        flush()
    }

    func close(_ code: UInt16?, _ reason: String = "") {
        frames.close(code, reason: reason)
        flush()
    }

    private func flush() {
        let bytes = frames.takeOutput()
        if !bytes.isEmpty { connection.send(bytes) }
    }

    /// Returns all events until the client has closed, or its connection has ended.
    func receiveAll() -> [WebSocketConnection.Event] {
        var all: [WebSocketConnection.Event] = []
        while let event = receive() {
            all.append(event)
            switch event {
            case .closed, .failed: return all
            case .text, .binary, .ping, .pong: break
            }
        }
        return all
    }

    /// Echoes messages until the client closes.
    func echo() {
        while let event = receive() {
            switch event {
            case .text(let text): send(text)
            case .binary(let bytes): send(bytes)
            case .ping, .pong: break
            case .closed, .failed: return
            }
        }
    }
}

/// Runs a test with a WebSocket server and a session.
///
/// - Parameters:
///   - fields: Additional fields of the 101 response.
///   - serve: Called for each connection after the handshake, which is closed afterwards.
func withWebSocketServer(
    secure: Bool = false, compresses: Bool = false, fields: [String] = [],
    configuration: SessionConfiguration = .patient,
    _ serve: @escaping @Sendable (TestWebSocket) -> Void,
    _ body: (SessionManager, String, TestServer) async throws -> Void
) async throws {
    try await withServer(secure: secure) { connection, request in
        guard request.field("upgrade") == "websocket" else {
            connection.respond("200 OK", [], "no WebSocket")
            return true
        }
        var fields = fields
        if compresses {
            fields.append(
                "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover")
        }
        connection.send(
            TestWebSocket.head(request) + fields.map { "\($0)\r\n" }.joined() + "\r\n")
        serve(TestWebSocket(connection, request, compresses: compresses))
        return false
    } _: { server, runtime in
        var configuration = configuration
        if secure { configuration.securityPolicy = try TestAuthority.policy() }
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        // wss for https.
        try await body(session, "ws\(server.url.dropFirst(4))/chat", server)
    }
}
