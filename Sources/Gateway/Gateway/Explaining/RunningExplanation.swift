import Activity
import Documents
import HTTPCore
import PinfoldEngine
import Trust

/// An explanation by the gateway that runs: judged by the configuration in force, with what depends
/// on the moment.
struct RunningExplanation: Sendable {
    /// What is stored for the URL.
    enum Stored: Sendable {
        /// Nobody looked: nothing is stored by this gateway, or not for such a URL.
        case notAsked
        case variants([StoredVariant])
        /// It cannot be said, for this reason.
        case unreadable(String)
    }

    /// What depends on the moment.
    struct Moment: Sendable {
        /// A parent proxy among the ways.
        struct Parent: Sendable {
            var name: String
            var isDown: Bool
        }

        /// When the configuration was loaded, in milliseconds since 1970.
        var loaded: Int64 = 0
        /// Whether all workers use it.
        var isInForce = true
        /// The host's servers of which something is known.
        var reachability: [ReachabilityReport.Server] = []
        /// The servers of the reverse listeners that lead there, if these have several.
        var servers: [StatusReport.Server] = []
        var parents: [Parent] = []
        var stored = Stored.notAsked
    }

    var explanation: Explanation
    /// Whether who asks may see all of it.
    var isFull: Bool
    /// The number of the configuration.
    var generation: Int
    var moment = Moment()

    init(_ explanation: Explanation, generation: UInt64, isFull: Bool) {
        self.explanation = explanation
        self.explanation.isMasked = !isFull
        self.isFull = isFull
        self.generation = Int(clamping: generation)
    }

    // MARK: Lines

    /// What `pinfold explain --running` prints.
    var lines: [String] {
        guard isFull else { return maskedLines }
        var lines = explanation.lines
        lines += moment.reachability.map { "reachability: \($0.name) is \(Self.text($0.state))" }
        lines += moment.servers.map { server in
            "server of \(server.listener): \(server.url) is \(server.state)"
                + (server.cause.map { ": \($0)" } ?? "")
        }
        lines += moment.parents.map { "parent: \($0.name) is \($0.isDown ? "down" : "up")" }
        switch moment.stored {
        case .notAsked: break
        case .variants(let variants):
            lines += variants.isEmpty ? ["stored: nothing"] : variants.map(Self.text)
        case .unreadable(let problem): lines.append("stored: unknown: \(problem)")
        }
        return lines + [configuration]
    }

    private var maskedLines: [String] {
        var lines = [explanation.url]
        lines += explanation.clientLines
        lines.append("entry: \(explanation.route.label)")
        lines += explanation.pinsetLines
        for way in explanation.ways {
            let refusal = way.handling.fault.map { "refused: \($0.status) \($0.reason.token)" }
            lines.append(
                "\(explanation.text(way.asking)): \(refusal ?? Explanation.text(way.handling))")
        }
        lines += [explanation.cacheLine, configuration]
        lines.append("masked: without the token, a certificate or the Unix socket")
        return lines
    }

    private var configuration: String {
        "configuration: number \(generation), loaded "
            + "\(CivilDate.text(secondsSince1970: moment.loaded / 1000))"
            + (moment.isInForce ? "" : ", not yet used by every worker")
    }

    private static func text(_ state: ReachabilityState) -> String {
        switch state {
        case .unknown: "not known to be reachable"
        case .reachable: "reachable"
        case .notReachable: "not reachable"
        }
    }

    private static func text(_ variant: StoredVariant) -> String {
        let metadata = variant.entry.response.metadata
        let left = metadata.freshUntil - variant.now
        let freshness = left > 0 ? "fresh for \(left) s" : "stale for \(-left) s"
        let place = variant.entry.isInMemory ? "in memory" : "on disk"
        return "stored: \(variant.url.text): status \(metadata.status), \(place), "
            + "age \(metadata.age(at: variant.now)) s, \(freshness): "
            + variant.use.answer.rawValue + (variant.use.reason.map { " (\($0))" } ?? "")
    }

    // MARK: JSON

    /// The members of an explanation that are left out for who may not see them.
    private static let masked: Set<String> = [
        "entry", "certificateTransparency", "http2", "destination", "addresses", "rules",
        "proxies", "server",
    ]

    private static var explained: [ObjectShape<RunningExplanation>.Member] {
        Explanation.shape.members.map { member in
            guard masked.contains(member.name) else { return member.of { $0.explanation } }
            return member.of(isRequired: false) { $0.isFull ? $0.explanation : nil }
        }
    }

    private static let parentShape = ObjectShape<Moment.Parent>(
        "A parent proxy among the ways.",
        [
            .text("name", "Its name.") { $0.name },
            .flag("isDown", "Whether it is passed over while there are other ways.") { $0.isDown },
        ])

    private static let runningShape = ObjectShape<RunningExplanation>(
        "What depends on the moment.",
        [
            .number("generation", "The number of the configuration.") { $0.generation },
            .time("loaded", "When it was loaded.") { $0.moment.loaded },
            .flag("isInForce", "Whether all workers use it.") { $0.moment.isInForce },
            .optionalList(
                "reachability", ReachabilityReport.server,
                "Whether the host is reachable, if something is known."
            ) { $0.isFull ? $0.moment.reachability : [] },
            .optionalList(
                "servers", ReachabilityReport.balanced,
                "The servers of the reverse listeners that lead there."
            ) { $0.isFull ? $0.moment.servers : [] },
            .optionalList("parents", parentShape, "Parent proxies among the ways.") {
                $0.isFull ? $0.moment.parents : []
            },
            .optionalList(
                "stored", StoredVariant.shape, "What the cache holds for the URL."
            ) { $0.isFull ? $0.moment.stored.variants : [] },
            .optionalText("storedUnknown", "Why it is not known what the cache holds.") {
                $0.isFull ? $0.moment.stored.problem : nil
            },
        ])

    static let shape = ObjectShape<RunningExplanation>(
        "How requests for a URL are handled now. Without token, certificate or Unix socket, the "
            + "host is not resolved, and what names rules, patterns, addresses and parents is left "
            + "out.",
        [.access { $0.isFull }] + explained + [
            .object("running", runningShape) { $0 },
            .texts("text", "The same in words, as pinfold explain prints it.") { $0.lines },
        ])
}

extension RunningExplanation.Stored {
    fileprivate var variants: [StoredVariant] {
        if case .variants(let variants) = self { variants } else { [] }
    }

    fileprivate var problem: String? {
        if case .unreadable(let problem) = self { problem } else { nil }
    }
}
