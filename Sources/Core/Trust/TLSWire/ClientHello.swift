import HTTPCore

/// A ClientHello (RFC 8446 §4.1.2, RFC 5246 §7.4.1.2), as far as it determines what the server's
/// answer means.
package struct ClientHello: Hashable, Sendable {
    /// The client's Encrypted ClientHello extension (RFC 9849).
    package enum EncryptedHello: Hashable, Sendable {
        case none
        /// A well-formed one, real or GREASE (RFC 9849 §6.2): without the server's key the two
        /// cannot be distinguished.
        case outer
        /// One that no client sends unencrypted, or one of a draft.
        case unknown
    }

    /// The highest version, before 1.3; from 1.3 on it is 1.2.
    package let legacyVersion: UInt16
    package let random: [UInt8]
    package let sessionID: [UInt8]
    package let suites: [UInt16]
    let compression: [UInt8]
    let extensions: HelloExtensions
    /// The host that it requests, in lower case and without a trailing dot; `nil` if it names none.
    package let serverName: String?
    /// The supported versions; `nil` if the extension is absent.
    package let versions: [UInt16]?
    /// The ALPN protocols as in the extension, each preceded by its length; empty if there are
    /// none.
    package let applicationProtocols: [UInt8]
    package let encryptedHello: EncryptedHello
    /// A session ticket, before TLS 1.3; empty if there is none.
    package let ticket: [UInt8]
    /// Whether it resumes, or offers to resume, a TLS 1.3 session.
    package let offersPreSharedKey: Bool
    /// Whether it announces early data.
    package let offersEarlyData: Bool

    /// The TLS versions as they are encoded.
    package enum Version {
        package static let tls10: UInt16 = 0x0301
        package static let tls12: UInt16 = 0x0303
        package static let tls13: UInt16 = 0x0304
    }

    /// Reads the body of the message.
    package init(_ body: [UInt8]) throws(TLSWireError) {
        var reader = WireReader(body[...], "the ClientHello")
        legacyVersion = try reader.short()
        random = Array(try reader.take(32))
        sessionID = Array(try reader.vector(lengthBytes: 1))
        guard sessionID.count <= 32 else { throw .malformed("the session ID of the ClientHello") }
        suites = try reader.shorts(lengthBytes: 2)
        compression = Array(try reader.vector(lengthBytes: 1))
        guard compression.contains(0) else {
            throw .malformed("the compression of the ClientHello")
        }
        extensions = reader.isAtEnd ? HelloExtensions() : try reader.extensions()
        try reader.end()
        serverName = try Self.serverName(extensions[ExtensionType.serverName])
        versions = try Self.versions(extensions[ExtensionType.supportedVersions])
        applicationProtocols = try Self.protocols(extensions[ExtensionType.applicationProtocols])
        encryptedHello = Self.encryptedHello(extensions)
        ticket = extensions[ExtensionType.sessionTicket].map { Array($0) } ?? []
        offersPreSharedKey = extensions[ExtensionType.preSharedKey] != nil
        offersEarlyData = extensions[ExtensionType.earlyData] != nil
    }

    /// Whether the client supports a version.
    package func offers(version: UInt16) -> Bool {
        if let versions { return versions.contains(version) }
        return version <= min(legacyVersion, Version.tls12)
    }

    /// The version in records sent to the client before a version is agreed on.
    package var recordVersion: UInt16 {
        max(Version.tls10, min(legacyVersion, Version.tls12))
    }

    private static func serverName(
        _ content: ArraySlice<UInt8>?
    ) throws(TLSWireError) -> String? {
        guard let content else { return nil }
        let what: StaticText = "the server name of the ClientHello"
        var reader = WireReader(content, what)
        var list = WireReader(try reader.vector(lengthBytes: 2), what)
        try reader.end()
        // No other type of name, and no second name, has ever been defined (RFC 6066 §3).
        guard try list.byte() == 0 else { throw .malformed(what) }
        var name = Array(try list.vector(lengthBytes: 2))
        try list.end()
        if name.last == UInt8(ascii: "."), name.count > 1 { name.removeLast() }
        guard !name.isEmpty, name.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .malformed(what)
        }
        return String(decoding: name.map(ASCII.lowercased), as: UTF8.self)
    }

    private static func versions(
        _ content: ArraySlice<UInt8>?
    ) throws(TLSWireError) -> [UInt16]? {
        guard let content else { return nil }
        var reader = WireReader(content, "the versions of the ClientHello")
        let versions = try reader.shorts(lengthBytes: 1)
        try reader.end()
        return versions
    }

    private static func protocols(
        _ content: ArraySlice<UInt8>?
    ) throws(TLSWireError) -> [UInt8] {
        guard let content else { return [] }
        let what: StaticText = "the protocols of the ClientHello"
        var reader = WireReader(content, what)
        let list = try reader.vector(lengthBytes: 2)
        try reader.end()
        var names = WireReader(list, what)
        while !names.isAtEnd {
            guard try !names.vector(lengthBytes: 1).isEmpty else { throw .malformed(what) }
        }
        return Array(list)
    }

    private static func encryptedHello(
        _ extensions: HelloExtensions
    ) -> EncryptedHello {
        if extensions.entries.contains(where: {
            ExtensionType.encryptedNamesOfDrafts.contains($0.type)
        }) {
            return .unknown
        }
        guard let content = extensions[ExtensionType.encryptedClientHello] else { return .none }
        return OuterEncryptedHello(content) == nil ? .unknown : .outer
    }
}

/// An encrypted ClientHello in the form that a client sends unencrypted (RFC 9849 §5).
struct OuterEncryptedHello {
    /// The key derivation function and the cipher.
    let suite: ArraySlice<UInt8>
    /// The number of the server's configuration.
    let configuration: UInt8
    /// The encapsulated key; empty in a second ClientHello.
    let key: ArraySlice<UInt8>

    /// - Parameter content: the extension's contents. The result is `nil` if they have another
    ///   form.
    init?(_ content: ArraySlice<UInt8>) {
        var reader = WireReader(content, "the encrypted ClientHello")
        do throws(TLSWireError) {
            guard try reader.byte() == 0 else { return nil }
            suite = try reader.take(4)
            configuration = try reader.byte()
            key = try reader.vector(lengthBytes: 2)
            guard try !reader.vector(lengthBytes: 2).isEmpty else { return nil }
            try reader.end()
        } catch {
            return nil
        }
    }
}
