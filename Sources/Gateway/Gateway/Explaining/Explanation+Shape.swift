import Documents
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import Trust

// An explanation as JSON: what `pinfold explain --json` prints, and what the administrative address
// answers. Values that are unknown or do not apply are null.
extension Explanation {
    /// One object, on one line.
    package var json: String { "\(Self.shape.json(self))" }

    package static let shape = ObjectShape<Explanation>(
        "How requests for a URL are handled.", what + destinations + handling)

    private static var what: [ObjectShape<Explanation>.Member] {
        [
            .text("url", "The URL.") { $0.url },
            .word("verdict", ["passed", "refused"], "refused: the client, or every way.") {
                $0.isRefused ? "refused" : "passed"
            },
            .optionalObject("client", clientShape) {
                $0.client.map { Asking(address: $0.address, isServed: $0.isServed) }
            }.orNull,
            .optionalObject("entry", entryShape) {
                $0.route.entry.map { [route = $0.route] in Entry(index: $0, route.pattern) }
            }.orNull,
            .text("label", "What metrics and the access log call the entry.") { $0.route.label },
            .list("pinsets", pinsetShape, "The pinsets that apply.") { $0.route.pinsets },
            .optionalObject("certificateTransparency", transparencyShape) {
                $0.route.transparency
            }.orNull,
            .word(
                "http2", ServerHTTP2.allCases.map(\.rawValue),
                "Whether HTTP/2 is spoken with the server."
            ) { $0.route.http2.rawValue },
        ]
    }

    private static var destinations: [ObjectShape<Explanation>.Member] {
        [
            .object("destination", destinationShape) { $0.route.destination },
            .list("addresses", addressShape, "The host's addresses.") { $0.route.addresses },
            .optionalList("rules", ruleShape, "What access.rules say of each way.") {
                $0.route.judgements.map { Rule(asking: $0.asking, judgement: $0.judgement) }
            },
            .optionalList("proxies", proxyShape, "The ways to the host, as they are tried.") {
                $0.route.proxyWays ?? []
            },
        ]
    }

    private static var handling: [ObjectShape<Explanation>.Member] {
        [
            .list("ways", wayShape, "How each form of request is handled.") { $0.ways },
            .object("cache", cacheShape) { $0 },
            .optionalObject("server", serverShape) { explanation in
                explanation.server.map { Checked($0, explanation) }
            }.orNull,
        ]
    }

    // MARK: Its parts

    /// Who asks.
    private struct Asking: Sendable {
        var address: IPAddress
        var isServed: Bool
    }

    private static var clientShape: ObjectShape<Asking> {
        ObjectShape(
            "Who asks.",
            [
                .text("address", "The client's address.") { String($0.address.clientText) },
                .flag("served", "Whether it is served.") { $0.isServed },
            ] + refusal { $0.isServed ? nil : .access(.clientNotAllowed) })
    }

    /// The entry that applies.
    private struct Entry: Sendable {
        var index: Int
        var pattern: String?

        init(index: Int, _ pattern: String?) { (self.index, self.pattern) = (index, pattern) }
    }

    private static var entryShape: ObjectShape<Entry> {
        ObjectShape(
            "The entry of hosts that applies.",
            [
                .number("index", "Its place in hosts.") { $0.index },
                .optionalText("pattern", "The pattern that matches.") { $0.pattern }.orNull,
            ])
    }

    static var pinsetShape: ObjectShape<Pinset> {
        ObjectShape(
            "A pinset that applies.",
            [
                .text("name", "Its name.") { $0.name },
                .text("mode", "What it pins.") { $0.mode.rawValue },
                .number("pins", "How many pins it has.") { $0.pins.count },
                .word(
                    "state", PinsetState.allCases.map(\.rawValue),
                    "none: it compares no pins; expired: it refuses every server."
                ) { state($0).rawValue },
                .optionalText("expires", "When it expires.") {
                    $0.expires.map { CivilDate.text(secondsSince1970: $0) }
                }.orNull,
            ])
    }

    private static var transparencyShape: ObjectShape<TransparencyPolicy> {
        ObjectShape(
            "What is required of Certificate Transparency.",
            [
                .number("minimumSCTs", "How many timestamps.") { $0.minimum },
                .number("logs", "From how many logs.") { $0.countingLogs.count },
            ])
    }

    private static var destinationShape: ObjectShape<RouteExplanation.Destination> {
        ObjectShape(
            "How access.destinations treats the host.",
            [
                .word(
                    "verdict", RouteExplanation.Destination.Verdict.allCases.map(\.rawValue),
                    "by-address: each address decides; private-allowed: private ones are allowed."
                ) { $0.verdict.rawValue },
                .optionalText("address", "The address concerned.") {
                    $0.address.map { "\($0)" }
                }.orNull,
                .optionalText("detail", "Why.") { $0.detail }.orNull,
            ])
    }

    private static var addressShape: ObjectShape<RouteExplanation.Address> {
        ObjectShape(
            "An address of the host.",
            [
                .text("address", "The address.") { "\($0.address)" },
                .flag("allowed", "Whether it is connected to.") { $0.refusal == nil },
            ] + refusal { $0.refusal })
    }

    /// What rules say of a form of request.
    private struct Rule: Sendable {
        var asking: RouteExplanation.RequestForm
        var judgement: RouteExplanation.RuleExplanation
    }

    private static var ruleShape: ObjectShape<Rule> {
        ObjectShape(
            "What access.rules say of a way.",
            [
                .word("asking", RouteExplanation.RequestForm.kinds, "The form of the request.") {
                    $0.asking.kind
                },
                .text("listener", "The listener.") { $0.judgement.listener },
                .optionalText("rule", "The rule that decides.") { $0.judgement.rule }.orNull,
                .flag("allowed", "Whether it is allowed.") { $0.judgement.refusal == nil },
            ] + refusal { $0.judgement.refusal } + [
                .texts("reported", "The rules before it that only report.") {
                    $0.judgement.reported
                },
                .optionalTexts("rates", "The rates that apply.") {
                    $0.judgement.rates.map { "\($0.rule): \($0.limits.summary)" }
                },
                .optionalTexts("ways", "The ways that the rule names.") {
                    ($0.judgement.proxyWays ?? []).map(\.name)
                },
            ])
    }

    private static var proxyShape: ObjectShape<RouteExplanation.ProxyWay> {
        ObjectShape(
            "A way to the host.",
            [
                .text("name", "Its name.") { $0.name },
                .optionalText("url", "The parent's URL; null for a direct connection.") {
                    $0.url
                }.orNull,
                .flag("resolvesNames", "Whether the parent alone resolves the name.") {
                    $0.resolvesNames
                },
            ])
    }

    /// How a form of request is handled.
    struct Way: Sendable {
        var asking: RouteExplanation.RequestForm
        var handling: RouteExplanation.Handling
        var header: UpstreamProxyProtocol
        /// `nil` for what is left out.
        var detail: String?
    }

    var ways: [Way] {
        route.ways.map { asking, handling in
            let fault = handling.fault
            return Way(
                asking: asking, handling: handling,
                header: asking.listener.flatMap { route.headers[$0] } ?? .none,
                detail: fault == nil
                    ? Self.text(handling) : (isMasked ? nil : fault?.explanation))
        }
    }

    private static var wayShape: ObjectShape<Way> {
        ObjectShape(
            "How a form of request is handled.",
            [
                .word("asking", RouteExplanation.RequestForm.kinds, "The form.") {
                    $0.asking.kind
                },
                .optionalText("listener", "The reverse or transparent listener.") {
                    $0.asking.listener
                }.orNull,
                .optionalText("proxyProtocol", "The PROXY header that is sent.") {
                    $0.header == .none ? nil : $0.header.rawValue
                },
                .word("way", RouteExplanation.Handling.words, "How it is handled.") {
                    $0.handling.word
                },
                .optionalText("tls13", "What becomes of TLS 1.3, if it is inspected.") {
                    $0.handling.tls13?.rawValue
                }.orNull,
                .optionalNumber("port", "The port, if it is upgraded.") {
                    $0.handling.upgradedPort.map { Int($0) }
                }.orNull,
            ] + refusal(detail: { $0.detail }) { $0.handling.fault })
    }

    static var cacheShape: ObjectShape<Explanation> {
        ObjectShape(
            "What the cache is used for.",
            [
                .flag("takesPart", "Whether it is used.") { $0.cache.isUsed },
                .text("detail", "Why, or why not.") { $0.cache.reason },
                .optionalObject("rules", appliedShape) { $0.route.cacheRules },
            ])
    }

    private static var appliedShape: ObjectShape<CacheRulesExplanation> {
        ObjectShape(
            "The rules for the cache that apply.",
            [
                .optionalText("path", "The pattern in paths.") { $0.path?.pattern },
                .optionalNumber("index", "Its place in paths.") { $0.path?.index },
                .flag("isAmbiguous", "Whether servers may read the path differently.") {
                    $0.source == .ambiguous
                },
                .text("settings", "The rules.") { $0.rules.text },
            ])
    }

    // MARK: The server

    /// A server that was connected to, or not.
    private struct Checked: Sendable {
        var verdict: String
        var address: IPAddress?
        var version: String?
        var fault: ExchangeError?
        var detail: String?
        var failures: [TrustError] = []
        var tried: Endpoint?
        var times: PhaseTimes

        static let verdicts = ["trusted", "refused", "unreachable", "reached", "not-asked"]

        init(_ server: Server, _ explanation: Explanation) {
            tried = explanation.tried
            times = explanation.times
            switch server {
            case .notChecked(let reason): (verdict, detail) = ("not-asked", reason)
            case .unreachable(let reason): (verdict, detail) = ("unreachable", reason)
            case .reached(let peer): (verdict, address) = ("reached", peer)
            case .refused(let peer, let reason):
                (verdict, address, fault) = ("refused", peer, reason)
            case .trusted(let peer, let negotiated, let reported):
                (verdict, address, version, failures) = ("trusted", peer, negotiated, reported)
            }
        }
    }

    private static var serverShape: ObjectShape<Checked> {
        ObjectShape(
            "The server, if it was connected to.",
            [
                .word("verdict", Checked.verdicts, "What came of it.") { $0.verdict },
                // No connection is made to a refused address.
                .optionalObject("address", destinationShape) {
                    $0.address.map {
                        RouteExplanation.Destination(verdict: .allowed, address: $0, detail: nil)
                    }
                }.orNull,
                .optionalText("tried", "The address and port that were tried last.") {
                    $0.tried.map { "\($0)" }
                }.orNull,
                .optionalText("version", "The version of TLS.") { $0.version }.orNull,
            ]
                + Phase.allCases.map { phase in
                    .optionalNumber("\(phase.label)_us", "The phase, in microseconds.") { server in
                        let took: UInt64? = server.times[phase]
                        return took.map { Int(clamping: $0) }
                    }
                } + refusal(detail: { $0.fault?.explanation ?? $0.detail }) { $0.fault } + [
                    .list("reported", reportedShape, "The failures of pinsets that only report.") {
                        $0.failures
                    }
                ])
    }

    private static var reportedShape: ObjectShape<TrustError> {
        ObjectShape(
            "The failure of a pinset that only reports.",
            [
                .optionalText("pinset", "The pinset.") { $0.pinset }.orNull,
                .text("reason", "The reason.") { Reason($0).token },
                .text("detail", "What it was.") { "\($0)" },
            ])
    }

    // MARK: Refusals

    /// The status, reason and detail of a refusal, as in a reply.
    private static func refusal<Value>(
        detail: (@Sendable (Value) -> String?)? = nil,
        _ fault: @escaping @Sendable (Value) -> ExchangeError?
    ) -> [ObjectShape<Value>.Member] {
        [
            .optionalNumber("status", "The status of a refusal.") {
                fault($0).map { Int($0.status) }
            }.orNull,
            .optionalText("reason", "Its reason.") { fault($0)?.reason.token }.orNull,
            .optionalText("detail", "Its explanation, or what there is to say.") { value in
                detail.map { read in read(value) } ?? fault(value)?.explanation
            }.orNull,
        ]
    }
}

extension CacheRulesExplanation {
    /// The entry of `paths` that they are from.
    fileprivate var path: (index: Int, pattern: String)? {
        if case .path(let index, let pattern) = source { (index, pattern) } else { nil }
    }
}

extension RouteExplanation.RequestForm {
    static let kinds = ["connect", "absolute", "reverse", "transparent"]

    /// The word for it in JSON.
    var kind: String {
        switch self {
        case .connect: "connect"
        case .absolute: "absolute"
        case .reverse: "reverse"
        case .transparent: "transparent"
        }
    }

    /// The listener that it names.
    package var listener: String? {
        switch self {
        case .connect, .absolute: nil
        case .reverse(let name), .transparent(let name): name
        }
    }
}

extension RouteExplanation {
    /// Whether every way is refused.
    package var isRefused: Bool { ways.allSatisfy { $0.way.isRefused } }
}

extension RouteExplanation.Handling {
    /// Why it is refused, or `nil` if it is not.
    var fault: ExchangeError? {
        if case .refused(let fault) = self { fault } else { nil }
    }

    static let words = [
        "refused", "tunnel", "inspect", "intercept", "intercept-or-pass", "intercept-or-inspect",
        "upgrade", "verified", "clear-text",
    ]

    /// Its name in JSON.
    var word: String {
        switch self {
        case .refused: "refused"
        case .tunnel: "tunnel"
        case .inspect: "inspect"
        case .intercept: "intercept"
        case .interceptOrPass: "intercept-or-pass"
        case .interceptOrInspect: "intercept-or-inspect"
        case .upgrade: "upgrade"
        case .verified: "verified"
        case .clearText: "clear-text"
        }
    }

    /// What becomes of TLS 1.3 where tunnels are inspected.
    fileprivate var tls13: TLS13TunnelMode? {
        switch self {
        case .inspect(let mode), .interceptOrInspect(let mode): mode
        case .refused, .tunnel, .intercept, .interceptOrPass, .upgrade, .verified, .clearText: nil
        }
    }

    fileprivate var upgradedPort: UInt16? {
        if case .upgrade(let port) = self { port } else { nil }
    }
}
