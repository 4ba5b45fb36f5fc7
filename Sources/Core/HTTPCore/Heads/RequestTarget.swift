extension RequestHead {
    /// Finds the target's form and parts, and checks the form against the method (RFC 9112 §3.2).
    ///
    ///     origin-form    = absolute-path [ "?" query ]
    ///     absolute-form  = scheme "://" authority [ path ] [ "?" query ]
    ///     authority-form = host ":" port          ; CONNECT, and CONNECT only
    ///     asterisk-form  = "*"                    ; OPTIONS only
    ///
    /// The bytes of path and query are forwarded unchanged: any visible ASCII except `#`, which is
    /// more than RFC 3986 allows, because the characters that browsers leave unencoded are not
    /// ambiguous here.
    @inline(__always)
    mutating func resolveTarget(
        _ bytes: HeadBytes, _ previous: inout PreviousAuthority
    ) throws(WireError) {
        scheme = .http
        hostConflicts = false
        if method == .connect { return try resolveRareTarget(bytes, &previous) }
        if bytes[Int(target.start)] == Byte.slash {
            form = .origin
            path = target
        } else if !previous.resolve(&self, bytes) {
            try resolveRareTarget(bytes, &previous)
        }
    }

    @inline(never)
    private mutating func resolveRareTarget(
        _ bytes: HeadBytes, _ previous: inout PreviousAuthority
    ) throws(WireError) {
        if method == .connect {
            try resolveAuthorityForm(bytes)
        } else if bytes[Int(target.start)] == Byte.asterisk {
            guard target.count == 1 else { throw .malformedTarget }
            guard method == .options else { throw .targetFormForbidden }
            form = .asterisk
            path = target
        } else {
            try resolveAbsoluteForm(bytes)
            previous.note(self, bytes)
        }
    }

    private mutating func resolveAuthorityForm(_ bytes: HeadBytes) throws(WireError) {
        guard bytes[Int(target.start)] != Byte.slash, bytes[Int(target.start)] != Byte.asterisk,
            schemeEnd(bytes) == nil
        else { throw .targetFormForbidden }
        guard let named = Authority.parse(bytes, target) else {
            throw authorityFault(bytes, from: Int(target.start))
        }
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
        guard let named = Authority.scan(bytes, from: start, to: end),
            named.end == end || bytes[named.end] == Byte.slash || bytes[named.end] == Byte.question
        else { throw authorityFault(bytes, from: start) }
        form = .absolute
        authority = ByteRange(from: start, to: named.end)
        path = ByteRange(from: named.end, to: end)
        adopt(named.authority, port: named.authority.port ?? scheme.defaultPort)
    }

    /// The end of an absolute-form target's scheme, before `://`; `nil` if there is none.
    private func schemeEnd(_ bytes: HeadBytes) -> Int? {
        let end = Int(target.end)
        guard let colon = bytes.first(Byte.colon, from: Int(target.start), to: end),
            colon > Int(target.start), colon &+ 2 < end,
            bytes[colon &+ 1] == Byte.slash, bytes[colon &+ 2] == Byte.slash
        else { return nil }
        return colon
    }

    /// The error in the authority that begins at `start` in the target.
    private func authorityFault(_ bytes: HeadBytes, from start: Int) -> WireError {
        var index = start
        while index < Int(target.end), bytes[index] != Byte.slash, bytes[index] != Byte.question {
            if bytes[index] == Byte.at { return .userinfoInTarget }
            index &+= 1
        }
        return .malformedAuthority
    }

    @inline(__always)
    mutating func adopt(_ named: Authority, port: UInt16) {
        host = named.host
        hostKind = named.kind
        self.port = port
        hasExplicitPort = named.port != nil
    }
}
