import HTTPCore

/// What a PROXY header says about a connection: the first bytes with which a load balancer tells
/// for whom it has connected (haproxy's proxy-protocol.txt, versions 1 and 2).
package struct ProxyHeader: Equatable, Sendable {
    /// The form of the header.
    package enum Version: UInt8, Sendable, CaseIterable {
        /// A line of text (§2.1).
        case v1 = 1
        /// A binary header (§2.2).
        case v2
    }

    /// For whom the sender has connected.
    package enum Origin: Equatable, Sendable {
        /// For a client that connected from `source` to `destination`.
        case client(source: Endpoint, destination: Endpoint)
        /// For itself, as for a health check, or for a client that has no address: `LOCAL` and
        /// `UNKNOWN`, and families without an address of the network. The connection's own
        /// addresses count.
        case sender
    }

    /// The form in which it was read, or is to be written.
    package var version: Version
    /// For whom the connection is.
    package var origin: Origin

    /// Creates a header from its parts.
    package init(_ version: Version, _ origin: Origin) {
        self.version = version
        self.origin = origin
    }
}

/// The parts of a header of version 2 (§2.2).
enum ProxyHeaderLayout {
    /// The twelve bytes with which each begins.
    static let signature: [UInt8] = [
        0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A,
    ]
    /// The signature, version and command, family and transport, and the length of the rest.
    static let fixedBytes = 16
    /// The type of the field with a checksum over the header (§2.2.3).
    static let checksumType: UInt8 = 3

    enum Command: UInt8 {
        case local = 0x20
        case proxy = 0x21
    }

    /// The families that a stream may have.
    enum Family: UInt8 {
        case unspecified = 0x00
        case ipv4 = 0x11
        case ipv6 = 0x21
        case unix = 0x31

        /// How many bytes its addresses and ports take.
        var addressBytes: Int {
            switch self {
            case .unspecified: 0
            case .ipv4: 12
            case .ipv6: 36
            case .unix: 216
            }
        }
    }
}
