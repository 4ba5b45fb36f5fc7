import CachePolicy
import EventLoop

/// Those who wait for the response to one request, the leader's. It outlives the exchange that they
/// wait for, so that they can be let go in portions. Times are the loop's, in milliseconds.
///
/// They wait as long as the leader's server goes on sending: their patience counts from what came
/// last. The leader's client must not make them wait by reading slowly: the time for which it holds
/// the response up counts against their patience however much comes in between.
final class FollowerQueue {
    let waiting = LinkedQueue<Exchange>()
    /// How the flight ended, once it has.
    var end: Exchange.FlightEnd?
    /// When something last came from the leader's server.
    private(set) var progressed: Int64
    /// For how long the leader's client has held the response up, until `heldSince`.
    private var held: Int64 = 0
    /// Since when it does; nil: it does not.
    private var heldSince: Int64?
    /// The variants that are stored, by the leader or by one of those who have waited in vain; and
    /// when they were, by the monotonic clock in microseconds.
    private var stored: [VaryKey: Int64] = [:]
    /// The variants that one of those who have waited in vain is storing.
    private var claimed: Set<VaryKey> = []

    init(now: Int64) { progressed = now }

    /// Something came from the leader's server.
    func progress(now: Int64) { progressed = now }

    /// The leader's client has to take what is queued for it before more is read.
    func hold(now: Int64) { if heldSince == nil { heldSince = now } }

    /// More is read.
    func goOn(now: Int64) {
        guard let since = heldSince else { return }
        held += now - since
        heldSince = nil
    }

    /// For how long the response has been held up.
    func heldTime(now: Int64) -> Int64 { held + (heldSince.map { now - $0 } ?? 0) }

    /// Whether the response to one that has waited in vain is to be stored: where each of them was,
    /// one response would be stored as often as there are clients. If so, no other's of the same
    /// variant is until the claim is released.
    ///
    /// - Parameter sentAt: as of ``hasStored(_:since:)``.
    func claim(_ variant: VaryKey, sentAt: Int64) -> Bool {
        !hasStored(variant, since: sentAt) && claimed.insert(variant).inserted
    }

    /// The response that was to be stored of a variant is not.
    func release(_ variant: VaryKey) { claimed.remove(variant) }

    /// A variant's response is stored.
    func noteStored(_ variant: VaryKey, at time: Int64) {
        claimed.remove(variant)
        stored[variant] = time
    }

    /// Whether a variant's response was stored after a request had been sent, which it then stands
    /// in for. What was stored before may have been invalidated since.
    func hasStored(_ variant: VaryKey, since sentAt: Int64) -> Bool {
        stored[variant].map { $0 >= sentAt } ?? false
    }
}

/// The wait of one exchange in a line.
final class FollowerWait {
    let queue: FollowerQueue
    private let began: Int64
    private let heldBefore: Int64
    private let patience: Int64

    /// - Parameter patience: for how long nothing may come, or the response be held up.
    init(in queue: FollowerQueue, patience: Int64, now: Int64) {
        self.queue = queue
        self.patience = patience
        began = now
        heldBefore = queue.heldTime(now: now)
    }

    /// How much of the patience is left; 0 or less: it has waited long enough.
    func left(now: Int64) -> Int64 {
        let idle = now - max(began, queue.progressed)
        return patience - max(idle, queue.heldTime(now: now) - heldBefore)
    }
}
