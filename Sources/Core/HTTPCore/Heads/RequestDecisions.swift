extension RequestHead {
    /// If none of these fields is present, the decisions of ``decide(_:_:)`` are trivial, apart
    /// from Host.
    private static let deciding: FieldIDSet = FieldIDSet([
        .transferEncoding, .contentLength, .connection, .proxyConnection, .expect, .te, .upgrade,
        .maxForwards, .disguised,
    ])

    /// Validates a complete head: Host, framing, connection and expectations.
    @inline(__always)
    mutating func decide(_ bytes: HeadBytes, _ limits: HeadLimits) throws(WireError) {
        try decideHost(bytes)
        framing = .none
        keepAlive = version.persistsByDefault
        wantsUpgrade = false
        expectsContinue = false
        acceptsTrailers = false
        guard fields.present.intersects(Self.deciding) else { return }
        guard !fields.contains(.disguised) else { throw .disguisedFieldName }
        try decideFraming(bytes)
        try decideConnection(bytes, limits)
        if fields.contains(.expect) { try decideExpectation(bytes) }
        if fields.contains(.te) { acceptsTrailers = namesTrailers(bytes) }
        if fields.contains(.maxForwards) { try checkMaxForwards(bytes) }
    }

    /// Exactly one valid Host in HTTP/1.1, at most one in HTTP/1.0 (RFC 9112 §3.2). It is also
    /// checked if the target contains the authority.
    @inline(__always)
    private mutating func decideHost(_ bytes: HeadBytes) throws(WireError) {
        guard let field = fields.first(.host) else {
            guard !version.requiresHost else { throw .hostMissing }
            if form == .origin || form == .asterisk {
                authority = ByteRange()
                adopt(Authority(host: ByteRange(), kind: .none, port: nil), port: 80)
            }
            return
        }
        guard !fields.repeated.contains(.host) else { throw .hostRepeated }
        // The usual case for a proxy: the same bytes as in the target, which were already
        // validated.
        if form == .absolute, bytes.equal(field.value, authority) { return }
        // An empty Host cannot conflict with the target (RFC 9112 §3.2.2).
        if field.value.isEmpty, form == .absolute || form == .authority { return }
        guard let named = Authority.parse(bytes, field.value) else { throw .malformedHost }
        switch form {
        case .origin, .asterisk:
            authority = field.value
            adopt(named, port: named.port ?? scheme.defaultPort)
        case .absolute:
            hostConflicts =
                (named.port ?? scheme.defaultPort) != port
                || !bytes.equalIgnoringCase(named.host, host)
        case .authority:
            hostConflicts =
                (named.port ?? port) != port || !bytes.equalIgnoringCase(named.host, host)
        }
    }

    /// RFC 9112 §6.3 for requests. CONNECT has no content (RFC 9110 §9.3.6): what follows its head
    /// belongs to the tunnel, so announced content would be ambiguous. TRACE must not have content
    /// (RFC 9110 §9.3.8).
    private mutating func decideFraming(_ bytes: HeadBytes) throws(WireError) {
        framing = try MessageFraming.read(fields, version, bytes) ?? .none
        switch method {
        case .connect: try refuseContent(.contentInConnect)
        case .trace: try refuseContent(.contentInTrace)
        default: break
        }
    }

    @inline(never)
    private mutating func refuseContent(_ fault: WireError) throws(WireError) {
        guard framing == .none || framing == .length(0) else { throw fault }
        framing = .none
    }

    /// An HTTP/1.0 client of a proxy may send `Proxy-Connection: keep-alive` instead of Connection;
    /// it is honoured only in HTTP/1.0 and if there is no Connection field.
    private mutating func decideConnection(
        _ bytes: HeadBytes, _ limits: HeadLimits
    ) throws(WireError) {
        if fields.contains(.connection) {
            let options = try ConnectionOptions.read(
                fields, bytes, limit: limits.connectionOptions)
            if options.nominates { ConnectionOptions.markNominated(&fields, bytes) }
            keepAlive = options.persists(version)
            if options.upgrade, version.hasUpgrade, fields.contains(.upgrade) {
                wantsUpgrade = UpgradeProtocols.areForwarded(of: fields, in: bytes)
            }
        } else if !version.persistsByDefault, let field = fields.only(.proxyConnection) {
            keepAlive = bytes.holds(lowercase: "keep-alive", at: field.value)
        }
    }

    /// `100-continue` is the only expectation that is defined; HTTP/1.0 clients cannot use it (RFC
    /// 9110 §10.1.1).
    ///
    ///     Expect = #expectation
    private mutating func decideExpectation(_ bytes: HeadBytes) throws(WireError) {
        for index in 0..<fields.count where fields[index].id == .expect {
            var list = TokenList(fields[index].value, allowsEmpty: true)
            while let expectation = try list.next(bytes, fault: .unknownExpectation) {
                guard bytes.holds(lowercase: "100-continue", at: expectation) else {
                    throw .unknownExpectation
                }
                expectsContinue = version.hasInterimResponses
            }
        }
    }

    /// Exactly one number in requests to which Max-Forwards applies (RFC 9110 §7.6.2): with any
    /// other value it would be unclear how often they may be forwarded.
    private func checkMaxForwards(_ bytes: HeadBytes) throws(WireError) {
        guard MaxForwards.counts(method) else { return }
        guard let field = fields.only(.maxForwards) else { throw .repeatedMaxForwards }
        guard !field.value.isEmpty else { throw .malformedMaxForwards }
        for index in field.value.indices where !ASCII.isDigit(bytes[index]) {
            throw .malformedMaxForwards
        }
    }

    /// Whether a TE field lists `trailers` (RFC 9110 §10.1.4).
    private func namesTrailers(_ bytes: HeadBytes) -> Bool {
        for field in fields where field.id == .te {
            var start = Int(field.value.start)
            let end = Int(field.value.end)
            while start < end {
                let comma = bytes.first(Byte.comma, from: start, to: end) ?? end
                let element = bytes.trimmed(from: start, to: comma)
                if bytes.holds(lowercase: "trailers", at: element) { return true }
                start = comma &+ 1
            }
        }
        return false
    }
}
