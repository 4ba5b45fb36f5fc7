import CLinux
import CachePolicy
import Locking
import Threads

// Looking into the cache: on a thread of its own, in pieces, so that nothing else waits for it.
// Completions are called once, on a thread of the store's, or at once if too much is being asked;
// what waits when the store is closed is not answered.
extension CacheStore {
    /// Entries of one page at most.
    public static let largestPage = 1000

    /// Lists stored responses, in an order that does not change.
    /// - Parameters:
    ///   - cursor: where the page before ended; `nil` for the first.
    ///   - limit: entries of the page at most. It may have fewer, or none, although others follow.
    ///   - inMemoryOnly: whether the disk does not matter: lists what is in memory, whether or not
    ///     it is on disk as well.
    ///   - policy: for the freshness of what is stored.
    ///   - completion: called with the page; with an error if it would lack something.
    public func entries(
        after cursor: EntryCursor?, limit: Int, inMemoryOnly: Bool = false,
        policy: PolicyOptions = PolicyOptions(),
        completion: @escaping @Sendable (Result<StoredEntryPage, CacheListingError>) -> Void
    ) {
        ask(completion) { lister throws(CacheListingError) in
            try inMemoryOnly
                ? lister.pageOfMemory(after: cursor, limit: limit)
                : lister.page(after: cursor, limit: limit, policy)
        }
    }

    /// All stored variants of some keys, with their heads. The same as `entries(after:)`.
    public func entries(
        of keys: [CacheKey], policy: PolicyOptions = PolicyOptions(),
        completion: @escaping @Sendable (Result<[StoredEntryInfo], CacheListingError>) -> Void
    ) {
        ask(completion) { lister throws(CacheListingError) in
            var found: [StoredEntryInfo] = []
            for key in keys { found += try lister.entries(of: key, policy) }
            return found
        }
    }

    /// Counts what purges would be about now, in memory and on disk, and removes nothing.
    public func count(
        _ purges: [Purge],
        completion: @escaping @Sendable (Result<PurgeProgress, CacheListingError>) -> Void
    ) {
        ask(completion) { lister throws(CacheListingError) in try lister.count(purges) }
    }

    private func ask<Answer: Sendable>(
        _ completion: @escaping @Sendable (Result<Answer, CacheListingError>) -> Void,
        _ question: @escaping @Sendable (EntryLister) throws(CacheListingError) -> Answer
    ) {
        let isAccepted = clerk.run { [lister] in
            completion(Result { () throws(CacheListingError) in try question(lister) })
        }
        guard !isAccepted else { return }
        completion(.failure(disk.index.phase == .off(.closed) ? .closed : .busy))
    }
}

/// A part of what is stored.
public struct StoredEntryPage: Sendable, Equatable {
    public var entries: [StoredEntryInfo]
    /// Where the next page begins; `nil` after the last.
    public var next: EntryCursor?
}

/// The thread on which the cache is looked into. It is started when somebody asks. What waits for
/// it when the store is closed is not answered.
final class CacheClerk: Sendable {
    private let pool = ThreadPool(name: "cache-clerk", threads: 1, niceness: 10, limit: limit)
    /// The thread at work.
    private let current = Locked<pthread_t?>(nil)
    /// Questions that wait at most.
    private static let limit = 64

    func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        pool.run { [self] in
            current.withLock { $0 = pthread_self() }
            work()
            current.withLock { $0 = nil }
        }
    }

    func close() {
        guard current.withLock({ $0 == pthread_self() }) else { return pool.close() }
        // The last reference to the store was dropped in a completion: it cannot wait for itself.
        let thread = try? Thread(name: "cache-clerk") { [pool] in pool.close() }
        thread?.detach()
    }
}
