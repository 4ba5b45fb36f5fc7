import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS

/// `pinfold explain URL`: what the gateway would do with a request.
struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain what would become of a request for a URL.",
        discussion: """
            Says which host entry and pinsets apply, what the rules of access say of the client \
            and of each address that the host has, how the request would travel, and whether the \
            cache takes part, by the functions that decide it in the gateway and in the words of \
            its replies. The host is looked up as the configuration says; nothing is sent to it. \
            With --connect the server is looked at, too, if the gateway would connect to it. \
            Exits with 0 if a way passes, with 1 if the client, every way or the server is \
            refused, and with 2 if the question cannot be answered: no URL, or no valid \
            configuration. --json prints the same as one JSON object.
            """)

    @Argument(help: "An http or https URL; only its host and port count.")
    var url: String

    @Option(help: ArgumentHelp("The client's address.", valueName: "address"))
    var client: String?

    @Option(
        help: ArgumentHelp(
            "An address that the host has, in place of looking it up; repeatable.",
            valueName: "address"))
    var address: [String] = []

    @Flag(help: "Connect to the server and say what it is worth.")
    var connect = false

    @Flag(help: "Print the explanation as JSON.")
    var json = false

    @OptionGroup var options: ConfigurationOptions

    /// How long the host's addresses, and then the server, may take.
    private static let milliseconds: Int64 = 10_000

    func run() throws {
        let explanation: Explanation
        do {
            explanation = try explain()
        } catch let errors as ConfigurationErrors {
            writeToStandardError(errors.description + "\n")
            throw ExitCode(2)
        } catch {
            writeToStandardError("pinfold: \(error)\n")
            throw ExitCode(2)
        }
        writeToStandardOutput(
            json ? explanation.json + "\n" : explanation.lines.joined(separator: "\n") + "\n")
        if explanation.isRefused { throw ExitCode(1) }
    }

    private func explain() throws -> Explanation {
        let client = try client.map { try Self.address($0, "--client") }
        let given = try address.map { try Self.address($0, "--address") }
        let configuration = try options.source.load().snapshot
        let target: TargetURL
        do {
            target = try TargetURL(url: url, limits: configuration.limits.headLimits)
        } catch {
            throw Failure(
                "\(url) is no URL that the gateway serves: \(error.explanation); expected "
                    + "http://host/ or https://host/")
        }
        let policy = try PolicySnapshot(asking: configuration)
        let addresses =
            given.isEmpty
            ? try NameLookup.addresses(
                of: target.host, configuration.resolver, milliseconds: Self.milliseconds)
            : .success(given)
        let route = RouteExplanation(
            policy, target, addresses: addresses, now: Clock.coarseWallSeconds())
        var explanation = Explanation(url: url, route: route)
        explanation.client = client.map { ($0, configuration.access.serves(client: $0)) }
        if connect { explanation.server = look(at: route, policy) }
        return explanation
    }

    private static func address(_ text: String, _ option: String) throws -> IPAddress {
        guard let address = IPAddress(literal: text.utf8.span) else {
            throw Failure("\(option) \(text) is no address; expected one as 192.0.2.1")
        }
        return address
    }

    /// Looks at the server as the gateway would: where it would speak TLS to it, and at those of
    /// its addresses that it would connect to.
    private func look(at route: RouteExplanation, _ policy: PolicySnapshot) -> Explanation.Server {
        guard !route.isRefused else { return .notAskedFor("every way is refused") }
        guard let way = route.verifiedWay else {
            return .notAskedFor("no TLS would be spoken to it")
        }
        let peer = PeerAddress(host: route.host, port: way.port)
        do throws(ServerProbeError) {
            let context = policy.context(entry: route.entry)
            let shown = try ServerProbe(context: context, milliseconds: Self.milliseconds)
                .look(at: peer, addresses: way.addresses)
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
}

extension RouteExplanation {
    /// Whether every way is refused.
    var isRefused: Bool {
        ways.allSatisfy { if case .refused = $0.way { true } else { false } }
    }

    /// Where the first way that speaks verified TLS leads: the port, and the addresses that the
    /// gateway would connect to; nil: none does.
    fileprivate var verifiedWay: (port: UInt16, addresses: [IPAddress])? {
        for (asking, way) in ways {
            let port: UInt16
            switch way {
            case .refused, .tunnel, .clearText: continue
            case .upgrade(let upgraded): port = upgraded
            case .verified, .inspect, .intercept, .interceptOrPass, .interceptOrInspect:
                port = self.port
            }
            // The operator has named a reverse listener's upstream: no rule applies to it.
            var isFixed = false
            if case .reverse = asking { isFixed = true }
            return (
                port,
                addresses.filter { isFixed || $0.refusal == nil }.map(\.address)
            )
        }
        return nil
    }
}
