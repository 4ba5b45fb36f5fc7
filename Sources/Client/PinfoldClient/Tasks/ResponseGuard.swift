import Locking

/// Looks after a response: lets its transfer go when nobody reads it any more, and says when it is
/// over.
final class ResponseGuard: Sendable {
    let channel: TransferChannel
    private let whenOver: Locked<(@Sendable (ClientError?) -> Void)?>

    /// - Parameter whenOver: Called once: with an error where not all of the response was read.
    init(
        _ channel: TransferChannel, whenOver: @escaping @Sendable (ClientError?) -> Void = { _ in }
    ) {
        self.channel = channel
        self.whenOver = Locked(whenOver)
    }

    /// The content was read to its end, or to where it broke off; or somebody else looks after it.
    func isOver(_ error: ClientError?) { whenOver.withLock { $0.take() }?(error) }

    deinit {
        guard let whenOver = whenOver.withLock({ $0.take() }) else { return }
        let isExhausted = channel.isExhausted
        channel.cancel()
        whenOver(isExhausted ? nil : .cancelled())
    }
}
