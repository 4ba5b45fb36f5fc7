import Addressing
import ArgumentParser
import Clocks
import Configuration
import Engine
import Notation
import PinTools
import Pinning
import TLS

/// `pinfold explain URL`: what the gateway would do with a request.
struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain what would become of a request for a URL.",
        discussion: """
            Says which host entry and pinsets apply, what the rules of access say, how the request \
            would travel, and whether the cache takes part, by the functions that decide it in the \
            gateway and in the words of its replies. With --connect the server is looked at, too. \
            Exits with 1 if every way is refused, or with --connect the server is.
            """)

    @Argument(help: "An http or https URL; only its host and port count.")
    var url: String

    @Option(help: ArgumentHelp("The client's address.", valueName: "address"))
    var client: String?

    @Flag(help: "Connect to the server and say what it is worth.")
    var connect = false

    @OptionGroup var options: ConfigurationOptions

    /// How long the server may take.
    private static let milliseconds: Int64 = 10_000

    func run() throws {
        let isSecure = url.lowercased().hasPrefix("https://")
        guard isSecure || url.lowercased().hasPrefix("http://"),
            let peer = PeerAddress(url: url)
        else {
            throw Failure("\(url) is no URL of a server; expected http://host/ or https://host/")
        }
        var address: IPAddress?
        if let client {
            address = IPAddress(literal: client.utf8.span)
            guard address != nil else {
                throw Failure("--client \(client) is no address; expected one as 192.0.2.1")
            }
        }
        let configuration = try options.loadOrExit().snapshot
        let policy: PolicySnapshot
        do {
            policy = try PolicySnapshot(asking: configuration)
        } catch {
            throw Failure("\(error)")
        }
        let route = RouteExplanation(
            policy, host: peer.host, port: peer.port, isSecure: isSecure)
        var lines = [url]
        var isRefused = false
        if let address {
            isRefused = !configuration.access.serves(client: address)
            lines.append(
                "client: \(address) is "
                    + (isRefused ? Self.text(.clientNotAllowed) : "served (access.clients)"))
        }
        lines += Self.lines(route, policy)
        isRefused = isRefused || route.ways.allSatisfy { $0.way.fault != nil }
        if connect {
            let (text, isTrusted) = look(at: peer, route, policy, isSecure: isSecure)
            lines += text
            isRefused = isRefused || !isTrusted
        }
        writeToStandardOutput(lines.joined(separator: "\n") + "\n")
        if isRefused { throw ExitCode(1) }
    }

    private static func lines(_ route: RouteExplanation, _ policy: PolicySnapshot) -> [String] {
        var lines: [String] = []
        if let entry = route.entry {
            let pattern = route.pattern.map { ", by the pattern \($0)" } ?? ""
            lines.append("entry: hosts[\(entry)] (\(route.label))\(pattern)")
        } else {
            lines.append("entry: none applies (\(route.label))")
        }
        if route.pinsets.isEmpty { lines.append("pinsets: none") }
        for pinset in route.pinsets { lines.append("pinset: \(text(pinset))") }
        lines.append("destination: \(route.destination)")
        let shown = PeerAddress.text(host: route.host, port: route.port)
        for (asking, way) in route.ways {
            let how = asking == .connect ? "CONNECT \(shown)" : "a request with the whole URL"
            lines.append("\(how): \(text(way))")
        }
        let cache = route.cacheIsUsed ? "takes part" : "does not take part"
        return lines + ["cache: \(cache): \(route.cacheReason)"]
    }

    private static func text(_ pinset: Pinset) -> String {
        let now = Clock.coarseWallSeconds()
        var parts = ["mode \(pinset.mode.rawValue)", "\(pinset.pins.count) pins"]
        if pinset.refusesAll(at: now) {
            parts.append("expired: refuses every server")
        } else if pinset.mode != .none {
            parts.append(pinset.isReportOnly(at: now) ? "only reports" : "enforced")
        }
        if let expires = pinset.expires {
            parts.append("expires \(CivilDate.text(secondsSince1970: expires))")
        }
        return "\(pinset.name) (\(parts.joined(separator: ", ")))"
    }

    private static func text(_ fault: ExchangeFault) -> String {
        "refused: \(fault.status) \(fault.reason.token): \(fault.explanation)"
    }

    private static func text(_ way: RouteExplanation.Way) -> String {
        switch way {
        case .refused(let fault): text(fault)
        case .tunnel: "tunnelled: bytes are relayed unread, the server is not judged"
        case .inspect(let tls13):
            "inspected: relayed unread once the server has been judged; TLS 1.3: \(text(tls13))"
        case .intercept: "intercepted: the server is verified, requests are served like others"
        case .interceptOrPass:
            "intercepted; what is not TLS, and clients that keep rejecting, are relayed unread"
        case .interceptOrInspect(let tls13):
            "intercepted; clients that keep rejecting are inspected; TLS 1.3 there: \(text(tls13))"
        case .upgrade(let port): "upgraded: sent as verified TLS to port \(port)"
        case .verified: "sent as verified TLS"
        case .clearText: "sent in clear text, the server is not judged"
        }
    }

    private static func text(_ tls13: TLS13TunnelMode) -> String {
        switch tls13 {
        case .refuse: "refused"
        case .probe: "another connection to the same address is judged"
        case .intercept: "intercepted"
        }
    }

    private func look(
        at peer: PeerAddress, _ route: RouteExplanation, _ policy: PolicySnapshot, isSecure: Bool
    ) -> (lines: [String], isTrusted: Bool) {
        var target = peer
        if !isSecure {
            guard let upgraded = route.upgradedPort else {
                return (["server: not looked at, for no TLS would be spoken to it"], true)
            }
            target.port = upgraded
        }
        do {
            let context = policy.context(entry: route.entry)
            let shown = try ServerProbe(context: context, milliseconds: Self.milliseconds)
                .look(at: target)
            var lines = ["address: \(route.verdict(on: shown.endpoint.address, under: policy))"]
            if let failure = shown.failure {
                return (lines + ["server: \(Self.text(.tlsFailed(failure)))"], false)
            }
            lines.append("server: trusted (TLS \(shown.version?.text ?? "unknown"))")
            for case .reported(let failure) in shown.facts?.outcomes ?? [] {
                lines.append("reported only: \(failure)")
            }
            return (lines, true)
        } catch {
            return (["server: \(error)"], false)
        }
    }
}

extension RouteExplanation.Way {
    /// Why it is refused; nil: it is not.
    fileprivate var fault: ExchangeFault? {
        if case .refused(let fault) = self { fault } else { nil }
    }
}

extension RouteExplanation {
    /// The port to which a request in clear text goes out as TLS; nil: it does not.
    fileprivate var upgradedPort: UInt16? {
        for case (_, .upgrade(let port)) in ways { return port }
        return nil
    }
}
