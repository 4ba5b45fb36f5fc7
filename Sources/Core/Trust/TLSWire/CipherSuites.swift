/// How a server proves its identity before TLS 1.3, which depends on the cipher suite that it
/// chose.
package enum ServerProofKind: Hashable, Sendable {
    /// It signs its key for this handshake: ECDHE.
    case signedCurve
    /// It signs its key for this handshake: DHE.
    case signedGroup
    /// Only it can decrypt what the client encrypts to its certificate's key: RSA key exchange.
    case decryption

    /// The proof of a suite; `nil` for suites that do not prove anything by a certificate
    /// (anonymous ones, pre-shared keys, SRP), that others can read (NULL, export, RC4, single DES,
    /// DSS, static DH), or that are not known.
    package init?(suite: UInt16) {
        if Self.curves.contains(suite) {
            self = .signedCurve
        } else if Self.groups.contains(suite) {
            self = .signedGroup
        } else if Self.keys.contains(suite) {
            self = .decryption
        } else {
            return nil
        }
    }

    /// ECDHE_ECDSA and ECDHE_RSA.
    private static let curves: Set<UInt16> = [
        0xC008, 0xC009, 0xC00A, 0xC012, 0xC013, 0xC014, 0xC023, 0xC024, 0xC027, 0xC028, 0xC02B,
        0xC02C, 0xC02F, 0xC030, 0xC048, 0xC049, 0xC04C, 0xC04D, 0xC05C, 0xC05D, 0xC060, 0xC061,
        0xC072, 0xC073, 0xC076, 0xC077, 0xC086, 0xC087, 0xC08A, 0xC08B, 0xC0AC, 0xC0AD, 0xC0AE,
        0xC0AF, 0xCCA8, 0xCCA9,
    ]

    /// DHE_RSA.
    private static let groups: Set<UInt16> = [
        0x0016, 0x0033, 0x0039, 0x0045, 0x0067, 0x006B, 0x0088, 0x009A, 0x009E, 0x009F, 0x00BE,
        0x00C4, 0xC044, 0xC045, 0xC052, 0xC053, 0xC07C, 0xC07D, 0xC09E, 0xC09F, 0xC0A2, 0xC0A3,
        0xCCAA,
    ]

    /// RSA.
    private static let keys: Set<UInt16> = [
        0x000A, 0x002F, 0x0035, 0x003C, 0x003D, 0x0041, 0x0084, 0x0096, 0x009C, 0x009D, 0x00BA,
        0x00C0, 0xC03C, 0xC03D, 0xC050, 0xC051, 0xC07A, 0xC07B, 0xC09C, 0xC09D, 0xC0A0, 0xC0A1,
    ]
}

/// A key for one handshake, with the signature that proves that it is the server's (RFC 5246
/// §7.4.3, RFC 8422 §5.4).
package struct ServerKeyExchange: Hashable, Sendable {
    /// What the signature covers after the two randoms.
    package let parameters: [UInt8]
    /// The `SignatureScheme` of the signature; `nil` before TLS 1.2, where the key determines it.
    package let scheme: UInt16?
    package let signature: [UInt8]

    /// The curves that are strong enough: P-224 and larger, Koblitz and Brainpool curves from 256
    /// bits, X25519 and X448.
    private static let namedCurves: Set<UInt16> = [
        9, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
    ]
    private static let namedCurve: UInt8 = 3
    /// 2048 bits: discrete logarithms in smaller groups can be computed, and then the signature is
    /// worthless.
    private static let groupBytes = 256

    /// Reads the body of the message.
    package init(
        _ body: [UInt8], kind: ServerProofKind, version: UInt16
    ) throws(TLSWireError) {
        var reader = WireReader(body[...], "the ServerKeyExchange")
        let before = reader.remaining.count
        switch kind {
        case .signedCurve:
            guard try reader.byte() == Self.namedCurve,
                Self.namedCurves.contains(try reader.short())
            else { throw .unprovable("an unknown curve") }
            guard try !reader.vector(lengthBytes: 1).isEmpty else {
                throw .malformed("the ServerKeyExchange")
            }
        case .signedGroup:
            let prime = try reader.vector(lengthBytes: 2).drop { $0 == 0 }
            guard
                prime.count > Self.groupBytes
                    || prime.count == Self.groupBytes
                        && (prime.first ?? 0) >= 0x80
            else { throw .unprovable("a Diffie-Hellman group of less than 2048 bits") }
            _ = try reader.vector(lengthBytes: 2)
            _ = try reader.vector(lengthBytes: 2)
        case .decryption: throw .unexpected("a ServerKeyExchange")
        }
        parameters = Array(body.prefix(before - reader.remaining.count))
        scheme = version >= ClientHello.Version.tls12 ? try reader.short() : nil
        signature = Array(try reader.vector(lengthBytes: 2))
        try reader.end()
    }
}
