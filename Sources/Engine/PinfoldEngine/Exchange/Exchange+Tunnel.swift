import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics

// CONNECT, and switching protocols after 101: the exchange becomes a relay and ends with it.
extension Exchange {
    /// CONNECT: relays bytes once the destination is connected, or ends the tunnel in the gateway.
    func openTunnel() {
        tunnel = Tunnelling(isRequested: true)
        let policy = environment.policy
        let host = withRequestHead { $0.text(at: request.host) }.lowercasedASCII
        let authority = BoundAuthority(host: host, port: request.port)
        report.routed(policy.route(entryIndex: policy.entry(host: host, port: request.port)))
        if hasPassedTooOften { return reply(with: .access(.loopDetected), closing: true) }
        let mayIntercept = policy.interception != nil && environment.host != nil
        let rule = tunnelSettings(to: authority, policy)
        let handling = policy.tunnelHandling(
            to: authority, by: rule, mayIntercept: mayIntercept
        ) {
            // What is relayed cannot be judged.
            guard isGivenUp(authority, under: policy), mayRelay(tunnelTo: authority, policy) else {
                return false
            }
            tunnel?.pass(because: .rejected)
            return true
        }
        switch handling {
        case .refused(let refusal): reply(with: refusal, closing: false)
        case .intercepted, .relayed, .inspected:
            if mayOpen(tunnelTo: authority, handling, policy) {
                openTunnel(to: authority, handling, policy)
            }
        }
    }

    /// Opens a tunnel that the rules allow.
    func openTunnel(
        to authority: BoundAuthority, _ handling: TunnelHandling, _ policy: PolicySnapshot
    ) {
        if ingress?.original != nil {
            let ways =
                if case .intercepted = handling {
                    policy.ruleWays(
                        ofIntercepted: accessRequest(scope: .authority), to: authority)
                } else {
                    policy.ruleWays(of: accessRequest(scope: .authority), to: authority)
                }
            compareOriginal(with: authority.host, authority.port, by: ways)
        }
        switch handling {
        case .refused(let refusal): reply(with: refusal, closing: false)
        case .intercepted(let name, let mayPass):
            let mayPass = mayPass && mayRelay(tunnelTo: authority, policy)
            intercept(authority, name, mayPass: mayPass, policy)
        case .relayed, .inspected: connect(authority, policy)
        }
    }

    private func connect(_ authority: BoundAuthority, _ policy: PolicySnapshot) {
        let host = authority.host
        let rule = tunnelSettings(to: authority, policy)
        let target = policy.target(host: host, port: request.port, by: .tunnel, rule)
        guard isAdmitted(), goesOn(after: .decided(.open)) else { return }
        let reachability = policy.reachability(host: host, port: request.port)
        let timeouts = policy.timeouts(entryIndex: target.entryIndex)
        let ways = policy.ways(
            host: host, port: request.port, entryIndex: target.entryIndex,
            by: policy.ruleWays(of: accessRequest(scope: .authority), to: authority))
        let inspects = policy.configuration.inspection(entry: target.entryIndex, by: rule) != nil
        var subject = WayConnection.Subject(
            authority: authority, policy: policy, match: target.match,
            stepMilliseconds: timeouts.connectMilliseconds, client: clientNetwork,
            takesEarlyData: !inspects, rules: policy.destinationRules)
        if ways != nil { subject.passage = passage }
        var tried: WayConnection?
        let operation = WayConnection(
            environment: environment, subject: subject, by: ways
        ) { [weak self] result in
            let parent = tried?.parent
            let phases = tried?.phases(now: Clock.monotonicMicroseconds())
            tried = nil
            guard let self, case .opening = state.step else {
                if case .success(let made) = result { made.transport.close() }
                return
            }
            _ = tunnel?.takeOpening()
            if let phases { waits.add(phases) }
            if ways != nil { remarks.goes(through: parent) }
            switch result {
            case .failure(let failure):
                // What happens on the way to a parent says nothing about the server.
                if parent == nil {
                    environment.note(reachability, failure.error, for: clientNetwork)
                }
                fail(failure.error, nil, failure.attempts)
            case .success(let made):
                if parent == nil { environment.note(reachability, nil, for: clientNetwork) }
                report.connected(to: made.endpoint)
                if inspects { return inspect(authority, made, policy) }
                let basis = TunnelBasis(
                    authority, by: .tunnel, from: peer, as: identity,
                    request: accessRequest(scope: .authority), at: made.endpoint,
                    through: made.parent, proof: .none, under: policy)
                established(made, timeouts, basis)
            }
        }
        tried = operation
        tunnel?.wait(for: operation)
        operation.start()
    }

    private func established(
        _ made: EstablishedConnection, _ timeouts: TimeoutsConfiguration, _ basis: TunnelBasis
    ) {
        guard let client, goesOn(after: .relayed) else { return made.transport.close() }
        report.answered(200)
        environment.metrics.add(.tunnelsOpened)
        count(tunnel?.interceptionPass == nil ? .relayed : .passed)
        if let pass = tunnel?.interceptionPass {
            environment.metrics.add(.tunnelPassed(for: pass))
        }
        relay(
            client.handOver(after: makeTunnelHead(on: client), isUpgrade: false),
            UpstreamHandover(transport: made.transport, leftover: made.leftover), timeouts, basis)
    }

    /// Counts the tunnel, once it is known what becomes of it.
    func count(_ result: TunnelResult) {
        tunnel?.ends(as: result)
        metrics.countTunnel(result, host: report.hostLabel)
    }

    /// The head of the response that opens a tunnel.
    func makeTunnelHead(on client: any DownstreamStream) -> HeadDraft {
        var head = makeReplyHead(on: client, 200, "Connection established")
        let name = (pseudonym ?? .own).bytes
        head.fields.append("Via: 1.1 ")
        head.fields.append(name.span)
        head.fields.appendLineEnd()
        return head
    }

    /// Handles a 101: the server has agreed to the protocol that the client asked for.
    func switchProtocols(_ bytes: Span<UInt8>) {
        guard let client, let upstream else { return }
        // The rest of the request would be taken for data of the new protocol.
        guard upstream.requestIsSent, switchesToOfferedProtocol(bytes) else {
            return fail(.response(.unexpectedSwitch))
        }
        report.answered(101)
        var head = makeResponseHead(on: client, bytes)
        head.fields.appendForwardedFields(
            response.fields, of: bytes, omitting: FieldIDSet(.contentLength))
        if balanced != nil { appendServerCookie(to: &head.fields) }
        if client.takesProtocols { return give(head, bytes, of: upstream, to: client) }
        for field in response.fields where field.id == .upgrade {
            head.fields.append(field: .upgrade, bytes.extracting(field.value.indices))
        }
        head.fields.appendVia(received: response.version)
        guard goesOn(after: .relayed) else { return }
        environment.metrics.add(.upgrades)
        tunnel = Tunnelling(isRequested: false)
        let server = upstream.handOver()
        relay(
            client.handOver(after: head, isUpgrade: true), server,
            origin?.timeouts ?? environment.policy.timeouts,
            connectionOrigin?.basis(
                from: peer, as: identity, request: accessRequest(scope: .path), at: report.server,
                through: remarks.parent))
    }

    /// Hands the server's connection to the owner of the client's stream, and ends. Connection and
    /// Upgrade are passed unchanged, because the protocol may have rules about them.
    private func give(
        _ head: consuming HeadDraft, _ bytes: Span<UInt8>, of upstream: any UpstreamStream,
        to client: any DownstreamStream
    ) {
        for field in response.fields where field.id == .connection || field.id == .upgrade {
            head.fields.append(field: field.id, bytes.extracting(field.value.indices))
        }
        environment.metrics.add(.upgrades)
        client.switchProtocols(after: head, to: upstream.handOver())
        if goesOn(after: .relayed) { endSilently() }
    }

    /// A server must name the protocol that it switches to, and that must have been offered to it
    /// (RFC 9110 §7.8).
    private func switchesToOfferedProtocol(_ bytes: Span<UInt8>) -> Bool {
        withRequestHead { head in
            let offered = UpgradeProtocols.forwarded(of: request.fields, in: head)
            var named = 0
            for field in response.fields where field.id == .upgrade {
                let areOffered = bytes.allListMembers(field.value) { name in
                    named += 1
                    guard named <= UpgradeProtocols.limit else { return false }
                    return offered.contains {
                        head.extracting($0.indices).equalsIgnoringCase(bytes.extracting(name))
                    }
                }
                guard areOffered else { return false }
            }
            return named > 0
        }
    }

    private func relay(
        _ handover: DownstreamHandover?, _ server: UpstreamHandover,
        _ timeouts: TimeoutsConfiguration, _ basis: TunnelBasis?
    ) {
        guard let handover else {
            server.transport.close()
            server.tunnel?.ended(isBroken: true)
            return endSilently()
        }
        client = nil
        keepOnlyTheHead()
        join(handover, server, timeouts, basis)
    }

    /// Relays between the two connections until both have ended, which ends the exchange.
    /// - Parameter basis: the policy that allowed the relay; `nil` if no reload ends it.
    func join(
        _ handover: DownstreamHandover, _ server: UpstreamHandover,
        _ timeouts: TimeoutsConfiguration, _ basis: TunnelBasis?
    ) {
        environment.metrics.adjust(.tunnelsOpen, by: 1)
        // Already counted when it was read, before there was a relay.
        let early = UInt64(handover.leftover?.count ?? 0)
        let relay = Relay(
            environment: environment, idleMilliseconds: timeouts.tunnelMilliseconds
        ) { [self] toUpstream, toClient, ending in
            if ending == .idle { remarks.failed(.gateway(.tunnelIdleTimeout)) }
            environment.metrics.adjust(.tunnelsOpen, by: -1)
            handover.closed(ending != .complete)
            server.tunnel?.ended(isBroken: ending != .complete)
            environment.metrics.add(.tunnelBytesToUpstream, toUpstream)
            environment.metrics.add(.tunnelBytesToClient, toClient)
            environment.metrics.add(.clientBytesReceived, toUpstream - min(early, toUpstream))
            report.relayed(fromClient: toUpstream, toClient: toClient)
            endSilently()
        }
        relay.exchange = self
        tunnel?.hand(to: relay)
        server.tunnel?.cutOff = { [weak relay] in relay?.cut() }
        relay.basis = basis
        if limiting != nil { pace(relay) }
        relay.forbidden = { [self] fault in note(fault) }
        // The configuration may have changed since the server was verified: check before relaying.
        if let basis, basis.isOlder(than: environment.policy) {
            environment.loop.afterTurn { [environment] in
                relay.endIfSuperseded(by: environment.policy)
            }
        }
        do {
            try relay.start(
                client: handover.transport, upstream: server.transport,
                earlyFromClient: handover.leftover, earlyFromUpstream: server.leftover,
                pendingForClient: handover.pending)
        } catch {
            handover.transport.close()
            server.transport.close()
            server.tunnel?.ended(isBroken: true)
            tunnel?.dropCarrier()
            environment.metrics.adjust(.tunnelsOpen, by: -1)
            handover.closed(true)
            return endSilently()
        }
    }

    /// A tunnel may be open for days: keeps only the part of the request that the log needs.
    func keepOnlyTheHead() {
        let head = environment.loop.buffers.take(bytes: max(1, request.length))
        head.writable.copyMemory(from: requestHead)
        head.end = request.length
        intake.takeHead(in: head)
    }
}

/// What a CONNECT waits for before the response is sent.
protocol TunnelOpening: AnyObject {
    /// Cancels the wait; nothing is called back.
    func cancel()
    /// What has been waited for so far.
    /// - Parameter now: in microseconds of the monotonic clock.
    func phases(now: Int64) -> PhaseTimes
    /// The address that was tried last; `nil` if none was.
    var tried: Endpoint? { get }
}

extension TunnelOpening {
    func phases(now: Int64) -> PhaseTimes { PhaseTimes() }
    var tried: Endpoint? { nil }
}

extension ConnectOperation: TunnelOpening {}

/// The owner of the two connections of an exchange that has left HTTP. It notifies the exchange
/// when both have ended.
protocol TunnelCarrier: AnyObject {
    /// Ends both immediately, in such a way that neither peer takes what it has received for
    /// complete.
    func cut()
}

extension Relay: TunnelCarrier {}
extension AnsweredTunnel: TunnelCarrier {}

extension Span where Element == UInt8 {
    /// Whether all members of a list of tokens (validated by the head's parser) satisfy a
    /// condition; stops at the first that does not.
    fileprivate func allListMembers(
        _ value: ByteRange, satisfy isRight: (Range<Int>) -> Bool
    ) -> Bool {
        var start: Int?
        for index in Int(value.start)...Int(value.end) {
            let isEnd = index == Int(value.end)
            let separates = isEnd || self[index] == 0x2C || self[index] == 0x20 || self[index] == 9
            if separates, let begun = start {
                guard isRight(begun..<index) else { return false }
                start = nil
            } else if !separates, start == nil {
                start = index
            }
        }
        return true
    }
}
