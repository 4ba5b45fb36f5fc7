import Documents
import HTTPCore
import PinObserving
import PinfoldEngine
import PinfoldMetrics

/// What is known of pins: what has matched, what passes without any, and what expires when.
struct PinsReport: Sendable {
    struct Key: Sendable {
        var pin: String?
        var matches: UInt64
        /// In milliseconds since 1970.
        var lastMatch: Int64?
    }

    struct Set: Sendable {
        var metrics: PinsetMetrics
        var keys: [Key]
        var results: [PinResult: UInt64]
        /// The labels of the entries that have it.
        var entries: [String]
    }

    /// A host entry whose tunnels nobody verifies.
    struct Unverified: Sendable {
        var entry: String
        var tunnels: UInt64
    }

    /// A host, by its name, that passed without a pin.
    struct Host: Sendable {
        var name: String
        /// Whether nobody has verified the server; otherwise its chain was valid.
        var isTunnel: Bool
        var count: Int
        var clients: Int?
    }

    /// Something that ends.
    struct End: Sendable {
        /// In milliseconds since 1970.
        var time: Int64
        /// `upstream`, `chain`, `listener`, `authority`, `client`, `pinset`, `crl` or `logs`.
        var kind: String
        var name: String

        /// Whether it is a list that is replaced before that.
        var isOfList: Bool { kind == "crl" || kind == "logs" }
    }

    var isFull: Bool
    var sets: [Set]
    var unverified: [Unverified]
    var hosts: [Host]
    var observed: [ObservedSummary]
    var calendar: [End]

    /// The most hosts by name.
    static let hostsLimit = 100

    /// The hosts among exchanges that passed without a pin, the most frequent first.
    static func hosts(in flows: [FlowView], isFull: Bool) -> [Host] {
        var found: [String: (isTunnel: Bool, count: Int, clients: Swift.Set<IPAddress>)] = [:]
        for view in flows where view.counted.failure == nil && !view.target.host.isEmpty {
            let isRelayed =
                view.counted.kind == .tunnel && (view.record.inspection == nil)
                && !view.record.isIntercepted
            guard isRelayed || view.record.pins == .unpinned else { continue }
            let name = view.target.hostAndPort.host
            found[name, default: (false, 0, [])].count += 1
            if isRelayed { found[name]?.isTunnel = true }
            found[name]?.clients.insert(view.record.clientAddress)
        }
        return found.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
            .prefix(hostsLimit)
            .map {
                Host(
                    name: $0.key, isTunnel: $0.value.isTunnel, count: $0.value.count,
                    clients: isFull ? $0.value.clients.count : nil)
            }
    }
}

extension PinsReport {
    private static let key = ObjectShape<Key>(
        "A pin.",
        [
            .text("pin", "The pin as it is configured; other for those without a counter.") {
                $0.pin ?? "other"
            },
            .number("matches", "How many servers it has matched since the start.") {
                Int(clamping: $0.matches)
            },
            .optionalTime("lastMatched", "When it last did, to five seconds.") { $0.lastMatch },
        ])

    private static let results = ObjectShape<[PinResult: UInt64]>(
        "Verdicts since the start, by their words in the metrics.",
        PinResult.allCases.map { result in
            .number("\(result.label)", "How often it was so.") { Int(clamping: $0[result] ?? 0) }
        })

    private static let set = ObjectShape<Set>(
        "A pinset.",
        [
            .text("name", "Its name.") { $0.metrics.label },
            .flag("isEnforced", "Whether a server that no pin matches is refused.") {
                $0.metrics.isEnforced
            },
            .optionalTime("expires", "When it expires.") { $0.metrics.expires.map { $0 * 1000 } },
            .flag("isReportedAfter", "Whether its pins are only reported after that.") {
                $0.metrics.isReportedAfter
            },
            .texts("entries", "The host entries that have it.") { $0.entries },
            .list("keys", key, "Its pins.") { $0.keys },
            .object("results", results) { $0.results },
        ])

    private static let unverified = ObjectShape<Unverified>(
        "A host entry whose tunnels nobody verifies.",
        [
            .text("entry", "Its label.") { $0.entry },
            .number("passed", "Tunnels relayed unread since the start.") {
                Int(clamping: $0.tunnels)
            },
        ])

    private static let host = ObjectShape<Host>(
        "A host that passed without a pin, among the exchanges that are held.",
        [
            .text("host", "Its name.") { $0.name },
            .word("how", ["tunnel", "unpinned"], "tunnel: nobody verified it.") {
                $0.isTunnel ? "tunnel" : "unpinned"
            },
            .number("count", "Exchanges.") { $0.count },
            .optionalNumber("clients", "From how many addresses; with the token.") {
                $0.clients
            },
        ])

    private static let observed = ObjectShape<ObservedSummary>(
        "A server whose keys are remembered.",
        [
            .text("host", "Its name and port.") { "\($0.name)" },
            .time("firstSeen", "When it was first seen.") { $0.firstSeen * 1000 },
            .time("lastSeen", "When it was last seen, to a minute.") { $0.lastSeen * 1000 },
            .number("certificates", "How many certificates it has shown.") { $0.certificates },
            .number("keys", "How many keys those have.") { $0.keys },
            .number("addresses", "By how many addresses.") { $0.addresses },
            .text("issuer", "The issuer of the certificate seen last.") { $0.issuer },
            .time("expires", "When that expires.") { $0.notAfter * 1000 },
            .flag(
                "isVerified",
                "Whether it has passed in every respect, and not only because a pinset reports."
            ) { $0.isVerified },
            .optionalTime("newKey", "When it last showed a key never seen before.") {
                $0.newKeySeen.map { $0 * 1000 }
            },
        ])

    private static let end = ObjectShape<End>(
        "Something that ends.",
        [
            .time("time", "When.") { $0.time },
            .text(
                "kind",
                "upstream, chain: the first certificate of an entry's servers, or in their "
                    + "chains; listener, authority, client: one of the gateway's own; pinset; "
                    + "crl: the first list of revoked certificates in a file; logs: a list of "
                    + "logs (Certificate Transparency), by its age."
            ) { $0.kind },
            .text("name", "The entry's label, the file, or the pinset's name.") { $0.name },
        ])

    static let shape = ObjectShape<PinsReport>(
        "What is known of pins.",
        [
            .access { $0.isFull },
            .list("pinsets", set, "The pinsets.") { $0.sets },
            .list("unverified", unverified, "The most frequent first.") { $0.unverified },
            .list("unverifiedHosts", host, "The most frequent first.") { $0.hosts },
            .list(
                "observed", observed,
                "Servers whose keys are remembered: those with a new key first; at most 200."
            ) { $0.observed },
            .list("calendar", end, "What ends, the soonest first.") { $0.calendar },
        ])
}
