import HTTPTypes
import Locking
import Testing

@testable import PinfoldClient

/// Content whose next part comes when it is let go, whether or not its task is cancelled. It tells
/// when nobody holds it any more.
private struct HeldParts: AsyncSequence, AsyncIteratorProtocol, Sendable {
    final class Holder: Sendable {
        let waiting = Locked<CheckedContinuation<Void, Never>?>(nil)
        private let whenGone: AsyncStream<Void>.Continuation

        init(_ whenGone: AsyncStream<Void>.Continuation) { self.whenGone = whenGone }

        deinit { whenGone.finish() }
    }

    let holder: Holder
    let whenAsked: @Sendable (CheckedContinuation<Void, Never>) -> Void

    func makeAsyncIterator() -> HeldParts { self }

    mutating func next() async -> [UInt8]? {
        await withCheckedContinuation { whenAsked($0) }
        return [1]
    }
}

@Suite("A transport's task", .timeLimit(.minutes(30)))
struct TransportEndTests {
    @Test(arguments: [false, true])
    func `ends when the runtime has closed while it made content`(isRead: Bool) async throws {
        let (gone, whenGone) = AsyncStream.makeStream(of: Void.self)
        let (asked, whenAsked) = AsyncStream.makeStream(
            of: CheckedContinuation<Void, Never>.self)
        let mock = MockTransport { _ in
            TransportResponse(
                stream: HeldParts(holder: HeldParts.Holder(whenGone)) { whenAsked.yield($0) })
        }
        let runtime = try ClientRuntime()
        var configuration = SessionConfiguration.patient
        configuration.transport = mock
        let session = try SessionManager(configuration: configuration, runtime: runtime)
        let response = try await session.response(for: try HTTPRequest(.get, "http://a.test/"))
        var requests = asked.makeAsyncIterator()
        var held = try #require(await requests.next())
        if isRead {
            held.resume()
            var parts = response.content.makeAsyncIterator()
            #expect(try await parts.next() == [1])
            held = try #require(await requests.next())
        }
        runtime.close()
        held.resume()
        for await _ in gone {}
    }

    @Test func `passes nothing on once it is cancelled`() async throws {
        let told = Locked<[[UInt8]]>([])
        let transport = MockTransport { _ in
            TransportResponse(
                stream: AsyncStream<[UInt8]> {
                    withUnsafeCurrentTask { $0?.cancel() }
                    return [1]
                })
        }
        let request = TransportRequest(head: try HTTPRequest(.get, "http://a.test/"))
        await TransportCall.begin(request, of: transport) { event in
            if case .part(let part, let work) = event {
                told.withLock { $0.append(part) }
                work.end(())
            }
        }.value
        #expect(told.withLock { $0 } == [])
    }
}
