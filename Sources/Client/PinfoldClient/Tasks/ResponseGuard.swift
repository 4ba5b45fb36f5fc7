import Locking

/// Watches over a response: cancels its transfer when nobody reads it any more, and reports when it
/// is over.
final class ResponseGuard: Sendable {
    let channel: TransferChannel
    private let whenOver: Locked<(@Sendable (ClientError?) -> Void)?>

    /// - Parameter whenOver: Called once, with an error if not all of the response was read.
    init(
        _ channel: TransferChannel, whenOver: @escaping @Sendable (ClientError?) -> Void = { _ in }
    ) {
        self.channel = channel
        self.whenOver = Locked(whenOver)
    }

    /// The content was read to its end or its interruption, or another object is now responsible
    /// for it.
    func isOver(_ error: ClientError?) { whenOver.withLock { $0.take() }?(error) }

    deinit {
        guard let whenOver = whenOver.withLock({ $0.take() }) else { return }
        let isExhausted = channel.isExhausted
        channel.cancel()
        whenOver(isExhausted ? nil : .cancelled())
    }
}
