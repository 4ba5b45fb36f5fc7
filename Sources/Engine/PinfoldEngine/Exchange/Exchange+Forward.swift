import CachePolicy
import Clocks
import EventLoop
import HTTPCore
import PinfoldConfiguration

// Phases 4 and 5: a connection, and the request on it.
extension Exchange {
    /// Sends the request to its origin.
    func forward(fresh: Bool = false) {
        guard let origin = currentOrigin() else { return }
        guard rewritten == nil || contentIsTranslated(at: origin) else { return }
        guard fresh || mayConnect(to: origin) else { return }
        handle(.decided(.connect))
        environment.upstreams.acquire(
            origin, for: self, fresh: fresh || needsFreshConnection)
        // Still waiting: the wait has a bound of its own where no connection is being made.
        if case .connecting = state.step, register() {
            environment.loop.setDeadline(self, after: origin.connectionWaitMilliseconds)
        }
    }

    /// The origin under the configuration in force: a reload may have come while the request
    /// waited. nil: it has been answered.
    private func currentOrigin() -> Origin? {
        guard let origin, origin.policy !== environment.policy else { return origin }
        stored = nil
        validation = nil
        key = nil
        guard let renewed = findOriginAnew() else {
            fail(.superseded)
            return nil
        }
        // Its head, and perhaps its content, are what the former rules have made of them.
        if rulesBeforeReload == nil, renewed.transformation !== origin.transformation {
            rulesBeforeReload = .some(origin.transformation)
        }
        self.origin = renewed
        // What it changes at its server is still to be invalidated.
        if !request.isSafe { makeKey(renewed) }
        if let refusal = renewed.refusal {
            fail(refusal)
            return nil
        }
        if asksPastRules(of: renewed) {
            fail(.protocolSwitchRefused)
            return nil
        }
        return renewed
    }

    /// The wait for a connection has lasted too long.
    func connectionWaitTimedOut() {
        environment.metrics.add(.poolWaitTimeouts)
        fail(.poolWaitTimeout)
    }

    /// A body that lies in the head's buffer entirely can be sent a second time. To be called
    /// before any of it is taken out of the buffer: what follows it is the next request.
    func rememberReplayableBody(_ buffer: Buffer) {
        guard case .length(let length) = request.framing, UInt64(buffer.count) >= length else {
            return
        }
        replayableBody = buffer.start..<(buffer.start + Int(length))
    }

    package func upstreamReady(_ upstream: any UpstreamStream) {
        if token != .none { environment.loop.setDeadline(self, after: nil) }
        let upstream = filtered(upstream)
        let event = State.Event.connected(
            upstream, wasReused: upstream.wasReused, sendsGathered: gathered != nil)
        guard case .nothing = handle(event) else { return }
        upstreamEndpoint = upstream.endpoint
        debug(
            "connection",
            ["server": "\(upstream.endpoint)", "reused": "\(upstream.wasReused)"])
        if environment.reportsExchanges { upstreamVersion = upstream.tlsVersion }
        requestTime = environment.wallSeconds
        let sentBefore = sentAt
        sentAt = Clock.monotonicMicroseconds()
        beginStoreFlight()
        interimCount = 0
        guard sendHead(on: upstream) else {
            sentAt = sentBefore
            return fail(.request(.headTooLarge))
        }
        let trailers = gathered?.trailers
        resendContent(on: upstream)
        sendGathered(on: upstream)
        if contentHasEnded {
            _ = upstream.finish(trailers: trailers)
            return
        }
        if upstream.flush() { client?.resumeContent() }
    }

    /// What tells the exchange of the response: the stream itself, or what the route's rules put
    /// before it.
    @inline(__always)
    private func filtered(_ upstream: any UpstreamStream) -> any UpstreamStream {
        guard let rules, let checks = rules.response else { return upstream }
        return ResponseFilter(upstream, for: self, by: rules, checks: checks)
    }

    /// Sends content that has been taken from the client before and is still in its buffer.
    private func resendContent(on upstream: any UpstreamStream) {
        guard let replayableBody, let buffer = rewritten?.buffer ?? requestBuffer, contentHasEnded
        else { return }
        upstream.send(
            UnsafeRawBufferPointer(rebasing: buffer.memory[replayableBody]), owner: buffer)
    }

    // MARK: The head

    /// Fields that are written anew or belong to the client's hop.
    private static let replacedFields = FieldIDSet([.host, .contentLength])

    /// Sends the request's head with what belongs to this hop. False: it is too long.
    private func sendHead(on upstream: any UpstreamStream) -> Bool {
        guard let origin else { return false }
        let forwarded = forwardedFields
        let forwardedBytes =
            forwarded == nil ? 0 : ForwardedFields.reservedBytes + 2 * Int(request.authority.count)
        let room = request.length + storedValidatorBytes + forwardedBytes
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
            if isIntermediary { head.fields.appendVia(received: request.version) }
            return upstream.sendHead(head, of: outgoing, upgrade: upgradeProtocols)
        }
    }

    /// Whether `100-continue` is expected in more words than one, which not every server reads as
    /// the list that it is.
    private var restatesExpectation: Bool { request.expectsContinue && expectsInOtherWords() }

    @inline(never)
    private func expectsInOtherWords() -> Bool {
        request.fields.only(.expect)?.value.count != UInt32("100-continue".utf8.count)
    }

    /// Host's value where a reverse route keeps what the client sent; nil: the origin's own.
    private func keptHost(_ origin: Origin, _ bytes: Span<UInt8>) -> ByteRange? {
        guard let forwarding = origin.key.forwarding, forwarding.keepsHost else { return nil }
        let host = ForwardedFields.host(of: request, in: bytes)
        return host.isEmpty ? nil : host
    }

    private var storedValidatorBytes: Int {
        guard let validation else { return 0 }
        return Int(validation.entityTag.count) + Int(validation.lastModified.count)
    }

    private func omittedFields(_ restatesExpectation: Bool) -> FieldIDSet {
        var omitted = Self.replacedFields
        if validation != nil { omitted.formUnion(Validation.replacedFields) }
        if origin?.key.isFixed ?? false { omitted.formUnion(.forwarding) }
        if restatesExpectation || !request.expectsContinue { omitted.insert(.expect) }
        if isIntermediary, MaxForwards.counts(request.method) { omitted.insert(.maxForwards) }
        return omitted
    }

    private func appendConditions(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        guard let validation, let stored else { return }
        validation.appendFields(
            for: request, in: bytes,
            storedHead: stored.head.octets,
            to: &writer)
    }

    /// An upgrade is passed on only without a body: otherwise it would depend on the moment of the
    /// server's answer where the new protocol begins.
    var asksForUpgrade: Bool { request.wantsUpgrade && !hasRequestBody }

    /// Whether the request asks for a protocol that the route's rules could not look into, and its
    /// entry of `hosts` does not let it pass.
    func asksPastRules(of origin: Origin) -> Bool {
        asksForUpgrade && !origin.mayLeaveHTTP
    }

    /// The protocols that the server is asked to switch to.
    private var upgradeProtocols: [UnsafeRawBufferPointer] {
        guard asksForUpgrade else { return [] }
        let head = requestHead
        return UpgradeProtocols.forwarded(of: request.fields, in: head.octets).map {
            UnsafeRawBufferPointer(rebasing: head[$0.indices])
        }
    }

    // MARK: From the server

    package func upstreamDrained() {
        if !contentHasEnded { client?.resumeContent() }
    }

    package func upstreamFailed(_ failure: StreamError) {
        if token != .none { environment.loop.setDeadline(self, after: nil) }
        let cause = ExchangeState<any UpstreamStream>.FailureInfo.Cause(
            failure.error, responseStarted: failure.responseStarted)
        wasLeftUnanswered =
            cause == .connectionDied(responseStarted: false) && reusesConnection
            && firstByteMicroseconds == nil
        fail(failure.error, cause, failure.attempts)
    }
}

extension TimeoutsConfiguration {
    /// How long an exchange waits for a connection at most; making one has bounds of its own.
    var connectionWaitMilliseconds: Int64 { connectMilliseconds * 2 + 1000 }
}

extension Origin {
    /// The same where a tunnel may have to be asked for first.
    fileprivate var connectionWaitMilliseconds: Int64 {
        timeouts.connectionWaitMilliseconds
            + (tunnelProxy == nil ? 0 : timeouts.connectMilliseconds)
    }
}
