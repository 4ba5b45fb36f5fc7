import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import Trust

/// How requests for a URL are handled, as `pinfold explain` prints it and as the administrative
/// address says it: as lines and as JSON.
package struct Explanation: Sendable {
    /// The result of connecting to the server.
    package enum Server: Sendable {
        /// No connection was made; the value is the reason.
        case notChecked(String)
        /// The server cannot be reached, or presents no certificate.
        case unreachable(String)
        case refused(IPAddress, ExchangeError)
        /// It was connected to, and there is nothing to verify.
        case reached(IPAddress)
        /// The version of TLS, and what report-only pinsets would have refused.
        case trusted(IPAddress, version: String, [TrustError])
    }

    package let url: String
    package let route: RouteExplanation
    /// The client that was asked about, and whether it is served.
    package var client: (address: IPAddress, isServed: Bool)?
    /// `nil` if no connection was asked for.
    package var server: Server?
    /// The address that was tried last then; `nil` if none was.
    package var tried: Endpoint?
    /// What was waited for then.
    package var times = PhaseTimes()
    /// Whether the explanations of refusals are left out: they name rules.
    var isMasked = false

    package init(url: String, route: RouteExplanation) {
        (self.url, self.route) = (url, route)
    }

    /// Whether the client, every way, or the server is refused.
    package var isRefused: Bool {
        if client?.isServed == false || route.isRefused { return true }
        switch server {
        case .unreachable, .refused: return true
        case .notChecked, .reached, .trusted, nil: return false
        }
    }

    /// Whether the cache is used, and why or why not.
    var cache: (isUsed: Bool, reason: String) {
        client?.isServed == false
            ? (false, "the client is refused") : (route.cacheIsUsed, route.cacheReason)
    }

    // MARK: Lines

    package var lines: [String] {
        var lines = [url] + clientLines
        if let entry = route.entry {
            let pattern = route.pattern.map { ", by the pattern \($0)" } ?? ""
            lines.append("entry: hosts[\(entry)] (\(route.label))\(pattern)")
        } else {
            lines.append("entry: none applies (\(route.label))")
        }
        lines += pinsetLines
        if let policy = route.transparency {
            lines.append(
                "certificate transparency: \(policy.minimum) of "
                    + Self.count(policy.countingLogs.count, "log"))
        }
        lines.append("http2: \(Self.text(route.http2))")
        if route.unixPath == nil { lines.append("destination: \(route.destination.text)") }
        for one in route.addresses {
            lines.append("address: \(one.address): \(one.refusal.map(Self.text) ?? "allowed")")
        }
        if let failure = route.lookupFailure { lines.append("address: \(Self.text(failure))") }
        if let ways = route.proxyWays {
            lines.append("ways: " + ways.map(Self.text).joined(separator: ", then "))
        }
        for (asking, judgement) in route.judgements {
            lines.append("rules for \(text(asking)): \(Self.text(judgement))")
            if let ways = judgement.proxyWays {
                lines.append(
                    "ways by the rule \(judgement.rule ?? ""): "
                        + ways.map(Self.text).joined(separator: ", then "))
            }
        }
        for (asking, way) in route.ways {
            lines.append("\(text(asking)): \(Self.text(way))")
        }
        if route.ways.isEmpty {
            lines.append("listeners: no forward proxy, and no reverse listener for this server")
        }
        lines.append(cacheLine)
        if let applied = route.cacheRules, let entry = route.entry {
            lines.append("cache rules: \(Self.text(applied, entry: entry))")
        }
        switch server {
        case .notChecked(let reason): lines.append("server: not checked: \(reason)")
        case .unreachable(let reason):
            if let tried { lines.append("tried: \(tried)") }
            lines.append("server: \(reason)")
        case .refused(let address, let fault):
            lines += ["connected to: \(address)", "server: \(Self.text(fault))"]
        case .reached(let address):
            lines += ["connected to: \(address)", "server: reachable; it is not verified"]
        case .trusted(let address, let version, let reported):
            lines += ["connected to: \(address)", "server: trusted (TLS \(version))"]
            lines += reported.map { "reported only: \($0)" }
        case nil: break
        }
        let parts = PhaseText.parts(of: times)
        if !parts.isEmpty { lines.append("time: \(parts.joined(separator: ", "))") }
        return lines
    }

    var clientLines: [String] {
        client.map { address, isServed in
            let answer =
                isServed ? "served (access.clients)" : Self.text(.access(.clientNotAllowed))
            return ["client: \(String(address.clientText)) is \(answer)"]
        } ?? []
    }

    var pinsetLines: [String] {
        route.pinsets.isEmpty
            ? ["pinsets: none"] : route.pinsets.map { "pinset: \(Self.text($0))" }
    }

    var cacheLine: String { "cache: \(cache.isUsed ? "used" : "not used"): \(cache.reason)" }

    func text(_ asking: RouteExplanation.RequestForm) -> String {
        switch asking {
        case .connect: "CONNECT \(HostText.text(route.host, port: route.port))"
        case .absolute: "a request with the full URL"
        case .reverse(let listener):
            "a request to the reverse listener \(listener)" + header(sentBy: listener)
        case .transparent(let listener): "a connection led to the transparent listener \(listener)"
        }
    }

    private func header(sentBy listener: String) -> String {
        switch route.headers[listener] ?? .none {
        case .none: ""
        case .v1: " (sent with a PROXY header of version 1)"
        case .v2: " (sent with a PROXY header of version 2)"
        }
    }

    private static func text(_ applied: CacheRulesExplanation, entry: Int) -> String {
        switch applied.source {
        case .path(let index, let pattern):
            "hosts[\(entry)].paths[\(index)] (\(pattern)): \(applied.rules.text)"
        case .entry: "hosts[\(entry)].cache: \(applied.rules.text)"
        case .ambiguous:
            "none: servers may read the path in different ways, so that its responses are neither "
                + "stored nor reused"
        }
    }

    private static func text(_ way: RouteExplanation.ProxyWay) -> String {
        guard let url = way.url else { return way.name }
        return "\(way.name) (\(url)\(way.resolvesNames ? ", resolves names" : ""))"
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

    static func text(_ fault: ExchangeError) -> String {
        "refused: \(fault.status) \(fault.reason.token): \(fault.explanation)"
    }

    static func text(_ way: RouteExplanation.Handling) -> String {
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

    enum PinsetState: String, CaseIterable {
        /// It has expired and refuses every server.
        case expired
        case reported
        case enforced
        /// It compares no pins.
        case idle = "none"
    }

    static func state(_ pinset: Pinset) -> PinsetState {
        let now = Clock.wallSeconds()
        if pinset.refusesAll(at: now) { return .expired }
        if pinset.mode == .none { return .idle }
        return pinset.isReportOnly(at: now) ? .reported : .enforced
    }
}
