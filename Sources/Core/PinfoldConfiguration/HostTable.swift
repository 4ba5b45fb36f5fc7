import HTTPCore
import Trust

/// The entries of `hosts`, with an index of their patterns.
package struct HostTable: Sendable, Equatable {
    /// The entries in the order written.
    package let entries: [HostEntry]
    /// The index of all patterns.
    package let index: HostIndex
    /// The entry for the hosts that no other pattern matches (`**`); `nil` if there is none. Its
    /// pinsets pin every host.
    package let everyOther: Int?
    /// The patterns of the entries with pinsets, without their ports.
    private let pinned: HostIndex

    /// Builds the indices.
    /// - Parameter everyOther: the index of the entry for the hosts that no pattern matches; `nil`
    ///   for the one with the pattern for everything.
    package init(entries: [HostEntry], everyOther: Int? = nil) {
        precondition(everyOther.map(entries.indices.contains) ?? true)
        self.entries = entries
        self.everyOther =
            everyOther ?? entries.firstIndex { $0.match.contains(.everything) }
        index = HostIndex(patterns: entries.map(\.match))
        let pinnedEntries = entries.filter { !$0.pinsets.isEmpty }
        pinned = HostIndex(patterns: pinnedEntries.map { $0.match.map(\.atEveryPort) })
    }

    /// Whether an entry names a host, at this port: one that only `**` matches is not named.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func lists(host: Span<UInt8>, port: UInt16) -> Bool {
        index.entry(host: host, port: port) != nil
    }

    /// Whether an entry with pinsets matches a host at some port, or an IPv4 address that the host
    /// embeds, to which the same requests would lead.
    func isPinned(_ host: Span<UInt8>) -> Bool {
        if let everyOther, !entries[everyOther].pinsets.isEmpty { return true }
        if pinned.entry(host: host, port: 0) != nil { return true }
        return IPAddress(literal: host)?.embedsV4 { address in
            pinned.entry(host: address.description.utf8.span, port: 0) != nil
        } ?? false
    }
}
