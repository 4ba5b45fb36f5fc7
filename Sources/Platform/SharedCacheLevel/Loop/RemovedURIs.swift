/// Which URIs the other gateways were told of lately, because their responses were invalidated, and
/// which they are to be told of. Used by the level's thread alone.
///
/// An unsafe request invalidates a URI under many keys, of all routes, and some URIs get one after
/// the other. Each time all gateways have to know, also if the engine has nothing of the URI: it
/// may have been evicted there, or be too large for it, or be on its way. So what is told is about
/// the URI under all of its keys, and one of which the engine has nothing is told once in a while.
struct RemovedURIs {
    /// What to do about a key that was removed from the engine.
    enum Decision: Equatable {
        case tell
        /// It is told later, with what follows until then; or it was told since.
        case wait
    }

    private struct Told {
        /// The key that is named for gateways which know only that.
        var key: [UInt8]
        /// Own removals that had been sent when it was told: of these all know.
        var through: UInt64
        var at: Int64
        /// When it is told again; `nil` if it need not be.
        var dueAt: Int64?
    }

    private var told: [[UInt8]: Told] = [:]
    /// When there is something to do next; `nil` for nothing.
    private(set) var next: Int64?

    /// How long one of which the engine has nothing is not told again.
    static let pauseMilliseconds: Int64 = 500
    /// Those that are known at most; of more it is not known that they were told.
    private static let limit = 16_384
    /// Those that are told at once after a failure.
    private static let batch = 1024

    /// A key has been removed from the engine.
    /// - Parameters:
    ///   - isStored: whether there was anything of it.
    ///   - removal: which own removal it was.
    mutating func removed(
        _ uri: [UInt8], _ key: [UInt8], isStored: Bool, removal: UInt64, now: Int64
    ) -> Decision {
        guard !isStored, let known = told[uri] else { return .tell }
        // It was asked for before that was told.
        guard removal > known.through else { return .wait }
        let due = known.at + Self.pauseMilliseconds
        guard now < due || known.dueAt != nil else { return .tell }
        wait(for: uri, key, until: min(due, known.dueAt ?? due))
        return .wait
    }

    /// All gateways are told of a URI.
    /// - Parameter removals: own removals that have been sent until now.
    mutating func tells(_ uri: [UInt8], _ key: [UInt8], after removals: UInt64, now: Int64) {
        if told.count >= Self.limit { told = told.filter { $0.value.dueAt != nil } }
        told[uri] = Told(key: key, through: removals, at: now)
        remind(at: now + Self.pauseMilliseconds)
    }

    /// They could not be told.
    mutating func failed(_ uri: [UInt8], _ key: [UInt8], now: Int64) {
        told[uri] = told[uri] ?? Told(key: key, through: 0, at: now)
        told[uri]?.through = 0
        wait(for: uri, key, until: now + Self.pauseMilliseconds)
    }

    private mutating func wait(for uri: [UInt8], _ key: [UInt8], until due: Int64) {
        told[uri]?.key = key
        told[uri]?.dueAt = due
        remind(at: due)
    }

    private mutating func remind(at time: Int64) { next = min(next ?? time, time) }

    /// Time has passed.
    /// - Returns: what is told now, with a key of each.
    mutating func timePassed(_ now: Int64) -> [(uri: [UInt8], key: [UInt8])] {
        guard let time = next, now >= time else { return [] }
        var due: [(uri: [UInt8], key: [UInt8])] = []
        var later: Int64?
        for (uri, known) in told {
            if let dueAt = known.dueAt {
                if dueAt <= now, due.count < Self.batch {
                    due.append((uri, known.key))
                } else {
                    later = min(later ?? dueAt, dueAt)
                }
            } else if now >= known.at + Self.pauseMilliseconds {
                told[uri] = nil
            } else {
                let end = known.at + Self.pauseMilliseconds
                later = min(later ?? end, end)
            }
        }
        // Those that were told about the same time are looked at together.
        next = later.map { max($0, now + Self.pauseMilliseconds / 10) }
        return due
    }

    /// All that has yet to be told, which is forgotten here.
    mutating func takeWaiting() -> [(uri: [UInt8], key: [UInt8])] {
        defer { (told, next) = ([:], nil) }
        return told.compactMap { $0.value.dueAt == nil ? nil : ($0.key, $0.value.key) }
    }
}
