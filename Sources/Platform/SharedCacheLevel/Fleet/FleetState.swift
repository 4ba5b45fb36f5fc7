import CacheStore
import SharedCache

/// How far this gateway has followed the others, and what it has yet to do for them. Used by the
/// level's thread alone.
struct FleetState {
    /// Purges that the gateway is to carry out in its own tiers, one batch after the other.
    struct Batch {
        var purges: [Purge]
        /// Whether everything becomes stale because something may have been missed.
        var isStale = false
    }

    /// Someone who wants to know who has carried out what was purged until now.
    final class Confirmation {
        let deadline: Int64
        let completion: @Sendable (FleetReceipt) -> Void
        /// The last announcement that it is about.
        let announcement: UInt64
        /// `nil` before the engine has said where that is.
        var target: PurgePosition?
        /// When the members are read again; `nil` while they are.
        var nextAt: Int64?

        init(
            deadline: Int64, announcement: UInt64,
            _ completion: @escaping @Sendable (FleetReceipt) -> Void
        ) {
            self.deadline = deadline
            self.announcement = announcement
            self.completion = completion
        }
    }

    let instance = SharedToken.drawn()
    var purges: FollowedStream
    var removed: FollowedStream
    /// `nil` before the stream was read.
    var table: PurgeTable?
    /// Of what the engine has, only what was obtained after that is used: seconds on its clock;
    /// `nil` for all.
    var obtainedAfter: Int64?
    /// Fields that have tags besides the known ones.
    var tagFields: [[UInt8]] = []

    /// What waits to be carried out by the gateway.
    var batches: [Batch] = []
    /// Whether it is carrying one out.
    var isCarryingOut = false

    /// Where both streams had been read to.
    struct Cursors {
        var purges: PurgePosition
        var removed: PurgePosition
    }

    /// A reading of the streams, of which it is not known yet what they were like after it.
    struct Poll {
        /// When it was begun.
        var asked: Int64
        /// The last announcement that had been written by then.
        var announced: UInt64
    }

    var poll: Poll?
    var before: Cursors?
    /// Entries of each stream that are read at once.
    var entries = LevelLoop.pollEntries

    /// Whether both streams are being read: the engine has said what they are like.
    var isReading = false
    /// When they are read next; `nil` while they are.
    var pollAt: Int64?
    /// When the last reading was begun after which nothing was missing.
    var currentSince: Int64
    /// When everything becomes stale if nothing is heard until then.
    var staleAt: Int64

    /// When the others are told next that this gateway is there.
    var signAt: Int64 = 0
    /// Up to where the others have been told that everything is carried out.
    var signed: PurgePosition?
    /// The last purge of this gateway.
    var announced: PurgePosition?
    /// The last announcement that was sent, that was written, and that has been read again.
    var sent: UInt64 = 0
    var written: UInt64 = 0
    var read: UInt64 = 0
    /// The last purge of another gateway that was read.
    var lastForeign: PurgePosition?
    var confirmations: [Confirmation] = []
    /// Those who wait until that has been read again.
    var barriers: [@Sendable () -> Void] = []
    /// Who was there when the members were last read, but for this gateway.
    var others: [String] = []
    /// Who was away then, for longer than what it has is used without being confirmed.
    var away: [String] = []
    /// Which policy was read last.
    var policyVersion: [UInt8]?

    /// Whether everything that was carried out is so after a restart as well.
    var mayKeepPosition = true
    /// When the position is written next.
    var keepAt: Int64 = 0

    /// - Parameter positions: where an earlier process was; `nil` if that is not known.
    init(_ options: SharedLevelOptions, at positions: FleetRecord.Positions?, now: Int64) {
        let hasOwn = options.hasOwnEntries
        purges = FollowedStream(at: positions?.purges, hasOwnEntries: hasOwn, now: now)
        removed = FollowedStream(at: positions?.removed, hasOwnEntries: hasOwn, now: now)
        currentSince = now
        staleAt = now + options.graceMilliseconds
    }

    /// Whether the gateway has caught up: values of the engine may be used and published.
    var isFollowing: Bool { purges.isFollowing && removed.isFollowing }

    /// Whether everything that this gateway has purged has been read again.
    var hasReadOwn: Bool { read >= sent }

    /// Purges that wait.
    var waiting: Int { batches.reduce(0) { $0 + $1.purges.count } }

    /// Purges at most in one batch.
    static let batchPurges = 256
    /// Purges that wait before no more are read.
    static let waitingPurges = 4096

    mutating func add(_ purge: Purge) {
        if let last = batches.indices.last, !batches[last].isStale, last > 0 || !isCarryingOut,
            batches[last].purges.count < Self.batchPurges
        {
            batches[last].purges.append(purge)
        } else {
            batches.append(Batch(purges: [purge]))
        }
    }

    mutating func addStale() {
        // One that is about to begin is enough.
        if let last = batches.last, last.isStale, batches.count > 1 || !isCarryingOut { return }
        batches.append(Batch(purges: [Purge(.everything, isSoft: true)], isStale: true))
    }
}
