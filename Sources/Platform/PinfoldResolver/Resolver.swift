import CLinux
import HTTPCore
import Locking
import Threads

/// Names to addresses, asynchronously: literals, `localhost`, the hosts file, then DNS with
/// answers kept for their TTL. All waiting is done by a thread of its own named "resolver".
package final class Resolver: Sendable {
    /// Called exactly once, with no lock held: on the resolver's thread, or before `resolve`
    /// returns when the answer is there already. It must not block.
    package typealias Completion = @Sendable (ResolveResult) -> Void

    /// Why a resolver did not start.
    package enum StartError: Error, Sendable, Hashable {
        /// A system call failed with this errno.
        case system(errno: Int32)
        /// c-ares failed with this status.
        case dns(status: Int32)
    }

    private let core: ResolverCore
    private let thread: Locked<Thread?>

    /// Starts the resolver's thread.
    package init(options: ResolverOptions = ResolverOptions()) throws(StartError) {
        core = try ResolverCore(options: options)
        thread = Locked(try Resolver.start(ResolverThread(core: core)))
    }

    /// A resolver without a thread: whoever made the core does its work.
    init(core: ResolverCore) {
        self.core = core
        thread = Locked(nil)
    }

    deinit {
        close()
    }

    /// The answer for a name if it needs no waiting, else nil: then call
    /// ``resolve(name:later:completion:)``. One short critical section.
    /// - Parameters:
    ///   - name: A host as a URI has it: a name in any case, with or without a trailing dot, an
    ///     IPv4 address, or an IPv6 address with or without brackets.
    ///   - nowMilliseconds: The time on the options' clock.
    package func cached(name: String, nowMilliseconds: Int64) -> ResolveResult? {
        if let answer = Resolver.literal(name) { return .resolved(answer) }
        guard let name = DomainName(name) else {
            core.refuseName()
            return .failed(.badName)
        }
        if name.isLocalhost { return .resolved(Resolver.localhost) }
        return core.cached(name, now: nowMilliseconds)
    }

    /// Looks a name up, A and AAAA at once. Simultaneous lookups of one name share their queries.
    /// - Parameters:
    ///   - name: As for ``cached(name:nowMilliseconds:)``.
    ///   - client: For whom; one client gets no more than its share of the lookups under way. nil:
    ///     for the gateway itself.
    ///   - later: After an answer that was not complete, called once on the resolver's thread with
    ///     the complete one, which may have no further addresses; not if the resolver is closed.
    ///   - completion: Gets the answer.
    package func resolve(
        name: String, client: IPNetwork? = nil, later: (@Sendable (ResolvedAnswer) -> Void)? = nil,
        completion: @escaping Completion
    ) {
        if let result = cached(name: name, nowMilliseconds: core.options.clock()) {
            completion(result)
            return
        }
        // Only names that may be looked up are not answered by now.
        guard let name = DomainName(name) else { return completion(.failed(.badName)) }
        let waiter = ResolverCore.Waiter(completion: completion, later: later)
        if let result = core.enter(name, waiter, client: client) { completion(result) }
    }

    /// What has been done so far.
    package func statistics() -> ResolverStatistics {
        core.statistics()
    }

    /// Ends the thread and waits for its end (not when called on it); everything that waits gets
    /// `cancelled`, and so does everything that is not in memory after. May be called again.
    package func close() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        core.close()
        thread.join()
    }

    private static func literal(_ host: String) -> ResolvedAnswer? {
        guard let address = IPAddress(literal: host.utf8.span) else { return nil }
        return ResolvedAnswer(
            addresses: [address], source: .literal, isComplete: true,
            expiresAtMilliseconds: .max)
    }

    private static let localhost = ResolvedAnswer(
        addresses: [.loopbackV6, .loopbackV4], source: .localhost, isComplete: true,
        expiresAtMilliseconds: .max)

    private static func start(_ body: ResolverThread) throws(StartError) -> Thread {
        // Handed over to the thread, and nobody else's after that.
        nonisolated(unsafe) let body = body
        do {
            return try Thread(name: "resolver") { body.run() }
        } catch {
            body.shutDown()
            throw .system(errno: error.code)
        }
    }
}
