/// What a reload removes. It is reported to the operator, because an editing mistake looks the same
/// as an intentional removal.
package struct ConfigurationRemoval: Sendable, Equatable {
    /// The key under which it was configured.
    package let section: String
    /// The names, or a host entry's patterns, in the order written.
    package let names: [String]

    /// The listeners, pinsets and host entries in `old` that are not in `new`.
    package static func all(
        from old: ConfigurationSnapshot, to new: ConfigurationSnapshot
    ) -> [ConfigurationRemoval] {
        [
            removal("listeners", old.listeners.map(\.name), new.listeners.map(\.name)),
            removal("pinsets", old.pinsets.map(\.pinset.name), new.pinsets.map(\.pinset.name)),
            removal(
                "hosts", old.hosts.entries.map(\.patterns), new.hosts.entries.map(\.patterns)),
        ].compactMap { $0 }
    }

    private static func removal(
        _ section: String, _ old: [String], _ new: [String]
    ) -> ConfigurationRemoval? {
        let gone = old.filter { !new.contains($0) }
        return gone.isEmpty ? nil : ConfigurationRemoval(section: section, names: gone)
    }
}

extension HostEntry {
    /// The entry's patterns, as one text.
    fileprivate var patterns: String { match.map(\.description).joined(separator: " ") }
}
