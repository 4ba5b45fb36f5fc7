import CacheStore
import SharedCache

/// Who fetches what, as far as this gateway has to do with it: the leases that it has, and those of
/// other gateways that its lookups wait for, by the digests of their keys. Used by the level's
/// thread alone.
struct KeyLeases {
    /// A lease that this gateway has taken.
    struct Held {
        let token: SharedToken
        /// Its record in the engine.
        let record: [UInt8]
        /// Those who fetch the response have it.
        weak var lease: FetchLease?
        let began: Int64
        var prolongAt: Int64
        /// Whether a response was stored meanwhile that is fresh.
        var hasStored = false
    }

    private(set) var held: [[UInt8]: Held] = [:]
    private(set) var waits: [[UInt8]: LeaseWait] = [:]
    /// Lookups that wait.
    private(set) var waiting = 0
    /// Keys for which waiting has taken too long: until when nobody waits for them again.
    private var impatience: [[UInt8]: Int64] = [:]
    /// When something is to be done; not later than it has to be.
    private(set) var next: Int64?

    /// Keys in `impatience` at most.
    private static let impatientLimit = 4096

    mutating func remind(at time: Int64) { next = min(next ?? time, time) }

    /// What is to be done is done now: those who have more to do say when.
    mutating func begin() { next = nil }

    // MARK: Own ones

    /// The lease under which this gateway fetches the response to a key; `nil` if it does not.
    func lease(_ digest: [UInt8]) -> FetchLease? {
        guard let lease = held[digest]?.lease, lease.isHeld else { return nil }
        return lease
    }

    mutating func hold(_ held: Held, _ digest: [UInt8]) {
        self.held[digest] = held
        remind(at: held.prolongAt)
    }

    mutating func prolong(_ digest: [UInt8], until time: Int64) {
        held[digest]?.prolongAt = time
        remind(at: time)
    }

    mutating func noteFresh(_ digest: [UInt8]) { held[digest]?.hasStored = true }

    /// It is not this gateway's any longer, or its end has come; `nil` if it was not.
    @discardableResult
    mutating func lose(_ digest: [UInt8], _ token: SharedToken) -> Held? {
        guard held[digest]?.token == token else { return nil }
        return held.removeValue(forKey: digest)
    }

    // MARK: Others'

    mutating func add(_ wait: LeaseWait) { waits[wait.digest] = wait }

    /// A lookup waits, if there is room for it.
    mutating func add(_ load: LevelLoad, until time: Int64, to wait: LeaseWait, limit: Int)
        -> Bool
    {
        guard waiting < limit, wait.count < max(1, limit / 4) else { return false }
        wait.add(load, until: time)
        waiting += 1
        remind(at: time)
        return true
    }

    /// Nobody waits any longer.
    mutating func remove(_ wait: LeaseWait) -> [LevelLoad] {
        if waits[wait.digest] === wait { waits[wait.digest] = nil }
        let loads = wait.end()
        waiting -= loads.count
        return loads
    }

    /// Takes those out that have waited for long enough.
    mutating func expired(_ wait: LeaseWait, _ now: Int64) -> [LevelLoad] {
        let loads = wait.expired(now)
        waiting -= loads.count
        return loads
    }

    // MARK: Patience

    mutating func noteImpatience(_ digest: [UInt8], until time: Int64) {
        if impatience.count >= Self.impatientLimit { impatience = [:] }
        impatience[digest] = time
    }

    mutating func isImpatient(_ digest: [UInt8], _ now: Int64) -> Bool {
        guard let until = impatience[digest] else { return false }
        if now < until { return true }
        impatience[digest] = nil
        return false
    }
}

/// Lookups of this gateway that wait for the response to one key, which another one fetches: one of
/// them asks for all. Used by the level's thread alone.
final class LeaseWait: @unchecked Sendable {
    /// What was replied about the lease.
    enum Standing {
        case unknown
        /// It was free, and is this gateway's.
        case taken
        case another
        /// Nobody is to wait: there is a note, or what cannot be read; or the engine takes none.
        case none
    }

    let digest: [UInt8]
    /// The name of the lease in the engine.
    let name: [UInt8]
    /// That with which this gateway tries to take it.
    let token: SharedToken
    let record: [UInt8]
    let began: Int64
    var standing = Standing.unknown
    /// The record of another's that was verified.
    var verified: [UInt8] = []
    /// When to look again; `nil` while that has not been answered.
    var lookAt: Int64?
    private(set) var isOver = false

    private struct Waiting {
        var load: LevelLoad
        var until: Int64
    }

    /// In the order in which they came, and so of their ends.
    private var loads: [Waiting] = []
    private var first = 0

    init(_ digest: [UInt8], name: [UInt8], _ token: SharedToken, record: [UInt8], at now: Int64) {
        self.digest = digest
        self.name = name
        self.token = token
        self.record = record
        began = now
    }

    /// Lookups that wait.
    var count: Int { loads.count - first }
    /// One of them, which is asked for.
    var load: LevelLoad? { first < loads.count ? loads[first].load : nil }
    /// Whether another gateway had the lease.
    var hasWaited: Bool { !verified.isEmpty }
    /// When the first of them has waited for long enough.
    var firstEnd: Int64? { first < loads.count ? loads[first].until : nil }

    /// How long to wait before looking again: a tenth of what has been waited, within bounds.
    func pause(_ now: Int64) -> Int64 { min(max((now - began) / 10, 5), 100) }

    func add(_ load: LevelLoad, until time: Int64) {
        loads.append(Waiting(load: load, until: time))
    }

    func expired(_ now: Int64) -> [LevelLoad] {
        let begin = first
        while first < loads.count, loads[first].until <= now { first += 1 }
        let expired = loads[begin..<first].map(\.load)
        if first == loads.count {
            loads = []
            first = 0
        }
        return expired
    }

    func end() -> [LevelLoad] {
        let rest = loads[first...].map(\.load)
        loads = []
        first = 0
        isOver = true
        return rest
    }
}
