import CachePolicy
import EventLoop

/// The exchanges that wait for the response to one request, the leader's. The queue outlives the
/// leader, so that the followers can be released in portions. Times are the loop's, in
/// milliseconds.
///
/// They wait as long as the leader's server keeps sending: their patience is counted from the last
/// data. The leader's client must not make them wait by reading slowly: the time for which it holds
/// the response up counts against their patience, however much arrives in between.
final class FollowerQueue {
    let waiting = LinkedQueue<Exchange>()
    /// Those of other environments.
    var remote: Set<RemoteFollower> = []
    /// Whether nobody waits.
    var isEmpty: Bool { waiting.isEmpty && remote.isEmpty }
    /// How the flight ended, once it has.
    var end: Exchange.FlightEnd?
    /// When something last came from the leader's server.
    private(set) var progressed: Int64
    /// For how long the leader's client had held the response up until `heldSince`.
    private var held: Int64 = 0
    /// Since when the client holds it up; `nil` if it does not.
    private var heldSince: Int64?
    /// The variants that have been stored, by the leader or by a follower that had stopped waiting,
    /// and when, in microseconds of the monotonic clock.
    private var stored: [VaryKey: Int64] = [:]
    /// The variants that a follower that had stopped waiting is storing.
    private var claimed: Set<VaryKey> = []

    init(now: Int64) { progressed = now }

    /// Data came from the leader's server.
    func progress(now: Int64) { progressed = now }

    /// The leader's client must read what is queued for it before more is read from the server.
    func hold(now: Int64) { if heldSince == nil { heldSince = now } }

    /// Reading continues.
    func resume(now: Int64) {
        guard let since = heldSince else { return }
        held += now - since
        heldSince = nil
    }

    /// For how long the client has held the response up.
    func heldTime(now: Int64) -> Int64 { held + (heldSince.map { now - $0 } ?? 0) }

    /// Whether a follower that has stopped waiting should store its own response. If all of them
    /// did, a response would be stored once for each client. While the claim is held, no other
    /// follower stores the same variant.
    ///
    /// - Parameter sentAt: as in ``hasStored(_:since:)``.
    func claim(_ variant: VaryKey, sentAt: Int64) -> Bool {
        !hasStored(variant, since: sentAt) && claimed.insert(variant).inserted
    }

    /// The response of a variant that was to be stored will not be.
    func release(_ variant: VaryKey) { claimed.remove(variant) }

    /// A variant's response has been stored.
    func noteStored(_ variant: VaryKey, at time: Int64) {
        claimed.remove(variant)
        stored[variant] = time
    }

    /// Whether a variant's response was stored after a request was sent, and can therefore replace
    /// its response. One that was stored before may have been invalidated since.
    func hasStored(_ variant: VaryKey, since sentAt: Int64) -> Bool {
        stored[variant].map { $0 >= sentAt } ?? false
    }
}

/// An exchange of another environment that waits for a response.
package struct RemoteFollower: Hashable, Sendable {
    /// The index of its environment's mailbox.
    let place: Int
    let token: Token
}

/// The wait of one exchange in a queue.
final class FollowerWait {
    let queue: FollowerQueue
    private let began: Int64
    private let heldBefore: Int64
    private let patience: Int64

    /// - Parameter patience: how long the exchange waits without new data, or while the response is
    ///   held up.
    init(in queue: FollowerQueue, patience: Int64, now: Int64) {
        self.queue = queue
        self.patience = patience
        began = now
        heldBefore = queue.heldTime(now: now)
    }

    /// How much of the patience is left; 0 or less if it is used up.
    func left(now: Int64) -> Int64 {
        let idle = now - max(began, queue.progressed)
        return patience - max(idle, queue.heldTime(now: now) - heldBefore)
    }
}
