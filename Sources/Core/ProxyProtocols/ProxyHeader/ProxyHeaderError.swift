/// Why the first bytes of a connection are not a PROXY header.
package enum ProxyHeaderError: String, Error, Sendable, CaseIterable {
    /// They do not begin like one: the peer speaks something else.
    case missing
    /// A line of version 1 has no end within 107 bytes.
    case lineTooLong
    /// A line of version 1 is not what the grammar allows.
    case malformedLine
    /// The version of a binary header is not 2.
    case version
    /// The command is neither LOCAL nor PROXY.
    case command
    /// The family and transport are unknown, or those of datagrams.
    case family
    /// The header is longer than ``ProxyHeaderParser/maximumBytes``.
    case tooLong
    /// The header ends within its addresses.
    case tooShort
    /// The fields after the addresses do not end where the header does.
    case malformedFields
    /// The checksum is wrong, or there are several.
    case checksum
    /// The client's address is none that a client can have.
    case impossibleAddress

    /// What is wrong, and what was expected.
    package var explanation: String {
        switch self {
        case .missing: "the connection does not begin with a PROXY header"
        case .lineTooLong: "its line has no end within 107 bytes"
        case .malformedLine:
            "its line is none of PROXY TCP4, TCP6 (two addresses, two ports, each after one "
                + "space, without leading zeros) and UNKNOWN, ended by CR LF"
        case .version: "its version is not 2"
        case .command: "its command is neither LOCAL nor PROXY"
        case .family: "its family is not that of a stream over IPv4, IPv6 or a Unix socket"
        case .tooLong: "it has more than \(ProxyHeaderParser.maximumBytes) bytes"
        case .tooShort: "it ends within its addresses"
        case .malformedFields: "its fields (TLV) do not end where it does"
        case .checksum: "its checksum (CRC32C) is wrong or repeated"
        case .impossibleAddress:
            "its source is an unspecified, multicast or broadcast address, which is no client's"
        }
    }
}
