import EventLoop
import HTTPCore
import PinfoldConfiguration
import ProxyProtocols

/// Checks at an interval whether one server of a set works: a request over a connection of its own,
/// verified as for any other, must be answered in time with one of the statuses. Runs on one worker
/// of the process.
///
/// The connection is made for the check and closed after it, so that a server that accepts no more
/// connections, or shows another certificate, is found. It takes no place of `maxConnections`.
package final class ServerCheck: EventHandler, OwnQuestion {
    private let environment: Environment
    private let set: ServerSet
    private let server: ServerState
    private let origin: Origin
    private let path: String
    /// When the first check begins, in milliseconds from the start.
    private let delay: Int64
    private var upstream: (any UpstreamStream)?
    private var isUnderWay = false
    /// When the next check begins, in the loop's milliseconds.
    private var next: Int64 = 0
    package var response = ResponseHead()

    private init(
        _ environment: Environment, _ set: ServerSet, _ server: ServerState, _ origin: Origin,
        path: String, delay: Int64
    ) {
        self.environment = environment
        self.set = set
        self.server = server
        self.origin = origin
        self.path = path
        self.delay = delay
    }

    /// The checks that a policy requires, one for each server. Those of a set are spread over its
    /// interval.
    package static func all(of policy: PolicySnapshot, in environment: Environment) -> [ServerCheck]
    {
        policy.allServerSets.flatMap { set -> [ServerCheck] in
            guard let path = set.configuration.health.path else { return [] }
            let interval = set.configuration.health.intervalMilliseconds
            let count = Int64(set.servers.count)
            return set.servers.enumerated().map { index, server in
                ServerCheck(
                    environment, set, server,
                    origin(of: set.configuration.servers[index].origin, in: set, policy),
                    path: path, delay: Int64(index) * interval / count)
            }
        }
    }

    private static func origin(
        of server: UpstreamOrigin, in set: ServerSet, _ policy: PolicySnapshot
    ) -> Origin {
        let isSecure = server.scheme == .https
        let target = policy.target(
            host: server.host, port: server.port, by: .fixed(isSecure: isSecure))
        let header = ProxyHeader.Version(set.configuration.proxyProtocol)
        let key = Origin.Key(
            host: server.host, port: server.port, isSecure: isSecure,
            requestedPort: server.port, forwarding: ForwardingConfiguration(),
            takesOnlyHTTP1: header != nil, set: set.listener, isForChecks: true,
            proxyHeader: header, unixPath: server.unixPath)
        return Origin(
            key: key, policy: policy, entryIndex: target.entryIndex, refusal: target.refusal,
            match: target.match)
    }

    package func start() {
        do {
            try environment.loop.add(self)
        } catch {
            return
        }
        environment.loop.setDeadline(self, after: delay)
    }

    package func stop() {
        release()
        environment.loop.remove(self)
    }

    package override func deadlineReached() {
        guard !isUnderWay else {
            // It waits for the gateway's own limit, which says nothing about the server.
            if upstream == nil, origin.isStarved { return finish() }
            let limit = set.configuration.health.timeoutMilliseconds
            return ended(because: "the check was not answered within \(limit) ms")
        }
        let now = environment.loop.now
        next = now + set.configuration.health.intervalMilliseconds
        isUnderWay = true
        if let refusal = origin.refusal { return ended(because: refusal.explanation) }
        environment.loop.setDeadline(self, after: set.configuration.health.timeoutMilliseconds)
        environment.upstreams.acquire(origin, for: self, fresh: true)
    }

    /// The check has ended.
    /// - Parameter cause: why it failed; `nil` if it passed.
    private func ended(because cause: String?) {
        let change = server.checked(
            cause, at: environment.loop.monotonicNow, by: set.configuration.health)
        environment.log(change, of: server, in: set, because: cause)
        finish()
    }

    private func finish() {
        release()
        environment.loop.setDeadline(self, after: max(0, next - environment.loop.now))
    }

    /// Gives up the connection.
    private func release() {
        isUnderWay = false
        environment.upstreams.abandon(origin, self)
        upstream?.cancel()
        upstream = nil
        closeConnections()
    }

    /// A response without content ends after its head was handled.
    private func closeConnections() {
        let (environment, origin) = (environment, origin)
        environment.loop.afterTurn {
            guard let pool = environment.pool else { return }
            var used = [origin]
            if origin.ways != nil {
                used += environment.origins.all.filter { $0.key.direct == origin.key }
            }
            for one in used + used.compactMap(\.http2.sibling) { pool.closeIdle(one, .outdated) }
        }
    }

    package func upstreamReady(_ upstream: any UpstreamStream) {
        self.upstream = upstream
        guard ask(path, of: origin, for: "check", on: upstream) else {
            return ended(because: "the check's head is too long for the server")
        }
    }

    package func upstreamFailed(_ failure: StreamError) {
        upstream = nil
        guard isUnderWay else { return closeConnections() }
        // What the gateway itself caused says nothing about the server.
        guard !failure.error.isOwn else { return finish() }
        ended(because: failure.error.explanation)
    }

    package func upstreamHead(_ head: UnsafeRawBufferPointer) {
        guard !response.isInterim, isUnderWay else { return }
        let status = response.status
        let isExpected = set.configuration.health.statusCodes.contains { $0.contains(status) }
        // Without content, its end follows.
        if response.framing == .none { upstream = nil }
        ended(because: isExpected ? nil : "the check was answered with \(status)")
    }

    package func upstreamEnded(trailers: TrailerSection?) {
        upstream = nil
        closeConnections()
    }
}
