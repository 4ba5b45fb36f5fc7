import Addressing
import ArgumentParser
import Engine
import Notation
import PinTools
import PinfoldConfiguration
import TLS

/// `pinfold explain URL`: what the gateway would do with a request.
struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explain what would become of a request for a URL.",
        discussion: """
            Says which host entry and pinsets apply, what the rules of access say, how the request \
            would travel, and whether the cache takes part, by the functions that decide it in the \
            gateway and in the words of its replies. With --connect the server is looked at, too. \
            Exits with 1 if every way is refused, or with --connect the server is. --json prints \
            the same as one JSON object.
            """)

    @Argument(help: "An http or https URL; only its host and port count.")
    var url: String

    @Option(help: ArgumentHelp("The client's address.", valueName: "address"))
    var client: String?

    @Flag(help: "Connect to the server and say what it is worth.")
    var connect = false

    @Flag(help: "Print the explanation as JSON.")
    var json = false

    @OptionGroup var options: ConfigurationOptions

    /// How long the server may take.
    private static let milliseconds: Int64 = 10_000

    func run() throws {
        let isSecure = url.lowercasedASCII.hasPrefix("https://")
        guard isSecure || url.lowercasedASCII.hasPrefix("http://"),
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
        var explanation = Explanation(url: url, route: route)
        explanation.client = address.map { ($0, configuration.access.serves(client: $0)) }
        if connect { explanation.server = look(at: peer, route, policy, isSecure: isSecure) }
        writeToStandardOutput(
            json ? explanation.json + "\n" : explanation.lines.joined(separator: "\n") + "\n")
        if explanation.isRefused { throw ExitCode(1) }
    }

    private func look(
        at peer: PeerAddress, _ route: RouteExplanation, _ policy: PolicySnapshot, isSecure: Bool
    ) -> Explanation.Server {
        var target = peer
        if !isSecure {
            guard let upgraded = route.upgradedPort else { return .spokenToInClearText }
            target.port = upgraded
        }
        do throws(ServerProbeError) {
            let context = policy.context(entry: route.entry)
            let shown = try ServerProbe(context: context, milliseconds: Self.milliseconds)
                .look(at: target)
            let address = route.verdict(on: shown.endpoint.address, under: policy)
            if let failure = shown.failure {
                return .refused(address, .tlsFailed(failure))
            }
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
    /// The port to which a request in clear text goes out as TLS; nil: it does not.
    fileprivate var upgradedPort: UInt16? {
        for case (_, .upgrade(let port)) in ways { return port }
        return nil
    }
}
