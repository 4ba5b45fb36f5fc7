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
    /// How many of the entries are the local file's; those after them are a policy's.
    package let localCount: Int
    /// How many of the entries, from the first, list their hosts.
    private let listing: Int
    /// As `pinned`, of the local file's entries alone; `nil` if there are no others.
    private let pinnedLocally: HostIndex?

    /// Builds the indices.
    /// - Parameters:
    ///   - everyOther: the index of the entry for the hosts that no pattern matches; `nil` for the
    ///     one with the pattern for everything.
    ///   - localCount: how many entries are the local file's; `nil` for all.
    ///   - policyLists: whether those after them list their hosts as well.
    package init(
        entries: [HostEntry], everyOther: Int? = nil, localCount: Int? = nil,
        policyLists: Bool = true
    ) {
        precondition(everyOther.map(entries.indices.contains) ?? true)
        precondition((0...entries.count).contains(localCount ?? 0))
        self.entries = entries
        self.localCount = localCount ?? entries.count
        listing = policyLists ? entries.count : self.localCount
        self.everyOther =
            everyOther ?? entries.firstIndex { $0.match.contains(.everything) }
        index = HostIndex(patterns: entries.map(\.match))
        pinned = Self.pinned(entries[...])
        pinnedLocally =
            self.localCount < entries.count ? Self.pinned(entries[..<self.localCount]) : nil
    }

    private static func pinned(_ entries: ArraySlice<HostEntry>) -> HostIndex {
        HostIndex(
            patterns: entries.filter { !$0.pinsets.isEmpty }.map { $0.match.map(\.atEveryPort) })
    }

    /// The same table of other contents of the same entries.
    package func replacing(_ entries: [HostEntry]) -> HostTable {
        precondition(entries.count == self.entries.count)
        return HostTable(
            entries: entries, everyOther: everyOther, localCount: localCount,
            policyLists: listing == entries.count)
    }

    /// Whether an entry lists a host, at this port: one that only `**` matches is not listed, and
    /// where the local file says which hosts are, a policy's entries list none.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func lists(host: Span<UInt8>, port: UInt16) -> Bool {
        // The lowest entry: where that does not count, none of those that do matches.
        (index.entry(host: host, port: port) ?? listing) < listing
    }

    /// Whether an entry with pinsets matches a host at some port, or an IPv4 address that the host
    /// embeds, to which the same requests would lead.
    func isPinned(_ host: Span<UInt8>) -> Bool {
        if let everyOther, !entries[everyOther].pinsets.isEmpty { return true }
        return Self.matches(pinned, host)
    }

    /// Whether a host that is pinned in the local file, at whatever port, would be reached as an
    /// entry of the policy says, whose pinsets are no substitute.
    func escapesLocalPins(_ host: Span<UInt8>, entry index: Int?) -> Bool {
        guard let pinnedLocally, let index, index >= localCount else { return false }
        return Self.matches(pinnedLocally, host)
    }

    private static func matches(_ pinned: HostIndex, _ host: Span<UInt8>) -> Bool {
        if pinned.entry(host: host, port: 0) != nil { return true }
        return IPAddress(literal: host)?.embedsV4 { address in
            pinned.entry(host: address.description.utf8.span, port: 0) != nil
        } ?? false
    }
}
