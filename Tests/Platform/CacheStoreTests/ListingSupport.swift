import CachePolicy
import CacheTestSupport

@testable import CacheStore

extension CacheStore {
    /// Asks something of the store, and waits for its answer.
    func answer<Value: Sendable>(
        _ ask: (@escaping @Sendable (Result<Value, CacheListingError>) -> Void) -> Void
    ) throws(CacheListingError) -> Value {
        let handover = Handover<Result<Value, CacheListingError>>()
        ask { handover.give($0) }
        guard let result = handover.take() else { throw .readFailed(detail: "no answer") }
        return try result.get()
    }

    func page(
        after cursor: EntryCursor? = nil, limit: Int = 7, inMemoryOnly: Bool = false
    ) throws(CacheListingError) -> StoredEntryPage {
        try answer {
            entries(after: cursor, limit: limit, inMemoryOnly: inMemoryOnly, completion: $0)
        }
    }

    /// Calls `body` with each page of a list.
    func visitPages(
        limit: Int = 7, inMemoryOnly: Bool = false, _ body: (StoredEntryPage) -> Void
    ) throws(CacheListingError) {
        var cursor: EntryCursor?
        repeat {
            let page = try page(after: cursor, limit: limit, inMemoryOnly: inMemoryOnly)
            body(page)
            cursor = page.next
        } while cursor != nil
    }

    func listed(_ url: String) throws(CacheListingError) -> [StoredEntryInfo] {
        try answer { entries(of: [CacheKey(bytes: Array(url.utf8))], completion: $0) }
    }

    func looked(
        at url: String, inMemoryOnly: Bool = false
    ) throws(CacheListingError) -> [SeenResponse] {
        try answer {
            look(
                at: CacheKey(bytes: Array(url.utf8)), inMemoryOnly: inMemoryOnly, completion: $0)
        }
    }

    func counted(_ scope: Purge.Scope) throws(CacheListingError) -> PurgeProgress {
        try answer { count([Purge(scope)], completion: $0) }
    }
}
