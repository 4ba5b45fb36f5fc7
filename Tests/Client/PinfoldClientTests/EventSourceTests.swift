import HTTPTypes
import Locking
import PinfoldEngine
import TestSupport
import Testing

@testable import PinfoldClient

extension TestConnection {
    /// The head of an event stream that ends with the connection.
    static let eventStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
}

/// The states of an iterator, as text.
private final class States: Sendable {
    private let words = Locked<[String]>([])

    var all: [String] { words.withLock { $0 } }

    func note(_ state: EventSource.State) {
        let word =
            switch state {
            case .connecting: "connecting"
            case .open(let head): "open \(head.status.code)"
            case .waiting(let time, let error):
                "waiting \(time.wholeMilliseconds) \(error?.reason.rawValue ?? "end")"
            case .closed: "closed"
            }
        words.withLock { $0.append(word) }
    }
}

@Suite("A stream of events")
struct EventSourceTests {
    /// Options that reconnect immediately.
    private static var eager: EventSourceOptions {
        var options = EventSourceOptions()
        options.reconnectionTime = .milliseconds(1)
        options.reconnectionBounds = .zero ... .milliseconds(5)
        options.maximumFailures = nil
        return options
    }

    private func events(
        _ source: EventSource, atMost count: Int = .max
    ) async throws -> [String] {
        var found: [String] = []
        for try await event in source {
            found.append("\(event.type) \(event.data) \(event.lastEventID)")
            if found.count == count { break }
        }
        return found
    }

    @Test(arguments: [false, true])
    func `is read as it arrives`(isSecure: Bool) async throws {
        try await withServer(secure: isSecure) { connection, request in
            guard request.field("last-event-id") == nil else {
                connection.respond("204 No Content")
                return true
            }
            connection.send(
                "HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream;charset=utf-8\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n")
            for part in [": hello\n", "data: one\n\ndata: t", "wo\nid: 7\nevent: add\n\n"] {
                connection.send("\(String(part.utf8.count, radix: 16))\r\n\(part)\r\n")
            }
            connection.send("0\r\n\r\n")
            return true
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            if isSecure { configuration.securityPolicy = try TestAuthority.policy() }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let source = session.events(for: try HTTPRequest(.get, server.url), options: Self.eager)
            #expect(try await events(source) == ["message one ", "add two 7"])
            #expect(
                server.requests.map { $0.field("accept") }
                    == Array(repeating: "text/event-stream", count: 2))
            #expect(server.requests.map { $0.field("last-event-id") } == [nil, "7"])
        }
    }

    @Test func `continues after the last event, and ends with 204`() async throws {
        let states = States()
        try await withServer { connection, request in
            switch request.connection {
            case 0: connection.send(TestConnection.eventStream + "retry: 2\nid: 1\ndata: a\n\n")
            // Not an event: the ID stays.
            case 1: connection.send(TestConnection.eventStream + "retry: 999999\nid: x\n")
            default: connection.respond("204 No Content")
            }
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = Self.eager
            options.lastEventID = "0"
            options.onStateChange = { states.note($0) }
            let source = session.events(for: try HTTPRequest(.get, server.url), options: options)
            #expect(try await events(source) == ["message a 1"])
            #expect(server.requests.map { $0.field("last-event-id") } == ["0", "1", "1"])
        }
        #expect(
            states.all == [
                "connecting", "open 200", "waiting 2 end", "connecting", "open 200",
                "waiting 5 end", "connecting", "closed",
            ])
    }

    @Test(
        arguments: [
            ("404 Not Found", "text/event-stream", UnexpectedResponseError.Reason.status),
            ("500 No", "text/event-stream", .status), ("201 Made", "text/event-stream", .status),
            ("200 OK", "text/plain", .contentType("text/plain")),
        ])
    func `is refused with another status or type`(
        status: String, type: String, reason: UnexpectedResponseError.Reason
    ) async throws {
        try await withServer { connection, _ in
            connection.respond(status, ["Content-Type: \(type)", "X-A: b"], "data: a\n\n")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let source = session.events(for: try HTTPRequest(.get, server.url), options: Self.eager)
            let error = await failure { _ = try await events(source) }
            #expect(error?.reason == .unexpectedResponse)
            let response = try #require(error?.underlying as? UnexpectedResponseError)
            #expect(response.reason == reason)
            #expect(response.head.headerFields[.init("X-A")!] == "b")
            #expect(error?.url == "\(server.url)/")
        }
    }

    @Test func `delivers what came before a line that is too long`() async throws {
        try await withServer { connection, _ in
            connection.send(TestConnection.eventStream + "data: a\n\ndata: b\n\ndata: 12345\n\n")
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = Self.eager
            options.limits.lineBytes = 10
            var iterator = session.events(
                for: try HTTPRequest(.get, server.url), options: options
            ).makeAsyncIterator()
            #expect(try await iterator.next()?.data == "a")
            #expect(try await iterator.next()?.data == "b")
            let error: ClientError? = await {
                do throws(ClientError) { _ = try await iterator.next() } catch { return error }
                return nil
            }()
            #expect(error?.reason == .contentTooLong)
            #expect(error?.underlying as? ServerSentEventError == .lineTooLong)
            #expect(try await iterator.next() == nil)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `is given up after a maximum of failures`() async throws {
        let states = States()
        let port = ClosedPort()
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let session = try SessionManager(configuration: .patient, runtime: runtime)
        var options = Self.eager
        options.maximumFailures = 3
        options.onStateChange = { states.note($0) }
        let request = try HTTPRequest(.get, "http://\(port.place)")
        let source = session.events(for: request, options: options)
        #expect(await failure { _ = try await events(source) }?.reason == .cannotConnect)
        #expect(states.all.filter { $0 == "connecting" }.count == 3)
        #expect(states.all.last == "closed")
    }

    @Test func `reconnects if the connection is interrupted`() async throws {
        try await withServer { connection, request in
            switch request.connection {
            // Nothing at all, then a stream that is interrupted.
            case 0: return false
            case 1:
                connection.send(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n"
                        + "\r\nid: é\ndata: a\n\n")
            default: connection.respond("204 No Content")
            }
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let source = session.events(for: try HTTPRequest(.get, server.url), options: Self.eager)
            #expect(try await events(source) == ["message a é"])
            #expect(server.requests.map { $0.field("last-event-id") } == [nil, nil, "é"])
        }
    }

    @Test(
        arguments: [
            "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nid: ",
            "Content-Encoding: gzip\r\n\r\n\u{1F}",
        ])
    func `reconnects if its content is interrupted within its framing or coding`(
        rest: String
    ) async throws {
        try await withServer { connection, request in
            switch request.connection {
            case 0:
                connection.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(rest)")
            case 1: connection.send(TestConnection.eventStream + "data: a\n\n")
            default: connection.respond("204 No Content")
            }
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let source = session.events(for: try HTTPRequest(.get, server.url), options: Self.eager)
            #expect(try await events(source) == ["message a "])
        }
    }

    @Test(
        arguments: [
            (ExchangeError.proxy(.unreachable(.nameNotResolved(.unreachable))), true),
            (.proxy(.closed), true),
            (.proxy(.tooManyInterim), false), (.server(.upstreamClosed), true),
            (.response(.malformedStatusLine), false),
        ])
    func `is requested again after a temporary failure`(
        fault: ExchangeError, expected: Bool
    ) {
        var reconnection = Reconnection(Self.eager, isRepeated: true)
        var generator = SystemRandom()
        let step = reconnection.step(afterFailure: ClientError(fault), using: &generator)
        guard case .reconnect = step else {
            #expect(!expected)
            return
        }
        #expect(expected)
    }

    @Test func `is requested once with POST`() async throws {
        try await withServer { connection, request in
            connection.send(TestConnection.eventStream + "data: \(request.text)\n\n")
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let source = session.events(
                for: try HTTPRequest(.post, server.url), content: .bytes(Array("x".utf8)),
                options: Self.eager)
            #expect(try await events(source) == ["message x "])
            #expect(server.requests.count == 1)
            var options = Self.eager
            options.reconnects = true
            let again = session.events(
                for: try HTTPRequest(.post, server.url), content: .bytes(Array("y".utf8)),
                options: options)
            #expect(try await events(again, atMost: 2) == ["message y ", "message y "])
        }
    }

    @Test func `is requested again at its own URL after a redirect`() async throws {
        try await withServer { connection, request in
            if request.path == "/a" {
                connection.respond("307 There", ["Location: /b"])
            } else if request.connection == 0 {
                connection.send(TestConnection.eventStream + "data: a\n\n")
            } else {
                connection.respond("204 No Content")
            }
            return request.path == "/a"
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, "\(server.url)/a")
            let source = session.events(for: request, options: Self.eager)
            #expect(try await events(source) == ["message a "])
            #expect(server.requests.map(\.path) == ["/a", "/b", "/a", "/b"])
        }
    }

    enum Stage: CaseIterable { case head, event, reconnection }

    @Test(arguments: Stage.allCases)
    func `ends with its task`(stage: Stage) async throws {
        let (reached, reach) = AsyncStream.makeStream(of: Void.self)
        let (gone, whenGone) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            if stage != .head { connection.send(TestConnection.eventStream + "data: a\n\n") }
            if stage != .reconnection {
                reach.yield()
                connection.waitForEnd()
            }
            whenGone.yield()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var options = Self.eager
            options.reconnectionBounds = .seconds(3600) ... .seconds(3600)
            options.onStateChange = { if case .waiting = $0 { reach.yield() } }
            let source = session.events(for: try HTTPRequest(.get, server.url), options: options)
            let task = Task { await failure { _ = try await events(source) } }
            for await _ in reached { break }
            task.cancel()
            #expect(await task.value?.reason == .cancelled)
            for await _ in gone { break }
        }
    }

    @Test func `ends with its session`() async throws {
        try await withServer { connection, _ in
            connection.send(TestConnection.eventStream + "data: a\n\n")
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let source = session.events(for: try HTTPRequest(.get, server.url), options: Self.eager)
            let error = await failure {
                for try await _ in source { session.invalidate(cancelling: true) }
            }
            #expect(error?.reason == .sessionInvalidated)
        }
    }

    @Test func `may be idle for as long as its options allow`() async throws {
        let canContinue = Monitor(false)
        try await withServer { connection, request in
            if request.path == "/never" {
                connection.waitForEnd()
            } else if request.path == "/idle" {
                connection.send(TestConnection.eventStream + "id: \(request.connection)\ndata:\n\n")
                connection.waitForEnd()
            } else {
                connection.send(TestConnection.eventStream + "data: a\n\n")
                canContinue.wait { $0 ? .done(()) : .signal }
                connection.send("data: b\n\n")
            }
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.requestTimeout = .milliseconds(300)
            configuration.resourceTimeout = .milliseconds(300)
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            defer {
                canContinue.withLock { $0 = true }
                canContinue.broadcast()
            }
            var iterator = session.events(
                for: try HTTPRequest(.get, server.url), options: Self.eager
            ).makeAsyncIterator()
            #expect(try await iterator.next()?.data == "a")
            // The loop's clock passes the timeouts for requests.
            let never = try HTTPRequest(.get, "\(server.url)/never")
            let error = await failure { _ = try await session.data(for: never) }
            #expect(error?.reason == .timedOut)
            canContinue.withLock { $0 = true }
            canContinue.broadcast()
            #expect(try await iterator.next()?.data == "b")

            var options = Self.eager
            options.idleTimeout = .milliseconds(50)
            let idle = session.events(
                for: try HTTPRequest(.get, "\(server.url)/idle"), options: options)
            #expect(try await events(idle, atMost: 2).count == 2)
        }
    }
}
