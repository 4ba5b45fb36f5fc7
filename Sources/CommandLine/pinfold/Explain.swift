import ArgumentParser
import Authentication
import Clocks
import Gateway
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// `pinfold explain URL`: explains how the gateway would handle a request.
struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain how the gateway would handle a request for a URL.",
        discussion: """
            Shows which host entry and pinsets apply, whether the access rules allow the client \
            and each of the host's addresses, how the request would be sent, and whether the cache \
            is used. The answers come from the same code that handles requests, and a refusal has \
            the text of the gateway's error reply. The host's name is resolved as configured, but \
            nothing is sent to the host. With --connect, the command also connects to the server, \
            if the gateway would, and over TLS verifies its certificates.

            A request can be sent in several ways: through a CONNECT tunnel, with the full URL, to \
            a reverse listener, or through a transparent listener. Exits with 0 if at least one \
            way is open, with 1 if the client, the server or every way is refused, and with 2 if \
            there is no answer, for example because the URL or the configuration is invalid.
            """)

    @Argument(help: "An http or https URL; its query does not matter.")
    var url: String

    @Option(
        help: ArgumentHelp(
            "Also check whether a client with this address is served, and judge access.rules for "
                + "it, and not for 127.0.0.1.", valueName: "address"))
    var client: String?

    @Option(
        help: ArgumentHelp(
            "Judge access.rules for this user of authentication.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp(
            "With --user, a group of the user besides those in the files, as in a signed token; "
                + "repeatable.", valueName: "name"))
    var group: [String] = []

    @Option(
        help: ArgumentHelp(
            "Judge access.rules for this method.", valueName: "method"))
    var method = "GET"

    @Option(
        help: ArgumentHelp(
            "Judge access.rules for this forward, socks5 or transparent listener (default: the "
                + "first).",
            valueName: "name"))
    var listener: String?

    @Option(
        help: ArgumentHelp(
            "Use this address for the host instead of resolving its name; repeatable.",
            valueName: "address"))
    var address: [String] = []

    @Flag(help: "Connect to the server and, over TLS, verify its certificates.")
    var connect = false

    @Flag(help: "Print the explanation as one JSON object.")
    var json = false

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var policyFile: PolicyFileOption

    /// The time limit for resolving the name, and then again for connecting to the server.
    private static let milliseconds: Int64 = 10_000

    func run() throws {
        let explanation: Explanation
        do {
            explanation = try explain()
        } catch let errors as ConfigurationErrors {
            errors.write()
            throw ExitCode(2)
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        writeToStandardOutput(
            json ? explanation.json + "\n" : explanation.lines.joined(separator: "\n") + "\n")
        if explanation.isRefused { throw ExitCode(1) }
    }

    private func explain() throws -> Explanation {
        let client = try client.map {
            $0 == IPNetwork.unixWord ? .unnamed : try Self.address($0, "--client")
        }
        let given = try address.map { try Self.address($0, "--address") }
        var source = options.source
        source.policy = policyFile.policy
        let configuration = try source.load().snapshot
        let target = try Self.target(url, configuration)
        let policy = try PolicySnapshot(forQueries: configuration)
        var times = PhaseTimes()
        let addresses =
            given.isEmpty && target.unixPath == nil
            ? try Self.lookUp(target.host, configuration, &times) : .success(given)
        var asker = RouteExplanation.Asker()
        if let client { asker.client = client }
        asker.method = method
        asker.identity = try user.map { name in
            guard let identity = configuration.authentication.identity(ofUser: name) else {
                throw CommandError("--user: there is no user \(name) in authentication")
            }
            return Identity(
                user: identity.user, groups: identity.groups + group, by: identity.proof)
        }
        guard group.isEmpty || user != nil else {
            throw CommandError("--group: whose it is has to be known; expected --user")
        }
        asker.listener = try listener.map { try Self.forwardListener($0, configuration) }
        let route = RouteExplanation(
            policy, target, addresses: addresses, asking: asker, now: Clock.wallSeconds())
        var explanation = Explanation(url: url, route: route)
        explanation.client = client.map { ($0, configuration.access.serves(client: $0)) }
        if connect {
            let timeline = ConnectionTimeline()
            explanation.server = look(at: route, policy, noting: timeline)
            times.add(timeline.phases(now: Clock.monotonicMicroseconds()))
            if let tried = timeline.tried {
                explanation.tried = tried
                explanation.times = times
            }
        }
        return explanation
    }

    /// Resolves the host's name, which is a phase unless it is an address.
    private static func lookUp(
        _ host: String, _ configuration: ConfigurationSnapshot, _ times: inout PhaseTimes
    ) throws -> Result<[IPAddress], ExchangeError> {
        let begun = Clock.monotonicMicroseconds()
        let result = try NameLookup.addresses(
            of: host, configuration.resolver, milliseconds: milliseconds)
        if IPAddress(literal: host.utf8.span) == nil {
            times.add(.dns, UInt64(max(0, Clock.monotonicMicroseconds() - begun)))
        }
        return result
    }

    /// What is asked for: a URL, or the Unix socket of a reverse listener's server.
    private static func target(
        _ url: String, _ configuration: ConfigurationSnapshot
    ) throws -> TargetURL {
        if url.hasPrefix(UnixSocketPath.scheme) {
            let path = String(url.dropFirst(UnixSocketPath.scheme.count))
            guard path.hasPrefix("/") else {
                throw CommandError(
                    "\(url) is no absolute path; expected one such as unix:/run/app.sock")
            }
            return TargetURL(unixPath: path)
        }
        do {
            return try TargetURL(url: url, limits: configuration.limits.headLimits)
        } catch {
            throw CommandError(
                "the gateway does not serve \(url): \(error.explanation); expected "
                    + "http://host/ or https://host/")
        }
    }

    private static func forwardListener(
        _ name: String, _ configuration: ConfigurationSnapshot
    ) throws -> String {
        let names = configuration.listeners.filter(\.kind.isForward).map(\.name)
        guard names.contains(name) else {
            throw CommandError(
                "--listener: there is no forward listener \(name); expected one of "
                    + names.joined(separator: ", "))
        }
        return name
    }

    private static func address(_ text: String, _ option: String) throws -> IPAddress {
        guard let address = IPAddress(literal: text.utf8.span) else {
            throw CommandError(
                "\(option): \(text) is not an IP address; expected one such as 192.0.2.1")
        }
        return address
    }

    /// Connects to the server as the gateway would, and only to addresses that the gateway would
    /// connect to. Over TLS it is verified.
    private func look(
        at route: RouteExplanation, _ policy: PolicySnapshot, noting timeline: ConnectionTimeline
    ) -> Explanation.Server {
        guard !route.isRefused else { return .notChecked("every way is refused") }
        guard let way = route.verifiedWay else { return reach(route, noting: timeline) }
        do throws(ServerProbeError) {
            let context = policy.context(entry: route.entry)
            let shown = try ServerProbe(context: context, milliseconds: Self.milliseconds)
                .look(
                    at: route.host, port: way.port, addresses: way.addresses, under: policy,
                    by: way.ways, telling: way.header, noting: timeline)
            let address = shown.endpoint.address
            if let failure = shown.failure { return .refused(address, .tlsFailed(failure)) }
            let reported = (shown.facts?.outcomes ?? []).compactMap { outcome in
                if case .reported(let failure) = outcome { failure } else { nil }
            }
            return .trusted(address, version: shown.version?.text ?? "unknown", reported)
        } catch {
            return .unreachable("\(error)")
        }
    }

    /// Connects to a server that requests are sent to in clear text.
    private func reach(
        _ route: RouteExplanation, noting timeline: ConnectionTimeline
    ) -> Explanation.Server {
        let addresses: [IPAddress]
        switch route.clearTextServer {
        case .addresses(let found): addresses = found
        case .notAsked(let reason): return .notChecked(reason)
        }
        do throws(ServerProbeError) {
            let endpoint = try ServerProbe.reach(
                route.host, port: route.port, addresses: addresses,
                milliseconds: Self.milliseconds, noting: timeline)
            return .reached(endpoint.address)
        } catch {
            return .unreachable("\(error)")
        }
    }
}

extension RouteExplanation.RequestForm {
    /// The word for it in JSON, and the listener that it names.
    var parts: (kind: String, listener: String?) {
        switch self {
        case .connect: ("connect", nil)
        case .absolute: ("absolute", nil)
        case .reverse(let name): ("reverse", name)
        case .transparent(let name): ("transparent", name)
        }
    }
}

extension RouteExplanation {
    /// Whether every way is refused.
    var isRefused: Bool {
        ways.allSatisfy { $0.way.isRefused }
    }

    /// The port that the first way with verified TLS leads to, and the addresses that the gateway
    /// would connect to, or `nil` if no way uses verified TLS. A rule may name the ways to it, and
    /// it may be told by whom the connection is made.
    fileprivate var verifiedWay:
        (
            port: UInt16, addresses: [IPAddress], ways: [WayName], header: UpstreamProxyProtocol
        )?
    {
        for (asking, way) in ways {
            let port: UInt16
            switch way {
            case .refused, .tunnel, .clearText: continue
            case .upgrade(let upgraded): port = upgraded
            case .verified, .inspect, .intercept, .interceptOrPass, .interceptOrInspect:
                port = self.port
            }
            // The operator chose a reverse listener's upstream: no destination rule applies to it.
            var isFixed = false
            var header = UpstreamProxyProtocol.none
            if case .reverse(let listener) = asking {
                isFixed = true
                header = headers[listener] ?? .none
            }
            return (
                port, addresses.filter { isFixed || $0.refusal == nil }.map(\.address),
                judgements.first { $0.asking == asking }?.judgement.wayNames ?? [], header
            )
        }
        return nil
    }

    /// Where requests in clear text would be sent.
    fileprivate var clearTextServer: ClearTextServer {
        guard unixPath == nil else {
            return .notAsked("this command does not connect to Unix sockets")
        }
        for (asking, way) in ways {
            guard case .clearText = way else { continue }
            let rule = judgements.first { $0.asking == asking }?.judgement
            var isFixed = false
            if case .reverse = asking { isFixed = true }
            let parents = isFixed ? [] : (rule?.proxyWays ?? proxyWays ?? [])
            if let parent = parents.first, parent.url != nil {
                let others = parents.contains { $0.url == nil }
                return .notAsked(
                    "requests are sent to the parent proxy \(parent.name) in clear text"
                        + (others ? ", and to the server itself only if that cannot be used" : ""))
            }
            return .addresses(
                addresses.filter { isFixed || $0.refusal == nil }.map(\.address))
        }
        return .notAsked("its tunnels are relayed, and only the client verifies it")
    }
}

/// Where requests in clear text would be sent.
private enum ClearTextServer {
    /// To one of these, which the gateway would connect to.
    case addresses([IPAddress])
    /// This command makes no such connection, for this reason.
    case notAsked(String)
}
