/// The place among a session's active requests that a response has given up while interceptors or
/// hooks decide about it.
///
/// More of its content may be left than its channel takes. Nobody reads that before the decision,
/// for which they may need requests of the same session: these would wait for the place.
struct ReleasedPlace {
    /// The channel of the response, or `nil` if it has ended, and had no place any more.
    private let channel: TransferChannel?

    init(of channel: TransferChannel) {
        self.channel = channel.setIsInQueue(false) ? channel : nil
    }

    /// The task gets the response.
    func takeBack() { channel?.setIsInQueue(true) }
}
