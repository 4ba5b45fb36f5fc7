/// What a line keeps with those who stand in it.
protocol Follower: AnyObject {
    var nextFollower: Self? { get set }
    var previousFollower: Self? { get set }
}

/// Those who wait for one response, in the order in which they came.
///
/// Joining and leaving take constant time, wherever one stands: thousands may wait, and all of them
/// may give up in the same moment. The line outlives the exchange that they wait for, so that they
/// can be let go in portions.
final class FollowerLine<Member: Follower> {
    private var first: Member?
    private var last: Member?
    private(set) var count = 0
    /// How the flight ended, once it has.
    var end: Exchange.FlightEnd?

    var isEmpty: Bool { count == 0 }

    deinit {
        // Neighbours refer to each other.
        while popFirst() != nil {}
    }

    func append(_ member: Member) {
        assert(member.nextFollower == nil && member.previousFollower == nil)
        member.previousFollower = last
        if let last { last.nextFollower = member } else { first = member }
        last = member
        count += 1
    }

    /// Takes out one who stands in this line.
    func remove(_ member: Member) {
        let (previous, next) = (member.previousFollower, member.nextFollower)
        if let previous { previous.nextFollower = next } else { first = next }
        if let next { next.previousFollower = previous } else { last = previous }
        member.previousFollower = nil
        member.nextFollower = nil
        count -= 1
    }

    func popFirst() -> Member? {
        guard let first else { return nil }
        remove(first)
        return first
    }
}
