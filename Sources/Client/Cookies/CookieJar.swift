import HTTPCore

/// Cookies, stored and found again (RFC 6265, sections 5.3 and 5.4; where all browsers do
/// otherwise, draft-ietf-httpbis-rfc6265bis, sections 5.7 and 5.8).
///
/// A value: it knows no clock and no file. Times are seconds since 1970. ``CookieFile`` keeps a jar
/// from one process to the next.
public struct CookieJar: Sendable {
    /// How many cookies there may be, and how many of them a request carries.
    public struct Limits: Hashable, Sendable {
        /// Of one registered name (`example.com`) and all names below it.
        public var cookiesPerSite: Int
        /// Of all sites together.
        public var cookies: Int

        /// In the Cookie field of one request.
        public var cookiesPerRequest: Int
        /// The value of the Cookie field of one request, in bytes. Servers refuse heads that are
        /// too long, so that whoever sets enough cookies would make a site unreachable.
        public var bytesPerRequest: Int

        /// RFC 6265 asks for 50 and 3000 at least (section 6.1); browsers have 180 for a site. A
        /// request carries as much as one of curl.
        public init(
            cookiesPerSite: Int = 180, cookies: Int = 3000, cookiesPerRequest: Int = 150,
            bytesPerRequest: Int = 8190
        ) {
            precondition(
                cookiesPerSite > 0 && cookies > 0 && cookiesPerRequest > 0 && bytesPerRequest > 0,
                "a jar without room")
            (self.cookiesPerSite, self.cookies) = (cookiesPerSite, cookies)
            (self.cookiesPerRequest, self.bytesPerRequest) = (cookiesPerRequest, bytesPerRequest)
        }
    }

    /// What became of a Set-Cookie field.
    public enum Outcome: Hashable, Sendable {
        /// It is in the jar, in place of one that had its name.
        case stored
        /// Its end is past: what had its name is gone.
        case removed
        /// Nothing has changed, for this reason.
        case refused(CookieRefusal)
    }

    private struct Entry: Sendable {
        var cookie: Cookie
        /// Seconds since 1970.
        var accessed: Int64
        /// Counts up: which of two cookies of the same second came first.
        var order: UInt64
    }

    /// What the jar has room for.
    public let limits: Limits
    /// By their site, each in no order.
    private var sites: [String: [Entry]] = [:]
    private var nextOrder: UInt64 = 0
    /// How many there are, those whose end is past but that nobody has asked for among them.
    public private(set) var count = 0

    /// An empty jar.
    public init(limits: Limits = Limits()) { self.limits = limits }

    /// All cookies, in the order of their making.
    public var cookies: [Cookie] { entries.map(\.cookie) }

    /// All cookies with the second of their last access, in the order of their making.
    var entries: [(cookie: Cookie, accessed: Int64)] {
        sites.values.joined().sorted { Self.isEarlier($0, $1) }.map { ($0.cookie, $0.accessed) }
    }

    /// The Cookie field of a request; nil: it has none. Counts as an access of what applies to it.
    /// Of more than ``Limits`` allow it has the first ones in order; one that is too long for what
    /// is left is passed over.
    public mutating func field(for request: CookieRequest, at now: Int64) -> String? {
        fieldBytes(for: request, at: now).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The same as it is sent: what servers set need not be UTF-8.
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

    /// The cookies of a request, those of longer paths first, and the older of two first. Counts
    /// as an access of them.
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

    /// Takes a response's Set-Cookie field.
    @discardableResult
    public mutating func store(
        setCookie field: String, from request: CookieRequest, at now: Int64
    ) -> Outcome { store(setCookie: Array(field.utf8), from: request, at: now) }

    /// Takes a response's Set-Cookie field, which need not be UTF-8.
    @discardableResult
    public mutating func store(
        setCookie field: [UInt8], from request: CookieRequest, at now: Int64
    ) -> Outcome {
        do throws(CookieRefusal) {
            let cookie = try Self.cookie(SetCookie(field), from: request, at: now)
            return try store(cookie, from: request, at: now)
        } catch {
            return .refused(error)
        }
    }

    /// Puts a cookie in that no response brought. One whose end is past removes what it replaces.
    public mutating func insert(_ cookie: Cookie, at now: Int64) {
        put(cookie, at: now)
    }

    /// Removes the cookies for which this is so.
    public mutating func removeAll(where isRemoved: (Cookie) -> Bool) {
        for site in Array(sites.keys) {
            replace(site, by: sites[site, default: []].filter { !isRemoved($0.cookie) })
        }
    }

    /// Removes what goes with the session.
    public mutating func endSession() { removeAll { $0.expires == nil } }

    /// Removes those whose end is past.
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
    /// The cookie that a field makes of a response, by the rules that need no other cookie.
    private static func cookie(
        _ field: SetCookie, from request: CookieRequest, at now: Int64
    ) throws(CookieRefusal) -> Cookie {
        var domain = field.domain ?? ""
        guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { throw .foreignDomain }
        if HostName.isPublicSuffix(domain), !domain.isEmpty {
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

    /// What names promise that begin so, in any letter case. A value without a name that begins so
    /// looks the same to a server.
    private static func check(
        prefixOf cookie: Cookie, hasPath: Bool
    ) throws(CookieRefusal) {
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
    ) throws(CookieRefusal) -> Outcome {
        for entry in sites[HostName.site(of: cookie.domain)] ?? [] {
            let other = entry.cookie
            guard other.nameBytes == cookie.nameBytes, !other.isExpired(at: now) else { continue }
            // Who can read or write clear text must not put a cookie before one that is Secure.
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

    /// - Parameter accessed: seconds since 1970; nil: now.
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

    /// Removes what a site has too many of: first what is not Secure, and of that what was not
    /// accessed for longest (rfc6265bis, section 5.7). The one that has just come stays.
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

    /// Removes what all sites have too many of: what is past its end, then what was not accessed
    /// for longest.
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
