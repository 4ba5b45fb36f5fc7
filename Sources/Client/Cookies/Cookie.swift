/// A cookie as it is stored (RFC 6265, section 5.3).
public struct Cookie: Hashable, Sendable {
    /// To which requests from other sites browsers send a cookie. It is kept for those who ask, and
    /// decides nothing here: a library has no page from whose site a request could come.
    public enum SameSite: String, Hashable, Sendable, CaseIterable {
        /// The attribute was missing, or said something else.
        case unspecified
        /// To all.
        case none
        /// To those that lead to another page.
        case lax
        /// To none.
        case strict
    }

    /// May be empty: browsers keep what has no `=` as a value without a name.
    public var name: String {
        get { String(decoding: nameBytes, as: UTF8.self) }
        set { nameBytes = Array(newValue.utf8) }
    }
    /// As the server wrote it, quotes among it.
    public var value: String {
        get { String(decoding: valueBytes, as: UTF8.self) }
        set { valueBytes = Array(newValue.utf8) }
    }
    /// The name as it is sent, which need not be UTF-8.
    public var nameBytes: [UInt8]
    /// The value as it is sent, which need not be UTF-8.
    public var valueBytes: [UInt8]
    /// In lower case, without a dot at its beginning or end.
    public var domain: String
    /// Only ``domain`` itself is meant, not the names below it.
    public var isHostOnly: Bool
    /// Begins with `/`.
    public var path: String
    /// Never sent in clear text.
    public var isSecureOnly: Bool
    /// Hidden from other callers than HTTP requests.
    public var isHTTPOnly: Bool
    /// What the SameSite attribute says.
    public var sameSite: SameSite
    /// Seconds since 1970 at which it is no longer sent; nil: it goes with the session.
    public var expires: Int64?
    /// Seconds since 1970.
    public var created: Int64

    /// A cookie for one host and all its paths, until the session ends.
    public init(
        name: String, value: String, domain: String, isHostOnly: Bool = true, path: String = "/",
        isSecureOnly: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified,
        expires: Int64? = nil, created: Int64 = 0
    ) {
        self.init(
            nameBytes: Array(name.utf8), valueBytes: Array(value.utf8), domain: domain,
            isHostOnly: isHostOnly, path: path, isSecureOnly: isSecureOnly, isHTTPOnly: isHTTPOnly,
            sameSite: sameSite, expires: expires, created: created)
    }

    /// The same with a name and a value that need not be UTF-8.
    public init(
        nameBytes: [UInt8], valueBytes: [UInt8], domain: String, isHostOnly: Bool = true,
        path: String = "/", isSecureOnly: Bool = false, isHTTPOnly: Bool = false,
        sameSite: SameSite = .unspecified, expires: Int64? = nil, created: Int64 = 0
    ) {
        (self.nameBytes, self.valueBytes) = (nameBytes, valueBytes)
        self.domain = HostName.canonical(domain)
        (self.isHostOnly, self.path) = (isHostOnly, path)
        (self.isSecureOnly, self.isHTTPOnly) = (isSecureOnly, isHTTPOnly)
        (self.sameSite, self.expires, self.created) = (sameSite, expires, created)
    }

    /// As it is written into a Cookie field: `name=value`, or the value alone without a name.
    public var pair: String { String(decoding: pairBytes, as: UTF8.self) }

    /// The same as it is sent, which need not be UTF-8.
    public var pairBytes: [UInt8] {
        nameBytes.isEmpty ? valueBytes : nameBytes + [UInt8(ascii: "=")] + valueBytes
    }

    /// Whether a request takes it along (RFC 6265, section 5.4), its end left aside.
    public func applies(to request: CookieRequest) -> Bool {
        let host = request.host
        guard isHostOnly ? host == domain : HostName.matches(host, domain: domain) else {
            return false
        }
        return CookiePath.matches(request.path, path)
            && (request.isSecure || !isSecureOnly) && (request.isHTTP || !isHTTPOnly)
    }

    /// What makes two cookies the same.
    func isSame(as other: Cookie) -> Bool {
        nameBytes == other.nameBytes && domain == other.domain && isHostOnly == other.isHostOnly
            && path == other.path
    }

    func isExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }
}

/// The request that brings a cookie along, or whose response sets one.
public struct CookieRequest: Hashable, Sendable {
    /// In lower case, without a final dot; an IPv6 address without brackets.
    public let host: String
    /// The path of its URL, without the query; `/` for none.
    public let path: String
    /// Whether its connection is one by TLS.
    public let isSecure: Bool
    /// False for a caller that scripts of a page stand behind: it neither sees nor sets what is
    /// HttpOnly.
    public let isHTTP: Bool

    /// The name that somebody registered (`example.com`), by the list of public suffixes; an
    /// address is its own.
    public var site: String { HostName.site(of: host) }

    /// - Parameters:
    ///   - host: of the URL, names in ASCII (Punycode).
    ///   - path: of the URL; what follows `?` or `#` is left out.
    public init(host: String, path: String = "/", isSecure: Bool, isHTTP: Bool = true) {
        self.host = HostName.canonical(host)
        let end = path.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let bare = path[..<(end ?? path.endIndex)]
        self.path = bare.utf8.first == UInt8(ascii: "/") ? String(bare) : "/"
        (self.isSecure, self.isHTTP) = (isSecure, isHTTP)
    }
}

/// Paths of cookies (RFC 6265, section 5.1.4).
enum CookiePath {
    /// The path of a cookie that names none: the request's up to its last slash.
    static func byDefault(of request: String) -> String {
        guard let slash = request.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != request.startIndex
        else { return "/" }
        return String(request[..<slash])
    }

    /// Whether a request's path is a cookie's, or below it.
    static func matches(_ request: String, _ path: String) -> Bool {
        let (request, path) = (request.utf8, path.utf8)
        guard request.starts(with: path) else { return false }
        return request.count == path.count || path.last == UInt8(ascii: "/")
            || request.dropFirst(path.count).first == UInt8(ascii: "/")
    }
}
