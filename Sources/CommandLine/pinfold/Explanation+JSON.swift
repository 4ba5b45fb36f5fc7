import Gateway
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import Trust

// What `pinfold explain --json` prints.
extension Explanation {
    /// One object, on one line. Values that are unknown or do not apply are null.
    var json: String {
        var object = JSONObject()
        object.add("url", url)
        object.add("verdict", isRefused ? "refused" : "passed")
        object.add(
            "client",
            client.map { address, isServed in
                var object = JSONObject()
                object.add("address", String(address.clientText))
                object.add("served", isServed)
                object.add(isServed ? nil : .access(.clientNotAllowed))
                return object
            })
        object.add(
            "entry",
            route.entry.map { index in
                var object = JSONObject()
                object.add("index", index)
                object.add("pattern", route.pattern)
                return object
            })
        object.add("label", route.label)
        object.add("pinsets", route.pinsets.map(Self.json))
        object.add(
            "certificateTransparency",
            route.transparency.map { policy in
                var object = JSONObject()
                object.add("minimumSCTs", policy.minimum)
                object.add("logs", policy.countingLogs.count)
                return object
            })
        object.add("http2", route.http2.rawValue)
        object.add("destination", Self.json(route.destination))
        object.add("addresses", route.addresses.map(Self.json))
        if !route.judgements.isEmpty {
            object.add("rules", route.judgements.map { Self.json($0.asking, $0.judgement) })
        }
        if let ways = route.proxyWays {
            object.add(
                "proxies",
                ways.map { way in
                    var object = JSONObject()
                    object.add("name", way.name)
                    object.add("url", way.url)
                    object.add("resolvesNames", way.resolvesNames)
                    return object
                })
        }
        object.add("ways", route.ways.map { json($0.asking, $0.way) })
        var cacheObject = JSONObject()
        cacheObject.add("takesPart", cache.isUsed)
        cacheObject.add("detail", cache.reason)
        if let applied = route.cacheRules { cacheObject.add("rules", Self.json(applied)) }
        object.add("cache", cacheObject)
        object.add("server", server.map(json))
        return object.text
    }

    private static func json(_ applied: CacheRulesExplanation) -> JSONObject {
        var object = JSONObject()
        if case .path(let index, let pattern) = applied.source {
            object.add("path", pattern)
            object.add("index", index)
        }
        object.add("isAmbiguous", applied.source == .ambiguous)
        object.add("settings", applied.rules.text)
        return object
    }

    private static func json(_ pinset: Pinset) -> JSONObject {
        var object = JSONObject()
        object.add("name", pinset.name)
        object.add("mode", pinset.mode.rawValue)
        object.add("pins", pinset.pins.count)
        object.add("state", state(pinset).rawValue)
        object.add("expires", pinset.expires.map { CivilDate.text(secondsSince1970: $0) })
        return object
    }

    private static func json(_ destination: RouteExplanation.Destination) -> JSONObject {
        var object = JSONObject()
        object.add("verdict", destination.verdict.rawValue)
        object.add("address", destination.address.map { "\($0)" })
        object.add("detail", destination.detail)
        return object
    }

    private static func json(_ address: RouteExplanation.Address) -> JSONObject {
        var object = JSONObject()
        object.add("address", "\(address.address)")
        object.add("allowed", address.refusal == nil)
        object.add(address.refusal)
        return object
    }

    private static func json(
        _ asking: RouteExplanation.RequestForm, _ judgement: RouteExplanation.RuleExplanation
    ) -> JSONObject {
        var object = JSONObject()
        object.add("asking", asking.parts.kind)
        object.add("listener", judgement.listener)
        object.add("rule", judgement.rule)
        object.add("allowed", judgement.refusal == nil)
        object.add(judgement.refusal)
        object.add("reported", judgement.reported)
        if !judgement.rates.isEmpty {
            object.add("rates", judgement.rates.map { "\($0.rule): \($0.limits.summary)" })
        }
        if let ways = judgement.proxyWays { object.add("ways", ways.map(\.name)) }
        return object
    }

    private func json(
        _ asking: RouteExplanation.RequestForm, _ way: RouteExplanation.Handling
    ) -> JSONObject {
        var object = JSONObject()
        let (kind, listener) = asking.parts
        object.add("asking", kind)
        object.add("listener", listener)
        if let header = listener.flatMap({ route.headers[$0] }), header != .none {
            object.add("proxyProtocol", header.rawValue)
        }
        object.add("way", way.name)
        var tls13: TLS13TunnelMode?
        var port: UInt16?
        switch way {
        case .inspect(let mode), .interceptOrInspect(let mode): tls13 = mode
        case .upgrade(let to): port = to
        case .refused, .tunnel, .intercept, .interceptOrPass, .verified, .clearText: break
        }
        object.add("tls13", tls13?.rawValue)
        object.add("port", port.map { Int($0) })
        object.add(way.fault, else: way.fault == nil ? Self.text(way) : nil)
        return object
    }

    private func json(_ server: Server) -> JSONObject {
        let verdict: String
        var address: IPAddress?
        var version: String?
        var fault: ExchangeError?
        var detail: String?
        var failures: [TrustError] = []
        switch server {
        case .notChecked(let reason): (verdict, detail) = ("not-asked", reason)
        case .unreachable(let reason): (verdict, detail) = ("unreachable", reason)
        case .reached(let peer): (verdict, address) = ("reached", peer)
        case .refused(let peer, let reason): (verdict, address, fault) = ("refused", peer, reason)
        case .trusted(let peer, let negotiated, let reported):
            (verdict, address, version, failures) = ("trusted", peer, negotiated, reported)
        }
        var object = JSONObject()
        object.add("verdict", verdict)
        // No connection is made to a refused address.
        object.add(
            "address",
            address.map {
                Self.json(
                    RouteExplanation.Destination(verdict: .allowed, address: $0, detail: nil))
            })
        object.add("tried", tried.map { "\($0)" })
        object.add("version", version)
        for phase in Phase.allCases {
            if let took = times[phase] { object.add("\(phase.label)_us", Int(clamping: took)) }
        }
        object.add(fault, else: detail)
        object.add(
            "reported",
            failures.map { failure in
                var object = JSONObject()
                object.add("pinset", failure.pinset)
                object.add("reason", Reason(failure).token)
                object.add("detail", "\(failure)")
                return object
            })
        return object
    }
}

extension JSONObject {
    /// Adds the status, reason and detail of a refusal, as in a reply.
    fileprivate mutating func add(_ fault: ExchangeError?, else detail: String? = nil) {
        add("status", fault.map { Int($0.status) })
        add("reason", fault?.reason.token)
        add("detail", fault?.explanation ?? detail)
    }
}

extension RouteExplanation.Handling {
    /// Why it is refused, or `nil` if it is not.
    fileprivate var fault: ExchangeError? {
        if case .refused(let fault) = self { fault } else { nil }
    }

    /// Its name in JSON.
    fileprivate var name: String {
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
}
