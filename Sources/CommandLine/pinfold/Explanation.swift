import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import Trust

/// What `pinfold explain` prints, as lines and as JSON.
struct Explanation {
    /// The result of connecting to the server.
    enum Server {
        /// No connection was made; the value is the reason.
        case notChecked(String)
        /// The server cannot be reached, or presents no certificate.
        case unreachable(String)
        case refused(IPAddress, ExchangeError)
        /// The version of TLS, and what report-only pinsets would have refused.
        case trusted(IPAddress, version: String, [TrustError])
    }

    let url: String
    let route: RouteExplanation
    /// The client given with `--client`, and whether it is served.
    var client: (address: IPAddress, isServed: Bool)?
    /// `nil` without `--connect`.
    var server: Server?

    /// Whether the client, every way, or the server is refused.
    var isRefused: Bool {
        if client?.isServed == false || route.isRefused { return true }
        switch server {
        case .unreachable, .refused: return true
        case .notChecked, .trusted, nil: return false
        }
    }

    /// Whether the cache is used, and why or why not.
    private var cache: (isUsed: Bool, reason: String) {
        client?.isServed == false
            ? (false, "the client is refused") : (route.cacheIsUsed, route.cacheReason)
    }

    // MARK: Lines

    var lines: [String] {
        var lines = [url]
        if let (address, isServed) = client {
            lines.append(
                "client: \(address) is "
                    + (isServed ? "served (access.clients)" : Self.text(.access(.clientNotAllowed)))
            )
        }
        if let entry = route.entry {
            let pattern = route.pattern.map { ", by the pattern \($0)" } ?? ""
            lines.append("entry: hosts[\(entry)] (\(route.label))\(pattern)")
        } else {
            lines.append("entry: none applies (\(route.label))")
        }
        if route.pinsets.isEmpty { lines.append("pinsets: none") }
        for pinset in route.pinsets { lines.append("pinset: \(Self.text(pinset))") }
        if let policy = route.transparency {
            lines.append(
                "certificate transparency: \(policy.minimum) of "
                    + Self.count(policy.countingLogs.count, "log"))
        }
        lines.append("http2: \(Self.text(route.http2))")
        lines.append("destination: \(route.destination.text)")
        for one in route.addresses {
            lines.append("address: \(one.address): \(one.refusal.map(Self.text) ?? "allowed")")
        }
        if let failure = route.lookupFailure { lines.append("address: \(Self.text(failure))") }
        for (asking, judgement) in route.judgements {
            lines.append("rules for \(text(asking)): \(Self.text(judgement))")
        }
        for (asking, way) in route.ways {
            lines.append("\(text(asking)): \(Self.text(way))")
        }
        if route.ways.isEmpty {
            lines.append("listeners: no forward proxy, and no reverse listener for this server")
        }
        lines.append("cache: \(cache.isUsed ? "used" : "not used"): \(cache.reason)")
        switch server {
        case .notChecked(let reason): lines.append("server: not checked: \(reason)")
        case .unreachable(let reason): lines.append("server: \(reason)")
        case .refused(let address, let fault):
            lines += ["connected to: \(address)", "server: \(Self.text(fault))"]
        case .trusted(let address, let version, let reported):
            lines += ["connected to: \(address)", "server: trusted (TLS \(version))"]
            lines += reported.map { "reported only: \($0)" }
        case nil: break
        }
        return lines
    }

    private func text(_ asking: RouteExplanation.RequestForm) -> String {
        switch asking {
        case .connect: "CONNECT \(PeerAddress.text(host: route.host, port: route.port))"
        case .absolute: "a request with the full URL"
        case .reverse(let listener): "a request to the reverse listener \(listener)"
        }
    }

    /// A number with its unit, which is in the plural unless the number is 1.
    private static func count(_ number: Int, _ unit: String) -> String {
        "\(number) \(unit)\(number == 1 ? "" : "s")"
    }

    private static func text(_ pinset: Pinset) -> String {
        var parts = ["mode \(pinset.mode.rawValue)", Self.count(pinset.pins.count, "pin")]
        switch state(pinset) {
        case .expired: parts.append("expired: every server is refused")
        case .reported: parts.append("report only")
        case .enforced: parts.append("enforced")
        case .idle: break
        }
        if let expires = pinset.expires {
            parts.append("expires \(CivilDate.text(secondsSince1970: expires))")
        }
        return "\(pinset.name) (\(parts.joined(separator: ", ")))"
    }

    private static func text(_ http2: ServerHTTP2) -> String {
        switch http2 {
        case .auto: "with a server that selects it over TLS"
        case .require: "required, in clear text by prior knowledge"
        case .off: "never"
        }
    }

    private static func text(_ fault: ExchangeError) -> String {
        "refused: \(fault.status) \(fault.reason.token): \(fault.explanation)"
    }

    private static func text(_ way: RouteExplanation.Handling) -> String {
        switch way {
        case .refused(let fault): text(fault)
        case .tunnel: "tunnelled: bytes are relayed unread, and the server is not verified"
        case .inspect(let tls13):
            "inspected: relayed unread once the server is verified; TLS 1.3: \(text(tls13))"
        case .intercept:
            "intercepted: the server is verified, and requests are served like any others"
        case .interceptOrPass:
            "intercepted; relayed unread if not TLS, or if the client keeps rejecting certificates"
        case .interceptOrInspect(let tls13):
            "intercepted; inspected if the client keeps rejecting certificates; "
                + "TLS 1.3 there: \(text(tls13))"
        case .upgrade(let port): "upgraded: sent as verified TLS to port \(port)"
        case .verified: "sent as verified TLS"
        case .clearText: "sent in clear text; the server is not verified"
        }
    }

    private static func text(_ judgement: RouteExplanation.RuleExplanation) -> String {
        var parts = [
            judgement.rule.map { "\($0) decides" } ?? "none decides",
            judgement.refusal.map(text) ?? "allowed",
        ]
        for (rule, limits) in judgement.rates {
            parts.append("rate of \(rule): \(limits.summary)")
        }
        if !judgement.reported.isEmpty {
            parts.append("reported by \(judgement.reported.joined(separator: ", "))")
        }
        return parts.joined(separator: "; ")
    }

    private static func text(_ tls13: TLS13TunnelMode) -> String {
        switch tls13 {
        case .refuse: "refused"
        case .probe: "another connection to the same address is verified"
        case .intercept: "intercepted"
        }
    }

    // MARK: Pinsets

    private enum PinsetState: String {
        /// It has expired and refuses every server.
        case expired
        case reported
        case enforced
        /// It compares no pins.
        case idle = "none"
    }

    private static func state(_ pinset: Pinset) -> PinsetState {
        let now = Clock.wallSeconds()
        if pinset.refusesAll(at: now) { return .expired }
        if pinset.mode == .none { return .idle }
        return pinset.isReportOnly(at: now) ? .reported : .enforced
    }

    // MARK: JSON

    /// One object, on one line. Values that are unknown or do not apply are null.
    var json: String {
        var object = JSONObject()
        object.add("url", url)
        object.add("verdict", isRefused ? "refused" : "passed")
        object.add(
            "client",
            client.map { address, isServed in
                var object = JSONObject()
                object.add("address", "\(address)")
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
        object.add("ways", route.ways.map { Self.json($0.asking, $0.way) })
        var cacheObject = JSONObject()
        cacheObject.add("takesPart", cache.isUsed)
        cacheObject.add("detail", cache.reason)
        object.add("cache", cacheObject)
        object.add("server", server.map(Self.json))
        return object.text
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
        object.add("asking", parts(of: asking).kind)
        object.add("listener", judgement.listener)
        object.add("rule", judgement.rule)
        object.add("allowed", judgement.refusal == nil)
        object.add(judgement.refusal)
        object.add("reported", judgement.reported)
        if !judgement.rates.isEmpty {
            object.add("rates", judgement.rates.map { "\($0.rule): \($0.limits.summary)" })
        }
        return object
    }

    private static func parts(
        of asking: RouteExplanation.RequestForm
    ) -> (kind: String, listener: String?) {
        switch asking {
        case .connect: ("connect", nil)
        case .absolute: ("absolute", nil)
        case .reverse(let name): ("reverse", name)
        }
    }

    private static func json(
        _ asking: RouteExplanation.RequestForm, _ way: RouteExplanation.Handling
    ) -> JSONObject {
        var object = JSONObject()
        let (kind, listener) = parts(of: asking)
        object.add("asking", kind)
        object.add("listener", listener)
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
        object.add(way.fault, else: way.fault == nil ? text(way) : nil)
        return object
    }

    private static func json(_ server: Server) -> JSONObject {
        let verdict: String
        var address: IPAddress?
        var version: String?
        var fault: ExchangeError?
        var detail: String?
        var failures: [TrustError] = []
        switch server {
        case .notChecked(let reason): (verdict, detail) = ("not-asked", reason)
        case .unreachable(let reason): (verdict, detail) = ("unreachable", reason)
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
        object.add("version", version)
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
