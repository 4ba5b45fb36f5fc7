import Clocks
import HTTPCore
import Locking
import PinfoldEngine
import Synchronization

/// The latest exchanges, for whoever looks at them: the API, and the page that is drawn from it.
///
/// It holds a thousand in all, each of which takes 9 KiB at most, beside what its server presented
/// (``ServerChain``), and takes memory only as it is filled. Those that were refused or failed are
/// held whether somebody looks or not, except in a flood (``HeldFailures``): they are what is
/// looked for afterwards. All others are held only while somebody looks, and for five minutes
/// after: making the record of an exchange costs more than the hundredth of a cache hit that may be
/// spent where nobody looks, and what was served is in the access log and the metrics.
///
/// When it is full, the oldest exchange of the client network gives way that holds the most, so
/// that nobody can drive out what others did; and what failed keeps a quarter of the places, so
/// that what is served does not drive it out.
package final class FlowRing: Sendable {
    /// How many exchanges it holds.
    package static let capacity = 1000
    /// How many of them may be refused or failed ones, whatever else happens.
    static let failureCapacity = 250
    /// How long all exchanges are held after somebody has looked, in milliseconds.
    static let watchMilliseconds: Int64 = 300_000

    private struct Contents {
        var served = ShareTable<UInt64, HeldFlow>(limit: .max)
        var failed = ShareTable<UInt64, HeldFlow>(limit: .max)
        /// The number of the latest exchange; the first one has 1.
        var newest: UInt64 = 0
        var count: Int { served.count + failed.count }

        func flow(_ sequence: UInt64) -> HeldFlow? {
            served.value(of: sequence) ?? failed.value(of: sequence)
        }

        mutating func makeRoom() {
            while count > FlowRing.capacity {
                if served.count > FlowRing.capacity - FlowRing.failureCapacity {
                    served.removeNext()
                } else {
                    failed.removeNext()
                }
            }
        }
    }

    /// What it holds at a moment, or the latest of it.
    struct Snapshot: Sendable {
        /// The latest first.
        var flows: [HeldFlow]
        /// The number of the latest exchange; 0 if there was none.
        var newest: UInt64
        /// How many exchanges are held.
        var held: Int
        /// How many exchanges have given way.
        var gaveWay: UInt64 { newest - UInt64(held) }
    }

    private let contents = Locked(Contents())
    private let watchedUntil = Atomic<Int64>(.min)
    /// The name of this process among those whose exchanges are numbered.
    let process = String(Clock.wallMilliseconds(), radix: 36)

    package init() {}

    /// Holds an exchange.
    func hold(_ flow: HeldFlow) {
        let client = IPNetwork(client: flow.record.clientAddress)
        let isFailed = flow.record.counted.failure != nil
        contents.withLock { contents in
            contents.newest += 1
            var flow = flow
            flow.sequence = contents.newest
            if isFailed {
                contents.failed.insert(flow, for: flow.sequence, of: client)
            } else {
                contents.served.insert(flow, for: flow.sequence, of: client)
            }
            contents.makeRoom()
        }
    }

    /// What it holds now.
    var snapshot: Snapshot {
        let (all, newest) = contents.withLock { contents in
            (contents.served.values + contents.failed.values, contents.newest)
        }
        return Snapshot(
            flows: all.sorted { $0.sequence > $1.sequence }, newest: newest, held: all.count)
    }

    /// What it holds of the exchanges after the one with this number: for who asks often, since it
    /// takes time by how many there are of these.
    func snapshot(after sequence: UInt64) -> Snapshot {
        let latest: Snapshot? = contents.withLock { contents in
            let newest = contents.newest
            guard newest - min(sequence, newest) < FlowRing.capacity else { return nil }
            let numbers = (min(sequence, newest)..<newest).reversed()
            return Snapshot(
                flows: numbers.compactMap { contents.flow($0 + 1) }, newest: newest,
                held: contents.count)
        }
        return latest ?? snapshot
    }

    // MARK: Who looks

    /// Whether somebody looks, or has looked lately.
    /// - Parameter now: of the monotonic clock, in milliseconds.
    func isWatched(at now: Int64) -> Bool { now < watchedUntil.load(ordering: .relaxed) }

    /// Somebody looks. Returns whether the workers are to be told.
    ///
    /// They are told again long before they stop: a worker that is about to would miss it.
    /// - Parameter now: of the monotonic clock, in milliseconds.
    func watch(at now: Int64) -> Bool {
        let former = watchedUntil.exchange(now + Self.watchMilliseconds, ordering: .relaxed)
        return former == .min || former - now < Self.watchMilliseconds / 2
    }
}
