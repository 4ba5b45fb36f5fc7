import Synchronization

/// That this gateway is the one of its fleet which fetches the response to a key: others wait for
/// it. A level that gateways share gives one to each load for which it has nothing, as long as any
/// of those who have it are about to fetch the response, or fetch it.
///
/// It ends with its last reference, if nobody has ended it before.
public final class FetchLease: Sendable {
    /// How a fetch ended.
    public enum End: Sendable {
        /// Its response is stored.
        case stored
        /// Its response may not be stored, and those to the next requests will not be either.
        case notStored
        /// There is no complete response: another may fetch it.
        case failed
    }

    private let hasEnded = Atomic<Bool>(false)
    private let onEnd: @Sendable (End) -> Void

    /// - Parameter onEnd: called once, on any thread; it does not wait.
    package init(onEnd: @escaping @Sendable (End) -> Void) { self.onEnd = onEnd }

    deinit { end(.failed) }

    /// Whether somebody still fetches the response under it.
    package var isHeld: Bool { !hasEnded.load(ordering: .acquiring) }

    /// The fetch has ended: what was stored has been handed to the store before. Safe to call
    /// again.
    public func end(_ end: End) {
        guard !hasEnded.exchange(true, ordering: .acquiringAndReleasing) else { return }
        onEnd(end)
    }
}
