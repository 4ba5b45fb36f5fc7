import Addressing

/// Names to addresses, asynchronously: literals, `localhost`, the hosts file, then DNS with answers
/// kept for their TTL. DNS runs on a thread of its own named "resolver".
package final class Resolver: Sendable {
    /// Called exactly once: on the resolver's thread, or before `resolve` returns when the answer
    /// is there already. It must not block.
    package typealias Completion = @Sendable (ResolveResult) -> Void

    /// Why a resolver did not start.
    package enum StartError: Error, Sendable, Hashable {
        /// A system call failed with this errno.
        case system(errno: Int32)
        /// c-ares failed with this status.
        case dns(status: Int32)
    }

    /// Starts the resolver's thread.
    package init(options: ResolverOptions = ResolverOptions()) throws(StartError) {
    }

    /// The answer for a name if it needs no waiting, else nil; call ``resolve(name:later:completion:)``
    /// then. One short critical section.
    package func cached(name: String, nowMilliseconds: Int64) -> ResolveResult? { nil }

    /// Looks a name up, A and AAAA at once. Simultaneous lookups of one name share their queries.
    /// - Parameters:
    ///   - later: Called at most once, after `completion`, on the resolver's thread, with the
    ///     whole answer, if the answer given was not complete and more addresses came.
    package func resolve(
        name: String, later: (@Sendable (ResolvedAnswer) -> Void)? = nil,
        completion: @escaping Completion
    ) { completion(.failed(.cancelled)) }

    /// What has been done so far.
    package func statistics() -> ResolverStatistics { ResolverStatistics() }

    /// Ends the thread; everything waiting gets `cancelled`, and so does everything after.
    package func close() {}
}
