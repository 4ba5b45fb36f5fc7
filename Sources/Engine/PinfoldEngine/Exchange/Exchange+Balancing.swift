import EventLoop
import HTTPCore
import Logging
import PinfoldConfiguration

// Before phase 4 on a reverse route with several servers: which of them the request goes to, and
// whether it goes to another one if that fails.
extension Exchange {
    /// The origin whose connections carry the request.
    @inline(__always)
    var connectionOrigin: Origin? { balanced?.origin ?? origin }

    private var now: Int64 { environment.loop.monotonicNow }

    // MARK: Routing

    func routeBalanced(_ route: BalancedRoute) {
        guard request.form != .authority else {
            return reply(with: .access(.connectOnReverseRoute), closing: true)
        }
        request.endForwardingAliases(in: requestHead.octets)
        guard let origin = origins.origin(of: route, policy: environment.policy),
            let balancer = origin.balancer
        else { return reply(with: .gateway(.superseded), closing: true) }
        if let name = balancer.set.configuration.stickyCookie, request.fields.contains(.cookie),
            let head = intake.mutableHead(length: request.length)
        {
            // Neither the servers nor the cache have to do with it.
            let value = request.takeCookies(named: Array(name.utf8), in: head)
            if let value { balanced = Balanced(balancer, cookie: value) }
        }
        proceed(to: origin)
    }

    // MARK: Choosing

    /// Chooses the server, unless one is chosen. Returns `nil` if the request has been answered.
    func chooseServer(of balancer: LoadBalancer) -> Origin? {
        guard origin?.ways !== WayList.offline else {
            fail(.gateway(.offline))
            return nil
        }
        if balanced?.balancer !== balancer {
            // The first time, or after a reload.
            let isFirst = balanced?.state == nil
            let cookie = balanced?.cookie
            leaveServer()
            balanced = Balanced(balancer, cookie: cookie)
            if isFirst { balancer.set.deposit() }
        } else if let origin = balanced?.origin, let server = balanced?.server {
            if origin.key.ruleWays == forwarding.origin?.key.ruleWays { return origin }
            // The rules have changed.
            balanced?.go(to: server, by: ruled(balancer.servers[server]))
            return balanced?.origin
        } else if balanced?.retries == 0 {
            balancer.set.deposit()
        }
        let server = balancer.choose(
            besides: balanced?.tried ?? ServerMask(), bound: balanced?.bound, at: now,
            hashing: { hashedValue(of: balancer) })
        guard let server else {
            fail(.server(.noServer))
            return nil
        }
        balanced?.go(to: server, by: ruled(balancer.servers[server]))
        guard let origin = balanced?.origin, let state = balanced?.state else { return nil }
        state.requestBegins()
        if balanced?.retries ?? 0 > 0 { state.countRetry() }
        debug("server", ["url": "\(state.url)", "listener": "\(balancer.set.listener)"])
        return origin
    }

    /// A server's origin by the ways that a rule names; `nil` if none does.
    private func ruled(_ server: Origin) -> Origin? {
        (forwarding.origin?.key.ruleWays).map { origins.origin(of: server, by: $0) }
    }

    /// The hash of what decides the server; `nil` if the request does not have it.
    private func hashedValue(of balancer: LoadBalancer) -> UInt64? {
        guard case .hash(let value) = balancer.set.configuration.balance else { return nil }
        switch value {
        case .client:
            return (peer ?? intake.onBehalfOf).map { FNV1a.hash("\($0.address)") }
        case .path:
            return withRequestHead { bytes in
                var hash = FNV1a.start
                for index in request.path.indices {
                    if bytes[index] == UInt8(ascii: "?") { break }
                    hash = FNV1a.adding(bytes[index], to: hash)
                }
                return hash
            }
        case .field(let name):
            return withRequestHead { bytes in
                var hash: UInt64?
                for field in request.fields
                where bytes.extracting(field.name.indices).equalsIgnoringCase(name.utf8.span) {
                    for index in field.value.indices {
                        hash = FNV1a.adding(bytes[index], to: hash ?? FNV1a.start)
                    }
                }
                return hash
            }
        }
    }

    /// The request is no longer under way at its server.
    func leaveServer() {
        balanced?.state?.requestEnds()
        balanced?.leave()
    }

    // MARK: Results

    /// Notes that the server failed, and decides whether another one gets the request.
    /// - Parameter ending: how the attempt ended, as far as that is known without that.
    /// - Returns: how it ended.
    func serverFailed(
        _ failure: StreamError, _ ending: RetryDecision.Ending?
    ) -> RetryDecision.Ending? {
        // It may be that one connection only: then the same server is asked again.
        if let ending, state.reasonToRepeat(after: ending) != nil { return ending }
        guard let kind = ServerFailureReason(failure.error) else { return ending }
        // A server may close a connection that it keeps at any time.
        if ending == .connectionDied(responseStarted: false), state.usesKeptConnection {
            return ending
        }
        note(kind, failure.error.explanation)
        var wasSent = if case .connecting = state.step { false } else { true }
        // It has done nothing with it (RFC 9113 §8.7).
        if ending == .notProcessed { wasSent = false }
        let other = RetryDecision.Ending.serverFailed(
            wasSent: wasSent, responseStarted: failure.responseStarted)
        return goesToAnother(after: other) ? other : ending
    }

    /// Handles the head of a final response. Returns false if the request goes to another server
    /// instead.
    func takesAnswer() -> Bool {
        guard let server = balanced?.state else { return true }
        guard ServerFailureReason.isFailure(response.status) else {
            server.succeeded()
            return true
        }
        note(.status, "it answered with \(response.status)")
        let other = RetryDecision.Ending.serverFailed(wasSent: true, responseStarted: false)
        guard goesToAnother(after: other) else { return true }
        fail(.server(.upstreamClosed), other)
        return false
    }

    private func note(_ failure: ServerFailureReason, _ cause: String) {
        guard let balanced, let server = balanced.server else { return }
        let set = balanced.balancer.set
        let change = set.failed(server, failure, cause, at: now)
        environment.log(change, of: set.servers[server], in: set, because: cause)
    }

    /// Whether the request may be sent to another server, which is then to be chosen.
    private func goesToAnother(after ending: RetryDecision.Ending) -> Bool {
        guard let balanced, state.reasonToRepeat(after: ending) != nil else { return false }
        let set = balanced.balancer.set
        guard balanced.retries < set.configuration.retries.attempts,
            balanced.balancer.hasOther(than: balanced.triedWithThis, at: now), set.takeRetry()
        else { return false }
        balanced.state?.requestEnds()
        self.balanced?.tryAnother()
        return true
    }

    // MARK: The client

    /// Appends the cookie that binds the client to the server, unless it is bound already.
    func appendServerCookie(to writer: inout HeadWriter) {
        guard let balanced, let server = balanced.server,
            balanced.balancer.set.configuration.stickyCookie != nil, balanced.bound != server
        else { return }
        let isSecure = ingress?.tls != nil
        let cookie = balanced.balancer.set.cookie(of: server, isSecure: isSecure)
        writer.append(text: "Set-Cookie: \(cookie)\r\n")
    }
}

extension ExchangeState {
    /// Whether the request was sent on a connection that had been used before.
    fileprivate var usesKeptConnection: Bool {
        switch step {
        case .requesting, .discarding: upstreamWasReused
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .connecting, .responding, .serving, .finishing, .opening, .tunnelling:
            false
        }
    }

    /// Why a request would be sent again after an attempt that ended so; `nil` if it would not.
    func reasonToRepeat(after ending: RetryDecision.Ending) -> RetryReason? {
        switch step {
        case .connecting, .requesting, .discarding: break
        case .ended, .routing, .authenticating, .delayed, .loading, .waiting, .gathering,
            .responding, .serving, .finishing, .opening, .tunnelling:
            return nil
        }
        return RetryDecision(
            isIdempotent: isIdempotent, wasReused: usesKeptConnection, content: content,
            reasons: retries
        ).reason(after: ending)
    }
}

extension Environment {
    /// Logs that a server of a set is used no more, or again.
    func log(
        _ change: ServerState.Change?, of server: ServerState, in set: ServerSet,
        because cause: String?
    ) {
        guard let change else { return }
        var metadata: Logger.Metadata = [
            "listener": "\(set.listener)", "server": "\(server.url)",
        ]
        if let cause { metadata["cause"] = "\(cause)" }
        switch change {
        case .up: shared.logger.notice("a server is up", metadata: metadata)
        case .down: shared.logger.warning("a server is down", metadata: metadata)
        case .ejected(let milliseconds):
            metadata["seconds"] = "\(max(1, milliseconds / 1000))"
            shared.logger.warning("a server is left out for a while", metadata: metadata)
        }
    }
}
