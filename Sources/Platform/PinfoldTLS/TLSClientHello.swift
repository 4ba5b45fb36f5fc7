import COpenSSL
import HTTPCore

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

    private static func withExtension<R>(
        _ type: Int32, of ssl: OpaquePointer, _ read: (inout MessageReader) -> R?
    ) -> R? {
        var start: UnsafePointer<UInt8>?
        var count = 0
        guard SSL_client_hello_get0_ext(ssl, UInt32(type), &start, &count) == 1 else { return nil }
        var reader = MessageReader(UnsafeBufferPointer(start: start, count: count))
        return read(&reader)
    }

    /// The name in SNI as it is; `nil` for none, and for one that the library rejects.
    private static func nameBytes(_ ssl: OpaquePointer) -> [UInt8]? {
        withExtension(TLSEXT_TYPE_server_name, of: ssl) { reader in
            guard var list = reader.vector16(), list.next8() == UInt8(TLSEXT_NAMETYPE_host_name)
            else { return nil }
            return list.vector16().map { Array($0.rest) }
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
        let offered = withExtension(TLSEXT_TYPE_supported_versions, of: ssl) { reader in
            reader.vector8()?.numbers
        }
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
        let modes = withExtension(TLSEXT_TYPE_psk_kex_modes, of: ssl) { $0.vector8() }
        return modes?.rest.contains(withKeyExchange) ?? false
    }

    private static func applicationProtocols(_ ssl: OpaquePointer) -> [String]? {
        withExtension(TLSEXT_TYPE_application_layer_protocol_negotiation, of: ssl) { reader in
            guard var list = reader.vector16() else { return nil }
            var names: [String] = []
            while let name = list.vector8() {
                names.append(String(decoding: name.rest, as: UTF8.self))
            }
            return names
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
        let algorithms = withExtension(TLSEXT_TYPE_signature_algorithms, of: ssl) { reader in
            reader.vector16()?.numbers
        }
        if isTLS13 { return algorithms?.contains(ecdsaWithP256AndSHA256) ?? false }
        if let algorithms, !algorithms.contains(where: { $0 & 0xFF == ecdsaSignature }) {
            return false
        }
        // Without the extension any group will do (RFC 8422 §4).
        let groups = withExtension(TLSEXT_TYPE_supported_groups, of: ssl) { reader in
            reader.vector16()?.numbers
        }
        return groups?.contains(secp256r1) ?? true && offersSuiteWithECDSA(ssl)
    }

    /// Before TLS 1.3 the cipher suite determines the kind of signing key.
    private static func offersSuiteWithECDSA(_ ssl: OpaquePointer) -> Bool {
        var start: UnsafePointer<UInt8>?
        let count = SSL_client_hello_get0_ciphers(ssl, &start)
        var reader = MessageReader(UnsafeBufferPointer(start: start, count: count))
        while let suite = reader.next16() {
            let bytes = [UInt8(suite >> 8), UInt8(suite & 0xFF)]
            guard let cipher = SSL_CIPHER_find(ssl, bytes) else { continue }
            if SSL_CIPHER_get_auth_nid(cipher) == NID_auth_ecdsa { return true }
        }
        return false
    }
}

/// Reads numbers and vectors as TLS encodes them (RFC 8446 §3); `nil` if there are too few bytes.
private struct MessageReader {
    private(set) var rest: Slice<UnsafeBufferPointer<UInt8>>

    init(_ bytes: UnsafeBufferPointer<UInt8>) { rest = bytes[...] }

    private init(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) { rest = bytes }

    mutating func next8() -> UInt8? { rest.popFirst() }

    mutating func next16() -> UInt16? {
        guard rest.count >= 2, let high = next8(), let low = next8() else { return nil }
        return UInt16(high) << 8 | UInt16(low)
    }

    /// A vector with a one-byte length.
    mutating func vector8() -> MessageReader? { next8().flatMap { take(Int($0)) } }

    /// A vector with a two-byte length.
    mutating func vector16() -> MessageReader? { next16().flatMap { take(Int($0)) } }

    private mutating func take(_ count: Int) -> MessageReader? {
        guard rest.count >= count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return MessageReader(rest.prefix(count))
    }

    /// The remaining two-byte numbers.
    var numbers: [UInt16] {
        var reader = self
        var numbers: [UInt16] = []
        while let number = reader.next16() { numbers.append(number) }
        return numbers
    }
}
