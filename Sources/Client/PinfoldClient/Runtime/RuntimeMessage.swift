import PinfoldEngine

/// A message to the loop from another thread.
enum RuntimeMessage: Sendable {
    /// Opens a session.
    case open(SessionParts)
    /// Starts a transfer as soon as the session's limits allow.
    case begin(TransferRequest)
    /// Cancels a transfer.
    case cancel(transfer: UInt64)
    /// Suspends a transfer, which then neither reads nor sends until it is resumed.
    case suspend(transfer: UInt64)
    case resume(transfer: UInt64)
    /// A transfer no longer counts among the active requests of its session, or does again.
    case leaveQueue(transfer: UInt64)
    case returnToQueue(transfer: UInt64)
    /// The reader of a transfer's content can take more.
    case taken(transfer: UInt64)
    /// Provides the next part of a request's content.
    case content(transfer: UInt64, ContentPart)
    /// What the task of a transport tells one of its streams.
    case transport(stream: UInt64, TransportEvent)
    /// Makes connections of a session in advance.
    case preconnect(PreconnectRequest)
    /// Cancels that.
    case cancelPreconnection(session: UInt64, number: UInt64)
    /// Closes a session: at once, or when its transfers have ended.
    case close(session: UInt64, cancelling: Bool)
    /// Runs a closure on the loop's thread, independently of sessions and transfers.
    case work(@Sendable (RuntimeLoop) -> Void)
    /// Runs a part of a task that prefers the loop's thread.
    case job(UnownedJob)
    /// Requests the number of transfers that have not ended.
    case count(@Sendable (Int) -> Void)
    case stop
}

/// A part of a request's content, or its end.
enum ContentPart: Sendable {
    case bytes([UInt8])
    case end
    case failed(any Error)
}
