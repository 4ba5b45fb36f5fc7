import HTTPTypes
import Locking
import TestSupport
import Testing

@testable import PinfoldClient

/// Counts how often content was requested.
private final class CountedContent: Sendable {
    private let count = Locked(0)

    var reads: Int { count.withLock { $0 } }

    /// Content that can be read only once.
    var stream: RequestContent {
        let parts = Locked(["one", "two"])
        return .stream(
            AsyncStream<[UInt8]> { [count] in
                count.withLock { $0 += 1 }
                return parts.withLock { $0.isEmpty ? nil : Array($0.removeFirst().utf8) }
            })
    }
}

@Suite("Content that waits for the server to ask for it", .timeLimit(.minutes(30)))
struct ExpectContinueTests {
    private static func options(_ timeout: Duration = .seconds(3600)) -> RequestOptions {
        var options = RequestOptions()
        options.continueTimeout = timeout
        return options
    }

    /// Asks for the content.
    private static let asks: TestServer.Answer = { connection, _ in
        connection.send("HTTP/1.1 100 Continue\r\n\r\n")
    }

    private static let echo: TestServer.Answer = { connection, request in
        connection.respond("200 OK", [], "\(request.field("expect") ?? "none") \(request.text)")
        return true
    }

    @Test(arguments: [false, true])
    func `is not read before the server has asked`(isSecure: Bool) async throws {
        let (gate, content) = (try AnswerGate(), CountedContent())
        try await withServer(secure: isSecure, Self.echo) { server, runtime in
            server.expectation.withLock {
                $0 = { connection, request in
                    connection.wait(at: gate)
                    // Another interim response asks for nothing.
                    connection.send("HTTP/1.1 102 Processing\r\n\r\n")
                    return Self.asks(connection, request)
                }
            }
            var configuration = SessionConfiguration.patient
            if isSecure { configuration.securityPolicy = try TestAuthority.policy() }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let request = try HTTPRequest(.put, server.url)
            async let sent = session.data(
                for: request, content: content.stream, options: Self.options())
            await gate.arrival()
            #expect(content.reads == 0)
            gate.open()
            let response = try await sent
            #expect(response.text == "100-continue onetwo")
            #expect(content.reads == 3)
            // The connection goes on.
            let second = try await session.data(
                for: request, content: .text("more"), options: Self.options())
            #expect(second.text == "100-continue more")
            #expect(server.connections == 1)
        }
    }

    @Test(
        arguments: [
            .text("one"), .bytes([UInt8](repeating: 1, count: 1 << 20)),
            .stream(parts(["a", "b"])),
        ] as [RequestContent])
    func `is sent anyway when the time is over`(content: RequestContent) async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], "\(request.content.count)")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: content,
                options: Self.options(.milliseconds(1)))
            #expect(response.text == "\(content.length ?? 2)")
            #expect(server.requests.map { $0.field("expect") } == ["100-continue"])
        }
    }

    @Test func `is not sent if the server responds instead`() async throws {
        let content = CountedContent()
        try await withServer { connection, request in
            connection.respond("413 Content Too Large", [], "too large")
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            server.expectation.withLock { $0 = { _, _ in false } }
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: content.stream,
                options: Self.options())
            #expect(response.head.status.code == 413)
            #expect(response.text == "too large")
            #expect(response.metrics.transactions[0].sentBytes == 0)
            #expect(content.reads == 0)
        }
    }

    @Test func `is sent without waiting once a server has refused that`() async throws {
        try await withServer { connection, request in
            guard request.field("expect") == nil else {
                connection.respond("417 Expectation Failed")
                return false
            }
            return Self.echo(connection, request)
        } _: { server, runtime in
            server.expectation.withLock { $0 = { _, _ in false } }
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: CountedContent().stream,
                options: Self.options())
            #expect(response.text == "none onetwo")
            #expect(response.metrics.transactions.map(\.cause) == [.task, .expectation])
        }
    }

    @Test func `that can be read only once is there for a redirect and a challenge`() async throws {
        let content = CountedContent()
        try await withServer { connection, request in
            if request.path != "/end" {
                connection.respond("307 Temporary Redirect", ["Location: /end"])
                return false
            }
            guard request.field("authorization") != nil else {
                connection.respond("401 Unauthorized", ["WWW-Authenticate: Basic realm=\"a\""])
                return false
            }
            return Self.echo(connection, request)
        } _: { server, runtime in
            server.expectation.withLock {
                $0 = { connection, request in
                    request.path == "/end" && request.field("authorization") != nil
                        && Self.asks(connection, request)
                }
            }
            var configuration = SessionConfiguration.patient
            configuration.challenges = { _ in
                .useCredential(Credential(user: "a", password: "b"))
            }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let response = try await session.data(
                for: try HTTPRequest(.put, server.url), content: content.stream,
                options: Self.options())
            #expect(response.text == "100-continue onetwo")
            #expect(response.metrics.transactions.map(\.status) == [307, 401, 200])
        }
    }

    @Test func `is that of requests which have some and ask for it`() async throws {
        try await withServer(Self.echo) { server, runtime in
            server.expectation.withLock { $0 = Self.asks }
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            for (method, content, options, expected) in [
                (.get, nil, Self.options(), "none "), (.post, nil, Self.options(), "none "),
                (.put, .text(""), Self.options(), "none "),
                (.put, .text("a"), RequestOptions(), "none a"),
                (.put, .text("a"), Self.options(), "100-continue a"),
            ] as [(HTTPRequest.Method, RequestContent?, RequestOptions, String)] {
                let response = try await session.data(
                    for: try HTTPRequest(method, server.url), content: content, options: options)
                #expect(response.text == expected)
            }
        }
        let mock = MockTransport { request in
            TransportResponse(text: request.head.headerFields[.expect] ?? "none")
        }
        try await withMock(mock) { session in
            let response = try await session.data(
                for: try HTTPRequest(.put, "http://a.test/"), content: .text("a"),
                options: Self.options())
            #expect(response.text == "none")
        }
    }

    @Test func `is waited for no longer than a task may take`() async throws {
        try await withServer { _, _ in
            false
        } _: { server, runtime in
            server.expectation.withLock {
                $0 = { connection, _ in
                    connection.waitForEnd()
                    return false
                }
            }
            var configuration = SessionConfiguration.patient
            configuration.resourceTimeout = .milliseconds(20)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let error = await failure {
                _ = try await session.data(
                    for: try HTTPRequest(.put, server.url), content: .text("a"),
                    options: Self.options())
            }
            #expect(error?.reason == .timedOut)
        }
    }

    /// A server of HTTP/2, of Python's `h2`: it asks for content that was not sent before, refuses
    /// that of `/no` without resetting the stream, and tells what it got.
    private static let script = """
        \(TestProgram.hearsSignals)
        import socket, ssl, sys
        import h2.config, h2.connection, h2.events
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1])
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        wire = context.wrap_socket(listener.accept()[0], server_side=True)
        http = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8"))
        http.initiate_connection()
        wire.sendall(http.data_to_send())
        contents = {}
        while data := wire.recv(1 << 16):
            for event in http.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    fields, stream = dict(event.headers), event.stream_id
                    http.send_headers(stream, [(":status", "103")])
                    if fields[":path"] == "/no":
                        http.send_headers(stream, [(":status", "403")], end_stream=True)
                    else:
                        assert fields["expect"] == "100-continue"
                        contents[stream] = b""
                        http.send_headers(stream, [(":status", "100")])
                elif isinstance(event, h2.events.DataReceived):
                    http.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id)
                    contents[event.stream_id] += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    content = contents[event.stream_id]
                    http.send_headers(event.stream_id, [(":status", "200")])
                    http.send_data(
                        event.stream_id, content if len(content) < 100 else b"%d" % len(content),
                        end_stream=True)
            wire.sendall(http.data_to_send())
        """

    @Test(.enabled(if: TestProgram.python != nil))
    func `waits in a stream of HTTP/2 as well`() async throws {
        let folder = TemporaryFolder()
        let pem = TestAuthority.makePEM(name: "expect.test")
        folder.write(pem, to: "server.pem")
        let python = try #require(TestProgram.python)
        let program = try TestProgram(
            "'\(python)' -c '\(Self.script)' '\(folder.file("server.pem"))'")
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
        let content = CountedContent()
        for (path, status, text, reads) in [
            ("yes", 200, "onetwo", 3), ("no", 403, "", 3), ("yes", 200, "onetwo", 6),
        ] {
            let response = try await session.data(
                for: try HTTPRequest(.put, "https://127.0.0.1:\(port)/\(path)"),
                content: content.stream, options: Self.options())
            #expect(response.head.status.code == status)
            #expect(response.text == text)
            #expect(response.metrics.transactions[0].protocolName == "h2")
            #expect(response.metrics.transactions[0].sentBytes == (status == 200 ? 6 : 0))
            #expect(content.reads == reads)
        }
        let long = [UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20)
        let response = try await session.data(
            for: try HTTPRequest(.put, "https://127.0.0.1:\(port)/long"),
            content: .bytes(long), options: Self.options())
        #expect(response.text == "\(long.count)")
    }
}
