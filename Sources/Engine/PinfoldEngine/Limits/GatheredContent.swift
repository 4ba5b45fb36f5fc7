import EventLoop
import HTTPCore

/// Content of a request that was taken in before there was a connection to send it on. As long as
/// more of it is to come it counts as unfinished input.
final class GatheredContent: UnfinishedInput {
    /// How much is gathered before the request goes on its way with more to come.
    static let bound = 64 << 10

    private(set) var content: Buffer
    private let buffers: BufferPool
    /// What came behind it, once it is complete.
    var trailers: TrailerSection?
    let account: ClientAccount?
    var unfinishedBytes = 0
    var stalledSince: Int64 = 0
    /// Whose request's it is.
    private weak var exchange: Exchange?

    init(_ buffers: BufferPool, of exchange: Exchange?) {
        self.buffers = buffers
        self.exchange = exchange
        account = exchange?.client?.account
        content = buffers.take(bytes: 4 << 10)
    }

    var count: Int { content.count }
    var isFull: Bool { count >= Self.bound }

    func giveUp() { exchange?.fail(.headBuffersFull) }

    /// Copies content in: the buffer it lies in is the connection's.
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

/// What a request does whose content has not all arrived, so that clients that send slowly do not
/// hold all the connections to an origin.
struct UploadRule {
    /// Connections to the origin that there may be.
    let limit: Int

    enum Step: Equatable {
        /// It gets a connection, and its content follows as it arrives.
        case connect
        /// Its content is gathered first.
        case gather
        /// As much as may be is gathered, and as many such requests as may be have connections.
        case wait
    }

    /// - Parameters:
    ///   - uploads: connections to the origin whose requests are still arriving.
    ///   - mayGather: false: the content is as much as is gathered, or is sent only when asked for
    ///     (`Expect: 100-continue`).
    func next(uploads: Int, mayGather: Bool) -> Step {
        if uploads < limit / 2 { return .connect }
        if mayGather { return .gather }
        return uploads < max(1, limit * 3 / 4) ? .connect : .wait
    }
}
