import HTTPCore

/// Answers by name, each until its time. At the limit each client has a share: the least recently
/// used answer of whoever's lookups have brought in the most is dropped.
struct AnswerCache: Sendable {
    /// One remembered answer.
    struct Entry: Sendable {
        var result: ResolveResult
        var expiresAtMilliseconds: Int64
    }

    private var entries: ShareTable<String, Entry>

    /// An empty cache of at most so many entries; 0 keeps none.
    init(maximumEntries: Int) {
        entries = ShareTable(limit: maximumEntries)
    }

    /// How many entries there are, expired ones not yet found out included.
    var count: Int { entries.count }

    /// A name's answer while it holds; an expired one is dropped.
    mutating func find(_ name: DomainName, nowMilliseconds: Int64) -> ResolveResult? {
        guard let entry = entries.use(name.text) else { return nil }
        guard entry.expiresAtMilliseconds > nowMilliseconds else {
            entries.remove(name.text)
            return nil
        }
        return entry.result
    }

    /// Remembers an answer in place of an earlier one, unless it has expired already.
    ///
    /// - Parameter client: whose lookup it was; nil: no client's.
    mutating func insert(
        _ name: DomainName, _ entry: Entry, client: IPNetwork? = nil, nowMilliseconds: Int64
    ) {
        if entry.expiresAtMilliseconds > nowMilliseconds {
            entries.set(entry, for: name.text, of: client)
        } else {
            entries.remove(name.text)
        }
    }

    /// Forgets everything.
    mutating func removeAll() { self = AnswerCache(maximumEntries: entries.limit) }
}
