import CachePolicy
import EventLoop
import HTTPCore
import PinfoldMetrics

// The gateway's own replies: errors, the administration, and OPTIONS and TRACE at the last hop.
extension Exchange {
    /// Replies with an error. `closing`: the connection cannot be used afterwards.
    func reply(with fault: ExchangeError, closing: Bool) {
        remarks.failed(fault)
        // Whatever was looked up, this reply does not come from the cache.
        report.used(cache: .none)
        environment.log(fault, of: self)
        let reply = ErrorReply(
            fault, id: idText, from: pseudonym ?? .own, server: serverForClient,
            asked: ErrorReply.Asked(host: askedHost, seconds: environment.wallSeconds),
            as: replyFormat)
        // What a client sends after CONNECT is meant for the tunnel, and may arrive before the
        // client learns that there is none: it must never be parsed as a request.
        let mustClose =
            closing || fault.leavesNoRoom
            || request.method == .connect && !mayAskAgain(after: fault)
        // Clients show at most the status line of a failed CONNECT.
        let phrase = request.form == .authority ? fault.reason.token : nil
        let page = page(of: fault, reply)
        sendLocal(
            status: fault.status, phrase: phrase,
            contentType: page == nil ? reply.contentType : "text/html; charset=utf-8",
            closing: mustClose
        ) { writer in
            writer.append("Proxy-Status: ")
            writer.append(reply.proxyStatus.span)
            writer.appendLineEnd()
            if page != nil || reply.format == .html { writer.append(Self.pageFields) }
            if fault.status == 405 { appendAllow(to: &writer) }
            appendAuthenticationFields(for: fault, to: &writer)
            if case .purge(let error) = fault { Self.append(error, to: &writer) }
            if case .rateLimited(let excess) = fault {
                writer.append(text: "Retry-After: \(excess.reason.retrySeconds)\r\n")
            }
            if case .server(.noServer) = fault, let balancer = origin?.balancer {
                writer.append(text: "Retry-After: \(balancer.set.retrySeconds)\r\n")
            }
        } body: {
            page ?? reply.body
        }
    }

    /// What the client wants a reply to be written in, or the configuration.
    private var replyFormat: ReplyFormat {
        switch environment.policy.configuration.errorReplies.format {
        case .text: return .text
        case .html: return .html
        case .json: return .json
        case .negotiate: break
        }
        guard request.fields.contains(.accept) else { return intake.refusedFormat }
        return withRequestHead {
            ReplyFormat(preferredBy: AcceptedMediaTypes(of: request, in: $0))
        }
    }

    /// The page of an operator in place of a reply's own content; `nil` for that. A rule's own page
    /// is for whoever does not ask for something that programs read.
    private func page(of fault: ExchangeError, _ reply: ErrorReply) -> [UInt8]? {
        switch reply.format {
        case .text: return page(of: fault)
        case .html: break
        case .json, .problem, .propertyList, .xml: return nil
        }
        if let page = page(of: fault) { return page }
        return environment.policy.configuration.errorReplies.page?.filled {
            reply.content.value($0, url: { urlText }, client: { clientText })
        }
    }

    /// A page contains values of the request: nothing in it runs, and nothing else is loaded than
    /// images within it.
    private static let pageFields: StaticString = """
        X-Content-Type-Options: nosniff\r
        Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r

        """

    /// The fields that tell who wanted to purge how to do better.
    private static func append(_ error: PurgeRequestError, to writer: inout HeadWriter) {
        if error.reason.entry.status == 401 {
            writer.append("WWW-Authenticate: Bearer realm=\"purge\"\r\n")
        }
        if let seconds = error.retrySeconds {
            writer.append(text: "Retry-After: \(seconds)\r\n")
        }
    }

    /// `host[:port]` as the client named it; `nil` if it did not, or if it is not known.
    private var askedHost: String? {
        if let authority = transparentAuthority {
            return String(decoding: authority, as: UTF8.self)
        }
        guard request.length > 0 else { return nil }
        let host =
            if let head = clientHead {
                head.bytes.span.text(at: head.authority)
            } else {
                withRequestHead { $0.text(at: request.authority) }
            }
        return host.isEmpty ? nil : host
    }

    // MARK: The server, as replies and logs name it

    /// `host:port` of the request's target, or `nil` if it is not known.
    var serverText: String? {
        if let origin, origin.balancer != nil, balanced?.server == nil { return nil }
        if let key = connectionOrigin?.key {
            if key.unixPath != nil { return key.serverText }
            return "\(HostText.bracketed(key.host)):\(key.port)"
        }
        if case .bound(let authority) = ingress?.role {
            return "\(HostText.bracketed(authority.host)):\(authority.port)"
        }
        guard request.length > 0, request.form == .authority || request.form == .absolute else {
            return nil
        }
        let host = HostText.bracketed(withRequestHead { $0.text(at: request.host) })
        return host.isEmpty ? nil : "\(host):\(request.port)"
    }

    /// The server's address, or the one that was tried last; `nil` if there is none.
    package var lastServer: Endpoint? {
        remarks.failedAttempts?.last ?? waits.tried ?? report.server
    }

    /// The server's address, or the addresses that were tried with their results; `nil` if there
    /// are none.
    ///
    /// - Parameter ofTried: leaves out the addresses that the access rules refuse.
    func addressText(ofTried: Bool) -> String? {
        if let attempts = remarks.failedAttempts {
            return ofTried ? attempts.textOfTried : attempts.text
        }
        if let path = unixSocket { return UnixSocketPath.scheme + path }
        return report.server.map { "\($0)" }
    }

    /// The server as named in a reply. Clients that named it themselves see it; clients of a
    /// reverse listener need not know what is behind it.
    private var serverForClient: ErrorReply.Server? {
        switch ingress?.role {
        case .forward, .bound, .transparent: break
        case .reverse, .balanced, .admin, .proxied, .proof, nil: return nil
        }
        return serverText.map {
            ErrorReply.Server(
                name: $0, addresses: addressText(ofTried: true),
                nextHop: remarks.failedAttempts == nil
                    ? report.server : remarks.failedAttempts?.lastTried,
                carrier: report.serverCarrier)
        }
    }

    /// The exchange's id in replies and logs.
    var idText: String { String(hexadecimal: report.id, digits: 16) }

    /// Sends a complete reply of the gateway.
    func sendLocal(
        status: UInt16, phrase: String? = nil, contentType: StaticString?, closing: Bool,
        fields: (inout HeadWriter) -> Void = { _ in }, body: () -> [UInt8]
    ) {
        guard goesOn(after: .decided(.respond)), let client = clientItself else { return }
        report.answered(status)
        let content = body()
        var head = makeReplyHead(on: client, status, phrase)
        let start = head.fields.count
        head.fields.append(field: .date, date: environment.wallSeconds)
        if let contentType {
            head.fields.append(field: .contentType, contentType)
            head.fields.append("Cache-Control: no-store\r\n")
        }
        fields(&head.fields)
        if ingress?.isCounted ?? false { cacheStatusOfReply.append(to: &head.fields) }
        head.fields.append(field: .contentLength, decimal: UInt64(content.count))
        if let name = pseudonym {
            head = head.replacingFields(from: start, in: environment.loop.buffers) {
                name.fields(of: $0, from: start)
            }
        }
        let isHeadOnly = request.method == .head
        client.sendHead(
            head, framing: isHeadOnly ? .none : .lengthInFields(UInt64(content.count)),
            closing: closing)
        if !isHeadOnly, !content.isEmpty {
            let buffer = environment.loop.buffers.take(bytes: content.count)
            buffer.writable.copyBytes(from: content)
            buffer.end = content.count
            client.send(buffer.readable, owner: buffer)
        }
        if client.finish(trailers: nil) { clientDrained() }
    }

    /// The client's stream, on which no rules of a route change the gateway's replies.
    private var clientItself: (any DownstreamStream)? {
        (client as? ChangedHeads)?.stream ?? client
    }

    /// Room for the fields of a reply.
    private static let replyFieldBytes = 4096

    func makeReplyHead(
        on client: any DownstreamStream, _ status: UInt16, _ phrase: String?
    ) -> HeadDraft {
        guard let phrase else {
            return client.makeHead(status: status, phrase: nil, room: Self.replyFieldBytes)
        }
        return client.makeHead(
            status: status, phrase: phrase.utf8.span, room: Self.replyFieldBytes)
    }

    /// The Cache-Status of a reply of the gateway.
    private var cacheStatusOfReply: CacheStatus {
        guard let reason = caching.forwardReason else { return .notForwarded(.bypass) }
        // RFC 9211 §2.2: only where the request went forward.
        guard forwarding.wasSent else { return .notForwarded(reason) }
        return .forwarded(CacheStatus.Forwarded(reason: reason))
    }

    // MARK: Replies that are not errors

    /// The client has proved who it is, and will say what it asks for. Only that is reported.
    func acceptProof() {
        report.made()
        environment.exchangeGoesOn()
        sendLocal(status: 200, contentType: nil, closing: false, body: { [] })
    }

    /// OPTIONS * is about the gateway itself.
    func answerOptions() {
        sendLocal(status: 200, contentType: nil, closing: false) {
            appendAllow(to: &$0)
        } body: {
            []
        }
    }

    /// The methods that the listener accepts. Others are forwarded as well, but cannot be listed.
    private func appendAllow(to writer: inout HeadWriter) {
        writer.append("Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, PATCH")
        if case .forward = ingress?.role { writer.append(", CONNECT") }
        writer.appendLineEnd()
    }

    /// Max-Forwards is 0: the gateway is the final recipient (RFC 9110 §9.3.7, §9.3.8).
    func answerAsLastHop() {
        guard request.method == .trace else { return answerOptions() }
        sendLocal(status: 200, contentType: "message/http", closing: false) {
            requestWithoutSecrets()
        }
    }

    private func requestWithoutSecrets() -> [UInt8] {
        let secrets = FieldIDSet([.authorization, .proxyAuthorization, .cookie])
        let room = request.length + 16
        return [UInt8](unsafeUninitializedCapacity: room) { memory, count in
            var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
            withRequestHead { bytes in
                writer.appendRequestLine(of: request, in: bytes)
                writer.appendFields(
                    request.fields, of: bytes, omitting: secrets,
                    dropsNominated: origin?.takesPurgeTokens ?? false)
            }
            writer.appendLineEnd()
            count = writer.overflowed ? 0 : writer.count
        }
    }
}
