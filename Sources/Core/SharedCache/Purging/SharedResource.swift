/// What a purge's pattern is compared with: a URI in the form of cache keys, without the route
/// (`scheme://host[:port]/path?query`), and the tags of the response.
package struct SharedResource: Sendable, Hashable {
    package let uri: [UInt8]
    package let tags: [[UInt8]]
    /// `scheme://host[:port]`; empty if the URI has no such form.
    package let origin: [UInt8]
    /// An IPv6 address in brackets.
    package let host: [UInt8]
    /// The port, or the scheme's own.
    package let port: UInt16

    /// - Parameters:
    ///   - uri: as in a cache key.
    ///   - tags: the members of its tag fields (`ResponseTags`).
    package init(uri: [UInt8], tags: [[UInt8]] = []) {
        self.uri = uri
        self.tags = tags
        let parts = URIParts(uri)
        origin = parts.map { Array(uri[..<$0.authority.upperBound]) } ?? []
        host = parts.map { Array(uri[$0.host]) } ?? []
        port = parts?.port ?? (uri.starts(with: Array("https:".utf8)) ? 443 : 80)
    }

    /// The scopes whose generations are about it. All but those of its tags are known before it is
    /// read.
    package var scopes: [GenerationScope] {
        [.all, .host(host)] + Set(tags).sorted { $0.lexicographicallyPrecedes($1) }.map { .tag($0) }
    }
}

/// Where the authority of a URI is.
struct URIParts {
    /// `host[:port]`.
    let authority: Range<Int>
    let host: Range<Int>
    /// `nil` for none.
    let port: UInt16?

    /// `nil` if there is no authority, or nothing of it.
    init?(_ uri: [UInt8]) {
        guard let colon = uri.firstIndex(of: UInt8(ascii: ":")), colon + 3 <= uri.count,
            uri[colon + 1] == UInt8(ascii: "/"), uri[colon + 2] == UInt8(ascii: "/")
        else { return nil }
        let start = colon + 3
        let end = uri[start...].firstIndex(of: UInt8(ascii: "/")) ?? uri.count
        guard end > start else { return nil }
        authority = start..<end
        // The last colon, unless it is within the brackets of an address.
        if let last = uri[authority].lastIndex(of: UInt8(ascii: ":")),
            !uri[last..<end].contains(UInt8(ascii: "]"))
        {
            host = start..<last
            port = UInt16(String(decoding: uri[(last + 1)..<end], as: UTF8.self))
        } else {
            host = authority
            port = nil
        }
    }
}
