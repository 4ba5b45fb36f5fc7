import HTTPCore

// Messages as header blocks (RFC 9113 §8.3).
extension HeaderEncoder {
    /// Encodes the head of a response.
    /// - Parameters:
    ///   - status: 100 to 999, and not 101.
    ///   - lines: the field lines, each complete.
    ///   - sensitive: fields that were received as never to be indexed.
    ///   - writer: overflows, and the encoder stays as it is, if the block might not fit.
    public mutating func encodeResponse(
        status: UInt16, lines: Span<UInt8>, sensitive: SensitiveNames = SensitiveNames(),
        into writer: inout HeadWriter
    ) {
        lines.withUnsafeBytes { lines in
            writer.append(atMost: Self.bound(lines.count)) { start in
                var place = begin(start)
                place = Self.encode(status: status, to: place)
                return encode(lines, in: .response, sensitive: sensitive, to: place) - start
            }
        }
    }

    /// Encodes a trailer section.
    public mutating func encodeTrailers(
        lines: Span<UInt8>, sensitive: SensitiveNames = SensitiveNames(),
        into writer: inout HeadWriter
    ) {
        lines.withUnsafeBytes { lines in
            writer.append(atMost: Self.bound(lines.count)) { start in
                let place = begin(start)
                return encode(lines, in: .trailers, sensitive: sensitive, to: place) - start
            }
        }
    }

    /// Encodes the head of a request.
    /// - Parameters:
    ///   - method: a token.
    ///   - scheme: `nil` for CONNECT without a protocol, which has no path either.
    ///   - authority: the host, and the port if it is not the scheme's; without user information.
    ///   - path: the path and query, or `*`; not looked at without a scheme.
    ///   - protocolName: the protocol of an extended CONNECT (RFC 8441 §4), or nothing.
    ///   - lines: the field lines, each complete. Host is left out.
    ///   - sensitive: fields that were received as never to be indexed.
    ///   - writer: overflows, and the encoder stays as it is, if the block might not fit.
    public mutating func encodeRequest(
        method: Span<UInt8>, scheme: Scheme?, authority: Span<UInt8>, path: Span<UInt8>,
        protocolName: Span<UInt8> = Span(), lines: Span<UInt8>,
        sensitive: SensitiveNames = SensitiveNames(), into writer: inout HeadWriter
    ) {
        let bound =
            Self.bound(lines.count)
            + Self.bound(method.count + authority.count + path.count + protocolName.count)
        writer.append(atMost: bound) { start in
            var place = begin(start)
            place = method.withUnsafeBytes { Self.encode(method: $0, to: place) }
            place = authority.withUnsafeBytes { encode(authority: $0, to: place) }
            if let scheme {
                place.storeBytes(of: scheme == .https ? 0x87 : 0x86, as: UInt8.self)
                place = path.withUnsafeBytes { Self.encode(path: $0, to: place + 1) }
            }
            if !protocolName.isEmpty {
                place = protocolName.withUnsafeBytes { Self.encode(protocolName: $0, to: place) }
            }
            return lines.withUnsafeBytes {
                encode($0, in: .request, sensitive: sensitive, to: place) - start
            }
        }
    }

    /// `:status`: the static table has seven; three digits are not worth an entry.
    private static func encode(
        status: UInt16, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let index: UInt8
        switch status {
        case 200: index = 8
        case 204: index = 9
        case 206: index = 10
        case 304: index = 11
        case 400: index = 12
        case 404: index = 13
        case 500: index = 14
        default:
            // A literal with the name of index 8 and a string of three bytes.
            place.storeBytes(of: UInt16(0x0308).littleEndian, as: UInt16.self)
            let (hundreds, rest) = status.quotientAndRemainder(dividingBy: 100)
            let digits = (hundreds, rest / 10, rest % 10)
            place.storeBytes(
                of: 0x30 &+ UInt8(truncatingIfNeeded: digits.0), toByteOffset: 2, as: UInt8.self)
            place.storeBytes(
                of: 0x30 &+ UInt8(truncatingIfNeeded: digits.1), toByteOffset: 3, as: UInt8.self)
            place.storeBytes(
                of: 0x30 &+ UInt8(truncatingIfNeeded: digits.2), toByteOffset: 4, as: UInt8.self)
            return place + 5
        }
        place.storeBytes(of: 0x80 | index, as: UInt8.self)
        return place + 1
    }

    private static func encode(
        method: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        if method.elementsEqual("GET".utf8) { return indexed(2, to: place) }
        if method.elementsEqual("POST".utf8) { return indexed(3, to: place) }
        return literal(method, name: 2, to: place)
    }

    private static func encode(
        path: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        if path.count == 1, path[0] == UInt8(ascii: "/") { return indexed(4, to: place) }
        return literal(path, name: 4, to: place)
    }

    private static func encode(
        protocolName: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let name: StaticString = ":protocol"
        place.storeBytes(of: 0, as: UInt8.self)
        let end = StringEncoder.write(
            name.utf8Start, count: name.utf8CodeUnitCount, lowercases: false, to: place + 1)
        return string(protocolName, to: end)
    }

    /// `:authority`, which is the same for nearly all requests on a connection.
    private mutating func encode(
        authority bytes: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return place }
        if table.holds(authority, start, bytes.count) {
            return PrefixInteger.write(
                table.wireIndex(authority), mask: 0x7F, pattern: 0x80, to: place)
        }
        let size = 10 + bytes.count + DecodingTable.entryOverhead
        guard size <= table.limit / 2 else { return Self.literal(bytes, name: 1, to: place) }
        place.storeBytes(of: 0x41, as: UInt8.self)
        authority = table.addValue(start, bytes.count, size: size)
        return Self.string(bytes, to: place + 1)
    }

    private static func indexed(
        _ index: UInt8, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        place.storeBytes(of: 0x80 | index, as: UInt8.self)
        return place + 1
    }

    /// A literal that is not added to the table.
    private static func literal(
        _ value: UnsafeRawBufferPointer, name: UInt8, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        place.storeBytes(of: name, as: UInt8.self)
        return string(value, to: place + 1)
    }

    private static func string(
        _ bytes: UnsafeRawBufferPointer, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        guard let start = bytes.baseAddress else {
            place.storeBytes(of: 0, as: UInt8.self)
            return place + 1
        }
        return StringEncoder.write(start, count: bytes.count, lowercases: false, to: place)
    }
}
