import HTTPCore

/// Answers by name, each until it expires. At the limit each client has a share: the least recently
/// used answer of the client whose lookups have brought in the most is dropped.
struct AnswerCache: Sendable {
    /// One cached answer.
    struct Entry: Sendable {
        var result: ResolveResult
        var expiresAtMilliseconds: Int64
    }

    private var entries: ShareTable<String, Entry>

    /// An empty cache with a maximum number of entries; 0 keeps none.
    init(maximumEntries: Int) {
        entries = ShareTable(limit: maximumEntries)
    }

    /// The number of entries, including expired ones not yet noticed.
    var count: Int { entries.count }

    /// A name's answer while it is valid; an expired one is dropped.
    mutating func find(_ name: DomainName, nowMilliseconds: Int64) -> ResolveResult? {
        guard let entry = entries.use(name.text) else { return nil }
        guard entry.expiresAtMilliseconds > nowMilliseconds else {
            entries.remove(name.text)
            return nil
        }
        return entry.result
    }

    /// Caches an answer, replacing any earlier one, unless it has already expired.
    ///
    /// - Parameter client: the client whose lookup it was; `nil` for the gateway itself.
    mutating func insert(
        _ name: DomainName, _ entry: Entry, client: IPNetwork? = nil, nowMilliseconds: Int64
    ) {
        if entry.expiresAtMilliseconds > nowMilliseconds {
            entries.set(entry, for: name.text, of: client)
        } else {
            entries.remove(name.text)
        }
    }

    /// Removes all entries.
    mutating func removeAll() { self = AnswerCache(maximumEntries: entries.limit) }
}
