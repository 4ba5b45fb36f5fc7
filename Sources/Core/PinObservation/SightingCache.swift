/// What a worker has seen lately, so that of servers that stay the same only a count is passed on,
/// once a minute.
///
/// A fixed table of sets of four places; of a full set, the one that was passed on longest ago
/// gives way. Pure: the time is an argument.
package struct SightingCache {
    /// The time between two counts of the same, in milliseconds.
    package static let intervalMilliseconds: Int64 = 60_000
    private static let sets = 256
    private static let ways = 4

    private struct Place {
        /// 0 if it is free.
        var key: UInt64 = 0
        /// Milliseconds of a monotonic clock.
        var passedOn: Int64 = 0
        var pending: UInt64 = 0
    }

    private var places = [Place](repeating: Place(), count: sets * ways)

    package init() {}

    /// How many sightings of the same to pass on now.
    package struct Count: Hashable, Sendable {
        package var key: UInt64
        package var count: UInt64
    }

    /// What follows from a sighting.
    package struct Answer: Hashable, Sendable {
        /// How many sightings of this to pass on, this one included; `nil` for none yet.
        package var count: UInt64?
        /// What was not passed on yet of one that gave way.
        package var displaced: Count?
    }

    /// Notes a sighting.
    ///
    /// - Parameters:
    ///   - key: a hash of everything that it shows; never 0.
    ///   - now: milliseconds of a monotonic clock.
    package mutating func note(_ key: UInt64, now: Int64) -> Answer {
        let first = Int(key % UInt64(Self.sets)) * Self.ways
        var next = first
        for index in first..<(first + Self.ways) {
            if places[index].key == key {
                places[index].pending &+= 1
                guard now - places[index].passedOn >= Self.intervalMilliseconds else {
                    return Answer()
                }
                places[index].passedOn = now
                defer { places[index].pending = 0 }
                return Answer(count: places[index].pending)
            }
            if places[index].key == 0 {
                if places[next].key != 0 { next = index }
            } else if places[next].key != 0, places[index].passedOn < places[next].passedOn {
                next = index
            }
        }
        let old = places[next]
        places[next] = Place(key: key, passedOn: now)
        return Answer(
            count: 1,
            displaced: old.key != 0 && old.pending > 0
                ? Count(key: old.key, count: old.pending) : nil)
    }

    /// Forgets a sighting that could not be passed on, so that the next one is new.
    package mutating func forget(_ key: UInt64) {
        let first = Int(key % UInt64(Self.sets)) * Self.ways
        for index in first..<(first + Self.ways) where places[index].key == key {
            places[index] = Place()
        }
    }

    /// The counts that have waited for a minute, or all of them.
    ///
    /// - Parameter now: milliseconds of a monotonic clock; `nil` for all.
    package mutating func takeCounts(now: Int64?) -> [Count] {
        var counts: [Count] = []
        for index in places.indices where places[index].pending > 0 {
            if let now {
                guard now - places[index].passedOn >= Self.intervalMilliseconds else { continue }
                places[index].passedOn = now
            }
            counts.append(Count(key: places[index].key, count: places[index].pending))
            places[index].pending = 0
        }
        return counts
    }
}
