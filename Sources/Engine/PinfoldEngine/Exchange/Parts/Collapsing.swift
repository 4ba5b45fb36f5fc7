import CachePolicy
import CacheStore

extension Exchange {
    /// Its part in collapsing identical requests.
    struct Collapsing {
        /// How an exchange takes part.
        enum Role {
            case none
            /// Others wait for its response.
            case leads(hash: UInt64)
            /// It waits for the response to another exchange.
            case follows(FollowerWait)
            /// It waits for the response to an exchange of another environment, until this time.
            case followsRemotely(place: Int, hash: UInt64)
            /// The response it waited for has come.
            case answered
            /// It has stopped waiting. `storing`: the variant of its response, while that is being
            /// stored.
            case gaveUp(FollowerQueue, storing: VaryKey?)
            /// The same, of an exchange of another environment. `stores`: no other of those that
            /// have stopped waiting for it stores its response.
            case gaveUpRemotely(hash: UInt64, stores: Bool)
            /// It has not waited, or not again, because that would not help, and its response is
            /// being stored: of those who do the same, no other stores one with this hash, of key
            /// and variant.
            case alone(claim: UInt64)
        }

        private(set) var role = Role.none
        /// The exchanges that wait for this one's response while it leads; `nil` if there are none.
        private(set) var followers: FollowerQueue?
        /// How much longer it waits for other exchanges' responses without progress, here and in
        /// other gateways, in milliseconds; `nil` if it has not waited.
        private(set) var patience: Int64?

        /// The hash of those who wait for each other within those of the key: because they want
        /// the same variant, which the response that they waited for is not, or have the same
        /// cookies. `nil` if they need not be alike.
        private(set) var group: UInt64?
        private(set) var isOfVariant = false
        private(set) var isOfCookies = false

        /// That no other gateway of the fleet asks for the response meanwhile; `nil` if that is
        /// not known.
        private(set) var lease: FetchLease?

        /// When it asked what another gateway may be fetching, in milliseconds of the loop; `nil`
        /// while it does not.
        private var askedAt: Int64?

        /// Whether it has waited for a part that was missing.
        private(set) var hasFetched = false

        @inline(__always)
        var takesPart: Bool { if case .none = role { false } else { true } }

        /// It waits for a part that is missing, or need not: once.
        mutating func noteFetch() { hasFetched = true }

        mutating func lead(_ hash: UInt64) { role = .leads(hash: hash) }

        /// It fetches the response for all gateways, or waits for one that does.
        mutating func hold(_ lease: FetchLease) { self.lease = lease }

        /// It has no more use for a lease. If others have it, they may go on.
        mutating func takeLease() -> FetchLease? { lease.take() }

        /// It asks what another gateway may be fetching, and may have to wait for that.
        mutating func asksFleet(at time: Int64) { askedAt = time }

        /// It has asked, and waited meanwhile.
        /// - Parameter whole: its patience, if that has not been touched.
        mutating func hasAskedFleet(at time: Int64, of whole: Int64) {
            guard let began = askedAt.take(), time > began else { return }
            patience = max(0, (patience ?? whole) - (time - began))
        }

        /// Another exchange begins to wait for this one.
        mutating func follow(in queue: FollowerQueue) { followers = queue }

        /// It leads no longer. Returns those that wait for it.
        mutating func stopLeading() -> FollowerQueue? {
            role = .none
            return followers.take()
        }

        mutating func follow(_ wait: FollowerWait) { role = .follows(wait) }

        mutating func followRemotely(at place: Int, _ hash: UInt64) {
            role = .followsRemotely(place: place, hash: hash)
        }

        mutating func giveUpRemotely(_ hash: UInt64, stores: Bool) {
            role = .gaveUpRemotely(hash: hash, stores: stores)
        }

        /// The wait is over.
        /// - Parameters:
        ///   - patience: what is left of its patience; `nil` if that has not been touched.
        ///   - isAnswered: whether there is a response.
        mutating func endWait(patience: Int64?, isAnswered: Bool) {
            if let patience { self.patience = patience }
            role = isAnswered ? .answered : .none
        }

        /// From now on it waits for one of those who are like it.
        /// - Parameter isOfCookies: whether they have the same cookies; otherwise they want the
        ///   same variant, whatever their cookies.
        mutating func regroup(_ group: UInt64, isOfCookies: Bool) {
            self.group = group
            self.isOfCookies = isOfCookies
            if !isOfCookies { isOfVariant = true }
            role = .none
        }

        /// It proceeds alone.
        /// - Parameter variant: the variant of its response, while that is being stored.
        mutating func giveUp(_ queue: FollowerQueue, storing variant: VaryKey? = nil) {
            role = .gaveUp(queue, storing: variant)
        }

        /// Another exchange leads from now on.
        mutating func handOver() -> Collapsing {
            defer { self = Collapsing() }
            return self
        }

        /// It stores its response, although it has not waited for another.
        mutating func goAlone(storing claim: UInt64) { role = .alone(claim: claim) }

        mutating func leave() { role = .none }
    }
}
