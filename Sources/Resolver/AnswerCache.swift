/// Answers by name, each until its time, the least recently used one dropped at the limit.
struct AnswerCache: Sendable {
    /// One remembered answer.
    struct Entry: Sendable {
        var result: ResolveResult
        var expiresAtMilliseconds: Int64
    }

    private struct Slot {
        var name: String
        var entry: Entry
        var newer: Int
        var older: Int
    }

    private static let none = -1

    private let maximumEntries: Int
    private var slots: [Slot] = []
    private var free: [Int] = []
    private var index: [String: Int] = [:]
    private var newest = none
    private var oldest = none

    /// An empty cache of at most so many entries; 0 keeps none.
    init(maximumEntries: Int) {
        self.maximumEntries = maximumEntries
    }

    /// How many entries there are, expired ones not yet found out included.
    var count: Int { index.count }

    /// A name's answer while it holds; an expired one is dropped.
    mutating func find(_ name: DomainName, nowMilliseconds: Int64) -> ResolveResult? {
        guard let slot = index[name.text] else { return nil }
        guard slots[slot].entry.expiresAtMilliseconds > nowMilliseconds else {
            remove(slot)
            return nil
        }
        if slot != newest {
            unlink(slot)
            linkNewest(slot)
        }
        return slots[slot].entry.result
    }

    /// Remembers an answer in place of an earlier one, unless it has expired already.
    mutating func insert(_ name: DomainName, _ entry: Entry, nowMilliseconds: Int64) {
        if let slot = index[name.text] { remove(slot) }
        guard entry.expiresAtMilliseconds > nowMilliseconds, maximumEntries > 0 else { return }
        if index.count >= maximumEntries { remove(oldest) }
        let slot = Slot(
            name: name.text, entry: entry, newer: AnswerCache.none, older: AnswerCache.none)
        let position: Int
        if let reused = free.popLast() {
            slots[reused] = slot
            position = reused
        } else {
            slots.append(slot)
            position = slots.count - 1
        }
        index[name.text] = position
        linkNewest(position)
    }

    /// Forgets everything.
    mutating func removeAll() {
        self = AnswerCache(maximumEntries: maximumEntries)
    }

    private mutating func remove(_ slot: Int) {
        unlink(slot)
        index[slots[slot].name] = nil
        slots[slot].name = ""
        slots[slot].entry.result = .failed(.cancelled)
        free.append(slot)
    }

    private mutating func unlink(_ slot: Int) {
        let (newer, older) = (slots[slot].newer, slots[slot].older)
        if newer == AnswerCache.none { newest = older } else { slots[newer].older = older }
        if older == AnswerCache.none { oldest = newer } else { slots[older].newer = newer }
    }

    private mutating func linkNewest(_ slot: Int) {
        slots[slot].newer = AnswerCache.none
        slots[slot].older = newest
        if newest != AnswerCache.none { slots[newest].newer = slot }
        newest = slot
        if oldest == AnswerCache.none { oldest = slot }
    }
}
