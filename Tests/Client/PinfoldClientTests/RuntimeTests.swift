import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Content that never provides a part. It reports when it is closed.
private final class WatchedFeed: ContentFeed {
    private let closed = Locked(false)
    private let whenClosed: @Sendable () -> Void

    init(whenClosed: @escaping @Sendable () -> Void = {}) { self.whenClosed = whenClosed }

    var isClosed: Bool { closed.withLock { $0 } }

    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void) {}

    func close() {
        closed.withLock { $0 = true }
        whenClosed()
    }
}

/// A sequence that refers to an object, which shows whether it is still referenced.
private struct WatchedParts: AsyncSequence, Sendable {
    final class Witness: Sendable {}

    let witness: Witness

    struct Iterator: AsyncIteratorProtocol {
        mutating func next() async -> [UInt8]? { nil }
    }

    func makeAsyncIterator() -> Iterator { Iterator() }
}

@Suite("A client's runtime")
struct RuntimeTests {
    private func transferRequest(
        _ request: HTTPRequest, session: UInt64, _ feed: WatchedFeed, on runtime: ClientRuntime
    ) throws -> TransferRequest {
        let number = runtime.nextNumber()
        return TransferRequest(
            session: session, number: number, origin: try #require(request.origin),
            head: try RequestHeadText.make(of: request, framing: .chunked),
            content: .feed(feed), priority: .normal, idleMilliseconds: 3_600_000,
            queueMilliseconds: 3_600_000,
            remainingMilliseconds: 3_600_000, totalMilliseconds: 3_600_000,
            channel: TransferChannel(number, on: runtime, progress: nil))
    }

    @Test func `refuses requests while it is closing`() async throws {
        let late = Locked<TransferChannel?>(nil)
        try await withServer { connection, _ in
            connection.waitForEnd()
            return false
        } _: { server, runtime in
            let request = try HTTPRequest(.post, server.url)
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            // It is closed on the loop, while the loop ends its sessions.
            let feed = WatchedFeed { [unowned runtime] in
                late.withLock { late in
                    let session = try? SessionManager(configuration: .patient, runtime: runtime)
                    guard let session else { return }
                    late = try? session.transfer(
                        request, nil, RequestOptions(), nil, remainingTime: .seconds(9))
                }
            }
            #expect(
                runtime.post(
                    .begin(
                        try transferRequest(
                            request, session: session.number, feed, on: runtime))))
            runtime.close()
            #expect(feed.isClosed)
            let channel = try #require(late.withLock { $0 })
            // The first result stays.
            channel.cancel()
            let error = await failure { _ = try await channel.head() }
            #expect(error?.reason == .sessionInvalidated)
        }
    }

    @Test func `closes the connections of all sessions`() async throws {
        let count = 140
        let (closed, whenClosed) = AsyncStream.makeStream(of: Void.self)
        try await withServer { connection, _ in
            connection.respond()
            connection.waitForEnd()
            whenClosed.yield()
            return false
        } _: { server, runtime in
            var configuration = SessionConfiguration.patient
            configuration.securityPolicy = try TestAuthority.policy()
            var sessions: [SessionManager] = []
            for _ in 0..<count {
                let session = try SessionManager(configuration: configuration, runtime: runtime)
                _ = try await session.data(for: try HTTPRequest(.get, server.url))
                sessions.append(session)
            }
            #expect(server.connections == count)
            runtime.close()
            var seen = 0
            for await _ in closed {
                seen += 1
                if seen == count { break }
            }
            #expect(seen == sessions.count)
        }
    }

    @Test func `closes the content of what it rejects`() async throws {
        let runtime = try ClientRuntime()
        let feed = WatchedFeed()
        let request = try HTTPRequest(.post, "http://127.0.0.1/")
        let pending = try transferRequest(request, session: runtime.nextNumber(), feed, on: runtime)
        #expect(runtime.post(.begin(pending)))
        runtime.close()
        #expect(feed.isClosed)
        #expect(
            await failure { _ = try await pending.channel.head() }?.reason == .sessionInvalidated)
    }

    @Test(arguments: [false, true])
    func `releases a sequence that is not sent`(isClosed: Bool) async throws {
        let runtime = try ClientRuntime()
        let session = try SessionManager(configuration: .patient, runtime: runtime)
        if isClosed { runtime.close() } else { session.invalidate() }
        let request = try HTTPRequest(.post, "http://127.0.0.1/")
        weak var witness: WatchedParts.Witness?
        func send() async -> ClientError? {
            let parts = WatchedParts(witness: WatchedParts.Witness())
            witness = parts.witness
            return await failure {
                _ = try await session.data(for: request, content: .stream(parts))
            }
        }
        #expect(await send()?.reason == .sessionInvalidated)
        runtime.close()
        #expect(witness == nil)
    }

    @Test func `drops what it is told after its end, with what waits for an answer`() async throws {
        let runtime = try ClientRuntime()
        let (posts, found) = AsyncStream.makeStream(of: (@Sendable (RuntimeMessage) -> Void).self)
        #expect(
            runtime.perform { loop in
                found.yield(loop.post)
                found.finish()
            })
        var iterator = posts.makeAsyncIterator()
        let post = try #require(await iterator.next())
        runtime.close()
        let answer: Void? = await withCheckedContinuation { continuation in
            post(.transport(stream: 1, .part([1], AwaitedWork(continuation))))
        }
        #expect(answer == nil)
    }
}
