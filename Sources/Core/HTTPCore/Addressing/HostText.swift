/// Hosts as URLs and Host fields have them.
package enum HostText {
    /// A name or address, in brackets where it is an IPv6 address (RFC 3986, section 3.2.2).
    package static func bracketed(_ host: String) -> String {
        let isBare = host.utf8.contains(UInt8(ascii: ":")) && host.utf8.first != UInt8(ascii: "[")
        return isBare ? "[\(host)]" : host
    }

    /// A name or address, in brackets where it needs them, and a port.
    package static func text(_ host: String, port: UInt16) -> String {
        "\(bracketed(host)):\(port)"
    }
}
