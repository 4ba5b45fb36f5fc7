import HTTPTypes
import Testing

@testable import PinfoldClient

@Suite("What the loop hands to a task")
struct TransferChannelTests {
    private static let head = ReceivedHead(
        response: HTTPResponse(status: .ok), status: 200, marks: [], metrics: TransferTimes())

    private func withChannel(
        _ progress: TransferProgress? = nil, _ body: (TransferChannel) async throws -> Void
    ) async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        try await body(
            TransferChannel(
                runtime.nextNumber(), on: runtime, progress: progress?.begins(sending: nil)))
    }

    /// The error of a call in a task that was cancelled before.
    private func failureWhenCancelled(
        _ body: @escaping @Sendable () async throws -> Void
    ) async -> ClientError? {
        await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await failure(body)
        }.value
    }

    @Test func `is not read by a task that is cancelled`() async throws {
        try await withChannel { channel in
            #expect(channel.push(Self.head, [[1], [2]]))
            let head = await failureWhenCancelled { _ = try await channel.head() }
            #expect(head?.reason == .cancelled)
        }
        try await withChannel { channel in
            #expect(channel.push(Self.head, [[1], [2]]))
            let first = try await channel.part()
            #expect(first == [1])
            let part = await failureWhenCancelled { _ = try await channel.part() }
            #expect(part?.reason == .cancelled)
            // Nor by another one.
            #expect(await failure { _ = try await channel.part() }?.reason == .cancelled)
        }
    }

    @Test(arguments: [[], [[1]]] as [[[UInt8]]])
    func `ends for the reason it was cancelled for, also if it was complete`(
        parts: [[UInt8]]
    ) async throws {
        try await withChannel { channel in
            channel.finish(TransferTimes(), Self.head, parts)
            channel.cancel(.sessionInvalidated())
            let head = await failureWhenCancelled { _ = try await channel.head() }
            #expect(head?.reason == .sessionInvalidated)
            let part = await failureWhenCancelled { _ = try await channel.part() }
            #expect(part?.reason == .sessionInvalidated)
        }
    }

    @Test func `delivers what arrives with the end before the end`() async throws {
        let progress = TransferProgress()
        try await withChannel(progress) { channel in
            channel.finish(TransferTimes(total: 7), Self.head, [[1], [2, 3]])
            #expect(progress.value.received == 3)
            let head = try await channel.head()
            #expect(head.response.status == .ok)
            #expect(channel.times?.total == 7)
            #expect(!channel.isExhausted)
            var parts: [[UInt8]] = []
            while let part = try await channel.part() { parts.append(part) }
            #expect(parts == [[1], [2, 3]])
            #expect(channel.isExhausted)
        }
        try await withChannel { channel in
            channel.fail(ClientError(.connectionLost, "x"), TransferTimes(), Self.head, [[1]])
            let head = try await channel.head()
            #expect(head.response.status == .ok)
            let part = try await channel.part()
            #expect(part == [1])
            let error = await failure { _ = try await channel.part() }
            #expect(error?.reason == .connectionLost)
        }
    }

    @Test(arguments: [0, 1, 1 << 20])
    func `delivers content immediately that has arrived in one part`(bytes: Int) async throws {
        let content = [UInt8](repeating: 3, count: bytes)
        try await withChannel { channel in
            var times = TransferTimes()
            times.total = 7
            channel.finish(times, Self.head, bytes == 0 ? [] : [content])
            #expect(channel.wholePart(atMost: bytes - 1) == nil)
            let whole = try #require(channel.wholePart(atMost: bytes))
            let isWhole = whole.bytes == content
            #expect(isWhole)
            #expect(whole.times.total == 7)
            #expect(channel.isExhausted)
            #expect(!channel.isFull)
            let next = try await channel.part()
            #expect(next == nil)
        }
    }

    @Test func `delivers part by part what is not there in one part`() async throws {
        // There is more to come.
        try await withChannel { channel in
            _ = channel.push(Self.head, [[1]])
            #expect(channel.wholePart(atMost: 9) == nil)
        }
        // It has arrived in two parts.
        try await withChannel { channel in
            channel.finish(TransferTimes(), Self.head, [[1], [2]])
            #expect(channel.wholePart(atMost: 9) == nil)
            let part = try await channel.part()
            #expect(part == [1])
            // The first part was taken out.
            #expect(channel.wholePart(atMost: 9) == nil)
        }
        // It was interrupted.
        try await withChannel { channel in
            channel.fail(ClientError(.connectionLost, "x"), TransferTimes(), Self.head, [[1]])
            #expect(channel.wholePart(atMost: 9) == nil)
        }
        // It is suspended.
        try await withChannel { channel in
            channel.finish(TransferTimes(), Self.head, [[1]])
            channel.suspend()
            #expect(channel.wholePart(atMost: 9) == nil)
            channel.resume()?.resume()
            #expect(channel.wholePart(atMost: 9)?.bytes == [1])
        }
        // The task is cancelled.
        try await withChannel { channel in
            channel.finish(TransferTimes(), Self.head, [[1]])
            let failure = await failureWhenCancelled {
                #expect(channel.wholePart(atMost: 9) == nil)
                _ = try await channel.part()
            }
            #expect(failure?.reason == .cancelled)
        }
    }

    @Test func `is not suspended once it is cancelled`() async throws {
        try await withChannel { channel in
            channel.cancel()
            channel.suspend()
            #expect(await failure { _ = try await channel.head() }?.reason == .cancelled)
        }
        // Nor if there was nothing left to cancel.
        try await withChannel { channel in
            channel.finish(TransferTimes(), Self.head)
            channel.cancel()
            channel.suspend()
            // If it were suspended, this would be `nil`, and its reader would wait forever.
            try #require(channel.wholePart(atMost: 0) != nil)
            let head = try await channel.head()
            #expect(head.response.status == .ok)
        }
        try await withChannel { channel in
            channel.fail(ClientError(.connectionLost, "x"))
            channel.cancel()
            channel.suspend()
            #expect(await failure { _ = try await channel.head() }?.reason == .connectionLost)
        }
    }

    @Test func `accepts nothing once it has ended`() async throws {
        let progress = TransferProgress()
        try await withChannel(progress) { channel in
            channel.cancel()
            channel.finish(TransferTimes(), Self.head, [[1]])
            #expect(progress.value.received == 0)
            #expect(await failure { _ = try await channel.head() }?.reason == .cancelled)
            #expect(await failure { _ = try await channel.part() }?.reason == .cancelled)
        }
    }

    @Test func `is not requested by a task that is cancelled`() async throws {
        try await withServer { connection, _ in
            connection.respond()
            return true
        } _: { server, runtime in
            let session = try SessionManager(configuration: .patient, runtime: runtime)
            let request = try HTTPRequest(.get, server.url)
            let number = runtime.nextNumber()
            let error = await failureWhenCancelled { _ = try await session.data(for: request) }
            #expect(error?.reason == .cancelled)
            #expect(error?.url == "\(server.url)/")
            // No transfer was created in between.
            #expect(runtime.nextNumber() == number + 1)
        }
    }

    @Test func `has no gap if the transfer is cancelled`() async throws {
        try await withChannel { channel in
            let part = [UInt8](repeating: 1, count: TransferChannel.fullBytes)
            #expect(!channel.push(Self.head, [part]))
            #expect(channel.isFull)
            channel.cancel()
            #expect(!channel.isFull)
            #expect(channel.push(nil, [[2]]))
            #expect(await failure { _ = try await channel.part() }?.reason == .cancelled)
        }
    }

    @Test func `stops counting once the transfer is cancelled`() async throws {
        let progress = TransferProgress()
        try await withChannel(progress) { channel in
            _ = channel.push(Self.head, [[1, 2]])
            channel.sent(3)
            #expect(progress.value.received == 2)
            #expect(progress.value.sent == 3)
            channel.cancel()
            // As the next request after a redirect does.
            _ = progress.begins(sending: nil)
            _ = channel.push(Self.head, [[3]])
            channel.sent(4)
            #expect(progress.value == TransferProgress.Value())
        }
    }
}
