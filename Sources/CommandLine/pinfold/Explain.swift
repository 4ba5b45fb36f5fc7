import ArgumentParser
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
            if the gateway would, and over TLS verifies its certificates. With --running, the \
            running gateway is asked at its administrative address.

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

    @Flag(
        help: """
            Ask the running gateway, which answers by what is in force in it, and says what \
            depends on the moment. Of the options about the configuration, only --config and \
            --admin may then be given: they say where it is asked.
            """)
    var running = false

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var policyFile: PolicyFileOption

    @OptionGroup var access: AdministrationAccess

    /// The time limit for resolving the name, and then again for connecting to the server.
    private static let milliseconds: Int64 = 10_000

    func validate() throws {
        guard running else {
            if access.isUsed {
                throw ValidationError(
                    "--token-file, --cacert, --cert, --key and --timeout need --running")
            }
            return
        }
        if connect {
            throw ValidationError(
                "--running says what the gateway would do, and has it do nothing: no --connect")
        }
        if options.changesConfiguration || policyFile.policy != nil {
            throw ValidationError(
                "--running explains by the gateway's own configuration: it may not be changed by "
                    + "options")
        }
    }

    func run() throws {
        let isRefused = try running ? explainRunning() : explainConfigured()
        if isRefused { throw ExitCode(1) }
    }

    private var query: ExplanationQuery {
        var query = ExplanationQuery(url: url)
        query.client = client
        query.user = user
        query.groups = group
        query.method = method
        query.listener = listener
        query.addresses = address
        return query
    }

    // MARK: The running gateway

    /// Prints what the running gateway says; returns whether that is a refusal.
    private func explainRunning() throws -> Bool {
        let answer = try answerOrExit {
            let answer = try access.gateway(config: options.config, admin: options.admin)
                .ask(.get, "/api/v1/explain?" + query.encoded)
            guard answer.status == 200, answer.value?["verdict"] != nil else {
                throw CommandError(answer.problem)
            }
            return answer
        }
        let value = answer.value ?? .null
        writeToStandardOutput(
            json
                ? answer.body : Array(value.words("text").map { $0 + "\n" }.joined().utf8))
        return value["verdict"]?.text == "refused"
    }

    // MARK: A configuration

    /// Prints what a configuration says; returns whether that is a refusal.
    private func explainConfigured() throws -> Bool {
        let explanation = try answerOrExit(explain)
        writeToStandardOutput(
            json ? explanation.json + "\n" : explanation.lines.joined(separator: "\n") + "\n")
        return explanation.isRefused
    }

    private func explain() throws -> Explanation {
        var source = options.source
        source.policy = policyFile.policy
        let configuration = try source.load().snapshot
        let prepared: ExplanationQuery.Prepared
        do throws(ExplanationQuery.QueryError) {
            prepared = try query.prepared(for: configuration)
        } catch {
            throw CommandError(error.text(prefix: "--"))
        }
        let policy = try PolicySnapshot(forQueries: configuration)
        var times = PhaseTimes()
        let resolved = try prepared.name.map { try Self.lookUp($0, configuration, &times) }
        var explanation = prepared.explanation(
            under: policy, resolved: resolved ?? .success([]), now: Clock.wallSeconds())
        if connect {
            let timeline = ConnectionTimeline()
            explanation.server = look(at: explanation.route, policy, noting: timeline)
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

extension ExplanationQuery {
    /// It as the query of a request to the administrative address.
    fileprivate var encoded: String {
        var pairs = [("url", url), ("method", method)]
        pairs += [("client", client), ("user", user), ("listener", listener)].compactMap {
            name, value in value.map { (name, $0) }
        }
        pairs += groups.map { ("group", $0) } + addresses.map { ("address", $0) }
        return pairs.map { "\($0)=\(queryEncoded($1))" }.joined(separator: "&")
    }
}

extension RouteExplanation {
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
