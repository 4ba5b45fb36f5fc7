// The servers of reverse listeners that have several.
extension PolicySnapshot {
    /// The servers of a reverse listener that has several; `nil` for any other.
    package func serverSet(ofListener name: String) -> ServerSet? { serverSets.sets[name] }

    /// The servers of a route; `nil` if it has none any more, or others that speak another scheme.
    func serverSet(of route: BalancedRoute) -> ServerSet? {
        guard let set = serverSet(ofListener: route.listener),
            (set.configuration.scheme == .https) == route.isSecure
        else { return nil }
        return set
    }

    /// All of them, by their listeners' names.
    package var allServerSets: [ServerSet] {
        serverSets.sets.values.sorted { $0.listener < $1.listener }
    }

    /// The trust under which the responses of a listener's servers are obtained.
    func trust(ofSet listener: String) -> TrustFingerprint {
        serverSets.trust[listener] ?? fingerprint(entryIndex: nil, isFixed: true)
    }
}
