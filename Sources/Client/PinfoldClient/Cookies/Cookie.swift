/// A cookie as it is stored (RFC 6265, section 5.3).
public struct Cookie: Hashable, Sendable {
    /// The SameSite attribute: for which cross-site requests a browser sends the cookie. It is
    /// stored for callers that want to read it, but has no effect here: a library has no page, and
    /// so no site, from which a request could come.
    public enum SameSite: String, Hashable, Sendable, CaseIterable {
        /// The attribute is missing or has an unknown value.
        case unspecified
        /// Sent with all cross-site requests.
        case none
        /// Sent only with cross-site requests that navigate to another page.
        case lax
        /// Never sent with cross-site requests.
        case strict
    }

    /// The name, decoded as UTF-8. It may be empty: like browsers, the jar stores a cookie without
    /// `=` as a value without a name.
    public var name: String {
        get { String(decoding: nameBytes, as: UTF8.self) }
        set { nameBytes = Array(newValue.utf8) }
    }
    /// The value as the server wrote it, including any quotation marks, decoded as UTF-8.
    public var value: String {
        get { String(decoding: valueBytes, as: UTF8.self) }
        set { valueBytes = Array(newValue.utf8) }
    }
    /// The bytes of the name as they are sent. They need not be valid UTF-8.
    public var nameBytes: [UInt8]
    /// The bytes of the value as they are sent. They need not be valid UTF-8.
    public var valueBytes: [UInt8]
    /// The domain in lower case, without a leading or trailing dot.
    public var domain: String
    /// Whether the cookie is sent only to ``domain`` itself, not to its subdomains.
    public var isHostOnly: Bool
    /// The path prefix for which the cookie is sent. It begins with `/`.
    public var path: String
    /// Whether the cookie is sent only over secure connections (the Secure attribute).
    public var isSecureOnly: Bool
    /// Whether the cookie is hidden from callers other than HTTP requests (the HttpOnly attribute).
    public var isHTTPOnly: Bool
    /// The SameSite attribute.
    public var sameSite: SameSite
    /// When the cookie expires, in seconds since 1970, or `nil` for a session cookie.
    public var expires: Int64?
    /// When the cookie was created, in seconds since 1970.
    public var created: Int64

    /// Creates a cookie. By default, it is a session cookie for one host and all its paths.
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

    /// Creates a cookie whose name and value need not be valid UTF-8.
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

    /// The cookie as it appears in a Cookie field: `name=value`, or the value alone if the name is
    /// empty.
    public var pair: String { String(decoding: pairBytes, as: UTF8.self) }

    /// The bytes of ``pair`` as they are sent. They need not be valid UTF-8.
    public var pairBytes: [UInt8] {
        nameBytes.isEmpty ? valueBytes : nameBytes + [UInt8(ascii: "=")] + valueBytes
    }

    /// Whether the cookie belongs in a request (RFC 6265, section 5.4). This does not check whether
    /// it has expired.
    public func applies(to request: CookieRequest) -> Bool {
        let host = request.host
        guard isHostOnly ? host == domain : HostName.matches(host, domain: domain) else {
            return false
        }
        return CookiePath.matches(request.path, path)
            && (request.isSecure || !isSecureOnly) && (request.isHTTP || !isHTTPOnly)
    }

    /// Whether this cookie replaces another one: both have the same name, domain and path.
    func isSame(as other: Cookie) -> Bool {
        nameBytes == other.nameBytes && domain == other.domain && isHostOnly == other.isHostOnly
            && path == other.path
    }

    func isExpired(at now: Int64) -> Bool { expires.map { $0 <= now } ?? false }
}

/// The request to which cookies are attached, or whose response sets them.
public struct CookieRequest: Hashable, Sendable {
    /// The host in lower case, without a trailing dot. An IPv6 address has no brackets.
    public let host: String
    /// The path of the request's URL without the query, or `/` if the URL has none.
    public let path: String
    /// Whether the connection uses TLS.
    public let isSecure: Bool
    /// Whether the caller may read and set HttpOnly cookies. Pass `false` for a caller that acts on
    /// behalf of a page's scripts.
    public let isHTTP: Bool

    /// The registrable domain (`example.com`) according to the public suffix list. The site of an
    /// IP address is the address itself.
    public var site: String { HostName.site(of: host) }

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - host: The URL's host, with internationalized names in ASCII (Punycode).
    ///   - path: The URL's path. Anything after `?` or `#` is ignored.
    ///   - isSecure: Whether the connection uses TLS.
    ///   - isHTTP: Whether the caller may read and set HttpOnly cookies.
    public init(host: String, path: String = "/", isSecure: Bool, isHTTP: Bool = true) {
        self.host = HostName.canonical(host)
        let end = path.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let bare = path[..<(end ?? path.endIndex)]
        self.path = bare.utf8.first == UInt8(ascii: "/") ? String(bare) : "/"
        (self.isSecure, self.isHTTP) = (isSecure, isHTTP)
    }
}

/// The path rules for cookies (RFC 6265, section 5.1.4).
enum CookiePath {
    /// The default path of a cookie without a Path attribute: the request's path up to its last
    /// slash.
    static func byDefault(of request: String) -> String {
        guard let slash = request.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != request.startIndex
        else { return "/" }
        return String(request[..<slash])
    }

    /// Whether a request's path is equal to the cookie's path or below it.
    static func matches(_ request: String, _ path: String) -> Bool {
        let (request, path) = (request.utf8, path.utf8)
        guard request.starts(with: path) else { return false }
        return request.count == path.count || path.last == UInt8(ascii: "/")
            || request.dropFirst(path.count).first == UInt8(ascii: "/")
    }
}
