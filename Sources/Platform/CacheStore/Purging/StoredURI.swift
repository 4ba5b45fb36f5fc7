import HTTPCore

/// The parts of a cache key: `[route prefix]scheme://host[:port]/path?query`, and for the slices of
/// a representation NUL and numbers after that (`PartsBody.key`).
package struct StoredURI {
    /// The bytes before the URI, with the colon: the kind of route, and whether it is of a QUERY.
    let route: UnsafeRawBufferPointer
    /// The URI, without a slice's numbers.
    package let uri: UnsafeRawBufferPointer
    /// Whether the key is that of a slice.
    let isSlice: Bool

    package init(_ key: UnsafeRawBufferPointer) {
        // No URI has a NUL, and 16 bytes of numbers follow it.
        let numbers = key.count - 17
        let end = numbers >= 0 && key[numbers] == 0 ? numbers : key.count
        isSlice = end < key.count
        let whole = UnsafeRawBufferPointer(rebasing: key[..<end])
        var start = 0
        if let colon = whole.firstIndex(of: UInt8(ascii: ":")) {
            let isScheme =
                colon + 2 < whole.count && whole[colon + 1] == UInt8(ascii: "/")
                && whole[colon + 2] == UInt8(ascii: "/")
            if !isScheme { start = colon + 1 }
        }
        route = UnsafeRawBufferPointer(rebasing: whole[..<start])
        uri = UnsafeRawBufferPointer(rebasing: whole[start...])
    }

    /// Whether it is the key of QUERYs.
    var isQuery: Bool { route.elementsEqual("query:".utf8) || route.hasSuffix("-query:") }

    /// `scheme://host[:port]`.
    var origin: UnsafeRawBufferPointer {
        guard let start = authorityStart else { return UnsafeRawBufferPointer(rebasing: uri[..<0]) }
        return UnsafeRawBufferPointer(rebasing: uri[..<authorityEnd(from: start)])
    }

    /// `host[:port]`.
    var authority: UnsafeRawBufferPointer {
        guard let start = authorityStart else { return UnsafeRawBufferPointer(rebasing: uri[..<0]) }
        return UnsafeRawBufferPointer(rebasing: uri[start..<authorityEnd(from: start)])
    }

    /// The host, an IPv6 address in brackets.
    var host: UnsafeRawBufferPointer {
        let (name, _) = Authority.split(authority[...])
        return UnsafeRawBufferPointer(rebasing: name)
    }

    /// The port, or the scheme's own.
    var port: UInt16 {
        let (_, port) = Authority.split(authority[...])
        if let port, let number = UInt16(String(decoding: port, as: UTF8.self)) { return number }
        return uri.starts(with: "https:".utf8) ? 443 : 80
    }

    /// Whether a path follows the host, or the beginning of one.
    var hasPath: Bool { authorityStart.map { authorityEnd(from: $0) < uri.count } ?? false }

    private var authorityStart: Int? {
        guard let colon = uri.firstIndex(of: UInt8(ascii: ":")), colon + 3 <= uri.count else {
            return nil
        }
        return colon + 3
    }

    private func authorityEnd(from start: Int) -> Int {
        uri[start...].firstIndex(of: UInt8(ascii: "/")) ?? uri.count
    }
}

/// `host[:port]`.
enum Authority {
    /// The host, and the port's digits if there are any after a colon.
    static func split<Bytes: RandomAccessCollection<UInt8>>(
        _ bytes: Bytes
    ) -> (host: Bytes.SubSequence, port: Bytes.SubSequence?) {
        guard let colon = bytes.lastIndex(of: UInt8(ascii: ":")),
            !bytes[colon...].contains(UInt8(ascii: "]"))
        else { return (bytes[...], nil) }
        return (bytes[..<colon], bytes[bytes.index(after: colon)...])
    }
}

extension Collection<UInt8> {
    fileprivate func hasSuffix(_ text: StaticString) -> Bool where Self: BidirectionalCollection {
        let count = text.utf8CodeUnitCount
        guard self.count >= count else { return false }
        return self.suffix(count).elementsEqual(
            UnsafeBufferPointer(start: text.utf8Start, count: count))
    }
}
