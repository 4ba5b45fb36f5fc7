import PinfoldMetrics

/// The rates of the last five minutes, from counts that are read every five seconds. A value: it is
/// told what the counts are, and when.
struct TrafficHistory: Sendable {
    static let intervalMilliseconds: Int64 = 5000
    static let capacity = 60

    /// The counts at a moment.
    struct Reading: Sendable {
        /// In milliseconds since 1970, and of the monotonic clock.
        var time: Int64
        var moment: Int64
        var totals: TrafficTotals
        var inFlight: Int
        var tunnels: Int
        /// The time in which each worker was busy since its start.
        var busyNanoseconds: [Int64]
    }

    /// What happened between two readings.
    struct Sample: Sendable {
        /// When it ended, in milliseconds since 1970.
        var time: Int64
        var milliseconds: Int64
        var exchanges: UInt64
        var failures: UInt64
        var hits: UInt64
        var lookups: UInt64
        var received: UInt64
        var sent: UInt64
        var acceptPauses: UInt64
        /// Microseconds that half of all requests, and 99 % of them, did not exceed.
        var median: UInt64?
        var p99: UInt64?
        var inFlight: Int
        var tunnels: Int
        /// How busy the workers were, in hundredths.
        var busy: [Int]
    }

    /// The oldest first.
    private(set) var samples: [Sample] = []
    private var last: Reading?

    /// Adds a reading.
    mutating func add(_ reading: Reading) {
        defer { last = reading }
        guard let last, reading.moment > last.moment else { return }
        let milliseconds = reading.moment - last.moment
        // A name that comes back after it has been away for long counts from zero.
        func since(_ value: KeyPath<TrafficTotals, UInt64>) -> UInt64 {
            let (now, before) = (reading.totals[keyPath: value], last.totals[keyPath: value])
            return now >= before ? now - before : 0
        }
        let durations = reading.totals.durations.since(last.totals.durations)
        if samples.count >= Self.capacity { samples.removeFirst() }
        samples.append(
            Sample(
                time: reading.time, milliseconds: milliseconds, exchanges: since(\.exchanges),
                failures: since(\.failures), hits: since(\.hits), lookups: since(\.lookups),
                received: since(\.received), sent: since(\.sent),
                acceptPauses: since(\.acceptPauses),
                median: durations.quantile(500), p99: durations.quantile(990),
                inFlight: reading.inFlight, tunnels: reading.tunnels,
                busy: zip(reading.busyNanoseconds, last.busyNanoseconds).map { now, before in
                    Int(clamping: min(100, max(0, (now - before) / (milliseconds * 10_000))))
                }))
    }
}

/// What host entries have counted some minutes ago, so that what is now can be compared with what
/// is usual. Two readings are kept: the older one is between two and a half and five minutes old.
struct HostHistory: Sendable {
    static let periodMilliseconds: Int64 = 150_000

    /// A reading of all entries.
    struct Reading: Sendable {
        var moment: Int64
        var entries: [String: HostTraffic]
    }

    private var older: Reading?
    private var newer: Reading?

    func isDue(at moment: Int64) -> Bool {
        newer.map { moment - $0.moment >= Self.periodMilliseconds } ?? true
    }

    mutating func add(_ traffic: [HostTraffic], at moment: Int64) {
        older = newer
        newer = Reading(
            moment: moment,
            entries: Dictionary(traffic.map { ($0.label, $0) }, uniquingKeysWith: { $1 }))
    }

    /// What is compared with: the older reading.
    var base: Reading? { older ?? newer }
}

/// When pins were last seen to match, from their counts. A value as well.
struct PinHistory: Sendable {
    /// A pin of a pinset.
    struct Key: Hashable, Sendable {
        var pinset: String
        var pin: String?
    }

    private struct Seen {
        var matches: UInt64
        var time: Int64?
    }

    private var pins: [Key: Seen] = [:]

    /// Compares the counts with those before.
    /// - Parameter time: in milliseconds since 1970.
    mutating func add(_ pinsets: [PinsetMetrics], at time: Int64) {
        var now: [Key: Seen] = [:]
        for pinset in pinsets {
            for pin in pinset.pins {
                let key = Key(pinset: pinset.label, pin: pin.text)
                let before = pins[key] ?? Seen(matches: 0)
                let hasMatched = pin.matches > before.matches
                now[key] = Seen(
                    matches: pin.matches, time: hasMatched ? time : before.time)
            }
        }
        pins = now
    }

    /// When a pin last matched, in milliseconds since 1970; `nil` if it has not since the start.
    func lastMatch(of pin: String?, in pinset: String) -> Int64? {
        pins[Key(pinset: pinset, pin: pin)]?.time
    }
}
