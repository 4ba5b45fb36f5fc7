/// A gateway's part of following the stream of purges: from where it was, so that what it missed is
/// carried out before it serves from its own tiers again.
///
///     away ─► checking ─┬──────────────► catchingUp ─► following
///      ▲                └► (all stale) ──►┘                │
///      └────────────────── (the connection ends) ──────────┘
///
/// While it is away, what it has counts as it does without a shared level, for a time that the
/// adapter knows (`grace`): the engine's failure must not become the cache's. After that it is
/// confirmed by its origin before it is used.
package struct PurgeFollower: Sendable, Hashable {
    package enum State: Sendable, Hashable {
        /// - Parameter since: in milliseconds.
        case away(since: Int64)
        /// What the stream is like is being asked.
        case checking(since: Int64)
        /// Entries that it missed are being read, up to this one.
        case catchingUp(until: PurgePosition, since: Int64)
        case following
    }

    /// What the engine says about the stream (`XINFO STREAM`).
    package struct Stream: Sendable, Hashable {
        /// `nil` if there is none: neither a stream nor an epoch.
        package var epoch: UInt64?
        /// The first entry that is there (`recorded-first-entry-id`); `nil` for none.
        package var first: PurgePosition?
        /// The last that was ever added (`last-generated-id`); `nil` for none.
        package var last: PurgePosition?
        /// Whether there are fewer than were ever added (`entries-added`).
        package var hasRemoved: Bool
        /// The last that was deleted by its number (`max-deleted-entry-id`): what is trimmed from
        /// the front is not among those.
        package var lastDeleted: PurgePosition?

        package init(
            epoch: UInt64?, first: PurgePosition?, last: PurgePosition?, hasRemoved: Bool,
            lastDeleted: PurgePosition? = nil
        ) {
            self.epoch = epoch
            self.first = first
            self.last = last
            self.hasRemoved = hasRemoved
            self.lastDeleted = lastDeleted
        }

        /// Whether an entry after a position may have been removed.
        package func mayMiss(after position: PurgePosition) -> Bool {
            if let lastDeleted, position.isBefore(lastDeleted) ?? true { return true }
            guard hasRemoved, let last, position.isBefore(last) ?? true else { return false }
            // That the one before the first has just been removed cannot be told from more.
            return first.map { position.isBefore($0) ?? true } ?? true
        }
    }

    /// What to do.
    package enum Action: Sendable, Hashable {
        case none
        /// Ask for the epoch and the stream (``checked(_:now:)``).
        case check
        /// Draw an epoch and set it if there is none, then ask again.
        case beginEpoch
        /// Read what follows this position, then ask what the stream is like, carry out what was
        /// read, and say so (``carriedOut(through:of:now:)``).
        case read(after: PurgePosition)
        /// All that is stored in the own tiers is stale; then read what follows.
        case makeAllStale(StaleReason, thenReadAfter: PurgePosition)
        /// It has caught up: responses of the shared level may be used and published.
        case join
    }

    /// Why everything is stale.
    package enum StaleReason: String, Sendable, Hashable, CaseIterable {
        /// The gateway has followed no stream yet, and may have missed anything.
        case neverFollowed
        /// The stream is another one than that it has followed.
        case otherEpoch
        /// Its end is before what the gateway has read: entries were lost.
        case wentBack
        /// Entries that it has not read were removed.
        case missedEntries
    }

    package private(set) var state: State
    /// Up to which purge everything was carried out here; `nil` if it has followed none.
    package private(set) var position: PurgePosition?
    /// Whether there is anything that may have been purged meanwhile.
    private var hasOwnEntries: Bool

    /// - Parameters:
    ///   - position: where it was, as it was kept on disk; `nil` if it was not.
    ///   - hasOwnEntries: whether something is stored in the own tiers.
    package init(at position: PurgePosition?, hasOwnEntries: Bool, now: Int64) {
        self.position = position
        self.hasOwnEntries = hasOwnEntries
        state = .away(since: now)
    }

    /// The purge up to which a response that is published now is known not to be purged; `nil`
    /// while none may be.
    package var born: PurgePosition? { state == .following ? position : nil }

    /// A connection to the engine is ready.
    package mutating func connected() -> Action {
        switch state {
        case .away(let since):
            state = .checking(since: since)
            return .check
        case .checking, .catchingUp, .following: return .none
        }
    }

    /// The connection has ended.
    package mutating func disconnected(now: Int64) {
        switch state {
        case .following: state = .away(since: now)
        case .away(let since), .checking(let since), .catchingUp(_, let since):
            state = .away(since: since)
        }
    }

    /// The engine has said what the stream is like: when it was asked, and every now and then while
    /// it is followed.
    package mutating func checked(_ stream: Stream, now: Int64) -> Action {
        let since: Int64
        switch state {
        case .away: return .none
        case .checking(let start), .catchingUp(_, let start): since = start
        case .following: since = now
        }
        guard let epoch = stream.epoch else {
            state = .checking(since: since)
            return .beginEpoch
        }
        let last = stream.last ?? .beginning(of: epoch)
        guard let reason = reasonForStaleness(stream, epoch: epoch, last: last) else {
            switch state {
            case .following, .catchingUp, .away: return .none
            case .checking: return follow(to: last, from: position ?? last, since)
            }
        }
        position = last
        if !hasOwnEntries, reason == .neverFollowed {
            return follow(to: last, from: last, since)
        }
        state = .catchingUp(until: last, since: since)
        return .makeAllStale(reason, thenReadAfter: last)
    }

    private mutating func follow(
        to last: PurgePosition, from own: PurgePosition, _ since: Int64
    ) -> Action {
        position = own
        state = .catchingUp(until: last, since: since)
        return .read(after: own)
    }

    private func reasonForStaleness(
        _ stream: Stream, epoch: UInt64, last: PurgePosition
    ) -> StaleReason? {
        guard let position else { return .neverFollowed }
        guard position.epoch == epoch else { return .otherEpoch }
        if last.isBefore(position) ?? true { return .wentBack }
        return stream.mayMiss(after: position) ? .missedEntries : nil
    }

    /// Entries were read and carried out here.
    /// - Parameters:
    ///   - last: the last of them; `nil` if there was none.
    ///   - stream: what the stream was like after they were read: entries that were removed before
    ///     are missing among them.
    package mutating func carriedOut(
        through last: PurgePosition?, of stream: Stream, now: Int64
    ) -> Action {
        switch state {
        case .away, .checking: return .none
        case .catchingUp, .following: break
        }
        switch checked(stream, now: now) {
        case .none: return advanced(to: last)
        case let action: return action
        }
    }

    private mutating func advanced(to last: PurgePosition?) -> Action {
        switch state {
        case .away, .checking: return .none
        case .catchingUp(let until, _):
            advance(to: last)
            guard let position, !(position.isBefore(until) ?? true) else {
                // There are more, unless what was the last one has been removed.
                guard let position, last != nil else { return join() }
                return .read(after: position)
            }
            return join()
        case .following:
            advance(to: last)
            return .none
        }
    }

    private mutating func join() -> Action {
        state = .following
        hasOwnEntries = true
        return .join
    }

    private mutating func advance(to last: PurgePosition?) {
        guard let last, let position, position.isBefore(last) ?? false else { return }
        self.position = last
    }
}
