import PinfoldConfiguration
import PinfoldEngine

// What is known about servers, from one configuration to the next.
extension GatewayProcess {
    /// Forgets what is known about servers of other entries of `hosts`, and their other names.
    func keepReachability(of configuration: ConfigurationSnapshot) {
        let labels = Set(configuration.hosts.entries.map(\.label))
        reachability = reachability.filter { labels.contains($0.key) }
        // Entries with the same label share what is known about their servers.
        var exactNames: [String: Set<String>] = [:]
        for entry in configuration.hosts.entries {
            exactNames[entry.label, default: []].formUnion(entry.exactNames)
        }
        for (label, names) in exactNames { reachability[label]?.keepOnly(names) }
    }
}
