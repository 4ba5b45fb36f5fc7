import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("The end of a WebSocket")
struct WebSocketEndTests {
    private typealias Event = WebSocketConnection.Event

    /// What a server has received, once its connection has ended.
    private final class Log: Sendable {
        private let events = Locked<[WebSocketConnection.Event]>([])
        private let (ended, whenEnded) = AsyncStream.makeStream(of: Void.self)

        func read(_ socket: TestWebSocket) {
            let all = socket.receiveAll()
            events.withLock { $0 = all }
            whenEnded.finish()
        }

        var all: [WebSocketConnection.Event] {
            get async {
                for await _ in ended {}
                return events.withLock { $0 }
            }
        }
    }

    @Test(arguments: [1000, 1001, 4321, nil] as [UInt16?])
    func `is reported to the server`(code: UInt16?) async throws {
        let log = Log()
        try await withWebSocketServer {
            log.read($0)
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            try await socket.send("last")
            let reason = code == nil ? "" : "because"
            let closing = try await socket.close(code: code, reason: reason)
            // The answer repeats the code.
            #expect(closing == WebSocket.Closing(code: code, reason: ""))
            #expect(socket.closing == closing)
            #expect(!socket.isOpen)
            #expect(await failure { try await socket.send("x") }?.reason == .connectionLost)
            #expect(await failure { _ = try await socket.ping() }?.reason == .connectionLost)
            #expect(try await socket.receive() == nil)
            #expect(try await socket.close() == closing)
            #expect(await log.all == [.text("last"), .closed(code: code, reason: reason)])
        }
    }

    @Test(arguments: [0, 999, 1005, 1006, 1015, 2000, 5000] as [UInt16])
    func `has a code that may be sent`(code: UInt16) async throws {
        try await withWebSocketServer {
            $0.echo()
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            let error = await failure { _ = try await socket.close(code: code) }
            #expect(error?.reason == .invalidRequest)
            #expect(socket.isOpen)
        }
    }

    @Test(arguments: [1000, 1011, 4000, nil] as [UInt16?])
    func `is reported by the server`(code: UInt16?) async throws {
        let log = Log()
        try await withWebSocketServer { socket in
            socket.send("last")
            socket.close(code, code == nil ? "" : "bye")
            log.read(socket)
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            var messages: [WebSocket.Message] = []
            for try await message in socket.messages { messages.append(message) }
            #expect(messages == [.text("last")])
            let closing = WebSocket.Closing(code: code, reason: code == nil ? "" : "bye")
            #expect(socket.closing == closing)
            #expect(try await socket.close() == closing)
            socket.cancel()
            #expect(await log.all == [.closed(code: code, reason: "")])
        }
    }

    @Test func `is an error without a close frame`() async throws {
        try await withWebSocketServer {
            $0.send("last")
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            #expect(try await socket.receive() == .text("last"))
            let error = await failure { _ = try await socket.receive() }
            #expect(error?.reason == .connectionLost)
            #expect(error?.url == String("http" + url.dropFirst(2)))
            #expect(await failure { try await socket.send("x") }?.reason == .connectionLost)
            #expect(await failure { _ = try await socket.close() }?.reason == .connectionLost)
            #expect(socket.closing == nil)
        }
    }

    @Test func `does not wait forever`() async throws {
        try await withWebSocketServer { socket in
            // It reads no frames.
            socket.connection.waitForEnd()
        } _: { session, url, _ in
            var options = WebSocketOptions()
            options.closeTimeout = .milliseconds(20)
            let socket = try await session.webSocket(url, options: options)
            let reading = Task { await failure { _ = try await socket.receive() } }
            #expect(await failure { _ = try await socket.close() }?.reason == .timedOut)
            #expect(await reading.value?.reason == .timedOut)
        }
    }

    /// Cases from Autobahn's test suite.
    @Test(
        arguments: [
            ([0x81, 0x80, 0, 0, 0, 0], WebSocketError.wrongMasking),
            ([0xC1, 0x00], .reservedBits), ([0xA1, 0x00], .reservedBits),
            ([0x83, 0x00], .unknownOpcode), ([0x8B, 0x00], .unknownOpcode),
            ([0x09, 0x00], .fragmentedControl), ([0x89, 0x7E, 0x00, 0x7E], .controlTooLong),
            ([0x82, 0x7E, 0x00, 0x7D], .badLength),
            ([0x82, 0x7F, 0x80, 0, 0, 0, 0, 0, 0, 0], .badLength),
            ([0x80, 0x00], .unexpectedContinuation),
            ([0x01, 0x00, 0x81, 0x00], .messageWithinMessage),
            ([0x81, 0x01, 0xFF], .notUTF8), ([0x01, 0x02, 0xED, 0xA0], .notUTF8),
            ([0x88, 0x01, 0x03], .badClose), ([0x88, 0x02, 0x03, 0xED], .badClose),
            ([0x88, 0x03, 0x03, 0xE8, 0xFF], .notUTF8),
            ([0x82, 0x7E, 0x03, 0xE9], .tooLarge),
            ([0x02, 0x01, 0, 0x80, 0x7E, 0x03, 0xE8], .tooLarge),
        ] as [([UInt8], WebSocketError)])
    func `comes if the server violates the protocol`(
        bytes: [UInt8], reason: WebSocketError
    ) async throws {
        let log = Log()
        try await withWebSocketServer { socket in
            socket.send("before")
            socket.connection.send(bytes)
            log.read(socket)
        } _: { session, url, _ in
            var options = WebSocketOptions.patient
            options.maximumMessageBytes = 1000
            let socket = try await session.webSocket(url, options: options)
            #expect(try await socket.receive() == .text("before"))
            let error = await failure { _ = try await socket.receive() }
            #expect(
                error?.reason == (reason == .tooLarge ? .contentTooLong : .protocolViolation))
            #expect(error?.underlying as? WebSocketError == reason)
            let closed = Event.closed(code: reason.closeCode, reason: "")
            #expect(await log.all == [closed])
        }
    }

    @Test(
        arguments: [
            // Not deflate data at all, and a truncated block.
            ([0xC1, 0x03, 0xFF, 0xFF, 0xFF], WebSocketError.corruptCompression),
            ([0xC2, 0x01, 0x02], .corruptCompression),
            // 64 KiB of zeros in 70 bytes.
            (
                [
                    0xC2, 0x46, 0xEC, 0xC1, 0x01, 0x0D, 0x00, 0x00, 0x00, 0xC2, 0xA0, 0xF7, 0x4F,
                    0x6D, 0x0F, 0x07, 0x14,
                ] + [UInt8](repeating: 0, count: 55), .corruptCompression
            ),
            // A control frame, and a fragment after the first.
            ([0xC9, 0x00], .reservedBits), ([0x01, 0x00, 0xC0, 0x00], .reservedBits),
        ] as [([UInt8], WebSocketError)])
    func `comes if the compression is invalid`(
        bytes: [UInt8], reason: WebSocketError
    ) async throws {
        let log = Log()
        try await withWebSocketServer(compresses: true) { socket in
            socket.connection.send(bytes)
            log.read(socket)
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            let error = await failure { _ = try await socket.receive() }
            #expect(error?.reason == .protocolViolation)
            #expect(error?.underlying as? WebSocketError == reason)
            #expect(await log.all == [.closed(code: reason.closeCode, reason: "")])
        }
    }

    @Test func `comes if a compressed message is too large`() async throws {
        let log = Log()
        try await withWebSocketServer(compresses: true) { socket in
            socket.send([UInt8](repeating: 0, count: 1 << 20))
            log.read(socket)
        } _: { session, url, _ in
            var options = WebSocketOptions.patient
            options.maximumMessageBytes = 100_000
            let socket = try await session.webSocket(url, options: options)
            #expect(await failure { _ = try await socket.receive() }?.reason == .contentTooLong)
            #expect(await log.all == [.closed(code: 1009, reason: "")])
        }
    }

    @Test func `comes with the end of its session`() async throws {
        let log = Log()
        try await withWebSocketServer {
            log.read($0)
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            let calls = [
                Task { await failure { _ = try await socket.receive() } },
                Task { await failure { for _ in 0..<Int.max { try await socket.send("a") } } },
            ]
            session.invalidate(cancelling: true)
            for call in calls { #expect(await call.value?.reason == .sessionInvalidated) }
            let late = await failure { _ = try await session.webSocket(url) }
            #expect(late?.reason == .sessionInvalidated)
            _ = await log.all
        }
    }

    @Test func `is waited for by a session that is not cancelled`() async throws {
        try await withWebSocketServer {
            $0.echo()
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            session.invalidate()
            try await socket.send("still there")
            #expect(try await socket.receive() == .text("still there"))
            try await socket.close()
        }
    }

    @Test func `comes when it is released`() async throws {
        let log = Log()
        try await withWebSocketServer {
            log.read($0)
        } _: { session, url, _ in
            var socket: WebSocket? = try await session.webSocket(url, options: .patient)
            let isOpen = socket?.isOpen
            #expect(isOpen == true)
            socket = nil
            #expect(await log.all == [])
        }
    }
}
