import Authentication
import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine

/// What is asked of `pinfold explain`, and of the administrative address: texts as they were given.
package struct ExplanationQuery: Sendable {
    /// An http or https URL, or `unix:` and the path of a reverse listener's server.
    package var url: String
    /// The client's address, or `unix`; `nil` if nobody asks whether it is served.
    package var client: String?
    package var user: String?
    /// Groups of the user besides those in the files.
    package var groups: [String] = []
    package var method = "GET"
    /// The name of a forward listener; `nil` for the first one.
    package var listener: String?
    /// Addresses for the host; empty to resolve its name.
    package var addresses: [String] = []

    package init(url: String) { self.url = url }

    /// What is wrong with a query.
    package enum QueryError: Error, Sendable, Equatable {
        /// It is no address, and this is where it was given.
        case noAddress(parameter: String, String)
        case noSocketPath(String)
        /// The gateway refuses such a target, for this reason.
        case notServed(url: String, String)
        case noSuchUser(String)
        case groupWithoutUser
        case noSuchListener(String, names: [String])

        /// It in words.
        /// - Parameter prefix: what stands before the names of parameters: `--` for options.
        package func text(prefix: String) -> String {
            switch self {
            case .noAddress(let parameter, let text):
                "\(prefix)\(parameter): \(text) is not an IP address; expected one such as "
                    + "192.0.2.1"
            case .noSocketPath(let text):
                "\(text) is no absolute path; expected one such as unix:/run/app.sock"
            case .notServed(let url, let reason):
                "the gateway does not serve \(url): \(reason); expected http://host/ or "
                    + "https://host/"
            case .noSuchUser(let name):
                "\(prefix)user: there is no user \(name) in authentication"
            case .groupWithoutUser:
                "\(prefix)group: whose it is has to be known; expected \(prefix)user"
            case .noSuchListener(let name, let names):
                "\(prefix)listener: there is no forward listener \(name); expected one of "
                    + names.joined(separator: ", ")
            }
        }
    }

    /// A query that has been read.
    package struct Prepared: Sendable {
        let url: String
        /// What is asked for.
        package let target: TargetURL
        let client: IPAddress?
        let asker: RouteExplanation.Asker
        /// The addresses that were given.
        let given: [IPAddress]

        /// The name to resolve; `nil` if that is not necessary.
        package var name: String? {
            given.isEmpty && target.unixPath == nil ? target.host : nil
        }

        /// The explanation under a policy: that by whose configuration this was read.
        /// - Parameter resolved: the host's addresses; of no account unless ``name`` is one.
        package func explanation(
            under policy: PolicySnapshot, resolved: Result<[IPAddress], ExchangeError>, now: Int64
        ) -> Explanation {
            let route = RouteExplanation(
                policy, target, addresses: name == nil ? .success(given) : resolved,
                asking: asker, now: now)
            var explanation = Explanation(url: url, route: route)
            explanation.client = client.map {
                ($0, policy.configuration.access.serves(client: $0))
            }
            return explanation
        }
    }

    /// Reads the query, as far as a configuration says what it means.
    package func prepared(
        for configuration: ConfigurationSnapshot
    ) throws(QueryError) -> Prepared {
        var client: IPAddress?
        if let text = self.client {
            client =
                text == IPNetwork.unixWord ? .unnamed : try Self.address(text, "client")
        }
        var given: [IPAddress] = []
        for text in addresses { given.append(try Self.address(text, "address")) }
        let target = try Self.target(url, configuration)
        var asker = RouteExplanation.Asker()
        if let client { asker.client = client }
        asker.method = method
        if let user {
            guard let known = configuration.authentication.identity(ofUser: user) else {
                throw .noSuchUser(user)
            }
            asker.identity = Identity(
                user: known.user, groups: known.groups + groups, by: known.proof)
        } else if !groups.isEmpty {
            throw .groupWithoutUser
        }
        if let listener {
            let names = configuration.listeners.filter(\.kind.isForward).map(\.name)
            guard names.contains(listener) else {
                throw .noSuchListener(listener, names: names)
            }
            asker.listener = listener
        }
        return Prepared(url: url, target: target, client: client, asker: asker, given: given)
    }

    /// What is asked for: a URL, or the Unix socket of a reverse listener's server.
    private static func target(
        _ url: String, _ configuration: ConfigurationSnapshot
    ) throws(QueryError) -> TargetURL {
        if url.hasPrefix(UnixSocketPath.scheme) {
            let path = String(url.dropFirst(UnixSocketPath.scheme.count))
            guard path.hasPrefix("/") else { throw .noSocketPath(url) }
            return TargetURL(unixPath: path)
        }
        do throws(WireError) {
            return try TargetURL(url: url, limits: configuration.limits.headLimits)
        } catch {
            throw .notServed(url: url, "\(error.explanation)")
        }
    }

    private static func address(
        _ text: String, _ parameter: String
    ) throws(QueryError) -> IPAddress {
        guard let address = IPAddress(literal: text.utf8.span) else {
            throw .noAddress(parameter: parameter, text)
        }
        return address
    }
}
