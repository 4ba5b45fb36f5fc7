import Documents
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import Trust

/// What is known of a host entry: what its exchanges have counted lately, beside what is usual.
struct HostReport: Sendable {
    /// Why an entry deserves a look.
    struct Trouble: Sendable, Equatable {
        var level: Attention.Level = .warning
        /// `pin_mismatch`, `failures`, `slow_` and the phase, `clients_reject` or `not_reachable`.
        var word: String
        /// A sentence without a full stop.
        var text: String
    }

    /// Why exchanges failed: a reason's token, and how often.
    struct Cause: Sendable, Equatable {
        var token: String
        var count: UInt64
    }

    /// Fewer exchanges than this say nothing about what is usual.
    static let leastCount: UInt64 = 20
    /// If so many exchanges failed, and all did, nothing has to be known of what is usual.
    static let leastFailures: UInt64 = 5
    /// Fewer say nothing where little is known of what is usual: one may have waited for an event.
    static let leastSlow: UInt64 = 3
    /// What takes less is not slow, whatever is usual, in microseconds.
    static let leastMicroseconds: UInt64 = 100_000
    /// The most causes and servers that a sentence names.
    private static let named = 3

    /// What is slow where little is known of what is usual, in microseconds: as in the alerts.
    static func slowMicroseconds(_ phase: Phase) -> UInt64 {
        phase == .firstByte ? 5_000_000 : 1_000_000
    }

    var now: HostTraffic
    /// Some minutes ago; `nil` if there was none.
    var before: HostTraffic?
    var pinsets: [String] = []
    var reachable = 0
    var notReachable = 0
    /// The names of servers that are not reachable, as far as they are known.
    var unreachable: [String] = []
    var unknown = 0

    var recentExchanges: UInt64 { Self.difference(now.exchanges, before?.exchanges) }
    var recentFailures: UInt64 { Self.difference(now.failures, before?.failures) }
    var recentTunnels: UInt64 {
        Self.difference(
            now.tunnels.values.reduce(0, &+), before?.tunnels.values.reduce(0, &+))
    }

    static func difference(_ now: UInt64, _ before: UInt64?) -> UInt64 {
        let before = before ?? 0
        return now >= before ? now - before : 0
    }

    /// A phase as it was lately, and usually is.
    struct PhaseReport: Sendable {
        var phase: Phase
        var recent: Distribution
        var usual: Distribution?
    }

    var phases: [PhaseReport] {
        Phase.allCases.compactMap { phase in
            guard let now = now.phases[phase] else { return nil }
            let before = before?.phases[phase]
            return PhaseReport(phase: phase, recent: now.since(before), usual: before)
        }
    }

    /// Why exchanges failed lately, the most frequent cause first.
    var causes: [Cause] {
        now.reasons.compactMap { index, count in
            let lately = Self.difference(count, before?.reasons[index])
            guard lately > 0, Reason.tokens.indices.contains(index) else { return nil }
            return Cause(token: Reason.tokens[index], count: lately)
        }
        .sorted { ($1.count, $0.token) < ($0.count, $1.token) }
    }

    var troubles: [Trouble] {
        [pinTrouble, failureTrouble].compactMap { $0 } + slowPhases
            + [clientTrouble, serverTrouble].compactMap { $0 }
    }

    /// One exchange is enough: somebody else may answer in the server's name.
    private var pinTrouble: Trouble? {
        let index = Reason.trust(.noPinMatches).index
        let count = Self.difference(now.reasons[index] ?? 0, before?.reasons[index])
        guard count > 0 else { return nil }
        // All of them have to match: which one did not is in the flow.
        let names =
            pinsets.isEmpty
            ? "" : " of \(pinsets.count > 1 ? "one of " : "")\(pinsets.joined(separator: ", "))"
        return Trouble(
            level: .critical, word: "pin_mismatch",
            text: "a server has none of the keys\(names), and \(count) "
                + (count == 1 ? "exchange was" : "exchanges were") + " refused")
    }

    private var failureTrouble: Trouble? {
        let (recent, failed) = (recentExchanges, recentFailures)
        let haveAllFailed = failed >= Self.leastFailures && failed >= recent
        let isMuch = recent >= Self.leastCount && failed * 20 >= recent
        guard haveAllFailed || isMuch else { return nil }
        // More than twice as many as usual.
        let usual = before.map { $0.failures * 1000 / max(1, $0.exchanges) }
        let isUnusual = usual.map { failed * 1000 / max(1, recent) > 2 * $0 } ?? true
        guard haveAllFailed || isUnusual else { return nil }
        let causes = causes.prefix(Self.named).map { "\($0.token) \($0.count)" }
        let why = causes.isEmpty ? "" : ": \(causes.joined(separator: ", "))"
        return Trouble(word: "failures", text: "\(failed) of \(recent) exchanges failed\(why)")
    }

    private var slowPhases: [Trouble] {
        phases.compactMap { phase in
            guard phase.phase != .body, let now = phase.recent.quantile(990) else { return nil }
            var text = "\(phase.phase.label) takes \(now / 1000) ms (99 %)"
            if let usual = phase.usual, usual.count >= Self.leastCount,
                let before = usual.quantile(990)
            {
                guard phase.recent.count >= Self.leastCount, now >= Self.leastMicroseconds,
                    now > 4 * before
                else { return nil }
                text += ", usually \(before / 1000) ms"
            } else {
                guard phase.recent.count >= Self.leastSlow,
                    now > Self.slowMicroseconds(phase.phase)
                else { return nil }
            }
            return Trouble(word: "slow_\(phase.phase.label)", text: text)
        }
    }

    private var clientTrouble: Trouble? {
        let count = Self.difference(now.rejections, before?.rejections)
        guard count > 0 else { return nil }
        return Trouble(
            word: "clients_reject",
            text: "clients rejected the certificates of intercepted tunnels "
                + (count == 1 ? "once" : "\(count) times") + ": they do not trust the CA")
    }

    private var serverTrouble: Trouble? {
        guard notReachable > 0 else { return nil }
        var names = unreachable.prefix(min(Self.named, notReachable)).joined(separator: ", ")
        if names.isEmpty {
            names = notReachable == 1 ? "a server" : "\(notReachable) servers"
        } else if notReachable > Self.named {
            names += " and \(notReachable - Self.named) more"
        }
        return Trouble(
            word: "not_reachable",
            text: "\(names) \(notReachable == 1 ? "is" : "are") not reachable")
    }

    /// Trouble first, then those with the most traffic.
    static func precedes(_ one: HostReport, _ other: HostReport) -> Bool {
        let (mine, its) = (one.troubles.count, other.troubles.count)
        if mine != its { return mine > its }
        if one.recentFailures != other.recentFailures {
            return one.recentFailures > other.recentFailures
        }
        if one.recentExchanges != other.recentExchanges {
            return one.recentExchanges > other.recentExchanges
        }
        return one.now.label < other.now.label
    }
}

extension HostReport {
    private static let phase = ObjectShape<PhaseReport>(
        "What a phase took lately.",
        [
            .word("phase", Phase.allCases.map { "\($0.label)" }, "The phase.") {
                "\($0.phase.label)"
            },
            .number("count", "How often it happened.") { Int(clamping: $0.recent.count) },
            .optionalNumber("p50_us", "Microseconds that half of them did not exceed.") {
                $0.recent.quantile(500).map { Int(clamping: $0) }
            },
            .optionalNumber("p99_us", "Microseconds that 99 % of them did not exceed.") {
                $0.recent.quantile(990).map { Int(clamping: $0) }
            },
            .optionalNumber("usual_p99_us", "The same from the start until then.") {
                $0.usual?.quantile(990).map { Int(clamping: $0) }
            },
        ])

    private static let cause = ObjectShape<Cause>(
        "Why exchanges failed.",
        [
            .text("reason", "The reason's token.") { $0.token },
            .number("count", "How often.") { Int(clamping: $0.count) },
        ])

    private static let total = ObjectShape<HostTraffic>(
        "The same since the start.",
        [
            .number("requests", "Exchanges.") { Int(clamping: $0.exchanges) },
            .number("failures", "Those of them that were refused, failed or cut off.") {
                Int(clamping: $0.failures)
            },
        ])

    static let shape = ObjectShape<HostReport>(
        "What is known of a host entry.",
        [
            .text("entry", "Its label.") { $0.now.label },
            .number("requests", "Exchanges lately.") { Int(clamping: $0.recentExchanges) },
            .number("failures", "Those of them that were refused, failed or cut off.") {
                Int(clamping: $0.recentFailures)
            },
            .list("causes", cause, "Why they did, the most frequent first.") { $0.causes },
            .number("tunnels", "Tunnels that clients asked for lately.") {
                Int(clamping: $0.recentTunnels)
            },
            .object("total", total) { $0.now },
            .list("phases", phase, "What they spent their time on lately.") { $0.phases },
            .number("open", "Connections to its servers.") { Int($0.now.open) },
            .number("idle", "Those of them that nothing uses.") { Int($0.now.idle) },
            .number("waiting", "Exchanges that wait for one.") { Int($0.now.waiting) },
            .number("reachable", "Servers that are reachable.") { $0.reachable },
            .number("notReachable", "Servers that are not reachable.") { $0.notReachable },
            .number("unknown", "Servers of which nothing is known.") { $0.unknown },
            .texts("pinset", "The pinsets that apply.") { $0.pinsets },
            .optionalTime("certificateExpires", "When the first of its servers' certificates ends.")
            {
                $0.now.certificateEnd.map { $0 * 1000 }
            },
            .optionalTime("chainExpires", "When the first certificate in their chains ends.") {
                $0.now.chainEnd.map { $0 * 1000 }
            },
            .texts(
                "trouble",
                "Why it deserves a look: pin_mismatch, failures, slow_connect, clients_reject, "
                    + "not_reachable."
            ) { $0.troubles.map(\.word) },
        ])
}

/// All host entries with traffic, or with servers of which something is known.
struct HostsReport: Sendable {
    /// What `lately` is, in seconds.
    var seconds: Int64
    var hosts: [HostReport]

    static let shape = ObjectShape<HostsReport>(
        "The host entries with traffic, those that deserve a look first.",
        [
            .number("seconds", "How many seconds lately is; 0 for since the start.") {
                Int($0.seconds)
            },
            .list("hosts", HostReport.shape, "The entries.") { $0.hosts },
        ])
}
