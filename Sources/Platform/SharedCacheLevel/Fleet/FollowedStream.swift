import SharedCache

/// One of the two streams that are followed, on the present connection.
struct FollowedStream {
    var follower: PurgeFollower
    /// What the engine has said about it; `nil` before that.
    var stream: PurgeFollower.Stream?
    /// What follows this entry is read next.
    var cursor: PurgePosition
    /// Whether everything that there was has been read.
    var isDrained = false

    init(at position: PurgePosition?, hasOwnEntries: Bool, now: Int64) {
        follower = PurgeFollower(at: position, hasOwnEntries: hasOwnEntries, now: now)
        cursor = position ?? .beginning(of: 0)
    }

    var isFollowing: Bool { follower.state == .following }

    mutating func disconnected(now: Int64) {
        follower.disconnected(now: now)
        stream = nil
        isDrained = false
    }

    /// What has been read has been carried out, and there was no more.
    mutating func carriedOut(now: Int64) -> PurgeFollower.Action {
        // The last ones may have been removed by hand.
        let isBehind = follower.position.map { cursor.isBefore($0) ?? true } ?? false
        var through: PurgePosition? = isBehind ? nil : cursor
        if case .catchingUp(let until, _) = follower.state, cursor.isBefore(until) ?? true {
            through = nil
        }
        let last = isBehind ? follower.position ?? cursor : cursor
        let whole = PurgeFollower.Stream(
            epoch: last.epoch, first: nil, last: last, hasRemoved: false)
        return follower.carriedOut(through: through, of: whole, now: now)
    }
}
