import COpenSSL
import HTTPCore
import Trust

/// The contents of a client's first message that the choice of a certificate depends on (RFC 8446
/// §4.1.2). It is read before anything is answered; malformed parts are treated as absent, because
/// the library refuses them afterwards.
package struct TLSClientHello: Hashable, Sendable {
    /// The name in SNI (RFC 6066 §3), in lower case, without a final dot; `nil` for none, or for
    /// one with characters that host names do not have.
    package var serverName: String?
    /// Whether SNI contains a name that no host can have: there is no ``serverName``, but the
    /// client did not omit it either.
    package var namesNoHost: Bool
    /// The offered versions that are known here, oldest first.
    package var versions: [TLSVersion]
    /// Whether a certificate with an ECDSA key on P-256 can be used.
    package var offersECDSA: Bool
    /// The protocols offered by ALPN, most preferred first, or `nil` if the client does not use it.
    package var applicationProtocols: [String]?

    package init(
        serverName: String? = nil, namesNoHost: Bool = false,
        versions: [TLSVersion] = [.tls12, .tls13],
        offersECDSA: Bool = true, applicationProtocols: [String]? = nil
    ) {
        self.serverName = serverName
        self.namesNoHost = namesNoHost
        self.versions = versions
        self.offersECDSA = offersECDSA
        self.applicationProtocols = applicationProtocols
    }
}

// MARK: - Reading it

extension TLSClientHello {
    /// Reads what the library has received; valid only within its callback for the message.
    init(_ ssl: OpaquePointer) {
        let versions = Self.versions(ssl)
        let name = Self.nameBytes(ssl)
        let host = name.flatMap(Self.hostName)
        self.init(
            serverName: host, namesNoHost: name != nil && host == nil, versions: versions,
            offersECDSA: Self.offersECDSA(ssl, isTLS13: versions.contains(.tls13)),
            applicationProtocols: Self.applicationProtocols(ssl))
    }

    /// Reads an extension; `nil` if it is absent or malformed.
    private static func withExtension<R>(
        _ type: Int32, of ssl: OpaquePointer,
        _ read: (inout WireReader) throws(TLSWireError) -> R
    ) -> R? {
        var start: UnsafePointer<UInt8>?
        var count = 0
        guard SSL_client_hello_get0_ext(ssl, UInt32(type), &start, &count) == 1 else { return nil }
        var reader = Self.reader(start, count)
        return try? read(&reader)
    }

    private static func reader(_ start: UnsafePointer<UInt8>?, _ count: Int) -> WireReader {
        WireReader(Array(UnsafeBufferPointer(start: start, count: count))[...], "a ClientHello")
    }

    /// The name in SNI as it is; `nil` for none, and for one that the library rejects.
    private static func nameBytes(_ ssl: OpaquePointer) -> [UInt8]? {
        let what: StaticText = "the server name of a ClientHello"
        return withExtension(TLSEXT_TYPE_server_name, of: ssl) { reader throws(TLSWireError) in
            var list = WireReader(try reader.vector(lengthBytes: 2), what)
            guard try list.byte() == UInt8(TLSEXT_NAMETYPE_host_name) else {
                throw .unexpected(what)
            }
            return Array(try list.vector(lengthBytes: 2))
        }
    }

    private static func hostName(_ name: [UInt8]) -> String? {
        var bytes = name.map(ASCII.lowercased)
        if bytes.last == UInt8(ascii: "."), bytes.count > 1 { bytes.removeLast() }
        guard (1...253).contains(bytes.count), bytes.allSatisfy(isOfHostName) else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Letters, digits, `-`, `.`, `_`, and the other characters of IPv6 addresses.
    private static func isOfHostName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"),
            UInt8(ascii: "["), UInt8(ascii: "]"):
            true
        default: false
        }
    }

    private static func versions(_ ssl: OpaquePointer) -> [TLSVersion] {
        let offered = numbers(TLSEXT_TYPE_supported_versions, of: ssl, lengthBytes: 1)
        if let offered {
            return TLSVersion.allCases.filter { offered.contains(UInt16($0.number)) }
        }
        let newest = Int32(SSL_client_hello_get0_legacy_version(ssl))
        return TLSVersion.allCases.filter { $0 != .tls13 && $0.number <= newest }
    }

    /// Whether the client resumes TLS 1.3 sessions with a new key exchange, as this server does:
    /// tickets are of no use to others (RFC 8446 §4.2.9). Valid only within the callback, too.
    static func takesTickets(_ ssl: OpaquePointer) -> Bool {
        let withKeyExchange: UInt8 = 1
        let modes = withExtension(TLSEXT_TYPE_psk_kex_modes, of: ssl) {
            reader throws(TLSWireError) in
            try reader.vector(lengthBytes: 1)
        }
        return modes?.contains(withKeyExchange) ?? false
    }

    private static func applicationProtocols(_ ssl: OpaquePointer) -> [String]? {
        let type = TLSEXT_TYPE_application_layer_protocol_negotiation
        return withExtension(type, of: ssl) { reader throws(TLSWireError) in
            try reader.vectors(lengthBytes: 2, eachLengthBytes: 1)
        }?.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The two-byte numbers of an extension that is a vector of them.
    private static func numbers(
        _ type: Int32, of ssl: OpaquePointer, lengthBytes: Int = 2
    ) -> [UInt16]? {
        withExtension(type, of: ssl) { reader throws(TLSWireError) in
            try reader.shorts(lengthBytes: lengthBytes)
        }
    }
}

// MARK: - Kinds of keys

extension TLSClientHello {
    private static let secp256r1: UInt16 = 23
    private static let ecdsaWithP256AndSHA256: UInt16 = 0x0403
    /// The second byte of the ECDSA signature algorithms before TLS 1.3 (RFC 5246 §7.4.1.4.1).
    private static let ecdsaSignature: UInt16 = 3

    private static func offersECDSA(_ ssl: OpaquePointer, isTLS13: Bool) -> Bool {
        let algorithms = numbers(TLSEXT_TYPE_signature_algorithms, of: ssl)
        if isTLS13 { return algorithms?.contains(ecdsaWithP256AndSHA256) ?? false }
        if let algorithms, !algorithms.contains(where: { $0 & 0xFF == ecdsaSignature }) {
            return false
        }
        // Without the extension any group will do (RFC 8422 §4).
        let groups = numbers(TLSEXT_TYPE_supported_groups, of: ssl)
        return groups?.contains(secp256r1) ?? true && offersSuiteWithECDSA(ssl)
    }

    /// Before TLS 1.3 the cipher suite determines the kind of signing key.
    private static func offersSuiteWithECDSA(_ ssl: OpaquePointer) -> Bool {
        var start: UnsafePointer<UInt8>?
        let count = SSL_client_hello_get0_ciphers(ssl, &start)
        var reader = Self.reader(start, count)
        while let suite = try? reader.short() {
            let bytes = [UInt8(suite >> 8), UInt8(suite & 0xFF)]
            guard let cipher = SSL_CIPHER_find(ssl, bytes) else { continue }
            if SSL_CIPHER_get_auth_nid(cipher) == NID_auth_ecdsa { return true }
        }
        return false
    }
}
