import CachePolicy
import EventLoop
import HTTPCore

/// Content of a request that was collected before there was a connection to send it on. As long as
/// more of it is expected, it counts as unfinished input.
final class GatheredContent: UnfinishedInput {
    /// How much is collected before the request is sent although more is expected.
    static let bound = 64 << 10

    private(set) var content: Buffer
    private let buffers: BufferPool
    /// The trailers, once the content is complete.
    var trailers: TrailerSection?
    /// Whether it is kept after it has been sent: all of it is to be part of the cache key.
    var isKept = false
    /// What it is in the key, once all of it is there.
    var digest: ContentDigest?
    let account: ClientAccount?
    var unfinishedBytes = 0
    var stalledSince: Int64 = 0
    /// The exchange whose request it belongs to.
    private weak var exchange: Exchange?

    init(_ buffers: BufferPool, of exchange: Exchange?) {
        self.buffers = buffers
        self.exchange = exchange
        account = exchange?.client?.account
        content = buffers.take(bytes: 4 << 10)
    }

    var count: Int { content.count }
    var isFull: Bool { count >= Self.bound }

    func giveUp() { exchange?.fail(.gateway(.headBuffersFull)) }

    /// Copies content, because its buffer belongs to the connection.
    func append(_ bytes: UnsafeRawBufferPointer) {
        if content.writable.count < bytes.count {
            let needed = content.count + bytes.count
            let larger = buffers.take(bytes: max(needed, content.capacity * 2))
            larger.writable.copyMemory(from: content.readable)
            larger.end = content.count
            content = larger
        }
        content.writable.copyMemory(from: bytes)
        content.end += bytes.count
    }
}

/// Decides what a request does whose content has not completely arrived, so that clients that send
/// slowly do not occupy all connections to an origin.
struct UploadRule {
    /// The limit on connections to the origin.
    let limit: Int

    enum Step: Equatable {
        /// Get a connection; the content follows as it arrives.
        case connect
        /// Collect the content first.
        case gather
        /// Wait: the maximum has been collected, and as many such requests as allowed have
        /// connections.
        case wait
    }

    /// - Parameters:
    ///   - uploads: connections to the origin whose requests are still arriving.
    ///   - mayGather: whether content can be collected: not if the maximum has been, or if it is
    ///     sent only on request (`Expect: 100-continue`).
    func next(uploads: Int, mayGather: Bool) -> Step {
        if uploads < limit / 2 { return .connect }
        if mayGather { return .gather }
        return uploads < max(1, limit * 3 / 4) ? .connect : .wait
    }
}
