extension FieldID {
    /// The known name that the bytes `start..<end` spell, ignoring case, or `other`.
    ///
    /// The length selects a few candidates; each is compared in one to four words with the bytes
    /// folded to lower case. This is exact whatever the bytes are (see ``CaseFolding``).
    @inline(__always)
    static func recognize(_ bytes: HeadBytes, from start: Int, to end: Int) -> FieldID {
        let count = end &- start
        if count < 8 { return recognize(short: FoldedName(short: bytes, start, end), count) }
        if count > 25 { return .other }
        let name = FoldedName(long: bytes, start, end)
        return count < 14 ? recognize(medium: name, count) : recognize(long: name, count)
    }

    /// The name at the beginning of a field line: which field it is, `other` if it is not a known
    /// one, and where its colon is. `nil` if the line does not begin with a token and a colon.
    /// - Parameter start: where the line begins.
    public static func name(
        from start: Int, in bytes: Span<UInt8>
    ) -> (id: FieldID, colon: Int)? {
        bytes.withUnsafeBufferPointer { buffer in
            guard let bytes = HeadBytes(buffer, count: buffer.count) else { return nil }
            let colon = bytes.endOfToken(from: start)
            guard colon > start, colon < bytes.count, bytes[colon] == Byte.colon else {
                return nil
            }
            return (recognize(bytes, from: start, to: colon), colon)
        }
    }

    /// Classifies the bytes `start..<end`, which are not a known name and end before a colon:
    /// `other`, `disguised`, or `nil` if they are not a token.
    @inline(never)
    static func unknown(_ bytes: HeadBytes, from start: Int, to end: Int) -> FieldID? {
        guard start < end, bytes.endOfToken(from: start) == end else { return nil }
        return otherOrDisguised(bytes, from: start, to: end)
    }

    /// As ``recognize(_:from:to:)``, for callers that are not on the hot path; also detects
    /// disguised names.
    @inline(never)
    static func recognizeOutOfLine(
        _ bytes: HeadBytes, from start: Int, to end: Int
    ) -> FieldID {
        let id = recognize(bytes, from: start, to: end)
        return id == .other ? otherOrDisguised(bytes, from: start, to: end) : id
    }

    @inline(__always)
    private static func recognize(short name: FoldedName, _ count: Int) -> FieldID {
        switch count {
        case 2:
            if name.isShort("te") { return .te }
        case 3:
            if name.isShort("via") { return .via }
            if name.isShort("age") { return .age }
        case 4:
            if name.isShort("host") { return .host }
            if name.isShort("date") { return .date }
            if name.isShort("etag") { return .etag }
            if name.isShort("vary") { return .vary }
        case 5:
            if name.isShort("range") { return .range }
            if name.isShort("allow") { return .allow }
        case 6:
            if name.isShort("accept") { return .accept }
            if name.isShort("cookie") { return .cookie }
            if name.isShort("server") { return .server }
            if name.isShort("origin") { return .origin }
            if name.isShort("pragma") { return .pragma }
            if name.isShort("expect") { return .expect }
        case 7:
            if name.isShort("expires") { return .expires }
            if name.isShort("referer") { return .referer }
            if name.isShort("upgrade") { return .upgrade }
            if name.isShort("alt-svc") { return .altSvc }
            if name.isShort("trailer") { return .trailer }
            if name.isShort("warning") { return .warning }
        default: break
        }
        return .other
    }

    @inline(__always)
    private static func recognize(medium name: FoldedName, _ count: Int) -> FieldID {
        switch count {
        case 8:
            if name.isLong("location") { return .location }
            if name.isLong("if-match") { return .ifMatch }
            if name.isLong("if-range") { return .ifRange }
        case 9:
            if name.isLong("forwarded") { return .forwarded }
        case 10:
            if name.isLong("user-agent") { return .userAgent }
            if name.isLong("connection") { return .connection }
            if name.isLong("set-cookie") { return .setCookie }
            if name.isLong("keep-alive") { return .keepAlive }
        case 11:
            if name.isLong("retry-after") { return .retryAfter }
            if name.isLong("set-cookie2") { return .setCookie }
        case 12:
            if name.isLong("content-type") { return .contentType }
            if name.isLong("max-forwards") { return .maxForwards }
            if name.isLong("cache-status") { return .cacheStatus }
            if name.isLong("proxy-status") { return .proxyStatus }
        case 13:
            if name.isLong("cache-control") { return .cacheControl }
            if name.isLong("last-modified") { return .lastModified }
            if name.isLong("accept-ranges") { return .acceptRanges }
            if name.isLong("authorization") { return .authorization }
            if name.isLong("if-none-match") { return .ifNoneMatch }
            if name.isLong("content-range") { return .contentRange }
        default: break
        }
        return .other
    }

    @inline(__always)
    private static func recognize(long name: FoldedName, _ count: Int) -> FieldID {
        switch count {
        case 14:
            if name.isLong("content-length") { return .contentLength }
            if name.isLong("http2-settings") { return .http2Settings }
        case 15:
            if name.isLong("accept-encoding") { return .acceptEncoding }
            if name.isLong("accept-language") { return .acceptLanguage }
            if name.isLong("x-forwarded-for") { return .xForwardedFor }
        case 16:
            if name.isLong("content-encoding") { return .contentEncoding }
            if name.isLong("content-language") { return .contentLanguage }
            if name.isLong("content-location") { return .contentLocation }
            if name.isLong("proxy-connection") { return .proxyConnection }
            if name.isLong("www-authenticate") { return .wwwAuthenticate }
            if name.isLong("x-forwarded-host") { return .xForwardedHost }
            if name.isLong("x-forwarded-user") { return .xForwardedUser }
        case 17:
            if name.isLong("transfer-encoding") { return .transferEncoding }
            if name.isLong("if-modified-since") { return .ifModifiedSince }
            if name.isLong("cdn-cache-control") { return .cdnCacheControl }
            if name.isLong("x-forwarded-proto") { return .xForwardedProto }
        case 18:
            if name.isLong("proxy-authenticate") { return .proxyAuthenticate }
        case 19:
            if name.isLong("if-unmodified-since") { return .ifUnmodifiedSince }
            if name.isLong("proxy-authorization") { return .proxyAuthorization }
            if name.isLong("authentication-info") { return .authenticationInfo }
        case 25:
            if name.isLong("strict-transport-security") { return .strictTransportSecurity }
            if name.isLong("proxy-authentication-info") { return .proxyAuthenticationInfo }
        default: break
        }
        return .other
    }
}

/// A name of at most 25 bytes, folded to lower case, as (overlapping) words that cover it.
private struct FoldedName {
    /// The first eight bytes, or all of a shorter name padded with zeros.
    private let first: UInt64
    private let last: UInt64
    private let second: UInt64
    private let third: UInt64

    /// A name of 0 to 7 bytes; an empty one matches nothing.
    @inline(__always)
    init(short bytes: HeadBytes, _ start: Int, _ end: Int) {
        first = start < end ? CaseFolding.fold(bytes.shortWord(from: start, to: end)) : 0
        last = 0
        second = 0
        third = 0
    }

    /// A name of 8 to 25 bytes.
    @inline(__always)
    init(long bytes: HeadBytes, _ start: Int, _ end: Int) {
        first = CaseFolding.fold(bytes.word(at: start))
        last = CaseFolding.fold(bytes.word(at: end &- 8))
        second = end &- start > 16 ? CaseFolding.fold(bytes.word(at: start &+ 8)) : 0
        third = end &- start > 24 ? CaseFolding.fold(bytes.word(at: start &+ 16)) : 0
    }

    /// Whether this is `name`, of fewer than eight bytes; it is compared with a constant.
    @inline(__always)
    func isShort(_ name: StaticString) -> Bool { first == CaseFolding.short(name) }

    /// Whether this is `name`, of 8 to 25 bytes, when the lengths are known to be equal.
    @inline(__always)
    func isLong(_ name: StaticString) -> Bool {
        let count = name.utf8CodeUnitCount
        return first == CaseFolding.word(of: name, at: 0)
            && last == CaseFolding.word(of: name, at: count &- 8)
            && (count <= 16 || second == CaseFolding.word(of: name, at: 8))
            && (count <= 24 || third == CaseFolding.word(of: name, at: 16))
    }
}

// Names that can be mistaken for known ones because `_` takes the place of `-`.
extension FieldID {
    /// The fields that a message's framing or this hop's connection depends on and whose names have
    /// a `-`: they must not be forwarded in disguise.
    public static let disguisable = FieldIDSet([
        .contentLength, .transferEncoding, .keepAlive, .proxyConnection, .http2Settings,
        .maxForwards, .proxyAuthorization, .proxyAuthenticate, .proxyAuthenticationInfo,
    ])

    /// Bit n is set if a name of n bytes is in `disguisable`. Written out, so that it is a
    /// constant.
    @inline(__always)
    static var disguisableLengths: UInt64 {
        1 &<< 10 | 1 &<< 12 | 1 &<< 14 | 1 &<< 16 | 1 &<< 17 | 1 &<< 18 | 1 &<< 19 | 1 &<< 25
    }

    /// Whether the bytes `start..<end`, which are not a known name, are one in disguise, with `_`
    /// for `-`: `other`, `disguised`, or the name itself if it needs not be refused. Takes a few
    /// instructions for a name without `_`.
    @inline(__always)
    static func otherOrDisguised(_ bytes: HeadBytes, from start: Int, to end: Int) -> FieldID {
        let count = end &- start
        guard count < 64, disguisableLengths & (1 &<< UInt64(count)) != 0 else { return .other }
        // All lengths in question are from 10 to 25: three words cover every position of a hyphen.
        let middle = bytes.word(at: min(start &+ 8, end &- 8))
        let underscores =
            WordSearch.equal(Byte.underscore, in: bytes.word(at: start))
            | WordSearch.equal(Byte.underscore, in: middle)
            | WordSearch.equal(Byte.underscore, in: bytes.word(at: end &- 8))
        return underscores == 0 ? .other : detectDisguise(bytes, from: start, to: end)
    }

    @inline(never)
    private static func detectDisguise(
        _ bytes: HeadBytes, from start: Int, to end: Int
    ) -> FieldID {
        func isLike(_ id: FieldID) -> Bool {
            let name = id.name
            return name.utf8CodeUnitCount == end &- start
                && (0..<(end &- start)).allSatisfy { offset in
                    let byte = ASCII.lowercased(bytes[start &+ offset])
                    let expected = ASCII.lowercased(name.utf8Start[offset])
                    return byte == expected || byte == Byte.underscore && expected == 0x2D
                }
        }
        if disguisable.ids.contains(where: isLike) { return .disguised }
        return isLike(.xForwardedUser) ? .xForwardedUser : .other
    }
}
