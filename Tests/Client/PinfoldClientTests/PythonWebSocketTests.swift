import CLinux
import TestSupport
import Testing

@testable import PinfoldClient

/// A WebSocket server using Python's `websockets`, from the environment created by `deploy/venv`.
private final class PythonWebSocketServer: Sendable {
    /// Echoes messages, except for a few commands. Its argument is a PEM file with its certificate
    /// and key, or nothing.
    private static let script = """
        \(TestProgram.hearsSignals)
        import asyncio, ssl, sys
        from websockets.asyncio.server import serve
        async def answer(socket):
            async for message in socket:
                if message == "fragments":
                    await socket.send(["one ", "two ", "three"])
                elif message == "ping":
                    await (await socket.ping())
                    await socket.send("pong")
                elif message == "close":
                    await socket.close(4001, "asked for")
                else:
                    await socket.send(message)
        async def main():
            context = None
            if sys.argv[1:]:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(sys.argv[1])
            async with serve(
                answer, "127.0.0.1", 0, max_size=None, subprotocols=["echo"], ssl=context,
                open_timeout=None, ping_interval=None, close_timeout=3600
            ) as server:
                print(server.sockets[0].getsockname()[1], flush=True)
                await asyncio.get_running_loop().create_future()
        asyncio.run(main())
        """

    let url: String
    private let program: TestProgram

    /// Returns once it is listening.
    init(certificate: String?) throws {
        let python = try #require(TestProgram.python)
        program = try TestProgram(
            "'\(python)' -c '\(Self.script)' \(certificate.map { "'\($0)'" } ?? "")")
        let port = try #require(program.line(), "websockets did not start")
        url = "\(certificate == nil ? "ws" : "wss")://127.0.0.1:\(port)/"
    }

    func close() { program.close() }
}

@Suite("A WebSocket of Python's websockets", .enabled(if: TestProgram.python != nil))
struct PythonWebSocketTests {
    @Test(arguments: [false, true], [false, true])
    func `is used with its own protocol`(compresses: Bool, isSecure: Bool) async throws {
        let folder = TemporaryFolder()
        let pem = TestAuthority.makePEM(name: "websockets.test")
        folder.write(pem, to: "server.pem")
        let server = try PythonWebSocketServer(
            certificate: isSecure ? folder.file("server.pem") : nil)
        let runtime = try ClientRuntime()
        defer {
            runtime.close()
            server.close()
        }
        var configuration = SessionConfiguration.patient
        if isSecure {
            configuration.securityPolicy.trustsSystem = false
            configuration.securityPolicy.anchors = try CertificatePin.pins(
                in: TestAuthority.certificate(of: pem)
            ).compactMap(\.certificate)
        }
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        var options = WebSocketOptions.patient
        options.offersCompression = compresses
        let socket = try await session.webSocket(
            server.url, protocols: ["other", "echo"], options: options)
        #expect(socket.isCompressed == compresses)
        #expect(socket.subprotocol == "echo")
        for count in [0, 1, 125, 126, 65_536, 1_000_000] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) }
            try await socket.send(bytes)
            #expect(try await socket.receive() == .binary(bytes))
        }
        try await socket.send("Grüße")
        #expect(try await socket.receive() == .text("Grüße"))
        try await socket.send("fragments")
        #expect(try await socket.receive() == .text("one two three"))
        try await socket.send("ping")
        #expect(try await socket.receive() == .text("pong"))
        try await socket.ping()
        try await socket.send("close")
        #expect(try await socket.receive() == nil)
        #expect(socket.closing == WebSocket.Closing(code: 4001, reason: "asked for"))
    }
}
