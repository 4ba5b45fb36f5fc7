import PinfoldEngine

/// What the loop's thread is told by others.
enum RuntimeMessage: Sendable {
    /// A session begins.
    case open(SessionParts)
    /// A transfer of a session begins, as soon as the session's limits allow.
    case begin(TransferOrder)
    /// Nobody waits for a transfer any more.
    case cancel(transfer: UInt64)
    /// A transfer neither reads nor sends anything further, until it is resumed.
    case suspend(transfer: UInt64)
    case resume(transfer: UInt64)
    /// Who reads a transfer's content takes more.
    case taken(transfer: UInt64)
    /// The next part of a request's content.
    case content(transfer: UInt64, ContentPart)
    /// A session ends: at once, or when its transfers have ended.
    case close(session: UInt64, cancelling: Bool)
    /// Something to be done on the loop's thread, which is neither a session's nor a transfer's.
    case work(@Sendable (RuntimeLoop) -> Void)
    /// Asks how many transfers have not ended.
    case count(@Sendable (Int) -> Void)
    case stop
}

/// A part of a request's content, or its end.
enum ContentPart: Sendable {
    case bytes([UInt8])
    case end
    case failed(any Error)
}
