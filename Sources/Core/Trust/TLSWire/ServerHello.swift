/// A ServerHello (RFC 8446 §4.1.3, RFC 5246 §7.4.1.3).
package struct ServerHello: Hashable, Sendable {
    /// The negotiated version.
    package let version: UInt16
    package let random: [UInt8]
    package let sessionID: [UInt8]
    package let suite: UInt16
    /// The SCTs of Certificate Transparency, as in the extension; `nil` if it is absent.
    package let timestamps: [UInt8]?
    let extensions: HelloExtensions

    /// SHA-256 of `HelloRetryRequest`: the random of a ServerHello that is a HelloRetryRequest (RFC
    /// 8446 §4.1.3).
    private static let retryRandom: [UInt8] = [
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8,
        0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8,
        0x33, 0x9C,
    ]

    /// Whether it is a HelloRetryRequest, which exists only in TLS 1.3.
    package var isHelloRetryRequest: Bool { random == Self.retryRandom }

    /// Reads the body of the message.
    ///
    /// - Throws: also for anything that the ClientHello did not offer. This matters most for the
    ///   version: a client that does not know TLS 1.3 ignores its extension, and reads what follows
    ///   as TLS 1.2.
    package init(_ body: [UInt8], answering hello: ClientHello) throws(TLSWireError) {
        var reader = WireReader(body[...], "the ServerHello")
        let legacyVersion = try reader.short()
        random = Array(try reader.take(32))
        sessionID = Array(try reader.vector(lengthBytes: 1))
        guard sessionID.count <= 32 else { throw .malformed("the session ID of the ServerHello") }
        suite = try reader.short()
        guard try reader.byte() == 0 else { throw .notOffered("compression") }
        extensions = reader.isAtEnd ? HelloExtensions() : try reader.extensions()
        try reader.end()
        timestamps = extensions[ExtensionType.signedTimestamps].map { Array($0) }
        if let content = extensions[ExtensionType.supportedVersions] {
            var inner = WireReader(content, "the version of the ServerHello")
            version = try inner.short()
            try inner.end()
            // The extension is only for TLS 1.3 (RFC 8446 §4.2.1).
            guard version == ClientHello.Version.tls13, hello.versions != nil,
                legacyVersion == ClientHello.Version.tls12
            else { throw .notOffered("the version") }
        } else {
            version = legacyVersion
            guard version <= ClientHello.Version.tls12 else { throw .notOffered("the version") }
        }
        guard version >= ClientHello.Version.tls10, hello.offers(version: version) else {
            throw .notOffered("the version")
        }
        guard hello.suites.contains(suite) else { throw .notOffered("the cipher suite") }
        // A client aborts for any other (RFC 8446 §4.1.3).
        guard version != ClientHello.Version.tls13 || sessionID == hello.sessionID else {
            throw .notOffered("the session")
        }
        guard !isHelloRetryRequest || version == ClientHello.Version.tls13 else {
            throw .unexpected("a HelloRetryRequest")
        }
    }
}
