import Documents
import PinfoldMetrics
import Trust

/// Something that an operator should look at.
struct Attention: Sendable, Equatable {
    enum Level: String, Sendable, CaseIterable {
        case critical, warning
    }

    enum Kind: String, Sendable, CaseIterable {
        case configuration, disk, certificate, pinset, reachability, limit, host, fleet
        case sharedCache = "shared-cache"
    }

    var level: Level
    var kind: Kind
    /// One sentence without a full stop.
    var text: String
    /// The host entry that it is about.
    var entry: String?
    /// The pinset that it is about.
    var pinset: String?

    static let shape = ObjectShape<Attention>(
        "Something that needs attention.",
        [
            .word("level", Level.allCases.map(\.rawValue), "How much.") { $0.level.rawValue },
            .word("kind", Kind.allCases.map(\.rawValue), "What it is about.") {
                $0.kind.rawValue
            },
            .text("text", "What it is.") { $0.text },
            .optionalText("host", "The host entry that it is about.") { $0.entry },
            .optionalText("pinset", "The pinset that it is about.") { $0.pinset },
        ])
}

/// Finds what needs attention in what is known. Pure.
struct AttentionFinder {
    /// Certificates and pinsets that end within so many days are mentioned, and are urgent.
    static let warningDays: Int64 = 14
    static let criticalDays: Int64 = 3
    /// How much of a limit may be used, in hundredths.
    static let limitPercent = 80

    /// In seconds since 1970.
    var now: Int64
    private(set) var found: [Attention] = []

    init(now: Int64) { self.now = now }

    /// The worst first, otherwise in the order in which they were found.
    var sorted: [Attention] {
        found.filter { $0.level == .critical } + found.filter { $0.level == .warning }
    }

    private mutating func add(
        _ level: Attention.Level, _ kind: Attention.Kind, _ text: String, entry: String? = nil,
        pinset: String? = nil
    ) {
        found.append(
            Attention(level: level, kind: kind, text: text, entry: entry, pinset: pinset))
    }

    mutating func look(at status: StatusReport) {
        if let last = status.lastReload, let error = last.errors.first {
            add(
                .critical, .configuration,
                "the last reload was refused, and what was in force before stays: \(error.text)")
        }
        for file in status.configuration.unusableFiles {
            add(.critical, .configuration, "\(file) has changed and cannot be used")
        }
        if case .readyWithoutDisk(let reason) = status.readiness {
            add(.warning, .disk, "the cache's disk tier is off (\(reason))")
        }
        if let shared = status.shared, let reason = shared.reason {
            let detail = shared.detail.map { ": \($0)" } ?? ""
            add(.warning, .sharedCache, "the shared cache is off (\(reason)\(detail))")
        }
        for (alarm, text) in status.policy?.alarms ?? [] {
            // Where there is none, or none that may be used, the gateway is not ready.
            let isUrgent = alarm == .missing || alarm == .expired || alarm == .refused
            add(isUrgent ? .critical : .warning, .configuration, text)
        }
        for server in status.servers where server.state == "down" || server.state == "ejected" {
            let cause = server.cause.map { ": \($0)" } ?? ""
            add(
                .warning, .reachability,
                "\(server.url) of listener \(server.listener) is \(server.state)\(cause)")
        }
    }

    /// - Parameter end: in seconds since 1970.
    mutating func look(
        atEnd end: Int64, of what: String, _ kind: Attention.Kind, entry: String? = nil,
        pinset: String? = nil
    ) {
        let days = (end - now) / 86_400
        guard days < Self.warningDays else { return }
        let level: Attention.Level = days < Self.criticalDays ? .critical : .warning
        let when =
            end <= now ? "has expired" : days == 0 ? "expires today" : "expires in \(days) days"
        add(level, kind, "\(what) \(when)", entry: entry, pinset: pinset)
    }

    /// A file with a list of logs of Certificate Transparency on whose age browsers do not rely.
    mutating func look(atOldLogs file: String) {
        let days = TransparencyLogList.currentSeconds / 86_400
        add(.warning, .certificate, "the list of logs \(file) is more than \(days) days old")
    }

    /// That gateways do not agree may be meant, while only a share of them is to have a policy.
    mutating func look(at fleet: FleetView) {
        guard fleet.isCurrent else { return }
        let away = fleet.gateways.filter(\.isAway).map(\.name)
        if !away.isEmpty {
            add(
                .warning, .fleet,
                "gateways of the fleet are away: \(away.prefix(5).joined(separator: ", "))"
                    + (away.count > 5 ? " and \(away.count - 5) more" : ""))
        }
        if !fleet.agrees {
            add(
                .warning, .fleet,
                "gateways of the fleet have \(fleet.policies.count) different policies in force")
        }
    }

    mutating func look(at use: Int, of limit: Int, _ what: String) {
        guard limit > 0, use * 100 >= limit * Self.limitPercent else { return }
        add(
            use >= limit ? .critical : .warning, .limit,
            "\(use) of \(limit) \(what) are in use")
    }

    /// - Parameters:
    ///   - paused: the workers that do not accept because no descriptors are left.
    ///   - pauses: how often any of them began not to, in the last minutes.
    mutating func look(atPaused paused: Int, pauses: UInt64) {
        if paused > 0 {
            add(
                .critical, .limit,
                "no descriptors are left, and connections are not accepted (RLIMIT_NOFILE)")
        } else if pauses > 0 {
            add(
                .warning, .limit,
                "descriptors ran out lately, and connections were not accepted (RLIMIT_NOFILE)")
        }
    }

    mutating func look(at host: HostReport) {
        for trouble in host.troubles {
            add(trouble.level, .host, trouble.text, entry: host.now.label)
        }
    }
}
