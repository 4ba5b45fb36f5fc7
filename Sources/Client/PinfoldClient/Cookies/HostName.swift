import HTTPCore
import PinfoldTLS

/// Host names in cookies (RFC 6265, sections 5.1.2 and 5.1.3).
enum HostName {
    /// The host in lower case, without a trailing dot and without the brackets of an address.
    static func canonical(_ host: String) -> String {
        var bytes = host.utf8.map(ASCII.lowercased)
        if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = Array(bytes.dropFirst().dropLast())
        }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a host is an IP address. This includes the forms that only C libraries accept, in
    /// which the last label is a number.
    static func isAddress(_ host: String) -> Bool {
        if IPAddress(host) != nil { return true }
        guard let last = host.utf8.split(separator: UInt8(ascii: ".")).last else { return false }
        return last.allSatisfy(ASCII.isDigit)
    }

    /// Whether a host is equal to a domain or a subdomain of it. An address matches only itself.
    static func matches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        let (name, end) = (host.utf8, domain.utf8)
        guard !end.isEmpty, name.count > end.count,
            name.dropFirst(name.count - end.count).elementsEqual(end)
        else { return false }
        let before = name.dropFirst(name.count - end.count - 1).first
        return before == UInt8(ascii: ".") && !isAddress(host)
    }

    /// Whether a name is a public suffix, such as `com`, `co.uk` or `github.io`.
    static func isPublicSuffix(_ name: String) -> Bool {
        !isAddress(name) && SuffixList().kind(of: name) != .none
    }

    /// The registrable domain of a host, or the host itself if it has none. All cookies that a host
    /// can see belong to the same site.
    static func site(of host: String) -> String {
        guard !isAddress(host) else { return host }
        var site = host[...]
        while let dot = site.utf8.firstIndex(of: UInt8(ascii: ".")) {
            let above = site[site.index(after: dot)...]
            if above.isEmpty || isPublicSuffix(String(above)) { break }
            site = above
        }
        return String(site)
    }
}
