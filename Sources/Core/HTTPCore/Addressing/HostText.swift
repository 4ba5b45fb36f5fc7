/// Hosts as they are written in URLs and Host fields.
public enum HostText {
    /// A name or address, in brackets if it is an IPv6 address (RFC 3986 §3.2.2).
    public static func bracketed(_ host: String) -> String {
        let isBare = host.utf8.contains(UInt8(ascii: ":")) && host.utf8.first != UInt8(ascii: "[")
        return isBare ? "[\(host)]" : host
    }

    /// A name or address, in brackets if it is an IPv6 address, and a port.
    public static func text(_ host: String, port: UInt16) -> String {
        "\(bracketed(host)):\(port)"
    }
}
