import Trust

/// The entries of `hosts`, with an index of their patterns.
package struct HostTable: Sendable, Equatable {
    /// The entries in the order written.
    package let entries: [HostEntry]
    /// The index of all patterns.
    package let index: HostIndex
    /// The entry for the hosts that no pattern matches; `nil` if there is none, as in every
    /// configuration file. It is for programs that have one policy for all hosts: its pinsets pin
    /// every host.
    package let everyOther: Int?
    /// The patterns of the entries with pinsets, without their ports.
    private let pinned: HostIndex

    /// Builds the indices.
    /// - Parameter everyOther: the index of the entry for the hosts that no pattern matches.
    package init(entries: [HostEntry], everyOther: Int? = nil) {
        precondition(everyOther.map(entries.indices.contains) ?? true)
        self.entries = entries
        self.everyOther = everyOther
        index = HostIndex(patterns: entries.map(\.match))
        let pinnedEntries = entries.filter { !$0.pinsets.isEmpty }
        pinned = HostIndex(patterns: pinnedEntries.map { $0.match.map(\.atEveryPort) })
    }

    /// Whether an entry with pinsets matches a host at some port.
    func isPinned(_ host: Span<UInt8>) -> Bool {
        if let everyOther, !entries[everyOther].pinsets.isEmpty { return true }
        return pinned.entry(host: host, port: 0) != nil
    }
}
