import HTTPCore

/// The bytes of SOCKS 5 (RFC 1928) and of its authentication by user and password (RFC 1929), for
/// both sides: ``SOCKSHandshake`` is a server's, ``SOCKS5ClientHandshake`` a client's.
enum SOCKS5 {
    /// The first byte of every message of RFC 1928.
    static let version: UInt8 = 5
    /// The first byte of a message with user and password, and of the answer to it (RFC 1929 §2).
    static let passwordVersion: UInt8 = 1
    /// The command CONNECT (RFC 1928 §4).
    static let connect: UInt8 = 1

    /// A method of authentication (RFC 1928 §3).
    enum Method {
        static let none: UInt8 = 0
        static let password: UInt8 = 2
        /// The server's choice if it accepts none of those that are offered.
        static let unacceptable: UInt8 = 0xFF
    }

    /// The type of an address (RFC 1928 §5).
    enum AddressType: UInt8 {
        case v4 = 1
        case name = 3
        case v6 = 4

        /// How many bytes the address has; `nil` for a name, whose first byte says it.
        var byteCount: Int? {
            switch self {
            case .v4: 4
            case .v6: 16
            case .name: nil
            }
        }
    }

    /// Where the address is in a message that ends with one and a port, from its type at index 3
    /// on; `nil` until the message says it.
    /// - Parameter type: what its byte at index 3 stands for.
    static func address(of type: AddressType, in message: [UInt8]) -> Range<Int>? {
        if let count = type.byteCount { return 4..<(4 + count) }
        return message.count > 4 ? 5..<(5 + Int(message[4])) : nil
    }

    /// The bytes of a number, the most significant first.
    static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    /// The number that these bytes are, the most significant first.
    static func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Where a client wants to go: what a CONNECT would name.
package struct SOCKSDestination: Hashable, Sendable {
    /// An address, or a name of 1 to 255 bytes in visible ASCII without the delimiters of an
    /// authority. Whether it is one that may be looked up is for the rules on authorities to say.
    package enum Host: Hashable, Sendable {
        case address(IPAddress)
        case name([UInt8])
    }

    package var host: Host
    /// 1 to 65535.
    package var port: UInt16

    /// A destination.
    package init(_ host: Host, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// The destination as the target of a CONNECT (RFC 9112 §3.2.3).
    package var authority: [UInt8] {
        switch host {
        case .address(let address): Array("\(Endpoint(address: address, port: port))".utf8)
        case .name(let name): name + Array(":\(port)".utf8)
        }
    }

    /// `ATYP DST.ADDR DST.PORT` (RFC 1928 §4), in the shortest form.
    var bytes: [UInt8] {
        let type: SOCKS5.AddressType
        let written: [UInt8]
        switch host {
        case .address(let address):
            switch address.unmapped {
            case .v4(let bits): (type, written) = (.v4, SOCKS5.bytes(bits))
            case .v6(let high, let low):
                (type, written) = (.v6, SOCKS5.bytes(high) + SOCKS5.bytes(low))
            }
        case .name(let name):
            let name = name.prefix(255)
            (type, written) = (.name, [UInt8(name.count)] + name)
        }
        return [type.rawValue] + written + SOCKS5.bytes(port)
    }
}

extension SOCKSDestination.Host {
    /// - Parameters:
    ///   - type: what the bytes are.
    /// - Returns: `nil` if they are none.
    init?(_ bytes: ArraySlice<UInt8>, _ type: SOCKS5.AddressType) {
        switch type {
        case .v4: self = .address(.v4(UInt32(SOCKS5.number(bytes))))
        case .v6:
            self = .address(.v6(SOCKS5.number(bytes.prefix(8)), SOCKS5.number(bytes.suffix(8))))
        case .name:
            // An address is judged as one, however it is written.
            if let address = IPAddress(literal: bytes.span) {
                self = .address(address)
            } else if bytes.allSatisfy(Self.mayBeInName) {
                self = .name(Array(bytes))
            } else {
                return nil
            }
        }
    }

    /// Whether a byte can be in a host's name: nothing that would end it in an authority.
    private static func mayBeInName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ":"), UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"),
            UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "@"), UInt8(ascii: "\\"):
            false
        default: 0x21...0x7E ~= byte
        }
    }
}
