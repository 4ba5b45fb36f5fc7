import CLinux
import TestSupport
import Testing

@testable import PinfoldClient

/// A server of HTTP/2 alone that takes WebSockets in streams (RFC 8441), of Python's `h2` and
/// `websockets`. It echoes messages, and resets the stream for "reset". Its argument is a PEM file
/// with its certificate and key.
private enum StreamServer {
    static let script = """
        \(TestProgram.hearsSignals)
        import socket, ssl, sys
        import h2.config, h2.connection, h2.events, h2.settings
        from websockets.frames import Opcode
        from websockets.protocol import Protocol, Side, State
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1])
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        wire = context.wrap_socket(listener.accept()[0], server_side=True)
        http = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        http.initiate_connection()
        http.update_settings({h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL: 1})
        sockets, waiting, ending = {}, {}, set()
        def begin(stream, fields):
            if fields[":method"] != "CONNECT":
                http.send_headers(stream, [(":status", "200")])
                return http.send_data(stream, b"plain", end_stream=True)
            assert fields[":protocol"] == "websocket" and "sec-websocket-key" not in fields
            sockets[stream] = Protocol(Side.SERVER, state=State.OPEN, max_size=None)
            waiting[stream] = bytearray()
            http.send_headers(stream, [(":status", "200"), ("sec-websocket-protocol", "echo")])
        def receive(stream, data):
            ours = sockets.get(stream)
            if ours is None:
                return
            ours.receive_data(data)
            for frame in ours.events_received():
                if frame.opcode is Opcode.TEXT and frame.data == b"reset":
                    del sockets[stream], waiting[stream]
                    return http.reset_stream(stream, 2)
                if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                    ours.send_continuation(frame.data, frame.fin) \\
                        if frame.opcode is Opcode.CONT else (
                            ours.send_text if frame.opcode is Opcode.TEXT else ours.send_binary
                        )(frame.data, frame.fin)
            for out in ours.data_to_send():
                waiting[stream] += out
                ending.update([stream] if not out else [])
        def pump():
            for stream, data in list(waiting.items()):
                while data and (room := min(
                        http.local_flow_control_window(stream), http.max_outbound_frame_size)) > 0:
                    http.send_data(stream, bytes(data[:room]))
                    del data[:room]
                if not data and stream in ending:
                    http.end_stream(stream)
                    del waiting[stream], sockets[stream]
        while True:
            pump()
            wire.sendall(http.data_to_send())
            if not (data := wire.recv(1 << 16)):
                break
            for event in http.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    begin(event.stream_id, dict(event.headers))
                elif isinstance(event, h2.events.DataReceived):
                    http.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id)
                    receive(event.stream_id, event.data)
        """
}

@Suite("A WebSocket in a stream of HTTP/2", .enabled(if: TestProgram.python != nil))
struct HTTP2WebSocketTests {
    /// Runs a body with a session that knows that the server takes WebSockets in streams.
    private static func with(
        _ body: (SessionManager, _ url: String) async throws -> Void
    ) async throws {
        let folder = TemporaryFolder()
        let pem = TestAuthority.makePEM(name: "websockets.test")
        folder.write(pem, to: "server.pem")
        let python = try #require(TestProgram.python)
        let program = try TestProgram(
            "'\(python)' -c '\(StreamServer.script)' '\(folder.file("server.pem"))'")
        let port = try #require(program.line(), "the server did not start")
        let runtime = try ClientRuntime()
        defer {
            runtime.close()
            program.close()
        }
        var configuration = SessionConfiguration.patient
        configuration.securityPolicy.trustsSystem = false
        configuration.securityPolicy.anchors = try CertificatePin.pins(
            in: TestAuthority.certificate(of: pem)
        ).compactMap(\.certificate)
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        let plain = try await session.data(for: HTTPRequest(.get, "https://127.0.0.1:\(port)/"))
        #expect(plain.text == "plain")
        try await body(session, "wss://127.0.0.1:\(port)/")
    }

    @Test func `transfers messages beside requests`() async throws {
        try await Self.with { session, url in
            let socket = try await session.webSocket(
                url, protocols: ["echo"], options: .patient)
            #expect(socket.head.status.code == 101)
            #expect(socket.subprotocol == "echo")
            for count in [0, 1, 125, 126, 65_536, 1_000_000] {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }
                try await socket.send(bytes)
                #expect(try await socket.receive() == .binary(bytes))
            }
            let second = try await session.webSocket(url, protocols: ["echo"], options: .patient)
            try await second.send("Grüße")
            #expect(try await second.receive() == .text("Grüße"))
            let other = url.replacing("wss:", with: "https:")
            #expect(try await session.data(for: HTTPRequest(.get, other)).text == "plain")
            #expect(try await socket.close() == WebSocket.Closing(code: 1000, reason: ""))
            #expect(try await socket.receive() == nil)
            try await second.send("still")
            #expect(try await second.receive() == .text("still"))
        }
    }

    @Test func `fails if its stream is reset`() async throws {
        try await Self.with { session, url in
            let socket = try await session.webSocket(
                url, protocols: ["echo"], options: .patient)
            try await socket.send("reset")
            await #expect(throws: ClientError.self) { _ = try await socket.receive() }
        }
    }
}
