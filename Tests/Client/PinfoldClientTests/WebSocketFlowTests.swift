import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

@Suite("What moves through a WebSocket")
struct WebSocketFlowTests {
    @Test func `has its pings answered, and answers those of the server`() async throws {
        let (pongs, ponged) = AsyncStream.makeStream(of: [UInt8].self)
        try await withWebSocketServer { socket in
            socket.ping([1, 2, 3])
            while case .pong(let content)? = socket.receive() { ponged.yield(content) }
            socket.echo()
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            // No message is received.
            for await content in pongs {
                #expect(content == [1, 2, 3])
                break
            }
            #expect(try await socket.ping() >= .zero)
            await withTaskGroup(of: ClientError?.self) { group in
                for _ in 0..<20 { group.addTask { await failure { try await socket.ping() } } }
                for await error in group { #expect(error == nil) }
            }
        }
    }

    @Test func `waits if the server does not read`() async throws {
        let mayRead = Monitor(false)
        let messages = 100
        let part = [UInt8](repeating: 7, count: 1 << 18)
        try await withWebSocketServer { socket in
            mayRead.wait { $0 ? .done(()) : .signal }
            // Not all of it fits into the buffers between the two.
            while let event = socket.receive() {
                if case .binary(let bytes) = event { socket.send("\(bytes.count)") }
            }
        } _: { session, url, _ in
            defer {
                mayRead.withLock { $0 = true }
                mayRead.broadcast()
            }
            var options = WebSocketOptions.patient
            options.sendBufferBytes = 1 << 20
            options.offersCompression = false
            let socket = try await session.webSocket(url, options: options)
            let sent = Locked(0)
            let sending = Task {
                for _ in 0..<messages {
                    try await socket.send(part)
                    sent.withLock { $0 += 1 }
                }
            }
            // One task waits behind the other: it is cancelled, and its message is not sent.
            let late = Task {
                while sent.withLock({ $0 }) < 3 { await Task.yield() }
                // There may be space for many of these until the server's buffers are full.
                return await failure { while true { try await socket.send("late") } }
            }
            while sent.withLock({ $0 }) < 3 { await Task.yield() }
            late.cancel()
            #expect(await late.value?.reason == .cancelled)
            #expect(sent.withLock { $0 } < messages)
            mayRead.withLock { $0 = true }
            mayRead.broadcast()
            var received = 0
            for try await message in socket.messages {
                #expect(message == .text("\(part.count)"))
                received += 1
                if received == messages { break }
            }
            try await sending.value
        }
    }

    @Test func `waits if no message is received`() async throws {
        let count = 100
        let sent = Locked(0)
        try await withWebSocketServer { socket in
            for number in 0..<count {
                socket.send([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1 << 18))
                sent.withLock { $0 += 1 }
            }
            socket.close(1000)
            _ = socket.receiveAll()
        } _: { session, url, _ in
            var options = WebSocketOptions.patient
            options.receiveBufferMessages = 4
            let socket = try await session.webSocket(url, options: options)
            // More than is buffered has arrived, and the server's socket is full.
            while sent.withLock({ $0 }) < 5 { await Task.yield() }
            #expect(sent.withLock { $0 } < count)
            var next = 0
            for try await message in socket.messages {
                guard case .binary(let bytes) = message else { continue }
                #expect(bytes.count == 1 << 18 && bytes[0] == UInt8(truncatingIfNeeded: next))
                next += 1
            }
            #expect(next == count)
            #expect(socket.closing?.code == 1000)
        }
    }

    @Test func `does not keep closing from its end`() async throws {
        try await withWebSocketServer { socket in
            for _ in 0..<1000 { socket.send("waits") }
            _ = socket.receiveAll()
        } _: { session, url, _ in
            var options = WebSocketOptions.patient
            options.receiveBufferMessages = 1
            let socket = try await session.webSocket(url, options: options)
            // No message is received: what does not fit is discarded.
            #expect(try await socket.close().code == 1000)
            #expect(try await socket.receive() == .text("waits"))
        }
    }

    @Test func `is delivered to the receivers in turn`() async throws {
        let count = 40
        try await withWebSocketServer {
            $0.echo()
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            let found = try await withThrowingTaskGroup(of: WebSocket.Message?.self) { group in
                for _ in 0..<count { group.addTask { try await socket.receive() } }
                for number in 0..<count { try await socket.send("\(number)") }
                var found: Set<WebSocket.Message> = []
                for try await message in group { if let message { found.insert(message) } }
                return found
            }
            #expect(found.count == count)
        }
    }

    // MARK: Cancelling

    @Test func `is not opened for a task that is cancelled`() async throws {
        let (asked, whenAsked) = AsyncStream.makeStream(of: Void.self)
        let (gone, whenGone) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            whenAsked.yield()
            connection.waitForEnd()
            whenGone.yield()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let opening = Task { await failure { _ = try await session.webSocket(server.url) } }
            for await _ in asked { break }
            // One handshake at a time: this one has not begun.
            let waiting = Task { await failure { _ = try await session.webSocket(server.url) } }
            waiting.cancel()
            #expect(await waiting.value?.reason == .cancelled)
            opening.cancel()
            #expect(await opening.value?.reason == .cancelled)
            for await _ in gone { break }
            #expect(server.requests.count == 1)
        }
    }

    enum Call: CaseIterable { case receive, ping, close }

    @Test(arguments: Call.allCases)
    func `stays open if a waiting task is cancelled`(call: Call) async throws {
        let canContinue = Monitor(false)
        try await withWebSocketServer { socket in
            canContinue.wait { $0 ? .done(()) : .signal }
            socket.send("hello")
            socket.echo()
        } _: { session, url, _ in
            defer {
                canContinue.withLock { $0 = true }
                canContinue.broadcast()
            }
            let socket = try await session.webSocket(url, options: .patient)
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            let task = Task {
                begin.yield()
                return await failure {
                    switch call {
                    case .receive: _ = try await socket.receive()
                    case .ping: try await socket.ping()
                    case .close: try await socket.close(code: 4001)
                    }
                }
            }
            for await _ in begun { break }
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            canContinue.withLock { $0 = true }
            canContinue.broadcast()
            #expect(try await socket.receive() == .text("hello"))
            #expect(try await socket.close(code: 4001).code != nil)
        }
    }

    @Test func `ends immediately if it is cancelled`() async throws {
        try await withWebSocketServer {
            while $0.receive() != nil {}
        } _: { session, url, _ in
            let socket = try await session.webSocket(url, options: .patient)
            let receiving = Task { await failure { _ = try await socket.receive() } }
            socket.cancel()
            #expect(await receiving.value?.reason == .cancelled)
            #expect(await failure { try await socket.send("a") }?.reason == .cancelled)
            #expect(await failure { try await socket.close() }?.reason == .cancelled)
        }
    }

    @Test func `leaves nothing behind a thousand times`() async throws {
        let count = 1000
        let (gone, whenGone) = AsyncStream.makeStream(of: Void.self)
        try await withWebSocketServer { socket in
            _ = socket.receiveAll()
            whenGone.yield()
        } _: { session, url, server in
            for number in 0..<count {
                let socket = try await session.webSocket(url)
                switch number % 4 {
                case 0: socket.cancel()
                case 1: try await socket.close()
                case 2: try await socket.send("a")
                default:
                    let task = Task { await failure { _ = try await socket.receive() } }
                    task.cancel()
                    #expect(await task.value?.reason == .cancelled)
                }
            }
            // Every connection has been closed by this end.
            var seen = 0
            for await _ in gone {
                seen += 1
                if seen == count { break }
            }
            #expect(server.connections == count)
        }
    }
}
