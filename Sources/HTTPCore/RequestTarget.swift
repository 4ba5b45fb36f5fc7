extension RequestHead {
    /// Finds the target's form and parts, and holds the form against the method (RFC 9112 §3.2).
    ///
    ///     origin-form    = absolute-path [ "?" query ]
    ///     absolute-form  = scheme "://" authority [ path ] [ "?" query ]
    ///     authority-form = host ":" port          ; CONNECT, and CONNECT only
    ///     asterisk-form  = "*"                    ; OPTIONS only
    ///
    /// The bytes of path and query are passed on as they are: any visible ASCII but `#`, which is
    /// more than RFC 3986 allows, because what browsers leave unencoded there is not ambiguous here.
    @inline(__always)
    mutating func resolveTarget(_ bytes: HeadBytes) throws(WireError) {
        scheme = .http
        hostConflicts = false
        if bytes[Int(target.start)] == Byte.slash, method != .connect {
            form = .origin
            path = target
        } else {
            try resolveRareTarget(bytes)
        }
    }

    @inline(never)
    private mutating func resolveRareTarget(_ bytes: HeadBytes) throws(WireError) {
        if method == .connect {
            try resolveAuthorityForm(bytes)
        } else if bytes[Int(target.start)] == Byte.asterisk {
            guard target.count == 1 else { throw .malformedTarget }
            guard method == .options else { throw .targetFormForbidden }
            form = .asterisk
            path = target
        } else {
            try resolveAbsoluteForm(bytes)
        }
    }

    private mutating func resolveAuthorityForm(_ bytes: HeadBytes) throws(WireError) {
        guard bytes[Int(target.start)] != Byte.slash, schemeEnd(bytes) == nil,
            bytes[Int(target.start)] != Byte.asterisk
        else { throw .targetFormForbidden }
        let named = try targetAuthority(bytes, target)
        guard let port = named.port else { throw .malformedAuthority }
        form = .authority
        authority = target
        path = ByteRange()
        adopt(named, port: port)
    }

    private mutating func resolveAbsoluteForm(_ bytes: HeadBytes) throws(WireError) {
        guard let schemeEnd = schemeEnd(bytes) else { throw .malformedTarget }
        let schemeRange = ByteRange(from: Int(target.start), to: schemeEnd)
        if bytes.holds(lowercase: "http", at: schemeRange) {
            scheme = .http
        } else if bytes.holds(lowercase: "https", at: schemeRange) {
            scheme = .https
        } else {
            throw .unsupportedScheme
        }
        let start = schemeEnd &+ 3
        let end = Int(target.end)
        var pathStart = start
        while pathStart < end, bytes[pathStart] != Byte.slash, bytes[pathStart] != Byte.question {
            pathStart &+= 1
        }
        form = .absolute
        authority = ByteRange(from: start, to: pathStart)
        path = ByteRange(from: pathStart, to: end)
        let named = try targetAuthority(bytes, authority)
        adopt(named, port: named.port ?? scheme.defaultPort)
    }

    /// Where the scheme of an absolute-form ends: before `://`; nil when there is none.
    private func schemeEnd(_ bytes: HeadBytes) -> Int? {
        let end = Int(target.end)
        guard let colon = bytes.first(Byte.colon, from: Int(target.start), to: end),
            colon > Int(target.start), colon &+ 2 < end,
            bytes[colon &+ 1] == Byte.slash, bytes[colon &+ 2] == Byte.slash
        else { return nil }
        return colon
    }

    private func targetAuthority(
        _ bytes: HeadBytes, _ range: ByteRange
    ) throws(WireError) -> Authority {
        if let authority = Authority.parse(bytes, range) { return authority }
        let at = bytes.first(Byte.at, from: Int(range.start), to: Int(range.end))
        throw at == nil ? .malformedAuthority : .userinfoInTarget
    }

    @inline(__always)
    mutating func adopt(_ named: Authority, port: UInt16) {
        host = named.host
        hostKind = named.kind
        self.port = port
        hasExplicitPort = named.port != nil
    }
}
