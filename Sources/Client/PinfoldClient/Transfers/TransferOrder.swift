import Locking
import PinfoldEngine

/// Everything that the loop has to know of a request. It is passed on from one to the other: a
/// reference, not a copy of all that.
final class TransferOrder: Sendable {
    let session: UInt64
    let number: UInt64
    let origin: RequestOrigin
    /// The head as the engine takes it in.
    let head: [UInt8]
    let content: OutgoingContent
    let priority: TaskPriorityLevel
    /// How long nothing may move, in milliseconds.
    let idleMilliseconds: Int64
    /// How long it may wait for its turn while those before it come no nearer to their end, in
    /// milliseconds.
    let queueMilliseconds: Int64
    /// How long it may take, waiting for its turn included, in milliseconds.
    let remainingMilliseconds: Int64
    /// How long its task may take in all, in milliseconds: for messages.
    let totalMilliseconds: Int64
    let channel: TransferChannel
    /// Only a connection that carried no request before will do.
    let needsFreshConnection: Bool
    /// Nil: it goes to the server itself.
    let proxy: ProxyRoute?
    /// What the response is for, where that lasts; nil: it ends by itself.
    let stream: StreamKind?
    /// Whatever the cache has answers it.
    let takesWhatIsStored: Bool
    /// The content is of a known length, or there is none: sending it comes to an end.
    let contentHasEnd: Bool

    init(
        session: UInt64, number: UInt64, origin: RequestOrigin, head: [UInt8],
        content: OutgoingContent, contentHasEnd: Bool = true, priority: TaskPriorityLevel,
        idleMilliseconds: Int64, queueMilliseconds: Int64, remainingMilliseconds: Int64,
        totalMilliseconds: Int64, channel: TransferChannel,
        needsFreshConnection: Bool = false, proxy: ProxyRoute? = nil, stream: StreamKind? = nil,
        takesWhatIsStored: Bool = false
    ) {
        (self.session, self.number, self.origin) = (session, number, origin)
        (self.head, self.content, self.priority) = (head, content, priority)
        self.contentHasEnd = contentHasEnd
        (self.idleMilliseconds, self.queueMilliseconds) = (idleMilliseconds, queueMilliseconds)
        self.needsFreshConnection = needsFreshConnection
        self.remainingMilliseconds = remainingMilliseconds
        self.totalMilliseconds = totalMilliseconds
        (self.channel, self.proxy, self.stream) = (channel, proxy, stream)
        self.takesWhatIsStored = takesWhatIsStored
    }
}

/// What is sent behind the head.
enum OutgoingContent: Sendable {
    case none
    case bytes([UInt8])
    /// Parts that are asked for, one at a time.
    case feed(any ContentFeed)

    /// It is not sent, or no further.
    func close() { if case .feed(let feed) = self { feed.close() } }
}

/// Gives content part by part.
protocol ContentFeed: AnyObject, Sendable {
    /// How long to wait after each part, in milliseconds; 0: not at all.
    var pauseMilliseconds: Int64 { get }
    /// Asks for the next part; `deliver` is called once, on whatever thread.
    func next(_ deliver: @escaping @Sendable (ContentPart) -> Void)
    /// Nothing more is asked for.
    func close()
}

extension ContentFeed {
    var pauseMilliseconds: Int64 { 0 }
}
