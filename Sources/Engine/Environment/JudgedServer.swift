/// A server as reports on its judgement have it: who it was to be, and by what it was judged.
struct JudgedServer {
    let host: String
    let port: UInt16
    /// The label of its metrics.
    let route: Int
    /// The labels' indexes of the pinsets that apply, in the order of evaluation.
    let pinsets: [Int]

    init(_ origin: Origin) {
        (host, port) = (origin.key.host, origin.key.port)
        route = origin.route
        pinsets = origin.policy.pinsets(entryIndex: origin.entryIndex)
    }

    /// The server of a tunnel.
    init(_ authority: BoundAuthority, _ policy: PolicySnapshot, entryIndex: Int?) {
        (host, port) = (authority.host, authority.port)
        route = policy.route(entryIndex: entryIndex)
        pinsets = policy.pinsets(entryIndex: entryIndex)
    }
}
