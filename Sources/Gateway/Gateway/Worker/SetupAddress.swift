import HTTPCore

/// The host by which clients reach a listener, as written on the setup pages.
enum SetupAddress {
    /// The listener's own address. If it listens on all of the machine's addresses: the host under
    /// which the page was requested, or else the address that was connected to.
    ///
    /// - Parameters:
    ///   - listener: the address that is listened on.
    ///   - host: the host in the request, verified to be the gateway's own; without port and
    ///     brackets.
    ///   - local: the connection's local address.
    /// - Returns: a name or an address, IPv6 in brackets: never anything with a special meaning in
    ///   a shell, a browser or a terminal.
    static func host(listener: IPAddress, asked host: String, local: IPAddress?) -> String {
        if listener.unmapped.scope != .unspecified { return text(listener) }
        if let address = IPAddress(host) { return text(address) }
        let name = host.lowercasedASCII
        if isPlainName(name) { return name }
        return text(local ?? .loopbackV4)
    }

    private static func text(_ address: IPAddress) -> String {
        HostText.bracketed(address.unmapped.description)
    }

    private static func isPlainName(_ name: String) -> Bool {
        guard (1...253).contains(name.utf8.count), name.utf8.first != UInt8(ascii: "-") else {
            return false
        }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
