import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

extension WebSocketOptions {
    /// Options whose timeouts never expire.
    static var patient: WebSocketOptions {
        var options = WebSocketOptions()
        options.closeTimeout = .seconds(3600)
        return options
    }
}

@Suite("A WebSocket")
struct WebSocketTests {
    @Test(arguments: [false, true], [false, true])
    func `transfers messages of any length`(isSecure: Bool, compresses: Bool) async throws {
        try await withWebSocketServer(secure: isSecure, compresses: compresses) {
            $0.echo()
        } _: {
            session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            #expect(socket.isCompressed == compresses)
            #expect(socket.head.status.code == 101)
            for count in [0, 1, 125, 126, 65_535, 65_536, 300_000] {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }
                try await socket.send(bytes)
                #expect(try await socket.receive() == .binary(bytes))
                let text = String(repeating: "ü", count: count / 2)
                try await socket.send(text)
                #expect(try await socket.receive() == .text(text))
            }
            #expect(try await socket.close() == WebSocket.Closing(code: 1000, reason: ""))
            #expect(try await socket.receive() == nil)
        }
    }

    @Test func `keeps the order of its messages`() async throws {
        try await withWebSocketServer {
            $0.echo()
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            async let sending: Void = {
                for number in 0..<2000 { try await socket.send("\(number)") }
            }()
            var next = 0
            for try await message in socket.messages {
                #expect(message == .text("\(next)"))
                next += 1
                if next == 2000 { break }
            }
            try await sending
            #expect(next == 2000)
        }
    }

    @Test func `sends the request that the protocol requires`() async throws {
        let fields = ["Sec-WebSocket-Protocol: b"]
        try await withWebSocketServer(fields: fields) {
            $0.echo()
        } _: { session, url, server in
            let socket = try await session.webSocket(
                url, fields: [.init("X-A")!: "1", .init("Sec-WebSocket-Key")!: "mine"],
                protocols: ["a", "b"], options: .patient)
            #expect(socket.subprotocol == "b")
            #expect(!socket.isCompressed)
            let request = try #require(server.requests.first)
            #expect(request.startLine == "GET /chat HTTP/1.1")
            #expect(request.field("connection") == "Upgrade")
            #expect(request.field("upgrade") == "websocket")
            #expect(request.field("sec-websocket-version") == "13")
            #expect(request.field("sec-websocket-protocol") == "a, b")
            #expect(
                request.field("sec-websocket-extensions")?.hasPrefix("permessage-deflate;") == true)
            #expect(request.field("sec-websocket-key")?.utf8.count == 24)
            #expect(request.field("x-a") == "1")
            #expect(request.field("host") == String(server.url.dropFirst(7)))
        }
    }

    @Test(
        arguments: [
            (
                "HTTP/1.1 403 No\r\nX-A: b\r\nContent-Length: 2\r\n\r\nno",
                UnexpectedResponseError.Reason.status
            ),
            ("HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 0\r\n\r\n", .status),
            ("HTTP/1.1 302 There\r\nX-A: b\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", .status),
            (
                "HTTP/1.1 101 S\r\nX-A: b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
                .handshake(.wrongAccept)
            ),
            (
                "HTTP/1.1 101 S\r\nX-A: b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
                .handshake(.wrongAccept)
            ),
            ("X-A: b\r\nSec-WebSocket-Protocol: c\r\n\r\n", .handshake(.unknownProtocol)),
            ("X-A: b\r\nSec-WebSocket-Extensions: x\r\n\r\n", .handshake(.unknownExtension)),
            // Context takeover was not offered.
            (
                "X-A: b\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
                .handshake(.unknownExtension)
            ),
        ])
    func `is not opened without the handshake`(
        answer: String, reason: UnexpectedResponseError.Reason
    ) async throws {
        let (gone, whenGone) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, request in
            let isWhole = answer.hasPrefix("HTTP")
            connection.send((isWhole ? "" : TestWebSocket.head(request)) + answer)
            connection.waitForEnd()
            whenGone.yield()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let url = "ws\(server.url.dropFirst(4))"
            let error = await failure {
                _ = try await session.webSocket(url, protocols: ["a", "b"])
            }
            #expect(error?.reason == .unexpectedResponse)
            let response = try #require(error?.underlying as? UnexpectedResponseError)
            #expect(response.reason == reason)
            #expect(response.head.headerFields[.init("X-A")!] == "b")
            session.invalidate()
            for await _ in gone { break }
        }
    }

    /// The server's own fields are checked, not those that the engine would write.
    @Test(arguments: ["Upgrade: websocket\r\n", "Connection: Upgrade\r\n"])
    func `is not opened with half a handshake`(field: String) async throws {
        try await withServer { connection, request in
            let key = request.field("sec-websocket-key") ?? ""
            let accept = (try? WebSocketHandshake.accept(for: key)) ?? ""
            connection.send("HTTP/1.1 101 S\r\nSec-WebSocket-Accept: \(accept)\r\n\(field)\r\n")
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let error = await failure { _ = try await session.webSocket(server.url) }
            let reason = (error?.underlying as? UnexpectedResponseError)?.reason
            // Without Upgrade it is not a valid response at all (RFC 9110 section 7.8).
            #expect(error?.reason == .badResponse || reason == .handshake(.noUpgrade))
        }
    }

    @Test func `follows redirects if configured`() async throws {
        try await withServer { connection, request in
            guard request.path == "/b" else {
                connection.respond("307 There", ["Location: /b"])
                return true
            }
            connection.send(TestWebSocket.head(request) + "\r\n")
            TestWebSocket(connection, request).echo()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = WebSocketOptions.patient
            options.request.redirects = .follow()
            let socket = try await session.webSocket("\(server.url)/a", options: options)
            try await socket.send("hello")
            #expect(try await socket.receive() == .text("hello"))
        }
    }

    @Test(arguments: ["ftp://a/", "a/b", "ws://", "wss://u:p@a/"])
    func `has a URL of its own scheme`(url: String) async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let session = try SessionManager(runtime: runtime)
        let error = await failure { _ = try await session.webSocket(url) }
        #expect(error?.reason == .invalidRequest)
    }

    @Test(arguments: [["a", "a"], [""], ["a b"], ["a,b"]])
    func `offers protocols that are tokens`(protocols: [String]) async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let session = try SessionManager(runtime: runtime)
        let error = await failure {
            _ = try await session.webSocket("ws://127.0.0.1/", protocols: protocols)
        }
        #expect(error?.reason == .invalidRequest)
    }

    @Test func `accepts data that arrives with the handshake`() async throws {
        try await withServer { connection, request in
            // The frame of RFC 6455 section 5.7.
            let head = TestWebSocket.head(request) + "\r\n"
            connection.send(Array(head.utf8) + [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let socket = try await session.webSocket(server.url)
            #expect(try await socket.receive() == .text("Hello"))
        }
    }

    @Test func `is trusted like any server`() async throws {
        try await withServer(secure: true) { connection, request in
            connection.send(TestWebSocket.head(request) + "\r\n")
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            let url = "wss\(server.url.dropFirst(5))"
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let untrusted = await failure { _ = try await session.webSocket(url) }
            #expect(untrusted?.reason == .secureConnectionFailed)
            configuration.securityPolicy = try TestAuthority.policy()
            configuration.securityPolicy.mode = .publicKey
            configuration.securityPolicy.pins = [
                try CertificatePin("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
            ]
            let pinned = try SessionManager(configuration: configuration, runtime: runtime)
            let other = await failure { _ = try await pinned.webSocket(url) }
            #expect(other?.reason == .secureConnectionFailed)
            #expect(other?.presentedPins.isEmpty == false)
            let clear = await failure { _ = try await pinned.webSocket("ws://127.0.0.1:1/") }
            #expect(clear?.reason == .clearTextRefused)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `counts for itself`() async throws {
        var configuration = SessionConfiguration.patient
        configuration.maximumRequestsPerOrigin = 1
        configuration.maximumRequests = 1
        configuration.maximumWebSockets = 3
        try await withWebSocketServer(configuration: configuration) {
            $0.echo()
        } _: {
            session, url, server in
            var sockets: [WebSocket] = []
            for _ in 0..<3 { sockets.append(try await session.webSocket(url)) }
            let plain = try await session.data(for: try HTTPRequest(.get, server.url))
            #expect(plain.text == "no WebSocket")
            let error = await failure { _ = try await session.webSocket(url) }
            #expect(error?.reason == .outOfResources)
            for socket in sockets {
                try await socket.send("a")
                #expect(try await socket.receive() == .text("a"))
            }
        }
    }
}
