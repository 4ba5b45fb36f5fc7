import Configuration
import Pinning

extension ConfigurationSnapshot {
    /// The whole configuration as YAML, with every default filled in and every path absolute: a
    /// valid configuration that loads to an equal snapshot. Secrets (the administrative token) are
    /// named by their file, never shown.
    package func effectiveYAML() -> String {
        var yaml = YAMLText()
        switch workers {
        case .auto(let cores): yaml.line(0, "workers: auto  # \(cores) online")
        case .fixed(let count): yaml.line(0, "workers: \(count)")
        }
        yaml.line(0, "listeners:")
        let listenerKeys = ListenerConfiguration.table(hasExplicitClients: true)
        for listener in listeners { yaml.element(1, listenerKeys, listener) }
        yaml.section("admin", AdminConfiguration.table, admin)
        yaml.section("access", AccessConfiguration.table, access)
        yaml.line(0, hosts.entries.isEmpty ? "hosts: []" : "hosts:")
        let hostKeys = HostEntry.table(pinsets: pinsets.map(\.pinset.name))
        for entry in hosts.entries { yaml.element(1, hostKeys, entry) }
        yaml.line(0, pinsets.isEmpty ? "pinsets: {}" : "pinsets:")
        for entry in pinsets {
            yaml.line(1, "\(YAMLText.quoted(entry.pinset.name)):")
            yaml.lines(2, PinsetEntry.table, entry)
        }
        yaml.line(0, "tls: \(UpstreamTLS.table.flow(tls) ?? "{}")")
        yaml.section("cache", CacheConfiguration.table, cache)
        yaml.section("resolver", ResolverConfiguration.table, resolver)
        yaml.section("activity", ActivityConfiguration.table, activity)
        yaml.section("limits", LimitsConfiguration.table, limits)
        yaml.section("timeouts", TimeoutsConfiguration.table, timeouts)
        yaml.section("log", LogConfiguration.table, log)
        return yaml.text
    }

    /// The keys of a section or of one of its elements, and their defaults, for the tests that
    /// compare the documentation with them.
    static var described: [(section: String, keys: [DescribedKey])] {
        let listener = ListenerConfiguration(
            name: "", address: SnapshotReader.defaultListener.address, kind: .forward)
        return [
            (
                "listeners",
                ListenerConfiguration.table(hasExplicitClients: true).described(listener)
            ),
            ("admin", AdminConfiguration.table.described(AdminConfiguration())),
            ("access", AccessConfiguration.table.described(AccessConfiguration())),
            ("hosts", HostEntry.table(pinsets: []).described(HostEntry())),
            ("pinsets", PinsetEntry.table.described(PinsetEntry(pinset: Pinset(name: "")))),
            ("tls", UpstreamTLS.table.described(UpstreamTLS())),
            ("cache", CacheConfiguration.table.described(CacheConfiguration())),
            ("resolver", ResolverConfiguration.table.described(ResolverConfiguration())),
            ("activity", ActivityConfiguration.table.described(ActivityConfiguration())),
            ("limits", LimitsConfiguration.table.described(LimitsConfiguration())),
            ("timeouts", TimeoutsConfiguration.table.described(TimeoutsConfiguration())),
            ("log", LogConfiguration.table.described(LogConfiguration())),
        ]
    }
}
