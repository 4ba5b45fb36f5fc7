/// The address of a server: a name or an address literal, and a port.
package struct RedisNode: Sendable, Hashable, CustomStringConvertible {
    /// An IPv6 address without brackets.
    package let host: String
    package let port: UInt16

    /// The longest name.
    package static let maximumHostBytes = 255

    /// `nil` unless a host could be named so: visible ASCII, and not too long; and for port 0.
    package init?(host: [UInt8], port: Int64) {
        guard !host.isEmpty, host.count <= Self.maximumHostBytes,
            host.allSatisfy({ 0x21...0x7E ~= $0 }), let port = UInt16(exactly: port), port > 0
        else { return nil }
        self.host = String(decoding: host, as: UTF8.self)
        self.port = port
    }

    package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// Where a node of a cluster says that a key is: `slot host:port`, in the errors MOVED and ASK.
package struct ClusterRedirection: Sendable, Hashable {
    package let slot: UInt16
    /// `nil` if it does not say a host: that of the node which replied.
    package let host: String?
    package let port: UInt16

    /// Reads what follows the code of the error.
    package init?(_ text: ArraySlice<UInt8>) {
        let words = text.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        // Redis 7 may add words after the address.
        guard words.count >= 2, let number = RESPNumber.integer(Array(words[0]).span),
            let slot = UInt16(exactly: number), slot < ClusterSlot.count,
            let colon = words[1].lastIndex(of: UInt8(ascii: ":")),
            let port = RESPNumber.length(Array(words[1][(colon + 1)...]).span)
        else { return nil }
        let host = Array(words[1][..<colon])
        // An IPv6 address has no brackets here, but may be given them by a proxy.
        let bare =
            host.first == UInt8(ascii: "[") && host.last == UInt8(ascii: "]")
            ? Array(host.dropFirst().dropLast()) : host
        guard let node = RedisNode(host: bare.isEmpty ? [0x3F] : bare, port: Int64(port)) else {
            return nil
        }
        self.slot = slot
        self.host = bare.isEmpty ? nil : node.host
        self.port = node.port
    }

    /// The node, if `asked` is the one that has replied.
    package func node(asked: RedisNode) -> RedisNode? {
        RedisNode(host: Array((host ?? asked.host).utf8), port: Int64(port))
    }
}
