import CacheStore
import SharedCache

/// The purges of the fleet that values of the engine are compared with when they are read: each
/// value says up to which purge it is known not to be purged. A value without locks.
struct PurgeTable {
    /// What the purges make of a value.
    enum Verdict: Equatable {
        case current
        /// Since when, in seconds on the own clock.
        case stale(since: Int64)
        case gone
        /// It is older than what is known, or of another epoch.
        case unknown
    }

    private var bans = BanTable()
    /// The epoch of the stream that it was read from.
    let epoch: UInt64
    /// Since when all purges are in it.
    private let floor: PurgePosition
    /// Up to which entry of the stream it has been read.
    private(set) var position: PurgePosition
    /// See `FleetState.obtainedAfter`.
    var obtainedAfter: Int64?

    /// Without purges: all that follow the floor are to be added.
    /// - Parameter tagFields: fields whose members are tags, besides the known ones.
    init(floor: PurgePosition, tagFields: [[UInt8]] = []) {
        self.floor = floor
        bans.tagFields = tagFields
        epoch = floor.epoch
        position = floor
    }

    /// Whether the stream still has what follows what was read of it.
    func goesOn(in stream: PurgeFollower.Stream) -> Bool {
        stream.epoch == epoch && !stream.mayMiss(after: position)
    }

    /// Adds a purge, which may be one of this gateway's own that has yet to be read.
    mutating func add(_ purge: FleetPurge, at position: PurgePosition) {
        let mark = BanMark(serial: position.lastSerial, time: max(1, purge.seconds))
        _ = bans.add(Ban(pattern: purge.pattern.banned, isSoft: purge.isSoft, mark: mark))
    }

    /// Everything up to this entry is in it.
    mutating func read(to position: PurgePosition) {
        if self.position.isBefore(position) ?? false { self.position = position }
    }

    /// Fields whose members are tags, besides the known ones.
    mutating func setTagFields(_ names: [[UInt8]]) { bans.tagFields = names }

    func verdict(
        key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, born: PurgePosition
    ) -> Verdict {
        guard born.isBefore(floor) == false else { return .unknown }
        switch bans.verdict(key: key, head: head, .born(born.firstSerial)) {
        case .none: return .current
        case .gone: return .gone
        case .stale(_, let since): return .stale(since: since)
        }
    }
}
