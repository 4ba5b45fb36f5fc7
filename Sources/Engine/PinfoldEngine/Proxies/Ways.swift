import Clocks
import HTTPCore
import PinfoldConfiguration

/// A way to a server.
enum Way: Sendable, Hashable {
    case direct
    /// Through a parent.
    case proxy(UpstreamProxy)

    /// The parent; `nil` for a direct connection.
    var proxy: UpstreamProxy? {
        switch self {
        case .direct: nil
        case .proxy(let proxy): proxy
        }
    }
}

/// The ways to a server, in the order in which they are tried, at least one.
final class WayList: Sendable {
    let ways: [Way]

    init(_ ways: [Way]) { self.ways = ways }

    /// There is none, because the server is not asked.
    static let offline = WayList([])
}

/// Which way is tried next: those whose parents are up, in their order, each once. If all parents
/// are down and there is no other way, all are tried, because to refuse would be worse.
struct WayOrder {
    private var remaining: ArraySlice<Way>

    init(_ list: WayList) {
        self.init(list.ways) { $0.proxy?.standing?.isDown ?? false }
    }

    init(_ ways: [Way], isDown: (Way) -> Bool) {
        let up = ways.filter { !isDown($0) }
        remaining = (up.isEmpty ? ways : up)[...]
    }

    /// The next way; `nil` if there is none.
    mutating func next() -> Way? { remaining.popFirst() }

    /// Whether another way is tried after a failure, of which nobody has seen anything: only if
    /// this one led nowhere, and not if the server itself was reached and is not trusted.
    func goesOn(after error: ExchangeError) -> Bool {
        guard !remaining.isEmpty, !error.isOwn else { return false }
        switch error {
        case .proxy(let error): return error.allowsNextWay
        case .nameNotResolved, .connectFailed, .connectTimeout: return true
        default: return false
        }
    }
}

extension UpstreamProxy {
    /// The parents of a configuration, with what is known about them.
    static func parents(
        of configuration: ConfigurationSnapshot, _ labels: RouteLabels
    ) -> [UpstreamProxy] {
        let standings = labels.standings(
            configuration.parents, at: Clock.monotonicMilliseconds())
        return zip(configuration.parents, standings).map { UpstreamProxy($0, $1) }
    }
}

extension ExchangeError {
    /// There is no way at all, which no valid configuration leads to.
    static var noWay: Self { .proxy(.unreachable(.nameNotResolved(.noData))) }
}

extension PolicySnapshot {
    /// The ways to a host; `nil` if it is connected to directly, because nothing else is configured
    /// for it.
    ///
    /// - Parameters:
    ///   - host: in lower case, an address without brackets.
    ///   - port: the port that the request names.
    ///   - rule: the ways that the rule names which allows the request; empty if it names none.
    func ways(
        host: String, port: UInt16, entryIndex: Int?, by rule: [WayName] = []
    ) -> WayList? {
        guard
            let names = configuration.ways(
                host: host, port: port, entry: entryIndex, by: rule)
        else { return nil }
        return WayList(
            names.compactMap { name in
                switch name {
                case .direct: .direct
                case .parent(let name): parents.first { $0.standing?.name == name }.map(Way.proxy)
                }
            })
    }

    /// The same for an authority.
    func ways(to authority: BoundAuthority, by rule: [WayName] = []) -> WayList? {
        ways(
            host: authority.host, port: authority.port,
            entryIndex: entry(host: authority.host, port: authority.port), by: rule)
    }

    /// The ways that the rule names which allows a request; empty if it names none.
    /// - Parameter request: `nil` if no rule applies to it.
    func ruleWays(
        of request: @autoclosure () -> AccessRequest?, to authority: BoundAuthority
    ) -> [WayName] {
        guard let rules = rulesWithWays(to: authority), let request = request() else { return [] }
        return rules.ways(by: rules.judge(request))
    }

    /// The rules for a host; `nil` if none of them names ways, which is mostly so.
    private func rulesWithWays(to authority: BoundAuthority) -> HostRules? {
        guard accessRules?.decideOnWays ?? false,
            let rules = rules(host: authority.host, port: authority.port), rules.haveWays
        else { return nil }
        return rules
    }

    /// The same for a tunnel in which each request will be judged itself. If no rule allows it as a
    /// tunnel, its server is reached by the ways of the first rule that allows some of the
    /// requests.
    func ruleWays(
        ofIntercepted request: @autoclosure () -> AccessRequest?, to authority: BoundAuthority
    ) -> [WayName] {
        guard let rules = rulesWithWays(to: authority), let request = request() else { return [] }
        return rules.ways(ofIntercepted: request)
    }

    /// Whether a host may be reached in this way.
    /// - Parameters:
    ///   - parent: the parent's configuration; `nil` for a direct connection.
    ///   - request: what asks for it, for rules; `nil` if none apply.
    func allows(
        _ parent: ParentConfiguration?, to authority: BoundAuthority, for request: AccessRequest?
    ) -> Bool {
        guard let ways = ways(to: authority, by: ruleWays(of: request, to: authority)) else {
            return parent == nil
        }
        return ways.ways.contains { $0.proxy?.standing?.parent == parent }
    }
}

/// What an exchange sends along to a parent.
package struct Passage {
    /// The lines of Via for CONNECT.
    var via: [UInt8] = []
    /// The value of the client's Proxy-Authorization, if it may be passed on; `nil` if it has none.
    var credentials: String?

    package init() {}

    /// Whether a scheme of authentication proves something for one request, rather than for all
    /// that follow on its connection, as NTLM and Negotiate do: others may use the connection.
    /// Those of Digest are for one request, and would leave a connection that nobody uses again.
    static func mayPass(_ credentials: String) -> Bool {
        let scheme = credentials.prefix { $0 != " " }.lowercased()
        return ["basic", "bearer"].contains(scheme)
    }
}
