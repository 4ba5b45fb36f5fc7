import CachePolicy
import CacheStore
import Clocks
import EventLoop
import HTTPCore

// Phases 6 to 8: the server's response, forwarded and stored while it streams.
extension Exchange {
    /// The most interim responses in one exchange. A server that works for a long time may send one
    /// now and then (102), but a gateway's clients must not be flooded.
    private var interimLimit: Int { isIntermediary ? 32 : 10_000 }

    package func upstreamHead(_ head: UnsafeRawBufferPointer) { take(head, sentAs: nil) }

    /// Handles a head that is replaced by another one for the client.
    @inline(never)
    func upstreamHead(_ head: UnsafeRawBufferPointer, sentAs sent: SentHead) {
        take(head, sentAs: sent)
    }

    @inline(__always)
    private func take(_ head: UnsafeRawBufferPointer, sentAs sent: SentHead?) {
        let bytes = head.octets
        serverProgressed()
        if forwarding.answeredAt == 0 { headArrived(isFinal: !response.isInterim) }
        if request.wantsUpgrade, !response.isInterim, !mayPass(answerToSwitch: bytes) {
            return fail(.response(.failedSwitch))
        }
        if response.status == 407, isRefusedByParent() { return }
        if response.status == 101 { return switchProtocols(bytes) }
        if response.isInterim { return passInterim(bytes) }
        if balanced != nil, !takesAnswer() { return }
        if let part = forwarding.part, !part.isFirst { return takePart(bytes, part) }
        if caching.stored != nil, answersForStored(bytes) { return }
        if forwarding.rest != nil { return takeRest(bytes) }
        passHead(bytes, sentAs: sent)
    }

    /// Notes when a head has arrived.
    @inline(__always)
    func headArrived(isFinal: Bool) {
        forwarding.headArrived(at: Clock.monotonicMicroseconds(), isFinal: isFinal)
    }

    private func passInterim(_ bytes: Span<UInt8>) {
        guard goesOn(after: .answered(.interim)) else { return }
        guard forwarding.interimArrived() <= interimLimit else {
            return fail(.server(.tooManyInterim))
        }
        guard let client, client.takesInterimResponses else { return }
        var interim = makeResponseHead(on: client, bytes)
        interim.fields.appendForwardedFields(
            response.fields, of: bytes, omitting: [.init(.contentLength)])
        interim.fields.appendVia(received: response.version)
        client.sendInterim(interim)
        _ = client.flush()
    }

    /// Room for the fields that are added to a response, such as Upgrade and Cache-Status.
    private static let addedFieldBytes = 512

    /// Begins the server's head for the client.
    func makeResponseHead(
        on client: any DownstreamStream, _ bytes: Span<UInt8>
    ) -> HeadDraft {
        client.makeHead(
            status: response.status, phrase: bytes.extracting(response.reason.indices),
            room: response.length + Self.addedFieldBytes)
    }

    /// Forwards a final head, and begins to store the response if that is allowed.
    @inline(__always)
    private func passHead(_ bytes: Span<UInt8>, sentAs sent: SentHead?) {
        // A failed background request replaces nothing.
        if client == nil, response.status >= 500 { return endSilently() }
        guard goesOn(after: .answered(.passedOn)) else { return }
        updateStored(byHead: bytes)
        let isStored =
            request.method == .post ? beginStoreOfPost(bytes) : beginStore(bytes)
        debugStore(isStored)
        if !isStored { endFlight(unstoredBecause: storing.refusal) }
        if isStored {
            if collapsing.followers != nil { shareWithFollowers() }
            if storing.dependsOnCoding { return passVaryingHead(bytes) }
        }
        guard let client else {
            // In the background, a response that is not stored is useful only if its complete
            // arrival shows that the stored response is outdated.
            return isStored || caching.outdated != nil ? () : endSilently()
        }
        invalidate(bytes)
        if let sent { return send(sent, isStored: isStored, to: client) }
        sendHead(bytes, isStored: isStored, to: client)
    }

    /// Forwards the head of a response that is stored, and will be sent to others in other codings.
    @inline(never)
    private func passVaryingHead(_ bytes: Span<UInt8>) {
        guard let client else { return }
        invalidate(bytes)
        sendHead(bytes, isStored: true, variesByCoding: true, to: client)
    }

    @inline(never)
    private func send(_ sent: SentHead, isStored: Bool, to client: any DownstreamStream) {
        response = sent.response
        sent.bytes.withUnsafeBytes { sendHead($0.octets, isStored: isStored, to: client) }
    }

    @inline(__always)
    private func sendHead(
        _ bytes: Span<UInt8>, isStored: Bool, variesByCoding: Bool = false,
        to client: any DownstreamStream
    ) {
        var head = makeResponseHead(on: client, bytes)
        head.fields.appendForwardedFields(
            response.fields, of: bytes, omitting: FieldIDSet(.contentLength))
        // Only an intermediary adds the Date that the server did not send.
        if isIntermediary, !response.fields.contains(.date) {
            head.fields.append(field: .date, date: environment.wallSeconds)
        }
        if response.status == 407 { appendProxyChallenges(bytes, to: &head.fields) }
        if response.status == 426 { appendRequiredProtocols(bytes, to: &head.fields) }
        if balanced != nil { appendServerCookie(to: &head.fields) }
        if variesByCoding { head.fields.append("Vary: Accept-Encoding\r\n") }
        appendCacheStatus(isStored: isStored, to: &head.fields)
        head.fields.appendVia(received: response.version)
        let framing = clientFraming(bytes, &head.fields)
        forwarding.responds(asEventStream: upstream?.isEventStream ?? false)
        if forwarding.isEventStream { client.expectPauses() }
        // Not flushed, so that a body that has already arrived is written together with its head.
        report.answered(response.status)
        client.sendHead(head, framing: framing, closing: false)
    }

    /// The challenge of a proxy that this program uses (RFC 9110 §11.7.1), or to which it passes
    /// its clients' credentials. Other clients of a gateway would take it for a challenge of the
    /// gateway.
    @inline(never)
    private func appendProxyChallenges(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        guard origin?.base.carrier != nil || forwardingParent != nil else { return }
        for field in response.fields where field.id == .proxyAuthenticate {
            writer.append(field: .proxyAuthenticate, bytes.extracting(field.value.indices))
        }
    }

    /// The protocol that the server requires, which is the meaning of the status (RFC 9110
    /// §15.5.22).
    @inline(never)
    private func appendRequiredProtocols(_ bytes: Span<UInt8>, to writer: inout HeadWriter) {
        guard response.fields.contains(.upgrade) else { return }
        for field in response.fields where field.id == .upgrade {
            writer.append(field: .upgrade, bytes.extracting(field.value.indices))
        }
        // A sender of Upgrade must list it in Connection (RFC 9110 §7.8).
        writer.append(field: .connection, "Upgrade")
    }

    package var mayBeRepeated: Bool { request.isIdempotent }

    /// A client of HTTP/2 makes all of its streams wait at once.
    package var takesLargeParts: Bool { !(client?.isOneOfSeveral ?? false) }

    package func upstreamHeadWithoutBody() { _ = client?.flush() }

    private func clientFraming(
        _ bytes: Span<UInt8>, _ writer: inout HeadWriter
    ) -> ContentFraming {
        guard response.framing == .none else {
            return response.framing.length.map { .length($0) } ?? .streamed
        }
        // HEAD and 304 state how long the content would be.
        if response.status != 204, let length = response.fields.only(.contentLength) {
            writer.append(field: .contentLength, bytes.extracting(length.value.indices))
        } else if request.method != .head, response.status != 304, response.status != 204 {
            writer.append("Content-Length: 0\r\n")
        }
        return .none
    }

    private func appendCacheStatus(isStored: Bool, to writer: inout HeadWriter) {
        let forwarded = CacheStatus.Forwarded(
            reason: caching.forwardReason ?? .bypass, isStored: isStored,
            notStored: storing.refusal)
        CacheStatus.forwarded(forwarded).append(to: &writer)
    }

    package func upstreamBody(_ bytes: UnsafeRawBufferPointer, owner: Buffer, isLast: Bool) -> Bool
    {
        serverProgressed()
        if forwarding.knowsBeginning {
            let known = forwarding.takeKnown(of: bytes.count)
            store(UnsafeRawBufferPointer(rebasing: bytes[known...]))
        } else {
            store(bytes)
        }
        guard let client else {
            if !isOfUse(bytes.count) { endSilently() }
            return isLast || goesOnReading()
        }
        // The client reads what others read as well, at its own speed.
        if serving.reader != nil { return isLast || goesOnReading() }
        client.send(bytes, owner: owner)
        // The end is sent with the last part, and only once the response is stored: a client that
        // has seen the end may request it again immediately.
        if isLast { return true }
        guard client.flush() else {
            if readsApart() { return !waitsForStore() }
            collapsing.followers?.hold(now: environment.loop.now)
            return false
        }
        if let followers = collapsing.followers { followers.resume(now: environment.loop.now) }
        return !waitsForStore()
    }

    /// Whether neither the disk nor those who read the response must catch up first.
    private func goesOnReading() -> Bool {
        !waitsForStore() && (storing.parts == nil || !waitsForReaders())
    }

    /// From now on the client, which has not taken everything yet, reads what others read as well:
    /// it must not hold them up. Returns false if there are no others.
    func readsApart() -> Bool {
        if let ticket = storing.parts {
            return ticket.run?.body.readers ?? 0 > 0 && readsParts()
        }
        guard let body = storing.shared, let upstream, register() else { return false }
        upstream.leaveBuffer()
        serving.read(
            with: StoredBodyReader(
                exchange: self, source: .arriving(body), of: storing.sharedResponse,
                content: body.count ..< .max))
        return true
    }

    /// Handles the complete content of a response that is replaced by other content for the client.
    func upstreamBody(_ content: [UInt8], sentAs sent: Buffer) {
        content.withUnsafeBytes { store($0) }
        guard let client else {
            if storing.ticket == nil, !confirmsOutdated(content.count) { endSilently() }
            return
        }
        if !sent.isEmpty { client.send(sent.readable, owner: sent) }
    }

    /// Whether it is of use to go on receiving the response without a client.
    private func isOfUse(_ count: Int) -> Bool {
        if isWanted { return true }
        if let ticket = storing.parts { return isOfUse(ticket) }
        guard storing.ticket != nil else { return confirmsOutdated(count) }
        return goesOnFilling(count)
    }

    /// How many bytes of a response that is not stored are read in the background to see whether it
    /// arrives completely. A longer one is assumed to.
    private static let backgroundBodyBytes: UInt64 = 1 << 20

    /// Whether it is still useful to read content of a response that is not kept.
    private func confirmsOutdated(_ count: Int) -> Bool {
        guard caching.outdated != nil else { return false }
        if caching.readInVain(count) > Self.backgroundBodyBytes { removeOutdated() }
        return caching.outdated != nil
    }

    /// The response is complete: queues its end for the client.
    func complete(trailers: TrailerSection?) {
        removeOutdated()
        // A user agent takes them unasked: nobody behind it could misunderstand them.
        let drained = client?.finish(
            trailers: request.takesTrailers || !isIntermediary ? trailers : nil)
        if drained ?? false { clientDrained() }
    }
}

/// The head that is sent to the client in place of the server's, which is stored.
final class SentHead {
    let bytes: [UInt8]
    let response: ResponseHead

    init(bytes: [UInt8], response: ResponseHead) {
        self.bytes = bytes
        self.response = response
    }
}
