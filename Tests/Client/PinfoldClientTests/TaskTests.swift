import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

extension SessionEvent {
    /// The event in a word or two.
    fileprivate var word: String {
        switch self {
        case .didResume: "resumed"
        case .didSuspend: "suspended"
        case .didComplete(let completion):
            "completed \(completion.response?.status.code ?? 0) "
                + (completion.error?.reason.rawValue ?? "well")
        case .downloadMoved: "moved"
        case .downloadFailedToMove: "not moved"
        case .sessionInvalidated(let error): "invalidated \(error?.reason.rawValue ?? "as asked")"
        }
    }
}

@Suite("The tasks of a session")
struct TaskTests {
    private static let hello: TestServer.Answer = { connection, _ in
        connection.respond("200 OK", [], "hello")
        return true
    }

    @Test func `report what happens to them, in order`() async throws {
        try await withServer(Self.hello) { server, runtime in
            let (values, continuation) = AsyncStream.makeStream(of: String.self)
            var configuration = SessionConfiguration.patient
            configuration.observer = { continuation.yield($0.word) }
            let session = try SessionManager(configuration: configuration, runtime: runtime)
            let events = session.events()
            let request = try HTTPRequest(.get, server.url)
            let task = session.dataTask(for: request) { result in
                continuation.yield("called")
                if case .failure(let error) = result { Issue.record(error) }
            }
            #expect(session.tasks.isEmpty)
            task.suspend()
            task.resume()
            #expect(task.state == .ready)
            task.resume()
            var seen: [String] = []
            for await word in values {
                seen.append(word)
                if word == "called" { break }
            }
            #expect(seen == ["resumed", "completed 200 well", "called"])
            #expect(task.state == .completed)
            #expect(session.tasks.isEmpty)
            session.invalidate()
            session.invalidate(cancelling: true)
            let words = await events.reduce(into: [String]()) { $0.append($1.word) }
            #expect(words == ["resumed", "completed 200 well", "invalidated as asked"])
            // Later sequences end immediately.
            #expect(await session.events().first { _ in true } == nil)
        }
    }

    @Test func `end with their content, read or not`() async throws {
        try await withServer { connection, request in
            if request.path != "/" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345")
                if request.path == "/held" { connection.waitForEnd() }
                return false
            }
            connection.respond("200 OK", [], "hello")
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            var events = session.events().makeAsyncIterator()
            func next() async -> String? { await events.next()?.word }
            func response(_ path: String) async throws -> StreamedResponse {
                try await session.response(for: try HTTPRequest(.get, server.url + path))
            }
            do {
                let response = try await response("/")
                #expect(await next() == "resumed")
                #expect(session.tasks.map(\.state) == [.running])
                #expect(try await response.content.collect(atMost: 9) == Array("hello".utf8))
                #expect(await next() == "completed 200 well")
            }
            #expect(session.tasks.isEmpty)
            do { _ = try await response("/cut") }
            #expect(await next() == "resumed")
            #expect(await next() == "completed 200 cancelled")
            let cut = try await response("/cut")
            #expect(await failure { for try await _ in cut.content {} }?.reason == .connectionLost)
            #expect(await next() == "resumed")
            #expect(await next() == "completed 200 connectionLost")
            // An unread response has ended as soon as it is cancelled.
            let unread = try await response("/held")
            session.cancelAll()
            #expect(await next() == "resumed")
            #expect(await next() == "completed 200 cancelled")
            #expect(await failure { for try await _ in unread.content {} }?.reason == .cancelled)
            #expect(await runtime.transferCount == 0)
        }
    }

    @Test func `that are active continue when their session is invalidated`() async throws {
        try await withServer { connection, request in
            if request.path == "/" {
                connection.respond("302 Found", ["Location: /there"])
            } else {
                connection.respond("200 OK", [], "there")
            }
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let events = session.events()
            var options = RequestOptions()
            options.redirects = .follow { [session] proposal in
                session.invalidate()
                return proposal.next
            }
            let request = try HTTPRequest(.get, server.url)
            #expect(try await session.data(for: request, options: options).text == "there")
            let error = await failure { _ = try await session.data(for: request) }
            #expect(error?.reason == .sessionInvalidated)
            let words = await events.reduce(into: [String]()) { $0.append($1.word) }
            #expect(words.suffix(1) == ["invalidated as asked"])
        }
    }

    @Test func `know that their runtime was closed`() async throws {
        let server = try TestServer { connection, _ in
            connection.waitForEnd()
            return false
        }
        let runtime = try ClientRuntime()
        defer { server.close() }
        let session = try SessionManager(configuration: .patient, runtime: runtime)
        let events = session.events()
        let request = try HTTPRequest(.get, server.url)
        let task = Task { await failure { _ = try await session.data(for: request) } }
        var iterator = events.makeAsyncIterator()
        #expect(await iterator.next()?.word == "resumed")
        session.tasks.first?.suspend()
        #expect(await iterator.next()?.word == "suspended")
        runtime.close()
        #expect(await task.value?.reason == .sessionInvalidated)
        #expect(await iterator.next()?.word == "completed 0 sessionInvalidated")
        #expect(await iterator.next()?.word == "invalidated sessionInvalidated")
        #expect(await iterator.next() == nil)
    }

    @Test func `report their progress where handlers are called, the end last`() async throws {
        try await withServer { connection, request in
            connection.respond("200 OK", [], request.text)
            return true
        } _: { server, runtime in
            let (values, continuation) = AsyncStream.makeStream(of: TransferProgress.Value?.self)
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let content = String(repeating: "x", count: 300_000)
            session.uploadTask(
                for: try HTTPRequest(.put, server.url), content: .text(content)
            ) { value in
                continuation.yield(value)
            } completion: { _ in
                continuation.yield(nil)
            }.resume()
            var last: TransferProgress.Value?
            for await value in values {
                guard let value else { break }
                last = value
            }
            #expect(
                last
                    == TransferProgress.Value(
                        sent: 300_000, expectedToSend: 300_000, received: 300_000,
                        expectedToReceive: 300_000, isFinished: true))
        }
    }

    @Test(arguments: ["OPTIONS", "TRACE"])
    func `contact the server whatever the value of Max-Forwards`(method: String) async throws {
        try await withServer(Self.hello) { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            for count in ["0", "3"] {
                let request = try HTTPRequest(
                    try #require(HTTPRequest.Method(method)), server.url,
                    fields: [try #require(HTTPField.Name("Max-Forwards")): count])
                #expect(try await session.data(for: request).text == "hello")
            }
            #expect(server.requests.map { $0.field("max-forwards") } == ["0", "3"])
        }
    }
}
