import CachePolicy
import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration

// Phases 4 and 5: a connection, and the request on it.
extension Exchange {
    /// Sends the request to its origin.
    /// - Parameter isSuperseded: whether what it waited for is not there any more after a reload.
    func forward(fresh: Bool = false, isSuperseded: Bool = false) {
        guard var origin = currentOrigin(isSuperseded) else { return }
        guard upload.rewritten == nil || contentIsTranslated(at: origin) else { return }
        if let balancer = origin.balancer {
            guard let server = chooseServer(of: balancer) else { return }
            origin = server
        }
        if remarks.parent != nil, origin.ways == nil { remarks.goes(through: nil) }
        guard fresh || mayConnect(to: origin) else { return }
        guard goesOn(after: .decided(.connect)) else { return }
        environment.upstreams.acquire(
            origin, for: self, fresh: fresh || forwarding.needsFreshConnection)
        guard case .connecting = state.step else { return }
        beginWaitForConnection()
        // The wait has its own limit if no connection is being established.
        if register() {
            environment.loop.setDeadline(self, after: origin.connectionWaitMilliseconds)
        }
    }

    /// The origin under the current configuration, which may have been reloaded while the request
    /// waited. `nil` if the request has been answered.
    private func currentOrigin(_ isSuperseded: Bool) -> Origin? {
        guard let origin, isSuperseded || origin.policy !== environment.policy else {
            return origin
        }
        caching.forgetStored()
        caching.forgetKey()
        let renewed: Origin
        do throws(ExchangeError) {
            renewed = chooseRules(at: try findOriginAgain())
        } catch {
            fail(error)
            return nil
        }
        forwarding.go(on: renewed, after: origin)
        // What it changes on the server must still be invalidated.
        if !request.isSafe { makeKey(renewed) }
        if let refusal = renewed.refusal {
            fail(refusal)
            return nil
        }
        if asksForForbiddenUpgrade(of: renewed) {
            fail(.access(.protocolSwitchRefused))
            return nil
        }
        return renewed
    }

    /// Handles a wait for a connection that has lasted too long.
    func connectionWaitTimedOut() {
        environment.metrics.add(.poolWaitTimeouts)
        fail(.gateway(.poolWaitTimeout))
    }

    package func upstreamReady(_ upstream: any UpstreamStream) {
        if token != .none { environment.loop.setDeadline(self, after: nil) }
        let now = Clock.monotonicMicroseconds()
        var isReused = true
        if waits.since != 0 { isReused = endWait(with: upstream, at: now) }
        let upstream = filtered(upstream)
        let event = State.Event.connected(
            upstream, wasReused: upstream.wasReused,
            sendsGathered: upload.gathered.map { !$0.isKept } ?? false)
        guard goesOn(after: event) else { return }
        report.connected(to: upstream.endpoint, over: upstream.carrier, isReused: isReused)
        debug(
            "connection",
            ["server": "\(addressText(ofTried: false) ?? "")", "reused": "\(upstream.wasReused)"])
        if environment.reportsExchanges { report.spoke(upstream.tlsVersion) }
        let sentBefore = forwarding.sentAt
        forwarding.begin(at: now, wallTime: environment.wallSeconds)
        beginStoreFlight()
        guard sendHead(on: upstream) else {
            forwarding.undoSending(sentBefore)
            return fail(.request(.headTooLarge))
        }
        let trailers = upload.gathered?.trailers
        resendContent(on: upstream)
        sendGathered(on: upstream)
        if intake.contentHasEnded {
            _ = upstream.finish(trailers: trailers)
            return
        }
        if upstream.flush() { client?.resumeContent() }
    }

    /// What delivers the response to the exchange: the stream itself, or the filter of the route's
    /// rules.
    @inline(__always)
    private func filtered(_ upstream: any UpstreamStream) -> any UpstreamStream {
        guard let rules, let checks = rules.response else { return upstream }
        return ResponseFilter(upstream, for: self, by: rules, checks: checks)
    }

    /// Resends content that was accepted from the client and is still in its buffer.
    private func resendContent(on upstream: any UpstreamStream) {
        guard let content = intake.replayable, intake.contentHasEnded,
            let buffer = upload.rewritten?.buffer ?? intake.buffer
        else { return }
        upstream.send(UnsafeRawBufferPointer(rebasing: buffer.memory[content]), owner: buffer)
    }

    // MARK: The head

    /// Fields that are replaced or belong to the client's connection.
    private static let replacedFields = FieldIDSet([.host, .contentLength])

    /// Sends the request's head with the fields for this connection. Returns false if it is too
    /// long.
    private func sendHead(on upstream: any UpstreamStream) -> Bool {
        guard let origin = connectionOrigin else { return false }
        let forwarded = forwardedFields
        let forwardedBytes =
            forwarded == nil ? 0 : ForwardedFields.reservedBytes + 2 * Int(request.authority.count)
        let traceParent = environment.tracing.changesRequests ? makeTraceParent() : nil
        let room =
            request.length + storedValidatorBytes + forwardedBytes + viaBytes
            + (traceParent == nil ? 0 : HeadWriter.traceParentBytes)
        let outgoing = OutgoingRequest(
            framing: request.framing, method: request.method, asksForUpgrade: asksForUpgrade,
            acceptsTrailers: request.acceptsTrailers,
            expectsContinue: request.expectsContinue, isUserAgents: !isIntermediary)
        let restatesExpectation = restatesExpectation
        let omitted = omittedFields(restatesExpectation)
        return withRequestHead { bytes in
            let authority = origin.authority
            var head: HeadDraft
            if let kept = keptHost(origin, bytes) {
                head = upstream.makeHead(
                    for: request, in: bytes, host: bytes.extracting(kept.indices), room: room)
            } else {
                head = upstream.makeHead(
                    for: request, in: bytes, host: authority.span, room: room)
            }
            head.fields.appendForwardedFields(of: request, in: bytes, omitting: omitted)
            if restatesExpectation { head.fields.append(field: .expect, "100-continue") }
            forwarded?.append(for: request, in: bytes, to: &head.fields)
            appendConditions(bytes, to: &head.fields)
            if isIntermediary, let hops = request.maxForwards(in: bytes)?.forwarded {
                head.fields.append(field: .maxForwards, decimal: hops)
            }
            if isIntermediary { appendVia(to: &head.fields) }
            if let traceParent { head.fields.append(traceParent) }
            return upstream.sendHead(head, of: outgoing, upgrade: upgradeProtocols)
        }
    }

    /// Whether Expect has other members besides `100-continue`; not every server parses it as a
    /// list.
    private var restatesExpectation: Bool { request.expectsContinue && hasOtherExpectations() }

    @inline(never)
    private func hasOtherExpectations() -> Bool {
        request.fields.only(.expect)?.value.count != UInt32("100-continue".utf8.count)
    }

    /// The client's Host if a reverse route keeps it; `nil` to use the origin's.
    private func keptHost(_ origin: Origin, _ bytes: Span<UInt8>) -> ByteRange? {
        guard let forwarding = origin.key.forwarding, forwarding.keepsHost,
            // What a parent is asked for is what was judged, never what the client calls it.
            forwardingParent == nil
        else { return nil }
        let host = ForwardedFields.host(of: request, in: bytes)
        return host.isEmpty ? nil : host
    }

    private var storedValidatorBytes: Int {
        if let rest = forwarding.rest { return rest.maximumFieldBytes }
        if let part = forwarding.part { return part.maximumFieldBytes }
        guard let validation = caching.validation else { return 0 }
        return Int(validation.entityTag.count) + Int(validation.lastModified.count)
    }

    private func omittedFields(_ restatesExpectation: Bool) -> FieldIDSet {
        var omitted = Self.replacedFields
        if caching.validation != nil { omitted.formUnion(ValidationRequest.replacedFields) }
        if origin?.key.isFixed ?? false { omitted.formUnion(.forwarding) }
        if caller.holdsConsumedField { omitted.insert(.authorization) }
        if restatesExpectation || !request.expectsContinue { omitted.insert(.expect) }
        if isIntermediary, MaxForwards.counts(request.method) { omitted.insert(.maxForwards) }
        return omitted
    }

    private func appendConditions(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        forwarding.rest?.appendFields(to: &writer)
        forwarding.part?.appendFields(to: &writer)
        guard let validation = caching.validation, let stored = caching.stored else { return }
        validation.appendFields(
            for: request, in: bytes,
            storedHead: stored.head.octets,
            to: &writer)
    }

    /// An upgrade is forwarded only without a body: otherwise the point at which the new protocol
    /// begins would depend on when the server responds.
    var asksForUpgrade: Bool { request.wantsUpgrade && !intake.hasContent }

    /// Whether the request asks for another protocol, and whether HTTP/2 has a way to: a GET that
    /// offers just one.
    package var switchRequest: SwitchRequest {
        asksForUpgrade ? SwitchRequest(request.method, upgradeProtocols) : .none
    }

    package var speaksOnlyHTTP1: Bool { ingress?.speaksOnlyHTTP1 ?? false }

    /// Whether the request asks for a protocol that the route's rules cannot examine and that its
    /// entry of `hosts` does not allow.
    func asksForForbiddenUpgrade(of origin: Origin) -> Bool {
        asksForUpgrade && !origin.allowsUpgrade
    }

    /// The protocols offered to the server.
    private var upgradeProtocols: [UnsafeRawBufferPointer] {
        guard asksForUpgrade else { return [] }
        let head = requestHead
        return UpgradeProtocols.forwarded(of: request.fields, in: head.octets).map {
            UnsafeRawBufferPointer(rebasing: head[$0.indices])
        }
    }

    // MARK: From the server

    package func upstreamDrained() {
        if !intake.contentHasEnded { client?.resumeContent() }
    }

    package func upstreamFailed(_ failure: StreamError) {
        if token != .none { environment.loop.setDeadline(self, after: nil) }
        endWait(by: failure.timeline)
        attemptFailed()
        var ending = RetryDecision.Ending(
            failure.error, responseStarted: failure.responseStarted)
        if handsOn() { return }
        if balanced != nil { ending = serverFailed(failure, ending) }
        forwarding.lost(
            silently: ending == .connectionDied(responseStarted: false) && reusesConnection)
        fail(failure.error, ending, failure.attempts)
    }
}

extension TimeoutsConfiguration {
    /// The longest time that an exchange waits for a connection; establishing one has its own
    /// timeouts.
    var connectionWaitMilliseconds: Int64 { connectMilliseconds * 2 + 1000 }
}

extension Origin {
    /// How much longer it may take because of the ways that are tried: each may be a check of
    /// addresses, a connection and a tunnel.
    var waysMilliseconds: Int64 {
        Int64(ways?.ways.count ?? 0) * 3 * timeouts.connectMilliseconds
    }

    /// The same, including the time for opening a tunnel through a proxy if one is needed.
    fileprivate var connectionWaitMilliseconds: Int64 {
        timeouts.connectionWaitMilliseconds
            + (tunnelProxy == nil ? 0 : timeouts.connectMilliseconds) + waysMilliseconds
    }
}
