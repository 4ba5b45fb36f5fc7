import HTTPCore

/// Stores cookies and selects them for requests (RFC 6265, sections 5.3 and 5.4, and
/// draft-ietf-httpbis-rfc6265bis, sections 5.7 and 5.8, where all browsers deviate from the RFC).
///
/// A jar is a value without a clock and without a file. Times are in seconds since 1970.
/// `CookieFile` saves a jar between processes.
public struct CookieJar: Sendable {
    /// The maximum number of cookies in the jar and in a request.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of cookies for a registrable domain (`example.com`) with all its
        /// subdomains.
        public var cookiesPerSite: Int
        /// The maximum number of cookies in the jar.
        public var cookies: Int

        /// The maximum number of cookies in a request.
        public var cookiesPerRequest: Int
        /// The maximum length of a request's Cookie field value, in bytes. Servers reject heads
        /// that are too long, so without this limit, anyone who can set enough cookies could make a
        /// site unreachable.
        public var bytesPerRequest: Int

        /// Creates limits. RFC 6265 requires at least 50 cookies per domain and 3000 in total
        /// (section 6.1); browsers allow 180 per site. The defaults for a request are those of
        /// curl.
        public init(
            cookiesPerSite: Int = 180, cookies: Int = 3000, cookiesPerRequest: Int = 150,
            bytesPerRequest: Int = 8190
        ) {
            precondition(
                cookiesPerSite > 0 && cookies > 0 && cookiesPerRequest > 0 && bytesPerRequest > 0,
                "all limits must be positive")
            (self.cookiesPerSite, self.cookies) = (cookiesPerSite, cookies)
            (self.cookiesPerRequest, self.bytesPerRequest) = (cookiesPerRequest, bytesPerRequest)
        }
    }

    /// The result of processing a Set-Cookie field.
    public enum Outcome: Hashable, Sendable {
        /// The cookie was stored. It replaced an existing cookie with the same name, domain and
        /// path.
        case stored
        /// The cookie has already expired, so the existing cookie that it replaces was removed.
        case removed
        /// Nothing has changed, for the given reason.
        case refused(CookieError)
    }

    private struct Entry: Sendable {
        var cookie: Cookie
        /// When the cookie was last accessed, in seconds since 1970.
        var accessed: Int64
        /// A counter that orders cookies created in the same second.
        var order: UInt64
    }

    /// The jar's limits.
    public let limits: Limits
    /// The entries by site, unordered within a site.
    private var sites: [String: [Entry]] = [:]
    private var nextOrder: UInt64 = 0
    /// The number of cookies, including expired ones that have not been removed yet.
    public private(set) var count = 0

    /// Creates an empty jar.
    public init(limits: Limits = Limits()) { self.limits = limits }

    /// All cookies in the order of their creation.
    public var cookies: [Cookie] { entries.map(\.cookie) }

    /// All cookies with the second of their last access, in the order of their creation.
    var entries: [(cookie: Cookie, accessed: Int64)] {
        sites.values.joined().sorted { Self.isEarlier($0, $1) }.map { ($0.cookie, $0.accessed) }
    }

    /// Returns the value of a request's Cookie field, or `nil` if no cookie matches. All matching
    /// cookies count as accessed. If there are more than ``Limits`` allows, the first ones in order
    /// are used; a cookie that does not fit into the remaining bytes is skipped.
    public mutating func field(for request: CookieRequest, at now: Int64) -> String? {
        fieldBytes(for: request, at: now).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns the bytes of the Cookie field's value as they are sent. They need not be valid
    /// UTF-8.
    public mutating func fieldBytes(for request: CookieRequest, at now: Int64) -> [UInt8]? {
        var field: [UInt8] = []
        var count = 0
        for cookie in cookies(for: request, at: now) {
            guard count < limits.cookiesPerRequest else { break }
            let pair = cookie.pairBytes
            let separator = Array((count == 0 ? "" : "; ").utf8)
            let bytes = field.count + separator.count + pair.count
            guard bytes <= limits.bytesPerRequest else { continue }
            field += separator
            field += pair
            count += 1
        }
        return count == 0 ? nil : field
    }

    /// Returns the cookies for a request: those with longer paths first, then the older ones first.
    /// They count as accessed.
    public mutating func cookies(for request: CookieRequest, at now: Int64) -> [Cookie] {
        let site = HostName.site(of: request.host)
        guard var entries = sites[site] else { return [] }
        entries.removeAll { $0.cookie.isExpired(at: now) }
        var found: [Entry] = []
        for index in entries.indices where entries[index].cookie.applies(to: request) {
            entries[index].accessed = now
            found.append(entries[index])
        }
        replace(site, by: entries)
        found.sort {
            let (first, second) = ($0.cookie.path.utf8.count, $1.cookie.path.utf8.count)
            return first == second ? Self.isEarlier($0, $1) : first > second
        }
        return found.map(\.cookie)
    }

    /// Processes a Set-Cookie field of a response.
    @discardableResult
    public mutating func store(
        setCookie field: String, from request: CookieRequest, at now: Int64
    ) -> Outcome { store(setCookie: Array(field.utf8), from: request, at: now) }

    /// Processes a Set-Cookie field of a response, which need not be valid UTF-8.
    @discardableResult
    public mutating func store(
        setCookie field: [UInt8], from request: CookieRequest, at now: Int64
    ) -> Outcome {
        do throws(CookieError) {
            let cookie = try Self.cookie(SetCookie(field), from: request, at: now)
            return try store(cookie, from: request, at: now)
        } catch {
            return .refused(error)
        }
    }

    /// Inserts a cookie that does not come from a response. An expired cookie removes the one that
    /// it would replace.
    public mutating func insert(_ cookie: Cookie, at now: Int64) {
        put(cookie, at: now)
    }

    /// Removes all cookies that match a predicate.
    public mutating func removeAll(where isRemoved: (Cookie) -> Bool) {
        for site in Array(sites.keys) {
            replace(site, by: sites[site, default: []].filter { !isRemoved($0.cookie) })
        }
    }

    /// Removes all session cookies.
    public mutating func endSession() { removeAll { $0.expires == nil } }

    /// Removes all expired cookies.
    public mutating func removeExpired(at now: Int64) { removeAll { $0.isExpired(at: now) } }

    private static func isEarlier(_ first: Entry, _ second: Entry) -> Bool {
        (first.cookie.created, first.order) < (second.cookie.created, second.order)
    }

    private mutating func replace(_ site: String, by entries: [Entry]) {
        count += entries.count - (sites[site]?.count ?? 0)
        sites[site] = entries.isEmpty ? nil : entries
    }
}

// MARK: - Storing

extension CookieJar {
    /// Makes a cookie from a Set-Cookie field, applying the rules that do not depend on other
    /// cookies.
    private static func cookie(
        _ field: SetCookie, from request: CookieRequest, at now: Int64
    ) throws(CookieError) -> Cookie {
        var domain = field.domain ?? ""
        guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { throw .foreignDomain }
        if !domain.isEmpty, HostName.isPublicSuffix(domain) {
            guard domain == request.host else { throw .publicSuffix }
            domain = ""
        }
        guard domain.isEmpty || HostName.matches(request.host, domain: domain) else {
            throw .foreignDomain
        }
        if field.isSecure, !request.isSecure { throw .notSecure }
        if field.isHTTPOnly, !request.isHTTP { throw .notHTTP }
        let cookie = Cookie(
            nameBytes: field.name, valueBytes: field.value,
            domain: domain.isEmpty ? request.host : domain, isHostOnly: domain.isEmpty,
            path: field.path ?? CookiePath.byDefault(of: request.path),
            isSecureOnly: field.isSecure, isHTTPOnly: field.isHTTPOnly, sameSite: field.sameSite,
            expires: field.end(now: now), created: now)
        try check(prefixOf: cookie, hasPath: field.path != nil)
        return cookie
    }

    /// Checks what the name prefixes `__Secure-` and `__Host-` promise, in any letter case. A value
    /// without a name that begins with such a prefix is checked as well, because it looks the same
    /// to a server.
    private static func check(
        prefixOf cookie: Cookie, hasPath: Bool
    ) throws(CookieError) {
        let name = (cookie.name.isEmpty ? cookie.value : cookie.name).lowercasedASCII
        let isHost = name.utf8.starts(with: "__host-".utf8)
        guard isHost || name.utf8.starts(with: "__secure-".utf8) else { return }
        guard !cookie.name.isEmpty, cookie.isSecureOnly else { throw .namePrefix }
        if isHost {
            guard cookie.isHostOnly, hasPath, cookie.path == "/" else { throw .namePrefix }
        }
    }

    private mutating func store(
        _ cookie: Cookie, from request: CookieRequest, at now: Int64
    ) throws(CookieError) -> Outcome {
        for entry in sites[HostName.site(of: cookie.domain)] ?? [] {
            let other = entry.cookie
            guard other.nameBytes == cookie.nameBytes, !other.isExpired(at: now) else { continue }
            // Whoever can read or write clear text must not be able to shadow a Secure cookie.
            if !request.isSecure, other.isSecureOnly,
                HostName.matches(other.domain, domain: cookie.domain)
                    || HostName.matches(cookie.domain, domain: other.domain),
                CookiePath.matches(cookie.path, other.path)
            {
                throw .notSecure
            }
            if !request.isHTTP, other.isHTTPOnly, other.isSame(as: cookie) { throw .notHTTP }
        }
        put(cookie, at: now)
        return cookie.isExpired(at: now) ? .removed : .stored
    }

    /// - Parameter accessed: The last access in seconds since 1970, or `nil` for now.
    mutating func put(_ cookie: Cookie, accessed: Int64? = nil, at now: Int64) {
        let site = HostName.site(of: cookie.domain)
        var entries = sites[site] ?? []
        var entry = Entry(cookie: cookie, accessed: accessed ?? now, order: nextOrder)
        nextOrder += 1
        if let index = entries.firstIndex(where: { $0.cookie.isSame(as: cookie) }) {
            let old = entries.remove(at: index)
            if !old.cookie.isExpired(at: now) {
                (entry.cookie.created, entry.order) = (old.cookie.created, old.order)
            }
        }
        if !cookie.isExpired(at: now) { entries.append(entry) }
        if entries.count > limits.cookiesPerSite {
            entries.removeAll { $0.cookie.isExpired(at: now) }
            Self.evict(&entries, most: limits.cookiesPerSite, keeping: entry.order)
        }
        replace(site, by: entries)
        if count > limits.cookies { evict(at: now, keeping: entry.order) }
    }

    /// Evicts a site's excess cookies: those that are not Secure first, and among them the least
    /// recently accessed (rfc6265bis, section 5.7). The cookie just stored is kept.
    private static func evict(_ entries: inout [Entry], most: Int, keeping order: UInt64) {
        while entries.count > most {
            let victim = entries.indices.filter { entries[$0].order != order }.min {
                let (first, second) = (entries[$0], entries[$1])
                if first.cookie.isSecureOnly != second.cookie.isSecureOnly {
                    return second.cookie.isSecureOnly
                }
                return (first.accessed, first.order) < (second.accessed, second.order)
            }
            guard let victim else { return }
            entries.remove(at: victim)
        }
    }

    /// Evicts excess cookies of all sites: expired ones first, then the least recently accessed.
    private mutating func evict(at now: Int64, keeping order: UInt64) {
        removeExpired(at: now)
        while count > limits.cookies {
            let victim = sites.lazy.flatMap { site, entries in
                entries.lazy.filter { $0.order != order }.map { (site, $0.accessed, $0.order) }
            }.min { ($0.1, $0.2) < ($1.1, $1.2) }
            guard let victim else { return }
            replace(victim.0, by: sites[victim.0, default: []].filter { $0.order != victim.2 })
        }
    }
}
