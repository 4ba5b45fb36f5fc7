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

    /// Whether entries that follow the cursor may have been removed before they were read.
    /// - Parameter cursor: where it was before.
    func mayHaveMissed(after cursor: PurgePosition) -> Bool {
        stream.map { $0.mayMiss(after: cursor) } ?? true
    }

    /// What has been read has been carried out, and there was no more when the engine last said
    /// what the stream is like.
    mutating func carriedOut(now: Int64) -> PurgeFollower.Action {
        guard let stream else { return .none }
        var through: PurgePosition? = cursor
        // The last ones may have been removed by hand.
        if case .catchingUp(let until, _) = follower.state, cursor.isBefore(until) ?? true {
            through = nil
        }
        return follower.carriedOut(through: through, of: stream, now: now)
    }
}
