import CLinux
import HTTPCore
import Locking
import Threads

/// Resolves names to addresses asynchronously: literals, `localhost`, the hosts file, then DNS,
/// with answers cached for their TTL. All waiting is done by a dedicated thread named "resolver".
package final class Resolver: Sendable {
    /// Called exactly once, with no lock held: on the resolver's thread, or before `resolve`
    /// returns if the answer is already known. It must not block.
    package typealias Completion = @Sendable (ResolveResult) -> Void

    /// Why a resolver could not be started.
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

    /// A resolver without a thread: the creator of the core does its work.
    init(core: ResolverCore) {
        self.core = core
        thread = Locked(nil)
    }

    deinit {
        close()
    }

    /// The answer for a name if it needs no waiting, otherwise `nil`: then call
    /// ``resolve(name:later:completion:)``. Takes one short critical section.
    /// - Parameters:
    ///   - name: A host as in a URI: a name in any case, with or without a trailing dot, an IPv4
    ///     address, or an IPv6 address with or without brackets.
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

    /// Looks up a name, A and AAAA at once. Simultaneous lookups of one name share their queries.
    /// - Parameters:
    ///   - name: As for ``cached(name:nowMilliseconds:)``.
    ///   - client: The client that the lookup is for, which gets no more than its share of
    ///     concurrent lookups; `nil` for the gateway itself.
    ///   - later: After an incomplete answer, called once on the resolver's thread with the
    ///     complete one, which may have no further addresses; not called if the resolver is closed.
    ///   - completion: Receives the answer.
    package func resolve(
        name: String, client: IPNetwork? = nil, later: (@Sendable (ResolvedAnswer) -> Void)? = nil,
        completion: @escaping Completion
    ) {
        if let result = cached(name: name, nowMilliseconds: core.options.clock()) {
            completion(result)
            return
        }
        // Everything except names that may be looked up has been answered by now.
        guard let name = DomainName(name) else { return completion(.failed(.badName)) }
        let waiter = ResolverCore.Waiter(completion: completion, later: later)
        if let result = core.enter(name, waiter, client: client) { completion(result) }
    }

    /// The counts so far.
    package func statistics() -> ResolverStatistics {
        core.statistics()
    }

    /// Ends the thread and waits for its end (unless called on it). Everything that waits fails
    /// with `cancelled`, as does every later lookup that is not in memory. May be called again.
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
        // Handed over to the thread, and used by nothing else after that.
        nonisolated(unsafe) let body = body
        do {
            return try Thread(name: "resolver") { body.run() }
        } catch {
            body.shutDown()
            throw .system(errno: error.code)
        }
    }
}
