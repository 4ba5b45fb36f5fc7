import Documents
import PinReporting

/// What a gateway tells the others and operators of itself, by way of the engine.
///
/// It is written by a program of this or another version, and read with suspicion: whoever has the
/// fleet's key can write anything. All of it is bounded, and texts have no characters that change
/// what a terminal shows (``FleetText``).
struct FleetReport: Sendable, Equatable {
    /// What this program writes. A report with another number is not read.
    static let format: Int64 = 1
    /// The most hosts and pins in a report; the worst, and those that were not seen for longest.
    static let maximumHosts = 32
    static let maximumPins = 200
    /// The most pinsets, also those without such pins.
    static let maximumPinsets = 200

    /// The policy, as the gateway has it.
    struct Policy: Sendable, Equatable {
        /// The serial of the one in force; `nil` if none is.
        var serial: Int64?
        var hash = ""
        /// In milliseconds since 1970.
        var expires: Int64?
        /// The last one that came by way of the engine; `nil` if none has.
        var offered: Offer?
        /// What is wrong, as alarms are called.
        var alarms: [String] = []
    }

    /// A policy that came by way of the engine, and what became of it.
    struct Offer: Sendable, Equatable {
        var serial: Int64
        var hash: String
        var percent: Int
        /// Why it was refused; `nil` if it was not.
        var refusal: String?
    }

    /// How often each level of the cache had what was looked up, since the start.
    struct Cache: Sendable, Equatable {
        var memoryHits: Int64 = 0
        var diskHits: Int64 = 0
        var sharedHits: Int64 = 0
        var lookups: Int64 = 0
    }

    /// A host entry, as the gateway sees its servers.
    struct Host: Sendable, Equatable {
        var name: String
        var reachable = 0
        var notReachable = 0
        var unknown = 0
        /// Lately.
        var requests: Int64 = 0
        var failures: Int64 = 0
        /// Words, as ``HostReport/Trouble`` has them.
        var troubles: [String] = []
    }

    /// All host entries together.
    struct Reachability: Sendable, Equatable {
        var reachable = 0
        var notReachable = 0
        var unknown = 0
        /// Host entries; those in `worst` are some of them.
        var entries = 0
        var worst: [Host] = []
    }

    /// A pinset, with its pins that no server's chain has contained for a while.
    struct Pinset: Sendable, Equatable {
        var name: String
        /// When it last judged a server, in seconds since 1970; `nil` if it never has.
        var evaluated: Int64?
        /// Whether `idle` has all of them.
        var isComplete = true
        var idle: [Pin] = []
    }

    /// A pin that has not matched for a week, or never since it is watched.
    struct Pin: Sendable, Equatable {
        var text: String
        /// Since when it is watched, and when it last matched, in seconds since 1970.
        var since: Int64
        var matched: Int64?
    }

    var version = ""
    /// When the process started, and when this was written, in milliseconds since 1970.
    var started: Int64 = 0
    var time: Int64 = 0
    /// The number of the configuration.
    var generation: Int64 = 0
    /// `nil` if none is configured.
    var policy: Policy?
    var cache = Cache()
    var hosts = Reachability()
    var pinsets: [Pinset] = []
    /// Whether these are all of them.
    var hasAllPinsets = true
}

extension FleetReport.Reachability {
    /// Counts all host entries, and keeps the worst.
    init(_ reports: [HostReport]) {
        entries = reports.count
        for report in reports {
            reachable += report.reachable
            notReachable += report.notReachable
            unknown += report.unknown
        }
        worst = reports.prefix(FleetReport.maximumHosts).map { report in
            FleetReport.Host(
                name: report.now.label, reachable: report.reachable,
                notReachable: report.notReachable, unknown: report.unknown,
                requests: Int64(clamping: report.recentExchanges),
                failures: Int64(clamping: report.recentFailures),
                troubles: report.troubles.map(\.word))
        }
    }
}

extension FleetReport.Pinset {
    /// What is known of pins across restarts.
    /// - Parameter now: in seconds since 1970.
    static func all(_ table: PinUseTable, now: Int64) -> [FleetReport.Pinset] {
        var room = FleetReport.maximumPins
        return table.pinsets.sorted { $0.key < $1.key }.prefix(FleetReport.maximumPinsets)
            .map { name, use in
                let week = now - PinUseTable.idleSeconds
                let unseen = use.pins.filter { $0.value.matched ?? .min <= week }
                    .sorted {
                        ($0.value.matched ?? .min, $0.key) < ($1.value.matched ?? .min, $1.key)
                    }
                let shown = unseen.prefix(room)
                room -= shown.count
                return FleetReport.Pinset(
                    name: name, evaluated: use.evaluated,
                    isComplete: shown.count == unseen.count,
                    idle: shown.map { text, pin in
                        FleetReport.Pin(text: text, since: pin.since, matched: pin.matched)
                    })
            }
    }
}
