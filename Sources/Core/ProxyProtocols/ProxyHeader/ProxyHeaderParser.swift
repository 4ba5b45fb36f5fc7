import HTTPCore

/// Reads a PROXY header from the first bytes of a connection, however they arrive.
///
///     first byte P          ──► line ──► LF ──► version 1
///     first byte CR         ──► signature ──► 16 bytes ──► length ──► version 2
///     anything else         ──► missing
///
/// Bytes after the header are never taken: they are the client's own. A parser reads one header;
/// a second one on the same connection is the client's first bytes, and not read by anyone.
package struct ProxyHeaderParser: Sendable {
    /// The most bytes that a line of version 1 has, with its end (§2.1).
    package static let maximumLineBytes = 107
    /// The most bytes that are accepted of version 2, with all fields.
    package static let maximumBytes = 4096

    /// What has arrived of the header.
    private var received: [UInt8] = []

    /// Expects the first byte of a connection.
    package init() {}

    /// How many bytes are held.
    package var heldBytes: Int { received.count }

    /// Takes the next bytes.
    ///
    /// - Returns: how many of them belong to the header, and the header if it is complete. Without
    ///   one, all of them do, and more are expected.
    /// - Throws: why they are none, as soon as that is certain.
    package mutating func take(
        _ bytes: Span<UInt8>
    ) throws(ProxyHeaderError) -> (consumed: Int, header: ProxyHeader?) {
        var index = 0
        while index < bytes.count {
            received.append(bytes[index])
            index += 1
            if let header = try continued() { return (index, header) }
        }
        return (index, nil)
    }

    /// Called after each byte.
    private func continued() throws(ProxyHeaderError) -> ProxyHeader? {
        received[0] == UInt8(ascii: "P") ? try line() : try binary()
    }

    // MARK: Version 1

    private static let lineBegin = Array("PROXY ".utf8)

    private func line() throws(ProxyHeaderError) -> ProxyHeader? {
        let count = received.count
        if count <= Self.lineBegin.count {
            guard received[count - 1] == Self.lineBegin[count - 1] else { throw .missing }
            return nil
        }
        guard received[count - 1] == 0x0A else {
            // The end must fit as well.
            guard count < Self.maximumLineBytes else { throw .lineTooLong }
            // A CR ends a line, or is nowhere in it.
            guard received[count - 2] != 0x0D else { throw .malformedLine }
            return nil
        }
        guard received[count - 2] == 0x0D else { throw .malformedLine }
        let origin = try Self.origin(ofLine: received[Self.lineBegin.count..<(count - 2)])
        return ProxyHeader(.v1, origin)
    }

    /// What a line says after `PROXY ` and before its end.
    private static func origin(
        ofLine line: ArraySlice<UInt8>
    ) throws(ProxyHeaderError) -> ProxyHeader.Origin {
        let words = line.split(separator: 0x20, omittingEmptySubsequences: false)
        // What follows UNKNOWN is ignored (§2.1).
        if words[0].elementsEqual("UNKNOWN".utf8) { return .sender }
        guard words.count == 5 else { throw .malformedLine }
        let family: IPAddress.Family
        if words[0].elementsEqual("TCP4".utf8) {
            family = .v4
        } else if words[0].elementsEqual("TCP6".utf8) {
            family = .v6
        } else {
            throw .malformedLine
        }
        guard let from = address(words[1]), from.family == family,
            let to = address(words[2]), to.family == family,
            let fromPort = port(words[3]), let toPort = port(words[4])
        else { throw .malformedLine }
        return try client(
            Endpoint(address: from, port: fromPort), Endpoint(address: to, port: toPort))
    }

    private static func address(_ text: ArraySlice<UInt8>) -> IPAddress? {
        IPAddress(bytes: text.span)
    }

    /// A decimal number from 0 to 65535 without leading zeros.
    private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard (1...5).contains(digits.count), digits.count == 1 || digits.first != 0x30 else {
            return nil
        }
        var value: UInt32 = 0
        for digit in digits {
            guard 0x30...0x39 ~= digit else { return nil }
            value = value * 10 + UInt32(digit - 0x30)
        }
        return UInt16(exactly: value)
    }

    // MARK: Version 2

    private func binary() throws(ProxyHeaderError) -> ProxyHeader? {
        let count = received.count
        if count <= ProxyHeaderLayout.signature.count {
            guard received[count - 1] == ProxyHeaderLayout.signature[count - 1] else {
                throw .missing
            }
            return nil
        }
        if count == 13 {
            guard received[12] >> 4 == 2 else { throw .version }
            guard ProxyHeaderLayout.Command(rawValue: received[12]) != nil else { throw .command }
        }
        guard count >= ProxyHeaderLayout.fixedBytes else { return nil }
        let total = ProxyHeaderLayout.fixedBytes + number(at: 14)
        if count == ProxyHeaderLayout.fixedBytes { try checkLength(total) }
        return count == total ? ProxyHeader(.v2, try origin()) : nil
    }

    private func checkLength(_ total: Int) throws(ProxyHeaderError) {
        guard total <= Self.maximumBytes else { throw .tooLong }
        guard let family = try family() else { return }
        guard total >= ProxyHeaderLayout.fixedBytes + family.addressBytes else { throw .tooShort }
    }

    /// The family; `nil` for a command that has none, whatever is written there (§2.2).
    private func family() throws(ProxyHeaderError) -> ProxyHeaderLayout.Family? {
        guard received[12] == ProxyHeaderLayout.Command.proxy.rawValue else { return nil }
        guard let family = ProxyHeaderLayout.Family(rawValue: received[13]) else { throw .family }
        return family
    }

    private func origin() throws(ProxyHeaderError) -> ProxyHeader.Origin {
        guard let family = try family() else { return .sender }
        let start = ProxyHeaderLayout.fixedBytes
        switch family {
        // Its whole content is to be ignored.
        case .unspecified: return .sender
        case .ipv4:
            try checkFields(from: start + family.addressBytes)
            return try Self.client(
                Endpoint(address: ipv4(at: start), port: UInt16(number(at: start + 8))),
                Endpoint(address: ipv4(at: start + 4), port: UInt16(number(at: start + 10))))
        case .ipv6:
            try checkFields(from: start + family.addressBytes)
            return try Self.client(
                Endpoint(address: ipv6(at: start), port: UInt16(number(at: start + 32))),
                Endpoint(address: ipv6(at: start + 16), port: UInt16(number(at: start + 34))))
        case .unix:
            try checkFields(from: start + family.addressBytes)
            return .sender
        }
    }

    /// The fields after the addresses: a type, a length and a value each (§2.2.1). They are not
    /// used, except the checksum.
    private func checkFields(from start: Int) throws(ProxyHeaderError) {
        var position = start
        var checksum: Int?
        while position < received.count {
            guard received.count - position >= 3 else { throw .malformedFields }
            let length = number(at: position + 1)
            guard received.count - position - 3 >= length else { throw .malformedFields }
            if received[position] == ProxyHeaderLayout.checksumType {
                guard length == 4, checksum == nil else { throw .checksum }
                checksum = position + 3
            }
            position += 3 + length
        }
        guard let checksum else { return }
        var covered = received
        for index in checksum..<(checksum + 4) { covered[index] = 0 }
        let written = UInt32(number(at: checksum)) << 16 | UInt32(number(at: checksum + 2))
        guard CRC32C.of(covered) == written else { throw .checksum }
    }

    /// Two bytes, most significant first.
    private func number(at index: Int) -> Int {
        Int(received[index]) << 8 | Int(received[index + 1])
    }

    private func word(at index: Int) -> UInt64 {
        received[index..<(index + 8)].reduce(0) { $0 << 8 | UInt64($1) }
    }

    private func ipv4(at index: Int) -> IPAddress {
        .v4(received[index..<(index + 4)].reduce(0) { $0 << 8 | UInt32($1) })
    }

    private func ipv6(at index: Int) -> IPAddress { .v6(word(at: index), word(at: index + 8)) }

    // MARK: Both

    /// A client, unless it can be none.
    private static func client(
        _ source: Endpoint, _ destination: Endpoint
    ) throws(ProxyHeaderError) -> ProxyHeader.Origin {
        switch source.address.unmapped.scope {
        case .unspecified, .multicast, .broadcast: throw .impossibleAddress
        case .loopback, .linkLocal, .private, .shared, .metadata, .reserved, nil: break
        }
        return .client(
            source: Endpoint(address: source.address.unmapped, port: source.port),
            destination: Endpoint(address: destination.address.unmapped, port: destination.port))
    }
}
