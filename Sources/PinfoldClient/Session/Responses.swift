public import HTTPTypes
import Locking

/// A response whose content is in memory.
public struct DataResponse: Sendable {
    /// Status and fields.
    public let head: HTTPResponse
    /// The content as it was sent: codings (Content-Encoding) are not undone.
    public let content: [UInt8]
    /// What was asked last, after redirects.
    public let request: HTTPRequest
    /// How long its parts took.
    public let metrics: TaskMetrics
}

/// A response whose content is read while it arrives.
public struct StreamedResponse: Sendable {
    /// Status and fields.
    public let head: HTTPResponse
    /// What was asked last, after redirects.
    public let request: HTTPRequest
    /// The content, part by part.
    public let content: ResponseContent
    private let before: TaskMetrics
    private let atHead: TransferTimes

    init(
        head: HTTPResponse, request: HTTPRequest, _ guardian: ChannelGuard,
        _ atHead: TransferTimes, _ before: TaskMetrics, _ progress: TransferProgress?
    ) {
        self.head = head
        self.request = request
        self.before = before
        self.atHead = atHead
        content = ResponseContent(guardian, request, progress)
    }

    /// How long it took: to the head, until the content has ended.
    public var metrics: TaskMetrics {
        var metrics = before
        metrics.transactions.append(
            .init(
                content.guardian.channel.times ?? atHead, url: request.url,
                status: head.status.code))
        return metrics
    }
}

/// The content of a response, part by part as it arrives: the server is read no faster than the
/// parts are taken. It is read once, by one task.
public struct ResponseContent: AsyncSequence, Sendable {
    public typealias Element = [UInt8]
    public typealias Failure = ClientError

    let guardian: ChannelGuard
    private let request: HTTPRequest
    private let progress: TransferProgress?

    init(_ guardian: ChannelGuard, _ request: HTTPRequest, _ progress: TransferProgress?) {
        self.guardian = guardian
        self.request = request
        self.progress = progress
    }

    /// Another iterator goes on where the last one stopped.
    public func makeAsyncIterator() -> Iterator { Iterator(content: self) }

    /// Waits for one part after another.
    public struct Iterator: AsyncIteratorProtocol {
        let content: ResponseContent

        /// The next part, which is not empty; nil at the end.
        ///
        /// - Throws: ``ClientError`` where the content breaks off; what came before it is not all
        ///   of it.
        public mutating func next() async throws(ClientError) -> [UInt8]? {
            try await content.next()
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ClientError) -> [UInt8]? {
            try await content.next()
        }
    }

    private func next() async throws(ClientError) -> [UInt8]? {
        do throws(ClientError) {
            let part = try await guardian.channel.part()
            if part == nil { ended() }
            return part
        } catch {
            ended()
            throw error.about(request)
        }
    }

    private func ended() {
        guardian.isDone()
        progress?.finished()
    }

    /// All of it.
    ///
    /// - Parameter maximum: In bytes; more is an error.
    public func collect(atMost maximum: Int) async throws(ClientError) -> [UInt8] {
        var bytes: [UInt8] = []
        while let part = try await next() {
            guard bytes.count + part.count <= maximum else {
                guardian.channel.cancel()
                ended()
                throw ClientError(
                    .contentTooLong, "the content is longer than \(maximum) bytes", of: request)
            }
            if bytes.isEmpty { bytes = part } else { bytes += part }
        }
        return bytes
    }
}

/// Cancels a transfer that nobody reads any more.
final class ChannelGuard: Sendable {
    let channel: TransferChannel
    private let done = Locked(false)

    init(_ channel: TransferChannel) { self.channel = channel }

    /// It has ended, or somebody else looks after it.
    func isDone() { done.withLock { $0 = true } }

    deinit { if !done.withLock({ $0 }) { channel.cancel() } }
}
